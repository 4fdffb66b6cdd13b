package graph_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
	"github.com/docket-gateway/docket/internal/viewer"
)

func TestKeyExpiresAtIsTheLastEventAndTheAge(t *testing.T) {
	t.Parallel()
	b := setup(t)
	j := b.Job(t, alice, "k")
	a := b.Attempt(t, j.ID)
	last := time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)
	touch := func() {
		t.Helper()
		err := b.Store.Client().Job.Update().Where(job.ID(j.ID)).SetUpdatedAt(last).Exec(viewer.NewSystemContext(t.Context()))
		require.NoError(t, err)
	}
	// It is the only field that is asked for: what it is made of must be loaded all the same.
	ask := func() any {
		t.Helper()
		r := b.post(t, asAlice, `query($id: ID!) { job(id: $id) { keyExpiresAt } jobs { edges { node { until: keyExpiresAt } } } node(id: $id) { ... on Job { keyExpiresAt } } }`,
			`{"id":"`+j.ID+`"}`)
		at := r.at(t, "job", "keyExpiresAt")
		require.Equal(t, at, r.at(t, "jobs", "edges", 0, "node", "until"))
		require.Equal(t, at, r.at(t, "node", "keyExpiresAt"))
		return at
	}
	touch()
	require.Nil(t, ask(), "an open job is never removed")
	b.Move(t, a.ID, attempt.StateSUCCEEDED, "")
	b.Finish(t, j.ID, job.StateSUCCEEDED, a.ID)
	touch()
	require.Equal(t, "2026-03-03T12:00:00.123456Z", ask())
}

func TestARemovedJobIsNotFound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	j := b.Job(t, alice, "k")
	b.Finish(t, j.ID, job.StateCANCELLED, "")
	for _, statement := range []string{"DELETE FROM job_events WHERE job_id = ?", "DELETE FROM jobs WHERE id = ?"} {
		_, err := b.Store.DB().ExecContext(t.Context(), statement, j.ID)
		require.NoError(t, err)
	}
	r := b.post(t, asAlice, `query($id: ID!) { job(id: $id) { id } node(id: $id) { id } jobByKey(idempotencyKey: "k") { id } }`, `{"id":"`+j.ID+`"}`)
	for _, f := range []string{"job", "node", "jobByKey"} {
		require.Nil(t, r.at(t, f), f)
	}
	for _, q := range []string{watchEvents, watchAttempts} {
		next, _ := b.stream(t, asAlice, q, `{"id":"`+j.ID+`"}`)
		require.Contains(t, next().data, "NOT_FOUND")
		require.Equal(t, "complete", next().name)
	}
}
