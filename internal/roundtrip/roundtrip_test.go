package roundtrip

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/providers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sender answers by a function.
type sender func(ctx context.Context, req providers.Request, r providers.Reporter) providers.Outcome

func (s sender) Send(ctx context.Context, req providers.Request, r providers.Reporter) providers.Outcome {
	return s(ctx, req, r)
}
func (sender) AdapterVersion() string { return "fake/1" }

func says(output string) sender {
	return func(_ context.Context, _ providers.Request, r providers.Reporter) providers.Outcome {
		r.Acknowledged(providers.Acknowledgement{})
		return providers.Outcome{Kind: providers.Completed, Output: []byte(output)}
	}
}

func ends(kind providers.OutcomeKind, code string, retryable bool) sender {
	return func(context.Context, providers.Request, providers.Reporter) providers.Outcome {
		return providers.Outcome{Kind: kind, Failure: &providers.Failure{Code: code, Retryable: retryable}}
	}
}

// bundle is a tripper and a suite whose task retries, races, hedges and has fallbacks, none of which a trip may do.
type bundle struct {
	*Tripper
	suite contracts.Suite
}

func setup(t *testing.T, o Options) *bundle {
	t.Helper()
	suites, err := contracts.LoadSuites(fstest.MapFS{
		"echo/task.yaml": {Data: []byte("name: echo\nversion: v1\ntarget: a/b\nfallbacks: [c/d]\nrace: allowed\nhedge_after: 1ms\n" +
			"retry: {max: 3, base: 1ms, cap: 1ms}\nmax_output_tokens: 9\ntemperature: 0.5\n")},
		"echo/input.schema.json":  {Data: []byte(`{"type": "object"}`)},
		"echo/output.schema.json": {Data: []byte(`{"type": "object", "required": ["n"], "properties": {"n": {}, "m": {}}}`)},
		"echo/system.tmpl":        {Data: []byte("Obey.")},
		"echo/prompt.tmpl":        {Data: []byte("Echo {{json .Input}}")},
		"echo/cases/large.json":   {Data: []byte(`{"input": {"text": "` + strings.Repeat("x", 3000) + `"}}`)},
		"echo/cases/one.json":     {Data: []byte(`{"input": {"text": "eins"}}`)},
	})
	require.NoError(t, err)
	o.Logger = slog.New(slog.DiscardHandler)
	b := &bundle{Tripper: New(o), suite: suites[0]}
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

func endpoint(s sender) contracts.Endpoint {
	c := providers.Defaults()
	c.Name, c.Kind, c.Models = "some", "fake", []providers.Model{{Name: "model/x"}}
	return contracts.Endpoint{ConfigDigest: "sha256:config",
		Target: providers.Target{ID: "some/model/x", Provider: "some", Model: c.Models[0], Config: c, Sender: s}}
}

func (b *bundle) one() contracts.Case { return b.suite.Cases[1] }

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		sender sender
		state  string
		code   string
		read   bool
	}{
		"Succeeds":        {says(`{"n": 9007199254740993, "m": [1.50, "\u00e9", null]}`), "SUCCEEDED", "", true},
		"Retryable":       {ends(providers.Failed, providers.CodeOverloaded, true), "FAILED", providers.CodeOverloaded, false},
		"Rejected":        {ends(providers.Failed, providers.CodeBadRequest, false), "FAILED", providers.CodeBadRequest, false},
		"Unknown":         {ends(providers.Unknown, providers.CodeConnectionLost, false), "UNKNOWN", providers.CodeConnectionLost, false},
		"BreaksTheSchema": {says(`{"n": 1, "undeclared": 2}`), "FAILED", "OUTPUT_INVALID", false},
		"NotJSON":         {says("```json\n{}\n```"), "FAILED", "OUTPUT_NOT_JSON", false},
		"Panics": {func(context.Context, providers.Request, providers.Reporter) providers.Outcome { panic("no such field") },
			"UNKNOWN", "INTERNAL_ERROR", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, Options{})
			var requests atomic.Int64
			var answered []byte
			trip, err := b.RoundTrip(t.Context(), b.suite, b.one(), endpoint(func(ctx context.Context, req providers.Request, r providers.Reporter) providers.Outcome {
				requests.Add(1)
				out := tc.sender(ctx, req, r)
				answered = out.Output
				return out
			}))
			require.NoError(t, err)
			require.Equal(t, tc.state, trip.State)
			require.Equal(t, tc.code, trip.Code)
			require.EqualValues(t, 1, requests.Load(), "no retry, no fallback, no race")
			require.NotNil(t, trip.Outcome)
			require.Equal(t, answered, trip.Answered)
			if tc.read {
				require.JSONEq(t, string(answered), string(trip.Read))
				require.Contains(t, string(trip.Read), "9007199254740993")
				require.Contains(t, string(trip.Read), "1.50")
			} else {
				require.Nil(t, trip.Read)
			}
		})
	}
}

func TestSendsWhatAJobWouldSend(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	var got providers.Request
	_, err := b.RoundTrip(t.Context(), b.suite, b.one(), endpoint(func(_ context.Context, req providers.Request, _ providers.Reporter) providers.Outcome {
		got = req
		return providers.Outcome{Kind: providers.Completed, Output: []byte(`{"n": 1}`)}
	}))
	require.NoError(t, err)
	require.Equal(t, []string{"echo", "model/x", "Obey.", `Echo {"text":"eins"}`}, []string{got.Task, got.Model, got.System, got.Prompt})
	require.JSONEq(t, string(b.suite.Task.OutputSchemaJSON), string(got.Schema))
	require.InDelta(t, 0.5, got.Temperature, 0)
	require.Equal(t, 9, got.MaxOutputTokens)
	require.Regexp(t, "^contract-[0-9a-z]{26}$", got.AttemptID)
}

// A time-out ends the request: nobody waits for a late answer, which could be minutes.
func TestDoesNotLinger(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	trip, err := b.RoundTrip(t.Context(), b.suite, b.one(), endpoint(func(ctx context.Context, _ providers.Request, r providers.Reporter) providers.Outcome {
		r.Acknowledged(providers.Acknowledgement{})
		r.Unknown(providers.Failure{Code: providers.CodeIdleTimeout, Message: "silence"})
		<-ctx.Done() // lingers for ever, unless told to stop
		return providers.Outcome{Kind: providers.Completed, Output: []byte(`{"n": "late"}`)}
	}))
	require.NoError(t, err)
	require.Equal(t, "UNKNOWN", trip.State)
	require.Equal(t, providers.CodeIdleTimeout, trip.Code)
	require.Equal(t, providers.Unknown, trip.Outcome.Kind)
	require.Nil(t, trip.Answered)
}

// A job that does not get anywhere is given up, and the trip tells how it stood.
func TestHasADeadline(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{Lease: 300 * time.Millisecond})
	ep := endpoint(func(ctx context.Context, _ providers.Request, r providers.Reporter) providers.Outcome {
		r.Acknowledged(providers.Acknowledgement{})
		<-ctx.Done() // an adapter that keeps no time-out
		return providers.Outcome{Kind: providers.Unknown, Failure: &providers.Failure{Code: providers.CodeAborted}}
	})
	ep.Target.Config.TotalTimeout = 12 * time.Second // also on a loaded machine the request is made before
	trip, err := b.RoundTrip(t.Context(), b.suite, b.one(), ep)
	require.NoError(t, err)
	require.Contains(t, []string{"RUNNING", "UNKNOWN"}, trip.State, "a heart-beat may be late on a loaded machine")
	require.Nil(t, trip.Read)
	require.Equal(t, providers.CodeAborted, trip.Outcome.Failure.Code, "the request was ended")
}

func TestIsInterrupted(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	_, err := b.RoundTrip(ctx, b.suite, b.one(), endpoint(func(ctx context.Context, _ providers.Request, _ providers.Reporter) providers.Outcome {
		defer close(ended)
		cancel()
		<-ctx.Done()
		return providers.Outcome{Kind: providers.Unknown, Failure: &providers.Failure{Code: providers.CodeAborted}}
	}))
	require.ErrorIs(t, err, context.Canceled)
	await.Receive(t, "the end of the request", ended)
}

// A case that no client could send is a failure of its round trip, and not of the run.
func TestTellsWhatCreateJobRefuses(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{MaxInput: 1000})
	trip, err := b.RoundTrip(t.Context(), b.suite, b.suite.Cases[0], endpoint(says(`{"n": 1}`)))
	require.NoError(t, err)
	require.Equal(t, contracts.Trip{State: StateNotCreated, Code: "INPUT_TOO_LARGE"}, trip)
}

// Every trip has its own sender, also where many go through one Docket at once.
func TestManyTripsAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			want := fmt.Sprintf(`{"n": %d}`, i)
			trip, err := b.RoundTrip(t.Context(), b.suite, b.one(), endpoint(says(want)))
			if err != nil || string(trip.Answered) != want || trip.State != "SUCCEEDED" {
				t.Errorf("trip %d: %+v %v", i, trip, err)
			}
		})
	}
	wg.Wait()
	require.Len(t, b.dockets, 1)
	other := endpoint(says(`{"n": 1}`))
	other.Target.ID, other.Target.Model.Name = "some/other", "other"
	_, err := b.RoundTrip(t.Context(), b.suite, b.one(), other)
	require.NoError(t, err)
	require.Len(t, b.dockets, 2)
}

// What a provider did in one trip is nothing to the next one: no circuit opens between them.
func TestEachTripIsLookedAtByItself(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	for range 2 * providers.DefaultCircuitFailures {
		trip, err := b.RoundTrip(t.Context(), b.suite, b.one(), endpoint(ends(providers.Failed, providers.CodeOverloaded, true)))
		require.NoError(t, err)
		require.Equal(t, providers.CodeOverloaded, trip.Code)
	}
}

func TestLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	require.NoError(t, b.Close(), "before anything was started")
	b = setup(t, Options{})
	_, err := b.RoundTrip(t.Context(), b.suite, b.one(), endpoint(says(`{"n": 1}`)))
	require.NoError(t, err)
	folder := b.folder
	require.DirExists(t, folder)
	info, err := os.Stat(folder)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm(), "cases may be nobody else's business")
	require.NoError(t, b.Close())
	require.NoDirExists(t, folder)
	_, err = b.RoundTrip(t.Context(), b.suite, b.one(), endpoint(says(`{"n": 1}`)))
	require.ErrorIs(t, err, errClosed)
}
