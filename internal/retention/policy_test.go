package retention

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/job"
)

func TestKeyExpiresAt(t *testing.T) {
	t.Parallel()
	last := time.Date(2026, 3, 1, 12, 0, 0, 123000, time.UTC)
	for _, s := range []job.State{job.StateSUCCEEDED, job.StateFAILED, job.StateCANCELLED} {
		j := &ent.Job{State: s, CreatedAt: last.Add(-time.Hour), UpdatedAt: last}
		require.Equal(t, new(last.Add(48*time.Hour)), Policy{Age: 48 * time.Hour}.KeyExpiresAt(j), s)
		require.Nil(t, Policy{}.KeyExpiresAt(j), "retention is off")
	}
	for _, s := range []job.State{job.StateQUEUED, job.StateRUNNING, job.StateUNKNOWN, job.StateWAITING} {
		require.Nil(t, Policy{Age: 48 * time.Hour}.KeyExpiresAt(&ent.Job{State: s, UpdatedAt: last}), s)
	}
}

// scripted answers one call after the other, then that nothing is left.
type scripted struct {
	answers []result
	calls   []time.Time
}

type result struct {
	n   int
	err error
}

func (s *scripted) Purge(_ context.Context, age time.Duration, batch int) (int, error) {
	if age != time.Hour || batch != 10 {
		return 0, errors.New("other arguments than the policy's")
	}
	s.calls = append(s.calls, time.Now())
	if len(s.answers) == 0 {
		return 0, nil
	}
	r := s.answers[0]
	s.answers = s.answers[1:]
	return r.n, r.err
}

func TestRun(t *testing.T) {
	t.Parallel()
	policy := Policy{Age: time.Hour, Interval: time.Minute, Batch: 10}

	// run lets a policy work for some time and returns when it asked, counted from the start.
	run := func(t *testing.T, p Policy, during time.Duration, answers ...result) (asked []time.Duration) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			s := &scripted{answers: answers}
			begin := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), during)
			defer cancel()
			p.Run(ctx, s, slog.New(slog.DiscardHandler))
			for _, c := range s.calls {
				asked = append(asked, c.Sub(begin))
			}
		})
		return asked
	}

	t.Run("AsksOnceAnInterval", func(t *testing.T) {
		t.Parallel()
		require.Equal(t, []time.Duration{time.Minute, 2 * time.Minute}, run(t, policy, 150*time.Second, result{n: 9}))
	})

	t.Run("GoesOnAtOnceWhileBatchesAreFull", func(t *testing.T) {
		t.Parallel()
		require.Equal(t, []time.Duration{time.Minute, time.Minute, time.Minute, 2 * time.Minute},
			run(t, policy, 150*time.Second, result{n: 10}, result{n: 10}, result{n: 3}))
	})

	t.Run("TriesAgainAnIntervalAfterAnError", func(t *testing.T) {
		t.Parallel()
		require.Equal(t, []time.Duration{time.Minute, time.Minute, 2 * time.Minute},
			run(t, policy, 150*time.Second, result{n: 10}, result{err: errors.New("the database is away")}))
	})

	t.Run("DoesNothingWhenOff", func(t *testing.T) {
		t.Parallel()
		require.Empty(t, run(t, Policy{}, time.Hour))
	})
}
