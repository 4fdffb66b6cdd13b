package gate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.jetify.com/typeid"

	"github.com/docket-gateway/docket/contracts/gate"
	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/ent/contractresult"
	"github.com/docket-gateway/docket/internal/viewer"
)

func TestImport(t *testing.T) {
	t.Parallel()
	databases.EachKind(t, testImport)
}

func testImport(t *testing.T, fresh func(tb testing.TB) string) {
	t.Helper()
	const target = "demo/laser"
	// elsewhere is a result that ended half an hour ago.
	elsewhere := func(b *bundle, status report.Status) gate.Import {
		r := b.result("sha256:v2", report.Live, status)
		r.FinishedAt = b.now.Add(-30 * time.Minute)
		r.StartedAt = r.FinishedAt.Add(-time.Minute)
		r.Judge()
		return gate.Import{ID: typeid.Must(typeid.WithPrefix("ctr")).String(), Result: r, SignedBy: "SHA256:key", By: "operator"}
	}
	rows := func(t *testing.T, b *bundle) int {
		t.Helper()
		n, err := b.client.ContractResult.Query().Count(viewer.NewSystemContext(t.Context()))
		require.NoError(t, err)
		return n
	}

	t.Run("OpensTheGateForTheRestOfTheTime", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fresh)
		in := elsewhere(b, report.Passed)
		stored, err := b.recorder.Import(t.Context(), []gate.Import{in})
		require.NoError(t, err)
		require.Equal(t, []bool{true}, stored)
		d := b.check(t, target)
		require.True(t, d.Allowed)
		require.Equal(t, 30*time.Minute, d.Age)
		require.Equal(t, "SHA256:key", d.SignedBy)
		require.Equal(t, "tester", d.RanBy)
		require.True(t, b.now.Add(30*time.Minute).Equal(*d.ExpiresAt))
		row, err := b.client.ContractResult.Query().Where(contractresult.ID(in.ID)).Only(viewer.NewSystemContext(t.Context()))
		require.NoError(t, err)
		require.Equal(t, "operator", *row.ImportedBy)
		require.True(t, b.now.Equal(*row.ImportedAt))

		*b.now = b.now.Add(20 * time.Minute)
		again, err := b.recorder.Import(t.Context(), []gate.Import{in})
		require.NoError(t, err)
		require.Equal(t, []bool{false}, again)
		require.Equal(t, 1, rows(t, b))
		require.Equal(t, 50*time.Minute, b.check(t, target).Age, "importing makes nothing younger")
	})

	t.Run("DoesNotHideANewerFailure", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fresh)
		in := elsewhere(b, report.Passed)
		b.record(t, "sha256:v2", report.Live, report.Failed)
		_, err := b.recorder.Import(t.Context(), []gate.Import{in})
		require.NoError(t, err)
		require.Equal(t, gate.Failed, b.check(t, target).State)
	})

	t.Run("StoresAllOrNothing", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fresh)
		good, bad := elsewhere(b, report.Passed), elsewhere(b, report.Passed)
		bad.Result.RanBy = "" // the schema refuses it
		_, err := b.recorder.Import(t.Context(), []gate.Import{good, bad})
		require.Error(t, err)
		require.Zero(t, rows(t, b))
	})

	t.Run("RefusesOtherContentUnderAnIdThatIsThere", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fresh)
		failed, good := elsewhere(b, report.Failed), elsewhere(b, report.Passed)
		_, err := b.recorder.Import(t.Context(), []gate.Import{failed})
		require.NoError(t, err)
		forged := elsewhere(b, report.Passed)
		forged.ID = failed.ID
		_, err = b.recorder.Import(t.Context(), []gate.Import{good, forged})
		require.ErrorIs(t, err, gate.ErrOtherResult)
		require.Equal(t, 1, rows(t, b))
		require.False(t, b.check(t, target).Allowed)
	})

	t.Run("RefusesWhatDoesNotJudgeToWhatItSaysOrIsOfTheFuture", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fresh)
		for name, change := range map[string]func(*report.Result){
			"Failed":      func(r *report.Result) { r.Checks[0].Status = report.Failed },
			"Lacking":     func(r *report.Result) { r.Checks = r.Checks[1:] },
			"OtherTarget": func(r *report.Result) { r.Target = "demo/fax" },
			"Future":      func(r *report.Result) { r.FinishedAt = b.now.Add(time.Hour) },
		} {
			in := elsewhere(b, report.Passed)
			change(&in.Result)
			_, err := b.recorder.Import(t.Context(), []gate.Import{in})
			require.Error(t, err, name)
		}
		require.Zero(t, rows(t, b))
	})

	t.Run("TakesBackWhatItGaveAway", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fresh)
		b.record(t, "sha256:v2", report.Live, report.Passed)
		out, ok, err := b.gate.Newest(t.Context(), b.client, b.task, target)
		require.NoError(t, err)
		require.True(t, ok)
		stored, err := b.recorder.Import(t.Context(), []gate.Import{{ID: out.ID, Result: out.Result, SignedBy: "SHA256:key", By: "operator"}})
		require.NoError(t, err)
		require.Equal(t, []bool{false}, stored)
		require.Empty(t, b.check(t, target).SignedBy, "it was made here")
		_, ok, err = b.gate.Newest(t.Context(), b.client, b.task, "demo/fax")
		require.NoError(t, err)
		require.False(t, ok)
	})
}
