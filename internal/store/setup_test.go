package store_test

import (
	"context"
	"crypto/rand"
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/internal/store"
	"github.com/docket-gateway/docket/internal/store/storetest"
	"github.com/docket-gateway/docket/internal/viewer"
)

var databases = storetest.New()

func TestMain(m *testing.M) { databases.Main(m) }

var errBroken = errors.New("broken on purpose")

// eachAddress runs a test on an empty SQLite and an empty PostgreSQL database.
func eachAddress(t *testing.T, f func(t *testing.T, address string)) {
	t.Helper()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		f(t, "sqlite://"+filepath.Join(t.TempDir(), "docket.db"))
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		f(t, emptyPostgres(t))
	})
}

// emptyPostgres is a copy of the template without anything in it.
func emptyPostgres(t *testing.T) string {
	t.Helper()
	address := databases.DSN(t)
	_, err := open(t, address).DB().ExecContext(t.Context(), "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
	require.NoError(t, err)
	return address
}

// eachDatabase runs a test on both databases, migrated.
func eachDatabase(t *testing.T, f func(t *testing.T, s *store.Store)) {
	t.Helper()
	databases.Each(t, func(t *testing.T, address string) { f(t, open(t, address)) })
}

func open(t *testing.T, address string, options ...store.Option) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), address, options...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func system(t *testing.T) context.Context {
	t.Helper()
	return viewer.NewSystemContext(t.Context())
}

func person(t *testing.T, subject string, operator bool) context.Context {
	t.Helper()
	return viewer.NewContext(t.Context(), viewer.Viewer{Issuer: "test", Subject: subject, Operator: operator})
}

// addJob writes a job of an owner with one attempt and one event, past internal/jobs.
func addJob(t *testing.T, s *store.Store, subject, input string) *ent.Job {
	t.Helper()
	sys, c := system(t), s.Client()
	o := viewer.Viewer{Issuer: "test", Subject: subject}.OwnerID()
	if _, err := c.Owner.Get(sys, o); ent.IsNotFound(err) {
		c.Owner.Create().SetID(o).SetIssuer("test").SetSubject(subject).ExecX(sys)
	}
	if _, err := c.TaskVersion.Get(sys, "sha256:1"); ent.IsNotFound(err) {
		c.TaskVersion.Create().SetID("sha256:1").SetName("t").SetVersion("1").SetContent([]byte("{}")).ExecX(sys)
	}
	j := c.Job.Create().SetOwnerID(o).SetIdempotencyKey(rand.Text()).SetFingerprint([]byte{1}).SetTask("t").SetTaskVersion("sha256:1").
		SetInput([]byte(input)).SetTarget("demo/a").SetFallbacks([]string{}).SetState("QUEUED").SetVersion(1).SetLastEvent(1).SaveX(sys)
	a := c.Attempt.Create().SetJobID(j.ID).SetNumber(1).SetTarget("demo/a").SetReason("PRIMARY").SetState("STARTING").SetJobVersion(1).SaveX(sys)
	c.JobEvent.Create().SetJobID(j.ID).SetAttemptID(a.ID).SetNumber(1).SetType("JOB_CREATED").SetDetail([]byte(`{}`)).ExecX(sys)
	return j
}
