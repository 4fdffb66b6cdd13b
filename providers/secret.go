package providers

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
)

// minSecret is the length in bytes from which a secret is looked for. A shorter one may be a word ("ollama", "EMPTY") that
// a local server wants to see, and that an answer may hold by itself.
const minSecret = 12

const redacted = "[redacted]"

// Secret is a value that nothing that a provider says may carry on: providers quote requests in their errors, and a server
// may be told to send a header back.
type Secret string

// Redact replaces the secret in a text.
func (s Secret) Redact(text string) string {
	if len(s) < minSecret {
		return text
	}
	return strings.ReplaceAll(text, string(s), redacted)
}

// In says whether an output holds the secret, as it stands or in a string of its JSON.
func (s Secret) In(output []byte) bool {
	if len(s) < minSecret {
		return false
	}
	if bytes.Contains(output, []byte(s)) {
		return true
	}
	if !bytes.ContainsRune(output, '\\') {
		return false
	}
	tokens := json.NewDecoder(bytes.NewReader(output))
	tokens.UseNumber()
	for {
		token, err := tokens.Token()
		if err != nil {
			return false
		}
		if text, ok := token.(string); ok && strings.Contains(text, string(s)) {
			return true
		}
	}
}

// Echoed is the failure of an answer that holds the secret. It is no result: it would be stored and shown to the job's owner.
func (s Secret) Echoed() *Failure {
	return &Failure{Code: CodeSecretEchoed, Message: "the answer holds a secret of this server's configuration"}
}

func (s Secret) acknowledgement(a Acknowledgement) Acknowledgement {
	a.ProviderRequestID = s.Redact(a.ProviderRequestID)
	if s.Redact(a.Handle) != a.Handle { // a part of it names nothing
		a.Handle = ""
	}
	return a
}

func (s Secret) failure(f *Failure) *Failure {
	if f == nil {
		return nil
	}
	g := *f
	g.Code, g.Message = s.Redact(f.Code), s.Redact(f.Message)
	return &g
}

func (s Secret) error(err error) error {
	if err != nil && s.Redact(err.Error()) != err.Error() {
		return &Failure{Code: CodeAdapter, Message: s.Redact(err.Error())}
	}
	return err
}

func (s Secret) outcome(o Outcome) Outcome {
	o.Failure = s.failure(o.Failure)
	o.ProviderRequestID, o.FinishReason = s.Redact(o.ProviderRequestID), s.Redact(o.FinishReason)
	if o.Kind == Completed && s.In(o.Output) {
		o.Kind, o.Failure = Failed, s.Echoed()
	}
	if o.Kind != Completed {
		o.Output = nil
	}
	return o
}

// keep stands between an adapter and everything else, so that no adapter can pass the secret on.
func (s Secret) keep(p Provider) Provider {
	if len(s) < minSecret {
		return p
	}
	k := keeper{p, s}
	switch r := p.(type) {
	case Canceller:
		return cancellingKeeper{retrievingKeeper{k, r}, r}
	case Retriever:
		return retrievingKeeper{k, r}
	default:
		return k
	}
}

type keeper struct {
	Provider

	secret Secret
}

func (k keeper) Send(ctx context.Context, req Request, r Reporter) Outcome {
	return k.secret.outcome(k.Provider.Send(ctx, req, keptReporter{r, k.secret}))
}

// Unwrap returns the adapter.
func (k keeper) Unwrap() Provider { return k.Provider }

type retrievingKeeper struct {
	keeper

	retriever Retriever
}

func (k retrievingKeeper) Retrieve(ctx context.Context, q Query) (Outcome, error) {
	o, err := k.retriever.Retrieve(ctx, q)
	return k.secret.outcome(o), k.secret.error(err)
}

type cancellingKeeper struct {
	retrievingKeeper

	canceller Canceller
}

func (k cancellingKeeper) Cancel(ctx context.Context, q Query) (*Usage, error) {
	u, err := k.canceller.Cancel(ctx, q)
	return u, k.secret.error(err)
}

type keptReporter struct {
	Reporter

	secret Secret
}

func (r keptReporter) Acknowledged(a Acknowledgement) {
	r.Reporter.Acknowledged(r.secret.acknowledgement(a))
}

func (r keptReporter) AcknowledgedLate(a Acknowledgement) {
	AcknowledgeLate(r.Reporter, r.secret.acknowledgement(a))
}

func (r keptReporter) Unknown(f Failure) { r.Reporter.Unknown(*r.secret.failure(&f)) }
