package app

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/contractresult"
	"github.com/docket-gateway/docket/internal/viewer"
)

// proofs are the recorded results of a task's fallback demo/laser.
func (r *running) proofs(t *testing.T, task string) []*ent.ContractResult {
	t.Helper()
	list, err := r.store.Client().ContractResult.Query().
		Where(contractresult.Task(task), contractresult.Target("demo/laser")).All(viewer.NewSystemContext(t.Context()))
	require.NoError(t, err)
	return list
}

func TestProvesDemoFallbacksAtStartAndOnlyOnce(t *testing.T) {
	t.Parallel()
	cfg := unproved(t.TempDir())
	first := serve(t, cfg)
	for _, task := range []string{"triage", "invoice"} {
		require.Len(t, first.proofs(t, task), 1)
		require.True(t, first.proofs(t, task)[0].Passed)
	}
	require.Contains(t, query(t, first.addr, `{ targets(task: "triage") { id contract { state } } }`, nil),
		`{"id":"demo/laser","contract":{"state":"PASSED"}}`)
	require.NoError(t, first.stop())

	second := serve(t, cfg)
	for _, task := range []string{"triage", "invoice"} {
		require.Len(t, second.proofs(t, task), 1)
	}
}

// TestProvesWithoutTouchingItsOwnJobs: the round trips of a proof are jobs of another database.
func TestProvesWithoutTouchingItsOwnJobs(t *testing.T) {
	t.Parallel()
	g := serve(t, unproved(t.TempDir()))
	for _, task := range []string{"triage", "invoice"} {
		var result report.Result
		require.NoError(t, json.Unmarshal(g.proofs(t, task)[0].Report, &result))
		require.Equal(t, report.Passed, result.Summary(report.CheckRoundTrip))
		require.Equal(t, report.Passed, result.Summary(report.CheckSystem), "also the canary")
		require.Equal(t, report.NotApplicable, result.Summary(report.CheckFaults))
	}
	ctx := viewer.NewSystemContext(t.Context())
	for name, count := range map[string]func(context.Context) (int, error){
		"jobs": g.store.Client().Job.Query().Count, "attempts": g.store.Client().Attempt.Query().Count,
		"events": g.store.Client().JobEvent.Query().Count, "owners": g.store.Client().Owner.Query().Count,
		"task versions": g.store.Client().TaskVersion.Query().Count,
	} {
		n, err := count(ctx)
		require.NoError(t, err)
		require.Zero(t, n, name)
	}
}

// TestRenewsAPassBeforeItExpires: the pass of a gateway that has run for a week less an hour.
func TestRenewsAPassBeforeItExpires(t *testing.T) {
	t.Parallel()
	g := serve(t, unproved(t.TempDir()))
	p := g.prover
	require.NoError(t, p.fallbacks(t.Context(), g.versions))
	require.Len(t, g.proofs(t, "triage"), 1, "it has a week left")
	p.now = func() time.Time { return time.Now().Add(7*24*time.Hour - time.Hour) }
	require.NoError(t, p.fallbacks(t.Context(), g.versions))
	require.Len(t, g.proofs(t, "triage"), 2)
}

// TestProvesAVersionThatAnOpenJobHolds: the task changed while a job of it was open.
func TestProvesAVersionThatAnOpenJobHolds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, contracts.ShippedTasks()))
	cfg := unproved(t.TempDir())
	cfg.Tasks = []string{dir}
	first := serve(t, cfg)
	id := job(t, first.addr, "k", "demo/fax") // silent for long
	becomes(t, first.addr, id, `"state":"RUNNING"`)
	require.NoError(t, first.stop())

	path := filepath.Join(dir, "triage", "task.yaml")
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(raw), `"1.0.0"`, `"2.0.0"`, 1)), 0o600))
	second := serve(t, cfg)
	require.Len(t, second.proofs(t, "triage"), 2, "the new version is proven, the held one was")
	// The results are gone, as they go out of date.
	_, err = second.store.Client().ContractResult.Delete().Exec(viewer.NewSystemContext(t.Context()))
	require.NoError(t, err)
	require.NoError(t, second.stop())

	third := serve(t, cfg)
	versions := map[string]bool{}
	for _, r := range third.proofs(t, "triage") {
		require.True(t, r.Passed)
		versions[r.TaskVersion] = true
	}
	require.Len(t, versions, 2)
	becomes(t, third.addr, id, `"state":"UNKNOWN"`)
}
