package faults_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/faults"
	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/anthropic"
	"github.com/docket-gateway/docket/providers/anthropic/anthropictest"
	"github.com/docket-gateway/docket/providers/demo"
	"github.com/docket-gateway/docket/providers/gemini"
	"github.com/docket-gateway/docket/providers/gemini/geminitest"
	"github.com/docket-gateway/docket/providers/openai"
	"github.com/docket-gateway/docket/providers/openai/openaitest"
	"github.com/docket-gateway/docket/providers/openaicompat"
	"github.com/docket-gateway/docket/providers/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const model = "model-1"

// key is long enough to be looked for, so that a keeper stands around each adapter.
const key = "sk-secret-of-the-test"

var aspects = []string{"rate_limit", "overload", "gateway", "refusal", "truncation", "content_filter", "html", "malformed_stream",
	"truncated_stream", "cut_off", "connection_reset", "ack_timeout", "idle_timeout", "total_timeout"}

func registry(t *testing.T, c providers.Config, factory providers.Factory) *providers.Registry {
	t.Helper()
	d := providers.Defaults()
	d.Name, d.Kind, d.APIKey, d.BaseURL = "some", c.Kind, key, c.BaseURL
	d.API, d.Background, d.StrictSchema, d.Models = c.API, c.Background, c.StrictSchema, c.Models
	d.AckTimeout, d.IdleTimeout, d.Linger = time.Hour, time.Hour, time.Hour // not what is waited for here
	d.TotalTimeout = time.Hour
	if d.Models == nil {
		d.Models = []providers.Model{{Name: model}}
	}
	r, err := providers.NewRegistry([]providers.Config{d}, map[string]providers.Factory{c.Kind: factory})
	require.NoError(t, err)
	return r
}

func inject(t *testing.T, r *providers.Registry, mode report.Mode) map[string]report.Check {
	t.Helper()
	target := r.Targets()[0]
	checks, err := faults.New(r).Inject(t.Context(), contracts.Suite{}, contracts.Endpoint{Target: target}, mode)
	require.NoError(t, err)
	by := map[string]report.Check{}
	for _, c := range checks {
		require.Equal(t, report.CheckFaults, c.Name)
		require.NotContains(t, c.Message, key)
		by[c.Aspect] = c
	}
	require.Len(t, by, len(checks))
	return by
}

func TestEveryKindOfProvider(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		config   providers.Config
		factory  providers.Factory
		protocol providertest.Protocol
		path     string
	}{
		"OpenAICompatible": {providers.Config{Kind: openaicompat.Kind}, openaicompat.New, providertest.ChatCompletions(), "/v1"},
		"Responses":        {providers.Config{Kind: openai.Kind, StrictSchema: true}, openai.New, openaitest.Responses(), "/v1"},
		"Background":       {providers.Config{Kind: openai.Kind, Background: true}, openai.New, openaitest.Responses(), "/v1"},
		"Chat":             {providers.Config{Kind: openai.Kind, API: openai.APIChat}, openai.New, openaitest.Chat(), "/v1"},
		"Anthropic":        {providers.Config{Kind: anthropic.Kind}, anthropic.New, anthropictest.Messages(), ""},
		"AnthropicTool": {providers.Config{Kind: anthropic.Kind, Models: []providers.Model{{Name: model, StructuredOutput: anthropic.StructuredTool}}},
			anthropic.New, anthropictest.Messages(), "/v1"},
		"Gemini": {providers.Config{Kind: gemini.Kind}, gemini.New, geminitest.Stream(), "/v1beta"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake, url := providertest.StartOf(t, tc.protocol)
			tc.config.BaseURL = strings.TrimSuffix(url, "/v1") + tc.path
			r := registry(t, tc.config, tc.factory)
			for _, mode := range []report.Mode{report.Live, report.Replay} {
				begin := time.Now()
				by := inject(t, r, mode)
				require.Less(t, time.Since(begin), 15*time.Second)
				require.Len(t, by, len(aspects))
				for _, aspect := range aspects {
					require.Equal(t, report.Check{Name: report.CheckFaults, Aspect: aspect, Status: report.Passed}, by[aspect], mode)
				}
				require.Len(t, fake.Log(), 1, "one request goes to the provider, and none in a replay")
			}
		})
	}
}

// wrong is an adapter that makes something else of one thing.
type wrong struct {
	*openaicompat.Provider

	change func(ctx context.Context, p providers.Provider, req providers.Request, r providers.Reporter) providers.Outcome
}

func (w wrong) Send(ctx context.Context, req providers.Request, r providers.Reporter) providers.Outcome {
	return w.change(ctx, w.Provider, req, r)
}

// withWrong is a registry whose adapter goes wrong when it talks to an address that holds the aspect.
func withWrong(t *testing.T, aspect string, change func(providers.Outcome) providers.Outcome) *providers.Registry {
	t.Helper()
	_, url := providertest.Start(t)
	return registry(t, providers.Config{Kind: openaicompat.Kind, BaseURL: url}, func(c providers.Config) (providers.Provider, error) {
		p, err := openaicompat.New(c)
		if err != nil || !strings.Contains(c.BaseURL, "/"+aspect+"/") {
			return p, err
		}
		return wrong{p.(*openaicompat.Provider), func(ctx context.Context, p providers.Provider, req providers.Request, r providers.Reporter) providers.Outcome {
			return change(p.Send(ctx, req, r))
		}}, nil
	})
}

func TestAnAdapterThatIsWrongAboutOneThingFailsThatOne(t *testing.T) {
	t.Parallel()
	for _, aspect := range aspects {
		t.Run(aspect, func(t *testing.T) {
			t.Parallel()
			by := inject(t, withWrong(t, aspect, func(o providers.Outcome) providers.Outcome {
				o.Failure = &providers.Failure{Code: "WRONG"}
				return o
			}), report.Live)
			for _, other := range aspects {
				if other != aspect {
					require.Equal(t, report.Passed, by[other].Status, by[other].Message)
				}
			}
			require.Equal(t, report.Failed, by[aspect].Status)
			require.Equal(t, "WRONG", by[aspect].Code)
			require.Len(t, by[aspect].Problems, 1)
		})
	}
}

// On a busy machine a time-out may be over before the request is on its way.
func TestAFaultThatWasNotReachedIsInjectedAgain(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		late   int32
		status report.Status
	}{"Once": {1, report.Passed}, "EveryTime": {1000, report.Failed}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, url := providertest.Start(t)
			var calls atomic.Int32
			r := registry(t, providers.Config{Kind: openaicompat.Kind, BaseURL: url}, func(c providers.Config) (providers.Provider, error) {
				p, err := openaicompat.New(c)
				if err != nil || !strings.Contains(c.BaseURL, "/total_timeout/") {
					return p, err
				}
				return wrong{p.(*openaicompat.Provider), func(ctx context.Context, p providers.Provider, req providers.Request, r providers.Reporter) providers.Outcome {
					if calls.Add(1) > tc.late {
						return p.Send(ctx, req, r)
					}
					return providers.Outcome{Kind: providers.Unknown, Failure: &providers.Failure{Code: providers.CodeTotalTimeout}}
				}}, nil
			})
			require.Equal(t, tc.status, inject(t, r, report.Replay)["total_timeout"].Status)
		})
	}
}

func TestSaysWhatWasExpectedAndWhatCame(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		aspect  string
		change  func(providers.Outcome) providers.Outcome
		message string
	}{
		"TooManyRequestsIsFinal": {"rate_limit", func(o providers.Outcome) providers.Outcome { o.Failure.Retryable = false; return o },
			"too many requests: expected: FAILED RATE_LIMITED, retryable after 7s; came: FAILED RATE_LIMITED, not retryable after 7s"},
		"ForgetsHowLongToWait": {"rate_limit", func(o providers.Outcome) providers.Outcome { o.Failure.RetryAfter = 0; return o },
			"too many requests: expected: FAILED RATE_LIMITED, retryable after 7s; came: FAILED RATE_LIMITED, retryable"},
		"ATimeOutIsAFailure": {"ack_timeout", func(o providers.Outcome) providers.Outcome { o.Kind = providers.Failed; return o },
			"silence before the acknowledgement: expected: UNKNOWN ACK_TIMEOUT; came: FAILED ACK_TIMEOUT, not retryable"},
		"TakesHalfAnAnswer": {"cut_off", func(providers.Outcome) providers.Outcome { return providers.Outcome{Kind: providers.Completed} },
			"a connection that is lost in the middle of the answer: expected: UNKNOWN CONNECTION_LOST; came: a complete answer"},
		"SaysNothing": {"html", func(providers.Outcome) providers.Outcome { return providers.Outcome{} },
			"an HTML page with 200: expected: FAILED MALFORMED_ANSWER, not retryable; came: no outcome"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.message, inject(t, withWrong(t, tc.aspect, tc.change), report.Live)[tc.aspect].Message)
		})
	}
}

func TestAnAdapterThatSendsAgainFails(t *testing.T) {
	t.Parallel()
	r := registry(t, providers.Config{Kind: openaicompat.Kind, BaseURL: "http://127.0.0.1:1/v1"}, func(c providers.Config) (providers.Provider, error) {
		p, err := openaicompat.New(c)
		if err != nil {
			return nil, err
		}
		return wrong{p.(*openaicompat.Provider), func(ctx context.Context, p providers.Provider, req providers.Request, r providers.Reporter) providers.Outcome {
			out := p.Send(ctx, req, r)
			if out.Failure != nil && out.Failure.Retryable {
				return p.Send(ctx, req, r)
			}
			return out
		}}, nil
	})
	by := inject(t, r, report.Replay)
	require.Equal(t, "too many requests: expected: one request; came: 2 requests", by["rate_limit"].Message)
	require.Equal(t, report.Failed, by["overload"].Status)
	require.Equal(t, report.Passed, by["refusal"].Status)
}

// What does not answer cannot be cut off, and that is not a pass.
func TestNothingToCutOff(t *testing.T) {
	t.Parallel()
	fake, url := providertest.Start(t)
	fake.OnModel(model, providertest.Error(http.StatusUnauthorized, "invalid_api_key"))
	c := inject(t, registry(t, providers.Config{Kind: openaicompat.Kind, BaseURL: url}, openaicompat.New), report.Live)["cut_off"]
	require.Equal(t, report.NotRun, c.Status)
	require.Equal(t, "expected: an answer to cut off; came: the provider's status 401", c.Message)

	c = inject(t, registry(t, providers.Config{Kind: openaicompat.Kind, BaseURL: "http://127.0.0.1:1/v1"}, openaicompat.New), report.Live)["cut_off"]
	require.Equal(t, report.NotRun, c.Status)
	require.Equal(t, "expected: an answer to cut off; came: no answer from the provider", c.Message)
}

func TestWhatMakesNoRequestHasNoFaults(t *testing.T) {
	t.Parallel()
	c := demo.Config()
	r, err := providers.NewRegistry([]providers.Config{c}, map[string]providers.Factory{demo.Kind: demo.New})
	require.NoError(t, err)
	by := inject(t, r, report.Live)
	require.Equal(t, map[string]report.Check{"": {Name: report.CheckFaults, Status: report.NotApplicable,
		Message: "the kind demo makes no request over a network, so nothing can be injected"}}, by)
}

// silentAdapter does not tell how its provider fails.
type silentAdapter struct{ providers.Provider }

func TestAnAdapterThatTellsNothingDoesNotPass(t *testing.T) {
	t.Parallel()
	r := registry(t, providers.Config{Kind: openaicompat.Kind, BaseURL: "http://127.0.0.1:1/v1"}, func(c providers.Config) (providers.Provider, error) {
		p, err := openaicompat.New(c)
		return silentAdapter{p}, err
	})
	by := inject(t, r, report.Live)
	require.Len(t, by, 1)
	require.Equal(t, report.NotRun, by[""].Status)
}

func TestEndsWithItsContext(t *testing.T) {
	t.Parallel()
	_, url := providertest.Start(t)
	r := registry(t, providers.Config{Kind: openaicompat.Kind, BaseURL: url}, openaicompat.New)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := faults.New(r).Inject(ctx, contracts.Suite{}, contracts.Endpoint{Target: r.Targets()[0]}, report.Live)
	require.ErrorIs(t, err, context.Canceled)
}

// As on a machine that has none: an adapter that sends nothing without a key would fail every fault.
func TestAReplayNeedsNoKey(t *testing.T) {
	t.Parallel()
	d := providers.Defaults()
	d.Name, d.Kind, d.BaseURL, d.Models = "some", gemini.Kind, "https://models.example/v1beta", []providers.Model{{Name: model}}
	r, err := providers.NewRegistry([]providers.Config{d}, map[string]providers.Factory{gemini.Kind: gemini.New})
	require.NoError(t, err)
	for aspect, c := range inject(t, r, report.Replay) {
		require.Contains(t, []report.Status{report.Passed, report.NotApplicable}, c.Status, aspect+": "+c.Message)
	}
}
