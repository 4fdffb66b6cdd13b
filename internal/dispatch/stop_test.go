package dispatch

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/jobs"
	"github.com/docket-gateway/docket/providers"
)

// stopping calls Stop and returns what will hold its result.
func (p *process) stopping(bound time.Duration) <-chan error {
	done := make(chan error, 1)
	go func() { done <- p.stop(bound) }()
	return done
}

func TestStopDrains(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		release := make(chan struct{})
		p := start(t, address, options{script: newScript(held(release))})
		_, a := p.create(t, "single")
		p.becomes(t, a.ID, attempt.StateRUNNING)
		done := p.stopping(await.Patience)
		close(release)
		require.NoError(t, await.Receive(t, "end of Stop", done))
		require.Equal(t, attempt.StateSUCCEEDED, p.attempt(t, a.ID).State)

		_, b := p.create(t, "single") // taken in, and left to another process
		require.Len(t, p.script.requests(), 1)
		other := start(t, address, options{})
		other.becomes(t, b.ID, attempt.StateSUCCEEDED)
		require.NoError(t, p.stop(0), "once more changes nothing")
	})
}

func TestStopCutsOffWhatDoesNotEndInTime(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		p := start(t, address, options{lease: time.Hour, script: newScript(held(nil))})
		j, a := p.create(t, "retry")
		p.becomes(t, a.ID, attempt.StateRUNNING)
		require.NoError(t, await.Receive(t, "end of Stop", p.stopping(0)))
		a = p.attempt(t, a.ID)
		require.Equal(t, attempt.StateUNKNOWN, a.State)
		require.Equal(t, providers.CodeAborted, *a.ErrorCode)
		require.Equal(t, job.StateUNKNOWN, p.job(t, j.ID).State)
	})
}

// TestStopReleasesWhatWasNotSent: two workers are on the way to their request when the bound is over, one before and one
// in the mark. A lease of an hour says that nobody swept.
func TestStopReleasesWhatWasNotSent(t *testing.T) {
	t.Parallel()
	for name, where := range map[string]func(j Jobs, here chan<- struct{}, d func() *Dispatcher) Jobs{
		"AfterTheLease": func(j Jobs, here chan<- struct{}, d func() *Dispatcher) Jobs {
			return &slowTake{j, func() { here <- struct{}{}; <-d().send.Done() }}
		},
		"BeforeTheMark": func(j Jobs, here chan<- struct{}, d func() *Dispatcher) Jobs {
			return &faulty{Jobs: j, before: func() { here <- struct{}{}; <-d().send.Done() }}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachDatabase(t, func(t *testing.T, address string) {
				t.Helper()
				here := make(chan struct{}, 1)
				var p *process
				p = start(t, address, options{lease: time.Hour, idle: true, wrap: func(j Jobs) Jobs {
					return where(j, here, func() *Dispatcher { return p.d })
				}})
				p.work(t)
				_, a := p.create(t, "single")
				await.Receive(t, "worker", here)
				require.NoError(t, await.Receive(t, "end of Stop", p.stopping(0)))
				p.script.once(t)
				require.Nil(t, p.attempt(t, a.ID).LeaseToken)
				other := start(t, address, options{lease: time.Hour})
				other.becomes(t, a.ID, attempt.StateSUCCEEDED)
				other.script.once(t, a.ID)
			})
		})
	}
}

// slowTake waits after the lease, and is not stopped in it.
type slowTake struct {
	Jobs

	after func()
}

func (s *slowTake) Take(ctx context.Context, id string, entry int64) (*jobs.Lease, error) {
	l, err := s.Jobs.Take(context.WithoutCancel(ctx), id, entry)
	s.after()
	return l, err
}

func TestStopDoesNotWaitForTheLinger(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		p := start(t, address, options{script: newScript(lingering(nil))})
		_, a := p.create(t, "single")
		p.becomes(t, a.ID, attempt.StateUNKNOWN)
		p.drained(t)
		require.NoError(t, await.Receive(t, "end of Stop", p.stopping(time.Hour)))
		require.Equal(t, attempt.StateUNKNOWN, p.attempt(t, a.ID).State)
		require.Equal(t, providers.CodeIdleTimeout, *p.attempt(t, a.ID).ErrorCode)
	})
}

func TestStopEndsAlthoughTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	p := start(t, databases.SQLite(t), options{script: newScript(held(nil)), wrap: func(j Jobs) Jobs {
		return &faulty{Jobs: j, settle: func() error { return errAway }}
	}})
	_, a := p.create(t, "single")
	p.becomes(t, a.ID, attempt.StateRUNNING)
	begin := time.Now()
	require.NoError(t, await.Receive(t, "end of Stop", p.stopping(0)))
	require.Less(t, time.Since(begin), grace+5*time.Second)
	require.Equal(t, attempt.StateRUNNING, p.attempt(t, a.ID).State, "left to the sweep")
}

func TestStopBeforeStart(t *testing.T) {
	t.Parallel()
	p := start(t, databases.SQLite(t), options{idle: true})
	require.NoError(t, p.stop(0))
}
