package exchange

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/internal/canonical"
)

const (
	// PayloadType is what an envelope says that it holds. The payload tells its format in a key of its own.
	PayloadType = "application/vnd.docket.contract-results+json"
	// MaxBytes bounds an envelope.
	MaxBytes = 16 << 20

	format        = 1
	maxSignatures = 16
)

// ErrRefused is wrapped by every error about what an envelope holds, as against one that cannot be read.
var ErrRefused = errors.New("the results are refused")

// Entry is one result with the id under which it was stored first.
type Entry struct {
	ID     string        `json:"id"`
	Result report.Result `json:"result"`
}

type payload struct {
	Format     int       `json:"format"`
	ExportedAt time.Time `json:"exported_at"`
	Results    []Entry   `json:"results"`
}

// Seal signs the results.
func Seal(ctx context.Context, key PrivateKey, entries []Entry, now time.Time) ([]byte, error) {
	if len(entries) == 0 {
		return nil, errors.New("there is no result to sign")
	}
	body, err := encode(payload{Format: format, ExportedAt: now.UTC(), Results: entries})
	if err != nil {
		return nil, err
	}
	s, err := dsse.NewEnvelopeSigner(signer{key})
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	e, err := s.SignPayload(ctx, PayloadType, body)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	raw, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	if raw = append(raw, '\n'); len(raw) > MaxBytes {
		return nil, fmt.Errorf("the signed results take %d bytes, more than the %d that can be imported; export fewer at once", len(raw), MaxBytes)
	}
	return raw, nil
}

// encode gives the canonical form, so that one content has one text.
func encode(p payload) ([]byte, error) {
	raw, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encode the results: %w", err)
	}
	raw, err = canonical.Canonicalize(raw)
	if err != nil {
		return nil, fmt.Errorf("encode the results: %w", err)
	}
	return raw, nil
}

// Open verifies an envelope against the trusted keys and everything in it against itself, and returns its results with the id of
// the trusted key that signed them. Errors wrap ErrRefused; then nothing of it is to be believed. latest is the time that no run
// may have ended after.
func Open(ctx context.Context, raw []byte, trusted []PublicKey, latest time.Time) (entries []Entry, keyID string, err error) {
	body, keyID, err := verify(ctx, raw, trusted)
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w", ErrRefused, err)
	}
	entries, err = decode(body)
	if err != nil {
		return nil, "", fmt.Errorf("%w: the payload: %w", ErrRefused, err)
	}
	for i, e := range entries {
		if slices.ContainsFunc(entries[:i], func(o Entry) bool { return o.ID == e.ID }) {
			err = errors.New("it is there twice")
		} else {
			err = e.check(latest)
		}
		if err != nil {
			return nil, "", fmt.Errorf("%w: result %d (%q, %q at %q): %w", ErrRefused, i+1, e.ID, e.Result.Task, e.Result.Target, err)
		}
	}
	return entries, keyID, nil
}

func verify(ctx context.Context, raw []byte, trusted []PublicKey) (body []byte, keyID string, err error) {
	if len(raw) > MaxBytes {
		return nil, "", fmt.Errorf("the envelope is larger than %d bytes", MaxBytes)
	}
	var e dsse.Envelope
	if err := strictly(raw, &e); err != nil {
		return nil, "", fmt.Errorf("the envelope: %w", err)
	}
	switch {
	case e.PayloadType != PayloadType:
		return nil, "", fmt.Errorf("the payload's type is %q, not %q", e.PayloadType, PayloadType)
	case len(e.Signatures) == 0:
		return nil, "", errors.New("there is no signature")
	case len(e.Signatures) > maxSignatures:
		return nil, "", fmt.Errorf("there are more than %d signatures", maxSignatures)
	}
	var list []dsse.Verifier
	var ids []string
	for _, k := range trusted { // the library takes one key twice for two subkeys, and prints so
		if !slices.Contains(ids, k.ID) {
			ids, list = append(ids, k.ID), append(list, verifier{k})
		}
	}
	v, err := dsse.NewEnvelopeVerifier(list...)
	if err != nil {
		return nil, "", errors.New("no key is trusted")
	}
	accepted, body, err := v.VerifyAndDecode(ctx, &e)
	if err != nil || len(accepted) == 0 {
		return nil, "", errors.New("no signature is that of a trusted key for this payload")
	}
	return body, accepted[0].KeyID, nil
}

func decode(body []byte) ([]Entry, error) {
	var p payload
	if err := strictly(body, &p); err != nil {
		return nil, err
	}
	if p.Format != format {
		return nil, fmt.Errorf("its format is %d; this version knows %d", p.Format, format)
	}
	if len(p.Results) == 0 {
		return nil, errors.New("there is no result in it")
	}
	// What is read must be all that was signed: the decoder takes keys in any case, and null for anything.
	canon, err := encode(p)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(canon, body) {
		return nil, errors.New("it is not what this version would have written")
	}
	return p.Results, nil
}

// strictly decodes one JSON text without repeated or unknown keys.
func strictly(raw []byte, into any) error {
	if err := canonical.Check(raw); err != nil {
		return err //nolint:wrapcheck // the caller says of what
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}
