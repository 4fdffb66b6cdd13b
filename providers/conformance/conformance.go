// Package conformance holds the tests that every adapter passes: what a provider does, and what it has to be told as. A kind
// brings its adapter and a fake that plays the kind's protocol; the cases and what they expect are the same for all, because
// docs/state-machine.md has one table for all.
//
// Time jumps: each case runs in a synctest bubble, over connections in memory.
package conformance

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/exchange"
	"github.com/docket-gateway/docket/providers/providertest"
)

// Fake plays one protocol. All behaviours are required but those that are marked.
type Fake struct {
	Protocol providertest.Protocol

	Says    func(output string) providertest.Behaviour // a complete answer in several pieces; 11 input tokens, providertest.CachedTokens of them from the cache; providertest.Tokens(output) output tokens
	Starts  providertest.Behaviour                     // acknowledges, sends a piece, and then nothing
	Cut     providertest.Behaviour                     // some pieces and a clean end, without what marks the end
	Damaged providertest.Behaviour                     // a complete answer with a broken event in its middle
	Refuses providertest.Behaviour
	Filters providertest.Behaviour // the provider's filter ends the answer
	AtLimit providertest.Behaviour // the token limit ends the answer
	// FiltersByError: the filter ends the answer by an error, which tells neither a finish reason nor the output tokens.
	FiltersByError bool
	CallsTool      providertest.Behaviour // asks for a tool that nobody offered; nil if the protocol's answers are tool calls

	Error func(status int, code string, headers ...string) providertest.Behaviour // the provider's own error body

	// Codes and statuses of the provider's own errors.
	RateLimit, Quota, Overload, Internal Code
	// InStream are errors in the middle of an answer; nil where the protocol has none.
	OverloadInStream, InternalInStream providertest.Behaviour
}

// Code is an error as the provider tells it.
type Code struct {
	Status int // 0: the provider has no such error
	Code   string
}

// Adapter is a kind under test.
type Adapter struct {
	Config   providers.Config // kind and settings; name, address, key, models and times are set here
	New      func(providers.Config, exchange.Options) (providers.Provider, error)
	Fake     Fake
	Identity []string // the request headers that carry the attempt's id
	KeyIn    string   // the request header that holds the API key
}

// Output is the answer of a request that goes well: characters of every plane, escapes, and numbers that no double holds.
const Output = `{"text":"prüfen 🖨️ \u2028 \"q\" \\ עברית","n":12345678901234567890.10}`

// Schema is what Request asks for.
const Schema = `{"type":"object","additionalProperties":false,"required":["text","n"],"properties":{"text":{"type":"string"},"n":{"type":"number"}}}`

// Model is the model that Request names.
const Model = "model-1"

// Key is the configured API key.
const Key = "sk-secret-key"

// Request returns the request that all cases send.
func Request() providers.Request {
	return providers.Request{
		AttemptID: "att_01", Task: "echo", Model: Model, System: "Echo.", Prompt: "secret prompt: prüfen 🖨️",
		Input: json.RawMessage(`{"text":"secret prompt"}`), Schema: json.RawMessage(Schema), MaxOutputTokens: 1000,
		Traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
	}
}

// Run runs all cases.
func Run(t *testing.T, a Adapter) {
	t.Run("Outcomes", func(t *testing.T) { t.Parallel(); outcomes(t, a) })
	t.Run("Times", func(t *testing.T) { t.Parallel(); times(t, a) })
	t.Run("Request", func(t *testing.T) { t.Parallel(); request(t, a) })
	t.Run("SystemPrompt", func(t *testing.T) { t.Parallel(); systemPrompt(t, a) })
}

// Bundle is one adapter and the fake that it talks to, in a bubble.
type Bundle struct {
	Server   *providertest.Server
	Sender   providers.Provider
	Recorder *Recorder
}

// Bubble runs f in a synctest bubble with an adapter that has the default times, changed by change if it is not nil.
func Bubble(t *testing.T, a Adapter, change func(*providers.Config), f func(*testing.T, *Bundle)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, url, dial := providertest.StartPipedOf(t, a.Fake.Protocol)
		cfg := a.Config
		cfg.Name, cfg.BaseURL, cfg.APIKey = "fake", url, Key
		cfg.Models = append(cfg.Models, providers.Model{Name: Model})
		cfg.AckTimeout, cfg.IdleTimeout = providers.DefaultAckTimeout, providers.DefaultIdleTimeout
		cfg.TotalTimeout, cfg.Linger = providers.DefaultTotalTimeout, providers.DefaultLinger
		if change != nil {
			change(&cfg)
		}
		p, err := a.New(cfg, exchange.Options{DialContext: dial})
		require.NoError(t, err)
		f(t, &Bundle{Server: server, Sender: p, Recorder: &Recorder{start: time.Now()}})
	})
}

// Recorder keeps what the reporter is told, with the time since the start.
type Recorder struct {
	Said []string
	Ack  providers.Acknowledgement
	Late providers.Acknowledgement // what came after Unknown; not in Said
	// On is called with everything that is told, if it is not nil.
	On    func(said string)
	start time.Time
}

func (r *Recorder) note(s string) {
	r.Said = append(r.Said, s+" "+time.Since(r.start).String())
	if r.On != nil {
		r.On(s)
	}
}

// Acknowledged implements providers.Reporter.
func (r *Recorder) Acknowledged(a providers.Acknowledgement) { r.Ack = a; r.note("acknowledged") }

// AcknowledgedLate implements providers.LateReporter.
func (r *Recorder) AcknowledgedLate(a providers.Acknowledgement) { r.Late = a }

// Progress implements providers.Reporter.
func (r *Recorder) Progress() {}

// Unknown implements providers.Reporter.
func (r *Recorder) Unknown(f providers.Failure) { r.note("unknown " + f.Code) }
