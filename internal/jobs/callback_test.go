package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
	"github.com/docket-gateway/docket/ent/jobevent"
	"github.com/docket-gateway/docket/internal/store"
)

const hook = "https://hooks.example.com/a"

// fakeCallbacks keep the completions of committed transactions, and take every URL but one.
type fakeCallbacks struct {
	mu   sync.Mutex
	kept []Completion
	err  error
}

func (f *fakeCallbacks) CheckURL(raw string) error {
	if raw != hook {
		return errors.New("must be the hook")
	}
	return nil
}

func (f *fakeCallbacks) Enqueue(_ context.Context, tx *store.Tx, c Completion) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return f.err
	}
	tx.AfterCommit(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.kept = append(f.kept, c)
	})
	return nil
}

func (f *fakeCallbacks) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

// take returns what was kept since the last call.
func (f *fakeCallbacks) take() []Completion {
	f.mu.Lock()
	defer f.mu.Unlock()
	kept := f.kept
	f.kept = nil
	return kept
}

// withCallbacks is the bundle's service with callbacks.
func (b *testBundle) withCallbacks(t *testing.T) *fakeCallbacks {
	t.Helper()
	f := &fakeCallbacks{}
	b.Service = New(Deps{
		Store: b.store, Catalog: allTasks(t).catalog, Queue: b.queue, Gate: b.gate, Targets: b.targets, Callbacks: f,
		Notifier: b.notifier, Metrics: b.metrics, Logger: slog.New(slog.DiscardHandler),
	}, Options{})
	return f
}

func (b *testBundle) createWithHook(t *testing.T, task string) (*ent.Job, *ent.Attempt) {
	t.Helper()
	c, err := b.Create(b.ann, CreateInput{IdempotencyKey: new(newID("key")), Task: task, Input: json.RawMessage(`{"text":"a"}`), CallbackURL: new(hook)})
	require.NoError(t, err)
	return c.Job, b.last(t, c.Job.ID)
}

// requireEnd compares a completion with what the job's log says.
func (b *testBundle) requireEnd(t *testing.T, got []Completion, jobID string, want job.State) {
	t.Helper()
	require.Len(t, got, 1)
	j := b.job(t, jobID)
	e := b.store.Client().JobEvent.Query().Where(jobevent.JobID(jobID), jobevent.Type(EventJobState), jobevent.To(string(want))).
		Order(ent.Desc(jobevent.FieldNumber)).FirstX(b.sys)
	require.WithinDuration(t, e.At, got[0].At, 0)
	got[0].At = time.Time{}
	require.Equal(t, Completion{
		JobID: jobID, IdempotencyKey: j.IdempotencyKey, State: want, Version: j.Version, Event: e.Number, CallbackURL: hook,
	}, got[0])
}

func TestAnnouncesEveryEnd(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, b *testBundle) {
		f := b.withCallbacks(t)

		// A claim, with a loser that is superseded in the same transaction.
		j, a := b.createWithHook(t, "race")
		b.running(t, a)
		second, err := b.StartAttempt(b.ann, j.ID, nil)
		require.NoError(t, err)
		b.running(t, second.Attempt)
		require.Empty(t, f.take(), "the job is not over")
		require.True(t, b.settle(t, a, answer("a")).Landed)
		b.requireEnd(t, f.take(), j.ID, job.StateSUCCEEDED)
		require.False(t, b.settle(t, second.Attempt, answer("b")).Landed)
		require.Empty(t, f.take(), "a late answer is no end")

		// The last failure, a re-opening and a second end.
		j, a = b.createWithHook(t, "single")
		b.running(t, a)
		b.loses(t, a)
		require.Empty(t, f.take(), "UNKNOWN is no end")
		b.fails(t, a, false)
		b.requireEnd(t, f.take(), j.ID, job.StateFAILED)
		again, err := b.StartAttempt(b.ann, j.ID, nil)
		require.NoError(t, err)
		require.Empty(t, f.take(), "a re-opening is no end")
		b.running(t, again.Attempt)
		b.settle(t, again.Attempt, answer("a"))
		b.requireEnd(t, f.take(), j.ID, job.StateSUCCEEDED)

		// Cancellations: of the attempt, which leaves the job WAITING, and of the job.
		j, a = b.createWithHook(t, "plain")
		_, err = b.CancelAttempt(b.ann, a.ID, nil)
		require.NoError(t, err)
		require.Empty(t, f.take(), "WAITING is no end")
		_, err = b.CancelJob(b.ann, j.ID, nil)
		require.NoError(t, err)
		b.requireEnd(t, f.take(), j.ID, job.StateCANCELLED)

		// An operator's word.
		j, a = b.createWithHook(t, "single")
		b.running(t, a)
		b.loses(t, a)
		_, err = b.ResolveAttempt(b.op, Resolution{AttemptID: a.ID, Outcome: attempt.StateSUCCEEDED, Result: answer("a").Output, Note: "seen"})
		require.NoError(t, err)
		b.requireEnd(t, f.take(), j.ID, job.StateSUCCEEDED)

		// Without a callback URL nobody is told.
		b.failedJob(t)
		require.Empty(t, f.take())
	})
}

func TestAnEndThatCannotBeAnnouncedIsNone(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, b *testBundle) {
		f, boom := b.withCallbacks(t), errors.New("boom")
		j, a := b.createWithHook(t, "single")
		b.running(t, a)
		before := b.job(t, j.ID)
		f.fail(boom)
		for name, end := range map[string]func() error{
			"claim":   func() error { _, err := b.Settle(b.sys, a.ID, answer("a")); return err },
			"failure": func() error { _, err := b.Settle(b.sys, a.ID, Outcome{Failure: &Failure{Code: "NO"}}); return err },
			"cancel":  func() error { _, err := b.CancelJob(b.ann, j.ID, nil); return err },
		} {
			require.ErrorIs(t, end(), boom, name)
			now := b.job(t, j.ID)
			require.Equal(t, []any{before.State, before.Version, before.LastEvent}, []any{now.State, now.Version, now.LastEvent}, name)
			require.Equal(t, attempt.StateRUNNING, b.attempt(t, a.ID).State, name)
		}
		f.fail(nil)
		require.True(t, b.settle(t, a, answer("a")).Landed)
		b.requireEnd(t, f.take(), j.ID, job.StateSUCCEEDED)
	})
}

func TestCreateAsksWhetherACallbackURLIsTaken(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, b *testBundle) {
		bad := func(url string) []Issue {
			in := input("k", `{"text":"a"}`)
			in.CallbackURL = &url
			_, err := b.Create(b.ann, in)
			var invalid *InvalidInputError
			require.ErrorAs(t, err, &invalid)
			return invalid.Issues
		}
		require.Equal(t, []Issue{{"/callbackUrl", "completion webhooks are not configured here"}}, bad(hook))
		b.withCallbacks(t)
		require.Equal(t, []Issue{{"/callbackUrl", "must be the hook"}}, bad("https://other.example"))

		in := input("k", `{"text":"a"}`)
		in.CallbackURL = new(hook)
		first, err := b.Create(b.ann, in)
		require.NoError(t, err)
		require.False(t, first.Replayed, "what was refused used no key")

		// A retry still meets its job when webhooks were switched off meanwhile.
		again, err := b.restarted(allTasks(t)).Create(b.ann, in)
		require.NoError(t, err)
		require.True(t, again.Replayed)
		require.Equal(t, first.Job.ID, again.Job.ID)
	})
}
