// Package seed writes jobs, attempts and events for tests of what reads them, in the shape that internal/jobs leaves
// them in and without its rules. Only tests import it.
package seed

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
	"github.com/docket-gateway/docket/internal/store"
	"github.com/docket-gateway/docket/internal/viewer"
)

const taskVersion = "sha256:0000000000000000000000000000000000000000000000000000000000000000"

// Seed writes to one store.
type Seed struct {
	Store *store.Store
	// Changed is called after each commit, if it is set.
	Changed func(jobID string)
}

// SQLite opens a migrated database of the test's own.
func SQLite(t testing.TB) *Seed {
	return Open(t, "sqlite://"+filepath.Join(t.TempDir(), "docket.db"))
}

// Open opens and migrates the database at that address.
func Open(t testing.TB, address string) *Seed {
	st, err := store.Open(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	require.NoError(t, st.Migrate(t.Context()))
	return &Seed{Store: st}
}

// Job is a new job of v, with its first event.
func (s *Seed) Job(t testing.TB, v viewer.Viewer, key string) *ent.Job {
	var j *ent.Job
	s.tx(t, func(ctx context.Context, tx *store.Tx) {
		require.NoError(t, tx.Owner.Create().SetID(v.OwnerID()).SetIssuer(v.Issuer).SetSubject(v.Subject).
			OnConflictColumns("id").Ignore().Exec(ctx))
		require.NoError(t, tx.TaskVersion.Create().SetID(taskVersion).SetName("triage").SetVersion("1").SetContent([]byte(`{}`)).
			OnConflictColumns("id").Ignore().Exec(ctx))
		j = tx.Job.Create().SetOwnerID(v.OwnerID()).SetIdempotencyKey(key).SetFingerprint([]byte(key)).SetTask("triage").
			SetTaskVersion(taskVersion).SetInput(json.RawMessage(`{"n": 9007199254740993}`)).SetTarget("demo/laser").
			SetFallbacks([]string{"demo/fax"}).SetState(job.StateQUEUED).SaveX(ctx)
		s.event(ctx, t, tx, j.ID, "JOB_CREATED", nil, "", string(j.State), nil)
	})
	s.changed(j.ID)
	return j
}

// Attempt is a new attempt of a job, STARTING.
func (s *Seed) Attempt(t testing.TB, jobID string) *ent.Attempt {
	var a *ent.Attempt
	s.tx(t, func(ctx context.Context, tx *store.Tx) {
		n := tx.Attempt.Query().Where(attempt.JobID(jobID)).CountX(ctx) + 1
		a = tx.Attempt.Create().SetJobID(jobID).SetNumber(n).SetTarget("demo/laser").SetReason(attempt.ReasonPRIMARY).
			SetState(attempt.StateSTARTING).SetJobVersion(1).SaveX(ctx)
		s.event(ctx, t, tx, jobID, "ATTEMPT_CREATED", &a.ID, "", string(a.State), nil)
	})
	s.changed(jobID)
	return a
}

// Move changes an attempt's state. detail is its event's, "" for none; its code and message become the attempt's error.
func (s *Seed) Move(t testing.TB, attemptID string, to attempt.State, detail string) {
	var jobID string
	s.tx(t, func(ctx context.Context, tx *store.Tx) {
		a := tx.Attempt.GetX(ctx, attemptID)
		jobID = a.JobID
		u := tx.Attempt.UpdateOneID(attemptID).SetState(to)
		now := time.Now().UTC().Truncate(time.Microsecond)
		switch to {
		case attempt.StateRUNNING:
			u.SetSentAt(now).SetAcknowledgedAt(now)
		case attempt.StateSTARTING, attempt.StateUNKNOWN:
		default:
			u.SetFinishedAt(now)
		}
		var raw json.RawMessage
		if detail != "" {
			raw = json.RawMessage(detail)
			var d struct{ Code, Message string }
			require.NoError(t, json.Unmarshal(raw, &d))
			u.SetErrorCode(d.Code).SetErrorMessage(d.Message)
		}
		u.SaveX(ctx)
		s.event(ctx, t, tx, jobID, "ATTEMPT_STATE", &attemptID, string(a.State), string(to), raw)
	})
	s.changed(jobID)
}

// Finish ends a job; attemptID is the winner of one that SUCCEEDED.
func (s *Seed) Finish(t testing.TB, jobID string, to job.State, attemptID string) {
	s.tx(t, func(ctx context.Context, tx *store.Tx) {
		j := tx.Job.GetX(ctx, jobID)
		u := tx.Job.Update().Where(job.ID(jobID)).SetState(to).AddVersion(1)
		if to == job.StateSUCCEEDED {
			u.SetResult(json.RawMessage(`{"ok": true}`)).SetCompletedByID(attemptID)
		}
		u.SaveX(ctx)
		s.event(ctx, t, tx, jobID, "JOB_STATE", nil, string(j.State), string(to), nil)
	})
	s.changed(jobID)
}

// Log adds an event that changes no state.
func (s *Seed) Log(t testing.TB, jobID, kind string) {
	s.tx(t, func(ctx context.Context, tx *store.Tx) { s.event(ctx, t, tx, jobID, kind, nil, "", "", nil) })
	s.changed(jobID)
}

func (s *Seed) event(ctx context.Context, t testing.TB, tx *store.Tx, jobID, kind string, attemptID *string, from, to string, detail json.RawMessage) {
	j, err := tx.LockJob(ctx, jobID)
	require.NoError(t, err)
	c := tx.JobEvent.Create().SetJobID(jobID).SetNumber(j.LastEvent + 1).SetType(kind).SetNillableAttemptID(attemptID)
	if from != "" {
		c.SetFrom(from)
	}
	if to != "" {
		c.SetTo(to)
	}
	if detail != nil {
		c.SetDetail(detail)
	}
	c.SaveX(ctx)
	tx.Job.Update().Where(job.ID(jobID)).AddLastEvent(1).SaveX(ctx)
}

func (s *Seed) tx(t testing.TB, f func(ctx context.Context, tx *store.Tx)) {
	ctx := viewer.NewSystemContext(t.Context())
	require.NoError(t, s.Store.Tx(ctx, func(tx *store.Tx) error { f(ctx, tx); return nil }))
}

func (s *Seed) changed(jobID string) {
	if s.Changed != nil {
		s.Changed(jobID)
	}
}
