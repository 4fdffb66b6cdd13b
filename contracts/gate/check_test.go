package gate_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/contracts/gate"
	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/internal/store"
	"github.com/docket-gateway/docket/internal/store/storetest"
	"github.com/docket-gateway/docket/internal/tasks"
)

var databases = storetest.New()

func TestMain(m *testing.M) { databases.Main(m) }

type current struct{ config, cases string }

func (c current) ConfigDigest(target string) (string, bool) {
	return c.config, target != "nobody/there"
}
func (c current) CasesDigest(task, _ string) (string, bool)    { return c.cases, task != "unknown" }
func (c current) Parts(*tasks.Definition, string) report.Parts { return nil }

type bundle struct {
	client   *ent.Client
	gate     *gate.Gate
	recorder *gate.Recorder
	now      *time.Time
	task     *tasks.Definition
}

func setup(t *testing.T, fresh func(tb testing.TB) string) *bundle {
	t.Helper()
	st, err := store.Open(t.Context(), fresh(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	client := st.Client()
	now := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	b := &bundle{client: client, now: &now, task: &tasks.Definition{
		Name: "triage", Digest: "sha256:v2", Contract: tasks.ContractPolicy{Runs: 1, MaxAge: time.Hour},
	}}
	clock := func() time.Time { return now }
	b.gate = gate.New(current{"sha256:config", "sha256:cases"}, clock)
	b.recorder = gate.NewRecorder(client, clock)
	return b
}

// result is one with every check; that of the schema has the status, the others passed.
func (b *bundle) result(version string, mode report.Mode, status report.Status) report.Result {
	checks := []report.Check{}
	for _, name := range report.Checks() {
		if name != report.CheckSchema {
			checks = append(checks, report.Check{Name: name, Status: report.Passed})
		}
	}
	return report.Result{
		Task: "triage", Target: "demo/laser", Mode: mode, Runs: 1, RanBy: "tester", StartedAt: b.now.Add(-time.Minute), FinishedAt: *b.now,
		Basis:  report.Basis{TaskVersion: version, CasesDigest: "sha256:cases", ConfigDigest: "sha256:config", ChecksVersion: report.ChecksVersion},
		Cases:  []report.Case{{Name: "one", Runs: []report.Run{{Number: 1, Checks: []report.Check{{Name: report.CheckSchema, Status: status, Message: "expected: a; came: b"}}}}}},
		Checks: checks,
	}
}

// record stores a result, then lets a second go by.
func (b *bundle) record(t *testing.T, version string, mode report.Mode, status report.Status) {
	t.Helper()
	require.NoError(t, b.recorder.Record(t.Context(), b.result(version, mode, status)))
	*b.now = b.now.Add(time.Second)
}

func (b *bundle) check(t *testing.T, target string) gate.Decision {
	t.Helper()
	d, err := b.gate.Check(t.Context(), b.client, b.task, target)
	require.NoError(t, err)
	require.Equal(t, d.Allowed, d.State == gate.Passed)
	require.Equal(t, d.Allowed, len(d.Reasons) == 0)
	return d
}

func TestGate(t *testing.T) {
	t.Parallel()
	databases.EachKind(t, testGate)
}

func testGate(t *testing.T, fresh func(tb testing.TB) string) {
	t.Helper()

	t.Run("ClosesOnAnEmptyDatabase", func(t *testing.T) {
		t.Parallel()
		require.Equal(t, gate.Missing, setup(t, fresh).check(t, "demo/laser").State)
	})

	t.Run("OpensForARecordedPassOfThatTargetOnly", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fresh)
		b.record(t, "sha256:v2", report.Live, report.Passed)
		d := b.check(t, "demo/laser")
		require.True(t, d.Allowed)
		require.True(t, b.now.Add(-time.Second).Equal(*d.CheckedAt))
		require.Equal(t, gate.Missing, b.check(t, "demo/fax").State)
		require.Equal(t, gate.Missing, b.check(t, "nobody/there").State)
	})

	t.Run("NewestResultWins", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fresh)
		b.record(t, "sha256:v2", report.Live, report.Passed)
		b.record(t, "sha256:v2", report.Live, report.Failed)
		d := b.check(t, "demo/laser")
		require.Equal(t, gate.Failed, d.State)
		require.Contains(t, d.Reasons[0], `case "one", run 1, check schema: expected: a; came: b`)
		b.record(t, "sha256:v2", report.Record, report.Passed)
		require.True(t, b.check(t, "demo/laser").Allowed)
	})

	t.Run("ReasonsHoldNoOutput", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fresh)
		r := b.result("sha256:v2", report.Live, report.Failed)
		problem := report.Problem{Pointer: "/kind", Expected: "one of these", Got: `a string of 6 characters: "secret"`}
		check := &r.Cases[0].Runs[0].Checks[0]
		check.Problems, check.Message = []report.Problem{problem}, problem.String()
		require.NoError(t, b.recorder.Record(t.Context(), r))
		d := b.check(t, "demo/laser")
		require.Len(t, d.Reasons, 1)
		require.Contains(t, d.Reasons[0], `case "one", run 1, check schema: /kind: expected: one of these.`)
		require.NotContains(t, d.Reasons[0], "secret")
	})

	t.Run("APassWithFewerRunsTakesNothingBack", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fresh)
		b.task.Contract.Runs = 2
		whole := b.result("sha256:v2", report.Live, report.Passed)
		whole.Runs = 2
		whole.Cases[0].Runs = append(whole.Cases[0].Runs, report.Run{Number: 2, Checks: whole.Cases[0].Runs[0].Checks})
		short := func(status report.Status) { b.record(t, "sha256:v2", report.Live, status) }

		short(report.Passed)
		d := b.check(t, "demo/laser")
		require.Equal(t, gate.Stale, d.State)
		require.Equal(t, []string{"It passed with 1 of the 2 runs per case that the task asks for."}, d.Reasons)
		whole.FinishedAt = *b.now
		require.NoError(t, b.recorder.Record(t.Context(), whole))
		at := *b.now
		*b.now = b.now.Add(time.Second)
		short(report.Passed)
		short(report.Passed)
		d = b.check(t, "demo/laser")
		require.True(t, d.Allowed, d.Reasons)
		require.True(t, at.Equal(*d.CheckedAt), "the whole run decides, and its age counts")

		short(report.Failed)
		require.Equal(t, gate.Failed, b.check(t, "demo/laser").State, "a failure closes whatever its runs")
		short(report.Passed)
		require.Equal(t, gate.Failed, b.check(t, "demo/laser").State, "and a short pass does not open again")
	})

	t.Run("ReplaysNeitherOpenNorClose", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fresh)
		b.record(t, "sha256:v2", report.Replay, report.Passed)
		require.Equal(t, gate.Missing, b.check(t, "demo/laser").State)
		b.record(t, "sha256:v2", report.Live, report.Passed)
		b.record(t, "sha256:v2", report.Replay, report.Failed)
		require.True(t, b.check(t, "demo/laser").Allowed)
	})

	t.Run("AnotherVersionsPassIsStale", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fresh)
		b.record(t, "sha256:v1", report.Live, report.Passed)
		d := b.check(t, "demo/laser")
		require.Equal(t, gate.Stale, d.State)
		require.Contains(t, d.Reasons[0], "sha256:v1")
		require.Equal(t, gate.Missing, b.check(t, "demo/fax").State, "a pass of another target says nothing")
		b.task = &tasks.Definition{Name: "invoice", Digest: "sha256:v9", Contract: b.task.Contract}
		require.Equal(t, gate.Missing, b.check(t, "demo/laser").State, "a pass of another task says nothing")
	})

	t.Run("ClosesByAge", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fresh)
		b.record(t, "sha256:v2", report.Live, report.Passed)
		*b.now = b.now.Add(time.Hour)
		require.Equal(t, gate.Stale, b.check(t, "demo/laser").State)
	})

	t.Run("ClosesWhenThisProcessIsConfiguredOtherwise", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fresh)
		b.record(t, "sha256:v2", report.Live, report.Passed)
		b.gate = gate.New(current{"sha256:other", "sha256:cases"}, func() time.Time { return *b.now })
		require.Equal(t, gate.Stale, b.check(t, "demo/laser").State)
		b.gate = gate.New(current{"sha256:config", "sha256:other"}, func() time.Time { return *b.now })
		require.Equal(t, gate.Stale, b.check(t, "demo/laser").State)
	})

	t.Run("AnotherConfigurationsNewerResultDoesNotCloseIt", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fresh)
		b.record(t, "sha256:v2", report.Live, report.Passed)
		require.NoError(t, b.recorder.Record(t.Context(), report.Result{
			Task: "triage", Target: "demo/laser", Mode: report.Live, Runs: 1, RanBy: "another replica",
			Basis: report.Basis{TaskVersion: "sha256:v2", CasesDigest: "sha256:cases", ConfigDigest: "sha256:next", ChecksVersion: report.ChecksVersion},
			Cases: []report.Case{{Name: "one", Runs: []report.Run{{Number: 1, Checks: []report.Check{{Name: report.CheckSchema, Status: report.Failed}}}}}},
		}))
		require.True(t, b.check(t, "demo/laser").Allowed)
	})

	t.Run("AnswersInsideATransaction", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fresh)
		b.record(t, "sha256:v2", report.Live, report.Passed)
		tx, err := b.client.Tx(t.Context())
		require.NoError(t, err)
		d, err := b.gate.Check(t.Context(), tx.Client(), b.task, "demo/laser")
		require.NoError(t, err)
		require.NoError(t, tx.Rollback())
		require.True(t, d.Allowed)
	})

	t.Run("NeverAllowsWhenTheDatabaseCannotSay", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fresh)
		b.record(t, "sha256:v2", report.Live, report.Passed)
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("gone"))
		d, err := b.gate.Check(ctx, b.client, b.task, "demo/laser")
		require.Error(t, err)
		require.False(t, d.Allowed)
	})
}

func TestRecorder(t *testing.T) {
	t.Parallel()
	databases.EachKind(t, testRecorder)
}

func testRecorder(t *testing.T, fresh func(tb testing.TB) string) {
	t.Helper()

	t.Run("JudgesByItself", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fresh)
		require.NoError(t, b.recorder.Record(t.Context(), report.Result{
			Task: "triage", Target: "demo/laser", Mode: report.Live, Runs: 1, RanBy: "tester", Passed: true,
			Basis: report.Basis{TaskVersion: "sha256:v2", CasesDigest: "sha256:cases", ConfigDigest: "sha256:config", ChecksVersion: report.ChecksVersion},
		}))
		require.Equal(t, gate.Failed, b.check(t, "demo/laser").State)
	})

	t.Run("RefusesAnUnknownMode", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fresh)
		require.Error(t, b.recorder.Record(t.Context(), report.Result{Task: "triage", Target: "demo/laser", Mode: "dream"}))
	})
}
