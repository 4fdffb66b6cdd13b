package dispatch

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/jobs"
	"github.com/docket-gateway/docket/internal/tracecontext"
	"github.com/docket-gateway/docket/providers"
)

// canceller is a provider by whose handles requests can be cancelled too.
type canceller struct {
	*retriever

	cancel func(n int) (*providers.Usage, error)

	mu   sync.Mutex
	told []providers.Query
}

func (c *canceller) Cancel(_ context.Context, q providers.Query) (*providers.Usage, error) {
	c.mu.Lock()
	c.told = append(c.told, q)
	n := len(c.told)
	c.mu.Unlock()
	return c.cancel(n)
}

func (c *canceller) cancels() []providers.Query {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]providers.Query{}, c.told...)
}

// keyed has a key, so that the registry puts its wrapper around the provider.
func keyed(c *providers.Config) { c.APIKey = "sk-0123456789abcdef" }

func newCanceller(do func(c *call) providers.Outcome, cancel func(n int) (*providers.Usage, error)) *canceller {
	pending := func(context.Context, int) (providers.Outcome, error) {
		return providers.Outcome{Kind: providers.Unknown, Failure: &providers.Failure{Code: "PENDING"}}, nil
	}
	return &canceller{retriever: &retriever{script: newScript(do), retrieve: pending}, cancel: cancel}
}

// entry returns the only entry of the queue of cancellations.
func (p *process) entry(t *testing.T) *rivertype.JobRow {
	t.Helper()
	res, err := p.queue.client.JobList(t.Context(), river.NewJobListParams().Kinds(cancelArgs{}.Kind()).First(10))
	require.NoError(t, err)
	require.Len(t, res.Jobs, 1)
	return res.Jobs[0]
}

func (p *process) entryBecomes(t *testing.T, want rivertype.JobState) {
	t.Helper()
	await.Until(t, "the entry is "+string(want), func() bool { return p.entry(t).State == want }, func() string { return string(p.entry(t).State) })
}

func TestCancelsAtTheProviderWhatNobodyIsAt(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		c := newCanceller(nil, func(n int) (*providers.Usage, error) {
			switch n {
			case 1:
				return nil, &providers.Failure{Code: providers.CodeGateway}
			case 2:
				panic("an adapter's mistake")
			default:
				return &providers.Usage{InputTokens: new(7), OutputTokens: new(2)}, nil
			}
		})
		p := start(t, address, options{idle: true, script: c.script, registry: configured(t, c, keyed)})
		j, a := p.lost(t, "single", "handle-1")
		_, err := p.CancelJob(p.ann, j.ID, nil)
		require.NoError(t, err)
		p.work(t)
		p.entryBecomes(t, rivertype.JobStateRetryable) // after the second try; the one before is soon over
		require.Equal(t, 2, p.refused.of("cancel fake/a false"))
		_, err = p.queue.client.JobRetry(t.Context(), p.entry(t).ID) // River's wait is over
		require.NoError(t, err)
		p.entryBecomes(t, rivertype.JobStateCompleted)
		require.Equal(t, 1, p.refused.of("cancel fake/a true"))
		require.Equal(t, providers.Query{AttemptID: a.ID, Handle: "handle-1", Model: "a", Traceparent: tracecontext.OfAttempt(j.ID, "", a.ID)}, c.cancels()[2])
		now := p.attempt(t, a.ID)
		require.Equal(t, attempt.StateCANCELLED, now.State)
		require.Equal(t, 7, *now.InputTokens, "what it used until then is paid for")
		require.Equal(t, 2, *now.OutputTokens)
	})
}

func TestADefiniteNoToACancellationIsTheEndOfIt(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		c := newCanceller(nil, func(int) (*providers.Usage, error) { return nil, &providers.Failure{Code: providers.CodeBadRequest} })
		p := start(t, address, options{idle: true, script: c.script, registry: configured(t, c, keyed)})
		j, a := p.lost(t, "single", "handle-1")
		_, err := p.CancelJob(p.ann, j.ID, nil)
		require.NoError(t, err)
		p.work(t)
		p.entryBecomes(t, rivertype.JobStateCancelled)
		require.Len(t, c.cancels(), 1)
		require.Equal(t, 1, p.refused.of("cancel fake/a false"))
		require.Equal(t, attempt.StateCANCELLED, p.attempt(t, a.ID).State)
	})
}

func TestACancellationWaitsForAProcessThatKnowsTheProvider(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		c := newCanceller(nil, func(int) (*providers.Usage, error) { return nil, nil })
		p := start(t, address, options{idle: true, script: c.script, registry: configured(t, c, keyed)})
		j, _ := p.lost(t, "single", "handle-1")
		_, err := p.CancelJob(p.ann, j.ID, nil)
		require.NoError(t, err)
		other := newScript(nil)
		stranger := start(t, address, options{script: other, registry: scripted(t, other, providers.Config{Name: "other"})})
		stranger.entryBecomes(t, rivertype.JobStateRetryable)
		require.NoError(t, stranger.stop(await.Patience))
		p.work(t)
		_, err = p.queue.client.JobRetry(t.Context(), p.entry(t).ID)
		require.NoError(t, err)
		p.entryBecomes(t, rivertype.JobStateCompleted)
		require.Len(t, c.cancels(), 1)
	})
}

// The worker's request ends by its context, and its handle is cancelled once.
func TestCancelsOnceWhatAWorkerIsAt(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		c := newCanceller(func(c *call) providers.Outcome {
			if c.number == 1 {
				c.r.Acknowledged(providers.Acknowledgement{Handle: "handle-1"})
				<-c.ctx.Done()
				return aborted()
			}
			c.r.Acknowledged(providers.Acknowledgement{Handle: "handle-2"})
			return ok()
		}, func(int) (*providers.Usage, error) { return nil, nil })
		p := start(t, address, options{script: c.script, registry: configured(t, c, keyed)})
		_, a := p.create(t, "race") // hedges
		p.becomes(t, a.ID, attempt.StateSUPERSEDED)
		p.drained(t)
		require.Len(t, c.cancels(), 1)
		require.Equal(t, "handle-1", c.cancels()[0].Handle)
	})
}

func TestAsksByAHandleThatCameLate(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		c := newCanceller(func(c *call) providers.Outcome {
			c.r.Unknown(providers.Failure{Code: providers.CodeAckTimeout})
			providers.AcknowledgeLate(c.r, providers.Acknowledgement{ProviderRequestID: "req-1", Handle: "handle-1"})
			return providers.Outcome{Kind: providers.Unknown, Failure: &providers.Failure{Code: providers.CodeAckTimeout}}
		}, nil)
		c.retrieve = func(context.Context, int) (providers.Outcome, error) { return ok(), nil }
		p := start(t, address, options{lease: shortLease, script: c.script, registry: configured(t, c, keyed)})
		j, a := p.create(t, "single")
		a = p.becomes(t, a.ID, attempt.StateSUCCEEDED)
		require.Equal(t, "handle-1", *a.ProviderHandle)
		require.Equal(t, "req-1", *a.ProviderRequestID)
		require.Equal(t, "handle-1", c.queries()[0].Handle)
		require.JSONEq(t, good, string(p.job(t, j.ID).Result))
		c.once(t, a.ID)
	})
}

// unacknowledged fails to write acknowledgements.
type unacknowledged struct{ Jobs }

func (unacknowledged) Acknowledge(context.Context, *jobs.Lease, string, string) error {
	return errors.New("the database is away")
}

func TestAHandleThatWasNotWrittenIsWrittenBeforeTheOutcome(t *testing.T) {
	t.Parallel()
	for name, told := range map[string]bool{"WithATimeOut": true, "WithTheOutcome": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachDatabase(t, func(t *testing.T, address string) {
				c := newCanceller(func(c *call) providers.Outcome {
					c.r.Acknowledged(providers.Acknowledgement{Handle: "handle-1"})
					if told {
						c.r.Unknown(timedOut())
						<-c.ctx.Done() // it lingers
					}
					f := timedOut()
					return providers.Outcome{Kind: providers.Unknown, Failure: &f}
				}, nil)
				p := start(t, address, options{script: c.script, registry: configured(t, c, keyed),
					wrap: func(j Jobs) Jobs { return unacknowledged{j} }})
				_, a := p.create(t, "single")
				a = p.becomes(t, a.ID, attempt.StateUNKNOWN)
				require.Equal(t, "handle-1", *a.ProviderHandle)
			})
		})
	}
}

// A re-send under the same key brings the handle of what runs under it.
func TestKeepsTheHandleThatAResendBrings(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		c := newCanceller(func(c *call) providers.Outcome {
			c.r.Acknowledged(providers.Acknowledgement{Handle: "handle-1"})
			return aborted()
		}, nil)
		p := start(t, address, options{idle: true, script: c.script,
			registry: configured(t, c, func(c *providers.Config) { keyed(c); idempotent(c) })})
		_, a := p.lost(t, "single", "")
		p.later(t, a)
		p.reconciled(t)
		c.once(t, a.ID)
		now := p.attempt(t, a.ID)
		require.Equal(t, attempt.StateUNKNOWN, now.State)
		require.Equal(t, "handle-1", *now.ProviderHandle)
		p.later(t, a)
		p.reconciled(t)
		c.once(t, a.ID)
		require.Len(t, c.queries(), 1, "it is asked about from then on")
	})
}
