package dispatch

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/jobs"
	"github.com/docket-gateway/docket/internal/logtest"
	"github.com/docket-gateway/docket/internal/store"
	"github.com/docket-gateway/docket/providers"
)

func TestOneEntryIsOneLeaseIsOneRequest(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		p := start(t, address, options{})
		j, a := p.create(t, "single")
		c := p.script.next(t)
		require.Equal(t, a.ID, c.AttemptID)
		require.Equal(t, "a", c.Model)
		require.JSONEq(t, `{"text":"a"}`, c.Prompt)
		a = p.becomes(t, a.ID, attempt.StateSUCCEEDED)
		require.NotNil(t, a.SentAt)
		require.Nil(t, a.LeaseToken)
		require.JSONEq(t, good, string(p.job(t, j.ID).Result))
		p.drained(t)
		p.script.once(t, a.ID)
		require.Equal(t, 1, p.number(t, "SELECT count(*) FROM river_job WHERE state = 'completed' AND attempt = 1 AND max_attempts = 1"),
			"an entry has one try")
	})
}

// TestSendsNothingForAnEntryThatIsNotItsOwn inserts entries behind our own code's back.
func TestSendsNothingForAnEntryThatIsNotItsOwn(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		p := start(t, address, options{idle: true})
		_, waiting := p.create(t, "single")
		_, settled := p.create(t, "single")
		_, cancelled := p.create(t, "single")
		_, err := p.CancelAttempt(p.ann, cancelled.ID, nil)
		require.NoError(t, err)
		_, err = p.Settle(t.Context(), settled.ID, jobs.Outcome{Failure: &jobs.Failure{Code: "NO", Message: "no"}})
		require.NoError(t, err)
		// A second entry for the same attempt, one for an attempt that is not there, and an attempt that has got another one.
		for _, id := range []string{waiting.ID, "att_nobody"} {
			require.NoError(t, p.store.Tx(p.sys, func(tx *store.Tx) error {
				_, err := p.queue.Enqueue(p.sys, tx, id, "fake/a", time.Now())
				return err
			}))
		}
		_, moved := p.create(t, "single")
		p.exec(t, "UPDATE attempts SET queue_entry = 1000000 WHERE id = '"+moved.ID+"'")

		p.work(t)
		p.becomes(t, waiting.ID, attempt.StateSUCCEEDED)
		p.drained(t)
		p.script.once(t, waiting.ID)
		require.Nil(t, p.attempt(t, moved.ID).LeaseToken)
	})
}

// faulty stands between the dispatcher and the service.
type faulty struct {
	Jobs

	take   func() error
	before func() // before MarkSent
	settle func() error
	ack    func() error
}

func (f *faulty) Take(ctx context.Context, id string, entry int64) (*jobs.Lease, error) {
	if f.take != nil {
		if err := f.take(); err != nil {
			return nil, err
		}
	}
	return f.Jobs.Take(ctx, id, entry)
}

func (f *faulty) MarkSent(ctx context.Context, l *jobs.Lease) error {
	if f.before != nil {
		f.before()
	}
	return f.Jobs.MarkSent(ctx, l)
}

func (f *faulty) Settle(ctx context.Context, id string, o jobs.Outcome) (jobs.Verdict, error) {
	if f.settle != nil {
		if err := f.settle(); err != nil {
			return jobs.Verdict{}, err
		}
	}
	return f.Jobs.Settle(ctx, id, o)
}

func (f *faulty) Acknowledge(ctx context.Context, l *jobs.Lease, id, handle string) error {
	if f.ack != nil {
		if err := f.ack(); err != nil {
			return err
		}
	}
	return f.Jobs.Acknowledge(ctx, l, id, handle)
}

var errAway = errors.New("the database is away")

func TestWorksLaterWhenTheLeaseCannotBeTaken(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		var tries atomic.Int32
		p := start(t, address, options{wrap: func(j Jobs) Jobs {
			return &faulty{Jobs: j, take: func() error {
				if tries.Add(1) == 1 {
					return errAway
				}
				return nil
			}}
		}})
		_, a := p.create(t, "single")
		p.becomes(t, a.ID, attempt.StateSUCCEEDED)
		p.drained(t)
		require.EqualValues(t, 2, tries.Load())
		p.script.once(t, a.ID)
	})
}

func TestSendsNothingUnlessTheMarkIsKnownToBeWritten(t *testing.T) {
	t.Parallel()
	for name, written := range map[string]bool{"Written": true, "NotWritten": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachDatabase(t, func(t *testing.T, address string) {
				t.Helper()
				first := make(chan struct{})
				var marks atomic.Int32
				p := start(t, address, options{lease: 600 * time.Millisecond, wrap: func(j Jobs) Jobs {
					return &brokenMark{Jobs: j, written: written, first: first, marks: &marks}
				}})
				_, a := p.create(t, "single")
				await.Receive(t, "mark", first)
				if written {
					a = p.becomes(t, a.ID, attempt.StateUNKNOWN)
					require.Equal(t, jobs.CodeWorkerLost, *a.ErrorCode)
					p.script.once(t)
					return
				}
				p.becomes(t, a.ID, attempt.StateSUCCEEDED)
				p.script.once(t, a.ID)
				require.EqualValues(t, 2, marks.Load())
			})
		})
	}
}

// brokenMark is a MarkSent whose first answer gets lost.
type brokenMark struct {
	Jobs

	written bool
	first   chan struct{}
	marks   *atomic.Int32
}

func (b *brokenMark) MarkSent(ctx context.Context, l *jobs.Lease) error {
	if b.marks.Add(1) > 1 {
		return b.Jobs.MarkSent(ctx, l)
	}
	defer close(b.first)
	if b.written {
		if err := b.Jobs.MarkSent(ctx, l); err != nil {
			return err
		}
	}
	return &store.CommitError{Err: errAway}
}

// Its owner cancels while a worker is about to send: that happens, and nobody is to be woken for it.
func TestACancellationJustBeforeSendingIsNoAlarm(t *testing.T) {
	t.Parallel()
	for name, cancel := range map[string]func(p *process, a *ent.Attempt) error{
		"Attempt": func(p *process, a *ent.Attempt) error { _, err := p.CancelAttempt(p.ann, a.ID, nil); return err },
		"Job":     func(p *process, a *ent.Attempt) error { _, err := p.CancelJob(p.ann, a.JobID, nil); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachDatabase(t, func(t *testing.T, address string) {
				t.Helper()
				var p *process
				var a *ent.Attempt
				created, cancelled := make(chan struct{}), make(chan error, 1)
				log := &logtest.Buffer{}
				p = start(t, address, options{log: log, idle: true, wrap: func(j Jobs) Jobs {
					return &faulty{Jobs: j, before: func() { <-created; cancelled <- cancel(p, a) }}
				}})
				_, a = p.create(t, "single")
				close(created)
				p.work(t)
				require.NoError(t, await.Receive(t, "cancellation", cancelled))
				p.drained(t)
				require.Equal(t, attempt.StateCANCELLED, p.attempt(t, a.ID).State)
				require.Nil(t, p.attempt(t, a.ID).SentAt)
				require.Empty(t, p.script.requests())
				require.NoError(t, p.stop(await.Patience))
				require.NotContains(t, log.String(), "level=WARN")
				require.NotContains(t, log.String(), "level=ERROR")
			})
		})
	}
}

func TestAPanicAfterTheMarkIsUnknown(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		p := start(t, address, options{places: 1, script: newScript(func(c *call) providers.Outcome {
			if c.number == 1 {
				c.ack()
				panic("a bug in an adapter")
			}
			return ok()
		})})
		_, a := p.create(t, "retry")
		a = p.becomes(t, a.ID, attempt.StateUNKNOWN)
		require.Equal(t, codeInternal, *a.ErrorCode)
		require.Nil(t, a.LeaseToken)
		_, b := p.create(t, "single")
		p.becomes(t, b.ID, attempt.StateSUCCEEDED) // the slot was given back, and the process lives
	})
}

func TestAPanicBeforeTheMarkIsFailed(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		p := start(t, address, options{wrap: func(j Jobs) Jobs {
			return &faulty{Jobs: j, before: func() { panic("a bug before sending") }}
		}})
		j, a := p.create(t, "single")
		a = p.becomes(t, a.ID, attempt.StateFAILED)
		require.Equal(t, codeInternal, *a.ErrorCode)
		require.Equal(t, job.StateFAILED, p.job(t, j.ID).State)
		p.script.once(t)
	})
}

func TestFailsBeforeSending(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		p := start(t, address, options{})
		_, broken := p.create(t, "broken")
		require.Equal(t, codePrompt, *p.becomes(t, broken.ID, attempt.StateFAILED).ErrorCode)
		p.script.once(t)
	})
}

// TestTheNextDeploymentHasNoSuchTarget: a job waits for a target that the process which takes it does not have.
func TestTheNextDeploymentHasNoSuchTarget(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		old := start(t, address, options{idle: true})
		j, a := old.create(t, "route")
		s := newScript(nil)
		fewer, err := providers.NewRegistry([]providers.Config{{Name: "fake", Kind: "scripted", BaseURL: "http://127.0.0.1:1",
			Models: []providers.Model{{Name: "b"}}}}, map[string]providers.Factory{
			"scripted": func(providers.Config) (providers.Provider, error) { return s, nil }})
		require.NoError(t, err)
		p := start(t, address, options{registry: fewer, script: s})
		require.Equal(t, codeTargetUnknown, *p.becomes(t, a.ID, attempt.StateFAILED).ErrorCode)
		require.Equal(t, "fake/b", p.attempts(t, j.ID)[1].Target)
		p.becomes(t, p.attempts(t, j.ID)[1].ID, attempt.StateSUCCEEDED)
	})
}

// TestAStalledWorkerDoesNotRefuseForAnother: it leased the attempt, stalled for longer than its lease, and another worker
// has sent it meanwhile.
func TestAStalledWorkerDoesNotRefuseForAnother(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		release := make(chan struct{})
		defer close(release)
		p := start(t, address, options{script: newScript(held(release)), idle: true})
		_, a := p.create(t, "single")
		stalled, err := p.Take(t.Context(), a.ID, *a.QueueEntry)
		require.NoError(t, err)
		p.exec(t, "UPDATE attempts SET lease_expires_at = "+p.store.Now(-time.Minute))
		p.work(t)
		p.becomes(t, a.ID, attempt.StateRUNNING)
		require.ErrorIs(t, p.Refuse(t.Context(), stalled, jobs.Failure{Code: "NO", Message: "no"}), jobs.ErrNotYours)
		require.Equal(t, attempt.StateRUNNING, p.attempt(t, a.ID).State)
		require.ErrorIs(t, p.MarkSent(t.Context(), stalled), jobs.ErrNotYours)
	})
}

// TestRiverNeverRetries: whatever River would do with an entry by itself, its attempt is sent once.
func TestRiverNeverRetries(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		p := start(t, address, options{script: newScript(func(*call) providers.Outcome { return no(true) })})
		j, _ := p.create(t, "retry")
		await.Until(t, "the job fails", func() bool { return p.job(t, j.ID).State == job.StateFAILED })
		p.drained(t)
		as := p.attempts(t, j.ID)
		require.Len(t, as, 3)
		p.script.once(t, as[0].ID, as[1].ID, as[2].ID)
		require.Equal(t, 3, p.number(t, "SELECT count(*) FROM river_job WHERE state = 'completed'"))
		require.Equal(t, 3, p.number(t, "SELECT count(*) FROM river_job"))

		// Even an entry that was made available again by hand finds nothing to do.
		_, err := p.queue.client.JobRetry(t.Context(), *as[0].QueueEntry)
		require.NoError(t, err)
		p.drained(t)
		require.Len(t, p.script.requests(), 3)
	})
}

// TestTheRescuerLeavesLongRequestsAlone: River discards entries that run for longer than their time-out.
func TestTheRescuerLeavesLongRequestsAlone(t *testing.T) {
	t.Parallel()
	var w entryWorker
	require.Equal(t, abandonedAfter, w.Timeout(&river.Job[entryArgs]{JobRow: &rivertype.JobRow{}}))
	require.Greater(t, abandonedAfter, 24*time.Hour, "total_timeout may be a day")
}
