package exchange_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"github.com/stretchr/testify/require"
	"go.jetify.com/typeid"

	"github.com/docket-gateway/docket/contracts/exchange"
	"github.com/docket-gateway/docket/contracts/report"
)

var now = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

func key(t *testing.T) exchange.PrivateKey {
	t.Helper()
	k, err := exchange.GenerateKey()
	require.NoError(t, err)
	return k
}

// entry is a pass of two hours ago, changed by change if given, and then judged.
func entry(change func(*report.Result)) exchange.Entry {
	digest := "sha256:" + strings.Repeat("a", 64)
	r := report.Result{Task: "triage", Target: "acme/small", Mode: report.Live, Runs: 1, RanBy: "ci",
		StartedAt: now.Add(-3 * time.Hour), FinishedAt: now.Add(-2 * time.Hour),
		Basis: report.Basis{TaskVersion: digest, CasesDigest: digest, ConfigDigest: digest, ChecksVersion: "2", Parts: report.Parts{"task/temperature": "=0"}},
		Cases: []report.Case{{Name: "one", Runs: []report.Run{{Number: 1}}}}}
	for _, name := range report.Checks() {
		r.Cases[0].Runs[0].Checks = append(r.Cases[0].Runs[0].Checks, report.Check{Name: name, Status: report.Passed, Message: "<&>\u2028ä"})
	}
	if change != nil {
		change(&r)
	}
	r.Judge()
	return exchange.Entry{ID: typeid.Must(typeid.WithPrefix("ctr")).String(), Result: r}
}

func seal(t *testing.T, k exchange.PrivateKey, entries ...exchange.Entry) []byte {
	t.Helper()
	raw, err := exchange.Seal(t.Context(), k, entries, now)
	require.NoError(t, err)
	return raw
}

func TestOpensWhatATrustedKeySealed(t *testing.T) {
	t.Parallel()
	k := key(t)
	entries := []exchange.Entry{entry(nil), entry(func(r *report.Result) { r.Cases[0].Runs[0].Checks[0].Status = report.Failed })}
	got, signer, err := exchange.Open(t.Context(), seal(t, k, entries...), []exchange.PublicKey{key(t).PublicKey, k.PublicKey, k.PublicKey}, now)
	require.NoError(t, err)
	require.Equal(t, entries, got)
	require.Equal(t, k.ID, signer)
	require.True(t, got[0].Result.Passed)
	require.False(t, got[1].Result.Passed, "a failure is carried too")
}

// sign seals any text as a payload.
func sign(t *testing.T, k exchange.PrivateKey, kind, body string) []byte {
	t.Helper()
	s, err := dsse.NewEnvelopeSigner(exchange.Signer(k))
	require.NoError(t, err)
	e, err := s.SignPayload(t.Context(), kind, []byte(body))
	require.NoError(t, err)
	raw, err := json.Marshal(e)
	require.NoError(t, err)
	return raw
}

func body(t *testing.T, raw []byte) string {
	t.Helper()
	var e dsse.Envelope
	require.NoError(t, json.Unmarshal(raw, &e))
	b, err := base64.StdEncoding.DecodeString(e.Payload)
	require.NoError(t, err)
	return string(b)
}

func TestRefusesHostileEnvelopes(t *testing.T) {
	t.Parallel()
	trusted, other := key(t), key(t)
	good := seal(t, trusted, entry(nil))
	text := body(t, good)
	edit := func(change func(*dsse.Envelope)) []byte {
		var e dsse.Envelope
		require.NoError(t, json.Unmarshal(good, &e))
		change(&e)
		raw, err := json.Marshal(e)
		require.NoError(t, err)
		return raw
	}
	replace := func(before, after string) []byte {
		require.Contains(t, text, before)
		return sign(t, trusted, exchange.PayloadType, strings.Replace(text, before, after, 1))
	}
	for name, tc := range map[string]struct {
		raw    []byte
		reason string
	}{
		"OtherKey": {seal(t, other, entry(nil)), "no signature is that of a trusted key"},
		"OtherKeyWithItsId": {edit(func(e *dsse.Envelope) {
			e.Signatures[0].Sig = signature(t, other, text)
			e.Signatures[0].KeyID = trusted.ID
		}), "no signature is"},
		"ChangedPayload": {edit(func(e *dsse.Envelope) {
			e.Payload = base64.StdEncoding.EncodeToString([]byte(strings.Replace(text, "acme/small", "acme/large", 1)))
		}), "no signature is"},
		"StrippedSignatures": {edit(func(e *dsse.Envelope) { e.Signatures = nil }), "there is no signature"},
		"EmptySignature":     {edit(func(e *dsse.Envelope) { e.Signatures[0].Sig = "" }), "no signature is"},
		"ManySignatures":     {edit(func(e *dsse.Envelope) { e.Signatures = slices.Repeat(e.Signatures, 17) }), "more than 16 signatures"},
		"OtherType":          {sign(t, trusted, "application/vnd.in-toto+json", text), "the payload's type is"},
		"TypeNotSigned":      {edit(func(e *dsse.Envelope) { e.PayloadType = "text/plain" }), "the payload's type is"},
		"NotJSON":            {[]byte("results"), "the envelope: "},
		"Empty":              {nil, "the envelope: "},
		"TwoEnvelopes":       {append(slices.Clone(good), good...), "the envelope: "},
		"DuplicateKey":       {bytes.Replace(good, []byte(`"payloadType"`), []byte(`"payload": "e30=", "payloadType"`), 1), "the envelope: "},
		"UnknownKey":         {bytes.Replace(good, []byte(`"payloadType"`), []byte(`"more": 1, "payloadType"`), 1), "the envelope: "},
		"Huge":               {append(slices.Clone(good), bytes.Repeat([]byte(" "), exchange.MaxBytes)...), "larger than"},

		"PayloadDuplicateKey": {replace(`"task":"triage"`, `"task":"triage","task":"other"`), "the payload: "},
		"PayloadOtherCase":    {replace(`"task":"triage"`, `"Task":"triage"`), "not what this version would have written"},
		"PayloadUnknownKey":   {replace(`"task":"triage"`, `"task":"triage","trust":true`), "the payload: "},
		"PayloadSpace":        {replace(`"task":"triage"`, `"task": "triage"`), "not what this version would have written"},
		"PayloadOtherFormat":  {replace(`"format":1`, `"format":2`), "its format is 2"},
		"PayloadNoResult":     {sign(t, trusted, exchange.PayloadType, `{"exported_at":"2026-03-14T12:00:00Z","format":1,"results":[]}`), "there is no result"},
		"PayloadNull":         {sign(t, trusted, exchange.PayloadType, `null`), "its format is 0"},

		"OtherTarget":     {replace("acme/small", "acme/large"), "its digest is not that of"},
		"OtherVersion":    {replace(`"task_version":"sha256:a`, `"task_version":"sha256:b`), "its digest is not that of"},
		"FailureAsPass":   {replace(`"status":"PASSED"`, `"status":"FAILED"`), "it says passed: true"},
		"PassAsFailure":   {replace(`"passed":true`, `"passed":false`), "it says passed: false"},
		"CheckLeftOut":    {replace(`"name":"faults"`, `"name":"fault"`), "it says passed: true"},
		"Replay":          {seal(t, trusted, entry(func(r *report.Result) { r.Mode = report.Replay })), `of mode "replay"`},
		"UnknownMode":     {seal(t, trusted, entry(func(r *report.Result) { r.Mode = "dream" })), `of mode "dream"`},
		"Future":          {seal(t, trusted, entry(func(r *report.Result) { r.FinishedAt = now.Add(time.Second) })), "ended in the future"},
		"Backwards":       {seal(t, trusted, entry(func(r *report.Result) { r.StartedAt = r.FinishedAt.Add(time.Second) })), "ended before it began"},
		"NoDates":         {seal(t, trusted, entry(func(r *report.Result) { r.StartedAt, r.FinishedAt = time.Time{}, time.Time{} })), "ended before it began"},
		"NoTask":          {seal(t, trusted, entry(func(r *report.Result) { r.Task = "" })), "task is empty"},
		"LongName":        {seal(t, trusted, entry(func(r *report.Result) { r.RanBy = strings.Repeat("x", 1025) })), "ran_by is"},
		"NoDigest":        {seal(t, trusted, entry(func(r *report.Result) { r.Basis.CasesDigest = "x" })), "cases_digest is not a digest"},
		"NoId":            {seal(t, trusted, exchange.Entry{ID: "1", Result: entry(nil).Result}), "its id is not"},
		"IdOfAnotherKind": {seal(t, trusted, exchange.Entry{ID: typeid.Must(typeid.WithPrefix("job")).String(), Result: entry(nil).Result}), "its id is not"},
		"Twice":           {seal(t, trusted, slices.Repeat([]exchange.Entry{entry(nil)}, 2)...), "it is there twice"},
		"OneBadOfTwo":     {seal(t, trusted, entry(nil), entry(func(r *report.Result) { r.Mode = report.Replay })), "result 2 "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			entries, signer, err := exchange.Open(t.Context(), tc.raw, []exchange.PublicKey{trusted.PublicKey}, now)
			require.ErrorIs(t, err, exchange.ErrRefused)
			require.ErrorContains(t, err, tc.reason)
			require.Empty(t, entries)
			require.Empty(t, signer)
		})
	}

	t.Run("NobodyTrusted", func(t *testing.T) {
		t.Parallel()
		_, _, err := exchange.Open(t.Context(), good, nil, now)
		require.ErrorIs(t, err, exchange.ErrRefused)
	})

	t.Run("OneOfSeveralSignaturesIsEnough", func(t *testing.T) {
		t.Parallel()
		for range 4 { // whatever the order
			raw := edit(func(e *dsse.Envelope) {
				e.Signatures = slices.Collect(maps.Values(map[int]dsse.Signature{
					1: {KeyID: other.ID, Sig: signature(t, other, text)}, 2: e.Signatures[0], 3: {KeyID: trusted.ID, Sig: signature(t, other, text)}}))
			})
			_, signer, err := exchange.Open(t.Context(), raw, []exchange.PublicKey{trusted.PublicKey}, now)
			require.NoError(t, err)
			require.Equal(t, trusted.ID, signer, "the one that counted")
		}
	})
}

func signature(t *testing.T, k exchange.PrivateKey, text string) string {
	t.Helper()
	sig, err := exchange.Signer(k).Sign(t.Context(), dsse.PAE(exchange.PayloadType, []byte(text)))
	require.NoError(t, err)
	return base64.StdEncoding.EncodeToString(sig)
}

func TestKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "ci")
	k := key(t)
	require.NoError(t, k.Write(name))
	for file, mode := range map[string]os.FileMode{name: 0o600, name + ".pub": 0o644} {
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm()|mode&0o044, file) // whatever the umask takes from the public one
	}
	info, err := os.Stat(name)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	private, err := exchange.ReadPrivateKey(name)
	require.NoError(t, err)
	require.Equal(t, k, private)
	public, err := exchange.ReadPublicKey(name + ".pub")
	require.NoError(t, err)
	require.Equal(t, k.PublicKey, public)
	require.Regexp(t, "^SHA256:[A-Za-z0-9+/]{43}$", k.ID)

	require.ErrorIs(t, key(t).Write(name), os.ErrExist, "a key is never overwritten")
	require.NoError(t, os.Remove(name))
	require.ErrorIs(t, key(t).Write(name), os.ErrExist)
	require.NoFileExists(t, name, "no half of a pair")

	ec := "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEMKBCTNIcKUSDii11ySs3526iDZ8A\niTo7Tu6KPAqv7D7gS2XpJFbZiItSs3m9+9Ue6GnvHw/GW2ZZaVtszggXIw==\n-----END PUBLIC KEY-----\n"
	raw, err := os.ReadFile(name + ".pub")
	require.NoError(t, err)
	for text, reason := range map[string]string{
		"":                         "not PEM",
		"ssh-ed25519 AAAA ci":      "not PEM",
		ec:                         "no Ed25519 key",
		string(raw) + string(raw):  "more than one key",
		strings.Repeat("x", 65537): "larger than",
		strings.ReplaceAll(string(raw), "PUBLIC", "PRIVATE"): `holds a "PRIVATE KEY"`,
	} {
		file := filepath.Join(t.TempDir(), "key")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := exchange.ReadPublicKey(file)
		require.ErrorContains(t, err, reason)
	}
	_, err = exchange.ReadPrivateKey(name + ".pub")
	require.ErrorContains(t, err, `holds a "PUBLIC KEY"`)
	_, err = exchange.ReadPublicKey(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestSealsNothingThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	_, err := exchange.Seal(t.Context(), key(t), nil, now)
	require.Error(t, err)
	big := entry(func(r *report.Result) { r.Cases[0].Runs[0].Checks[0].Message = strings.Repeat("x", exchange.MaxBytes) })
	_, err = exchange.Seal(t.Context(), key(t), []exchange.Entry{big}, now)
	require.ErrorContains(t, err, "more than the 16777216")
}
