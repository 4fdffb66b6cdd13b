package providers_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/providers"
)

const key = "sk-canary-0123456789"

// echo is a provider that puts a text into everything that it says.
type echo struct {
	stub
	text string
	kind providers.OutcomeKind
}

func (e echo) outcome() providers.Outcome {
	return providers.Outcome{Kind: e.kind, Output: []byte(`{"a":"` + e.text + `"}`), ProviderRequestID: "req " + e.text, FinishReason: e.text,
		Failure: &providers.Failure{Code: e.text, Message: "wrong key " + e.text}, Usage: &providers.Usage{InputTokens: new(3)}}
}

func (e echo) Send(_ context.Context, _ providers.Request, r providers.Reporter) providers.Outcome {
	r.Acknowledged(providers.Acknowledgement{ProviderRequestID: e.text, Handle: "h-" + e.text})
	r.Progress()
	r.Unknown(providers.Failure{Code: e.text, Message: e.text, Retryable: true})
	providers.AcknowledgeLate(r, providers.Acknowledgement{ProviderRequestID: e.text, Handle: "late-" + e.text})
	return e.outcome()
}

type retrieving struct{ echo }

func (r retrieving) Retrieve(context.Context, providers.Query) (providers.Outcome, error) {
	return r.outcome(), errors.New("no such handle at " + r.text)
}

type cancelling struct{ retrieving }

func (c cancelling) Cancel(context.Context, providers.Query) (*providers.Usage, error) {
	return &providers.Usage{InputTokens: new(3)}, errors.New("cannot cancel at " + c.text)
}

type heard struct {
	ack     providers.Acknowledgement
	late    providers.Acknowledgement
	unknown providers.Failure
	alive   bool
}

func (h *heard) Acknowledged(a providers.Acknowledgement)     { h.ack = a }
func (h *heard) AcknowledgedLate(a providers.Acknowledgement) { h.late = a }
func (h *heard) Progress()                                    { h.alive = true }
func (h *heard) Unknown(f providers.Failure)                  { h.unknown = f }

func sender(t *testing.T, apiKey string, p providers.Provider) providers.Provider {
	t.Helper()
	c := valid()
	c.APIKey = apiKey
	r, err := providers.NewRegistry([]providers.Config{c}, map[string]providers.Factory{
		"stub": func(providers.Config) (providers.Provider, error) { return p, nil }})
	require.NoError(t, err)
	return r.Targets()[0].Sender
}

func TestNoAdapterPassesTheKeyOn(t *testing.T) {
	t.Parallel()
	for _, kind := range []providers.OutcomeKind{providers.Completed, providers.Failed, providers.Unknown} {
		h := &heard{}
		p := sender(t, key, echo{stub{"7"}, key, kind})
		require.Equal(t, "7", p.AdapterVersion())
		o := p.Send(t.Context(), providers.Request{}, h)
		require.NotContains(t, h.ack.ProviderRequestID+h.ack.Handle+h.unknown.Code+h.unknown.Message, "canary")
		require.Empty(t, h.ack.Handle)
		require.Equal(t, providers.Acknowledgement{ProviderRequestID: "[redacted]"}, h.late)
		require.True(t, h.alive)
		require.True(t, h.unknown.Retryable)
		require.NotContains(t, o.Failure.Code+o.Failure.Message+o.ProviderRequestID+o.FinishReason+string(o.Output), "canary")
		require.Nil(t, o.Output)
		require.Equal(t, 3, *o.Usage.InputTokens, "it is billed all the same")
		if kind == providers.Completed {
			require.Equal(t, providers.Failed, o.Kind)
			require.Equal(t, providers.CodeSecretEchoed, o.Failure.Code)
			require.False(t, o.Failure.Retryable)
		} else {
			require.Equal(t, kind, o.Kind)
			require.Equal(t, "wrong key [redacted]", o.Failure.Message)
		}
		_, asks := p.(providers.Retriever)
		require.False(t, asks, "what cannot be asked does not seem to be")
	}
	r, asks := sender(t, key, retrieving{echo{stub{"1"}, key, providers.Failed}}).(providers.Retriever)
	require.True(t, asks)
	o, err := r.Retrieve(t.Context(), providers.Query{})
	require.ErrorContains(t, err, "no such handle at [redacted]")
	require.NotContains(t, o.Failure.Message, "canary")
	_, cancels := r.(providers.Canceller)
	require.False(t, cancels, "what cannot be cancelled does not seem to be")
	c, cancels := sender(t, key, cancelling{retrieving{echo{stub{"1"}, key, providers.Failed}}}).(providers.Canceller)
	require.True(t, cancels)
	used, err := c.Cancel(t.Context(), providers.Query{})
	require.EqualError(t, err, providers.CodeAdapter+": cannot cancel at [redacted]")
	require.Equal(t, 3, *used.InputTokens)
	_, err = c.Retrieve(t.Context(), providers.Query{})
	require.ErrorContains(t, err, "no such handle at [redacted]")
}

func TestWhatHoldsNoKeyIsLeftAlone(t *testing.T) {
	t.Parallel()
	h := &heard{}
	o := sender(t, key, echo{text: "fine", kind: providers.Completed}).Send(t.Context(), providers.Request{}, h)
	require.Equal(t, providers.Completed, o.Kind)
	require.JSONEq(t, `{"a":"fine"}`, string(o.Output))
	require.Equal(t, "h-fine", h.ack.Handle)
	require.Equal(t, "late-fine", h.late.Handle)
	// A short key is a word that an answer may hold.
	o = sender(t, "ollama", echo{text: "ollama", kind: providers.Completed}).Send(t.Context(), providers.Request{}, h)
	require.Equal(t, providers.Completed, o.Kind)
	require.Equal(t, "h-ollama", h.ack.Handle)
}

func TestSecretIsFoundBehindEscapes(t *testing.T) {
	t.Parallel()
	s := providers.Secret("sk-\"quoted\"/canary")
	for output, want := range map[string]bool{
		`{"a":["x sk-\"quoted\"\/canary y"]}`:                     true,
		`{"sk-\u0022quoted\u0022\u002fcanary":1}`:                 true,
		`{"a":"sk-\"quoted\"\/canar"}`:                            false,
		`{"a":"\\"}`:                                              false,
		`prose with sk-"quoted"/canary`:                           true,
		`{"a":1e400, "b": "\ud83d\ude00", "c":"sk-\"quoted\"/c"}`: false,
		``: false,
	} {
		require.Equal(t, want, s.In([]byte(output)), output)
	}
}
