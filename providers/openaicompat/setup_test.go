package openaicompat_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/exchange"
	"github.com/docket-gateway/docket/providers/openaicompat"
	"github.com/docket-gateway/docket/providers/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const schema = `{"type":"object","required":["category","priority","summary"],"properties":{"category":{"enum":["billing","other"]},"priority":{"enum":["low","normal"]},"summary":{"type":"string","maxLength":200}}}`

func request(model string) providers.Request {
	return providers.Request{
		AttemptID: "att_1", Task: "triage", Model: model, System: "Sort.", Prompt: "A refund, please: prüfen 🖨️",
		Schema: json.RawMessage(schema), Temperature: 0.1, MaxOutputTokens: 1000,
		Traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
	}
}

const answer = `{"category":"billing","priority":"normal","summary":"A refund, please: prüfen 🖨️"}`

// recorder keeps what the reporter is told, with the time since the start in a bubble.
type recorder struct {
	mu    sync.Mutex
	start time.Time
	said  []string
	ack   providers.Acknowledgement
	on    func(said string)
}

func (r *recorder) note(s string) {
	r.mu.Lock()
	r.said = append(r.said, s)
	on := r.on
	r.mu.Unlock()
	if on != nil {
		on(s)
	}
}

func (r *recorder) at(s string) string                       { return s + " " + time.Since(r.start).String() }
func (r *recorder) Acknowledged(a providers.Acknowledgement) { r.ack = a; r.note(r.at("acknowledged")) }
func (r *recorder) Progress()                                {}
func (r *recorder) Unknown(f providers.Failure)              { r.note(r.at("unknown " + f.Code)) }

type testBundle struct {
	server *providertest.Server
	cfg    providers.Config
	sender *openaicompat.Provider
}

// setup runs the fake on loopback. Its time-outs are longer than any test of them is meant to wait.
func setup(t *testing.T, change func(*providers.Config)) *testBundle {
	t.Helper()
	server, url := providertest.Start(t)
	return &testBundle{server: server, cfg: config(url, change), sender: sender(t, config(url, change), exchange.Options{})}
}

func config(url string, change func(*providers.Config)) providers.Config {
	cfg := providers.Config{Name: "fake", Kind: openaicompat.Kind, BaseURL: url, APIKey: "sk-secret",
		AckTimeout: 20 * time.Second, IdleTimeout: 20 * time.Second, TotalTimeout: 30 * time.Second}
	if change != nil {
		change(&cfg)
	}
	return cfg
}

func sender(t *testing.T, cfg providers.Config, opts exchange.Options) *openaicompat.Provider {
	t.Helper()
	p, err := openaicompat.NewWithOptions(cfg, opts)
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p
}

func (b *testBundle) send(ctx context.Context, model string) (providers.Outcome, *recorder) {
	r := &recorder{start: time.Now()}
	return b.sender.Send(ctx, request(model), r), r
}

func triageSchema(t *testing.T) json.RawMessage {
	t.Helper()
	raw, err := os.ReadFile("../demo/testdata/triage.output.schema.json")
	require.NoError(t, err)
	return raw
}

var noOptions exchange.Options

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}
