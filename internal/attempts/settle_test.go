package attempts_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
	"github.com/docket-gateway/docket/internal/attempts"
	"github.com/docket-gateway/docket/internal/jobs"
)

var outage = time.Date(2026, 3, 14, 9, 0, 0, 0, time.UTC)

// failed is what the tests ask for, changed by change.
func failed(change func(o *attempts.SettleOptions)) attempts.SettleOptions {
	o := attempts.SettleOptions{Provider: "paper", Known: true, Target: func(string) bool { return true }, Outcome: "failed", Note: "outage of 14 March", Operator: "olga"}
	if change != nil {
		change(&o)
	}
	return o
}

func TestSettle(t *testing.T) {
	t.Parallel()

	t.Run("SettlesTheProvidersAttemptsOfTheWindowAndNoOther", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			first, second := b.unknown(t, "paper/a", outage), b.unknown(t, "paper/b/c", outage.Add(59*time.Minute))
			early, late := b.unknown(t, "paper/a", outage.Add(-time.Microsecond)), b.unknown(t, "paper/a", outage.Add(time.Hour))
			other, longer := b.unknown(t, "ink/a", outage), b.unknown(t, "paper2/a", outage)
			o := failed(func(o *attempts.SettleOptions) {
				o.Window = attempts.Window{Since: outage, Until: outage.Add(time.Hour)}
			})

			dry := o
			dry.DryRun = true
			before := b.snapshot(t)
			code, out, err := b.settle(t, b, dry)
			require.NoError(t, err)
			require.Equal(t, attempts.ExitOK, code)
			require.Equal(t, before, b.snapshot(t))
			require.Equal(t, 2, strings.Count(out, "would be settled\n"))
			require.Contains(t, out, "2 UNKNOWN attempts of paper would become FAILED. Nothing was changed.\n")

			code, out, err = b.settle(t, b, o)
			require.NoError(t, err)
			require.Equal(t, attempts.ExitOK, code, out)
			require.Contains(t, out, first.ID+"  "+first.JobID+"  paper/a  sent 2026-03-14T09:00:00Z  FAILED, job QUEUED\n")
			require.Contains(t, out, second.ID+"  "+second.JobID+"  paper/b/c  sent 2026-03-14T09:59:00Z  FAILED, job QUEUED\n")
			require.Contains(t, out, "2 UNKNOWN attempts of paper: 2 settled as FAILED, 0 settled by somebody else before, 0 failed.\n")
			for _, a := range []string{first.ID, second.ID} {
				now := b.attempt(t, a)
				require.Equal(t, attempt.StateFAILED, now.State)
				require.Equal(t, jobs.CodeResolved, *now.ErrorCode)
				detail := string(now.Edges.Events[len(now.Edges.Events)-1].Detail)
				for _, says := range []string{`"by":"olga"`, `"operator":true`, `"note":"outage of 14 March"`} {
					require.Contains(t, strings.ReplaceAll(detail, `": `, `":`), says)
				}
				// The route goes on, with an entry that whoever serves will find.
				next := b.attempts(t, now.JobID)
				require.Len(t, next, 2)
				require.Equal(t, "paper/next", next[1].Target)
				require.NotNil(t, next[1].QueueEntry)
				require.Equal(t, job.StateQUEUED, now.Edges.Job.State)
			}
			for _, a := range []string{early.ID, late.ID, other.ID, longer.ID} {
				require.Equal(t, attempt.StateUNKNOWN, b.attempt(t, a).State)
			}

			code, out, err = b.settle(t, b, o)
			require.NoError(t, err)
			require.Equal(t, attempts.ExitOK, code)
			require.Equal(t, "0 UNKNOWN attempts of paper: 0 settled as FAILED, 0 settled by somebody else before, 0 failed.\n", out)
		})
	})

	t.Run("LeavesCancelledJobsToTheirOwners", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			a := b.unknown(t, "paper/a", outage)
			code, out, err := b.settle(t, b, failed(func(o *attempts.SettleOptions) { o.Outcome = "cancelled" }))
			require.NoError(t, err)
			require.Equal(t, attempts.ExitOK, code, out)
			now := b.attempt(t, a.ID)
			require.Equal(t, attempt.StateCANCELLED, now.State)
			require.Equal(t, job.StateWAITING, now.Edges.Job.State)
			require.Len(t, b.attempts(t, now.JobID), 1)
		})
	})

	// With another configuration the fallback would win, so that no route must be dropped for want of it.
	t.Run("RefusesToMoveRoutesThatItDoesNotKnow", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			a := b.unknown(t, "paper/a", outage)
			before := b.snapshot(t)
			for name, tc := range map[string]struct {
				change func(o *attempts.SettleOptions)
				says   string
			}{
				"Provider": {func(o *attempts.SettleOptions) { o.Known = false }, `no provider "paper" in this configuration`},
				"Fallback": {func(o *attempts.SettleOptions) { o.Target = func(s string) bool { return s == "paper/a" } },
					"job " + a.JobID + ` has the fallback "paper/next", whose provider "paper" is not in this configuration`},
			} {
				for _, dry := range []bool{true, false} {
					code, out, err := b.settle(t, b, failed(func(o *attempts.SettleOptions) { tc.change(o); o.DryRun = dry }))
					require.ErrorIs(t, err, attempts.ErrUsage, name)
					require.ErrorContains(t, err, tc.says, name)
					require.Equal(t, attempts.ExitUnusable, code, name)
					require.Empty(t, out, name)
					require.Equal(t, before, b.snapshot(t), name)
				}
			}
		})
	})

	t.Run("SettlesWhatIsRemovedWhenTold", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			for outcome, removed := range map[string]bool{"failed": true, "cancelled": false} {
				a := b.unknown(t, "paper/a", outage)
				code, out, err := b.settle(t, b, failed(func(o *attempts.SettleOptions) {
					o.Outcome, o.Removed = outcome, removed
					o.Known, o.Target = false, func(string) bool { return false }
				}))
				require.NoError(t, err)
				require.Equal(t, attempts.ExitOK, code, out)
				require.NotEqual(t, attempt.StateUNKNOWN, b.attempt(t, a.ID).State)
			}
		})
	})

	// What was tried is not to come.
	t.Run("MindsNoFallbackThatWasTried", func(t *testing.T) {
		t.Parallel()
		b := setupSQLite(t)
		a := b.unknown(t, "paper/next", outage)
		code, out, err := b.settle(t, b, failed(func(o *attempts.SettleOptions) { o.Target = func(string) bool { return false } }))
		require.NoError(t, err)
		require.Equal(t, attempts.ExitOK, code, out)
		require.Equal(t, job.StateFAILED, b.attempt(t, a.ID).Edges.Job.State)
	})

	t.Run("TellsWhoWasFirstAndGoesOn", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			one, two := b.unknown(t, "paper/a", outage), b.unknown(t, "paper/a", outage)
			r := &meddler{Resolver: b, before: func() {
				_, err := b.CancelAttempt(b.ann, one.ID, nil)
				require.NoError(t, err)
			}}
			code, out, err := b.settle(t, r, failed(nil))
			require.NoError(t, err)
			require.Equal(t, attempts.ExitPartly, code)
			require.Contains(t, out, one.ID+"  "+one.JobID+"  paper/a  sent 2026-03-14T09:00:00Z  was CANCELLED before, job WAITING\n")
			require.Contains(t, out, "2 UNKNOWN attempts of paper: 1 settled as FAILED, 1 settled by somebody else before, 0 failed.\n")
			require.Equal(t, attempt.StateCANCELLED, b.attempt(t, one.ID).State)
			require.Equal(t, attempt.StateFAILED, b.attempt(t, two.ID).State)
		})
	})

	t.Run("GoesOnAfterOneThatFails", func(t *testing.T) {
		t.Parallel()
		b := setupSQLite(t)
		one, two := b.unknown(t, "paper/a", outage), b.unknown(t, "paper/a", outage)
		r := &meddler{Resolver: b, fail: map[string]error{one.ID: errors.New("no database")}}
		code, out, err := b.settle(t, r, failed(nil))
		require.NoError(t, err)
		require.Equal(t, attempts.ExitPartly, code)
		require.Contains(t, out, "error: no database\n")
		require.Contains(t, out, "1 settled as FAILED, 0 settled by somebody else before, 1 failed.\n")
		require.Equal(t, attempt.StateFAILED, b.attempt(t, two.ID).State)
	})

	t.Run("StopsWhenInterrupted", func(t *testing.T) {
		t.Parallel()
		b := setupSQLite(t)
		b.unknown(t, "paper/a", outage)
		second := b.unknown(t, "paper/a", outage)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var out strings.Builder
		code, err := attempts.Settle(ctx, b.store.Client(), &meddler{Resolver: b, after: cancel}, failed(nil), attempts.Streams{Out: &out})
		require.NoError(t, err)
		require.Equal(t, attempts.ExitPartly, code)
		require.Contains(t, out.String(), "1 settled as FAILED, 0 settled by somebody else before, 0 failed. Interrupted: 1 not reached.\n")
		require.Equal(t, attempt.StateUNKNOWN, b.attempt(t, second.ID).State)
	})

	t.Run("SettlesWhatWasFoundAndNotWhatComesOfIt", func(t *testing.T) {
		t.Parallel()
		b := setupSQLite(t)
		b.unknown(t, "paper/a", outage)
		var added string
		r := &meddler{Resolver: b, before: func() { added = b.unknown(t, "paper/a", outage).ID }}
		code, _, err := b.settle(t, r, failed(nil))
		require.NoError(t, err)
		require.Equal(t, attempts.ExitOK, code)
		require.Equal(t, attempt.StateUNKNOWN, b.attempt(t, added).State)
	})

	t.Run("RefusesWhatIsNotMeant", func(t *testing.T) {
		t.Parallel()
		b := setupSQLite(t)
		a := b.unknown(t, "paper/a", outage)
		for name, tc := range map[string]struct {
			change func(o *attempts.SettleOptions)
			says   string
		}{
			"NoProvider":       {func(o *attempts.SettleOptions) { o.Provider = "" }, "--provider is required"},
			"ATarget":          {func(o *attempts.SettleOptions) { o.Provider = "paper/a" }, "without a model"},
			"AMisspelt":        {func(o *attempts.SettleOptions) { o.Provider, o.Known = "papier", false }, `no provider "papier"`},
			"MisspeltRemoved":  {func(o *attempts.SettleOptions) { o.Provider, o.Known, o.Removed = "papier", false, true }, "and no such attempt"},
			"NoOutcome":        {func(o *attempts.SettleOptions) { o.Outcome = "" }, "--outcome must be"},
			"Success":          {func(o *attempts.SettleOptions) { o.Outcome = "succeeded" }, "--outcome must be"},
			"NoNote":           {func(o *attempts.SettleOptions) { o.Note = " " }, "--note is required"},
			"Nobody":           {func(o *attempts.SettleOptions) { o.Operator = "" }, "--operator must be 1 to 255"},
			"BlankOperator":    {func(o *attempts.SettleOptions) { o.Operator = " olga" }, "--operator must be 1 to 255"},
			"LongOperator":     {func(o *attempts.SettleOptions) { o.Operator = strings.Repeat("o", 256) }, "--operator must be 1 to 255"},
			"Unprintable":      {func(o *attempts.SettleOptions) { o.Operator = "olga\n" }, "--operator must be 1 to 255"},
			"LongNote":         {func(o *attempts.SettleOptions) { o.Note = strings.Repeat("n", 10_001) }, "--note must have at most 10000 bytes"},
			"AWindowBackwards": {func(o *attempts.SettleOptions) { o.Window = attempts.Window{Since: outage, Until: outage} }, "nothing is between"},
		} {
			for _, dry := range []bool{true, false} {
				code, out, err := b.settle(t, b, failed(func(o *attempts.SettleOptions) { tc.change(o); o.DryRun = dry }))
				require.ErrorIs(t, err, attempts.ErrUsage, name)
				require.ErrorContains(t, err, tc.says, name)
				require.Equal(t, attempts.ExitUnusable, code, name)
				require.Empty(t, out, name)
			}
		}
		require.Equal(t, attempt.StateUNKNOWN, b.attempt(t, a.ID).State)
	})
}

// meddler lets something happen around the first attempt that is settled.
type meddler struct {
	attempts.Resolver

	before, after func()
	fail          map[string]error
}

func (m *meddler) ResolveAttempt(ctx context.Context, r jobs.Resolution) (jobs.AttemptAndJob, error) {
	if m.before != nil {
		m.before()
		m.before = nil
	}
	if err := m.fail[r.AttemptID]; err != nil {
		return jobs.AttemptAndJob{}, err
	}
	done, err := m.Resolver.ResolveAttempt(ctx, r)
	if m.after != nil {
		m.after()
	}
	return done, err
}

func TestParseTime(t *testing.T) {
	t.Parallel()
	now := outage
	for text, want := range map[string]time.Time{
		"": {}, "2h": outage.Add(-2 * time.Hour), "0s": outage, "1h30m": outage.Add(-90 * time.Minute),
		"2026-03-14T09:00:00Z": outage, "2026-03-14T10:00:00+01:00": outage,
	} {
		got, err := attempts.ParseTime(text, now)
		require.NoError(t, err, text)
		require.True(t, want.Equal(got), text)
	}
	for _, text := range []string{"-2h", "yesterday", "2026-03-14", "2026-03-14 09:00:00", "2"} {
		_, err := attempts.ParseTime(text, now)
		require.ErrorIs(t, err, attempts.ErrUsage, text)
	}
}
