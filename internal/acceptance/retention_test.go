package acceptance

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/config"
)

const keyExpiresQuery = `query($id: ID!){job(id: $id){keyExpiresAt updatedAt}}`

type expiry struct {
	KeyExpiresAt *time.Time
	UpdatedAt    time.Time
}

func TestFinishedJobsAreRemovedWithTheirKeys(t *testing.T) {
	t.Parallel()
	for name, database := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFake(t)
			s := settings{database: database(t), url: f.url}
			cfg, err := config.Load(s.write(t), nil)
			require.NoError(t, err)
			cfg.Retention = config.Retention{Age: time.Hour, Batch: 10, Interval: 20 * time.Millisecond}
			g := startWith(t, cfg)

			old, young := g.create(t, intent("old")), g.create(t, intent("young"))
			g.becomes(t, old.ID, "SUCCEEDED")
			g.becomes(t, young.ID, "SUCCEEDED")
			e := field[expiry](t, g.client, "job", keyExpiresQuery, variables{"id": old.ID})
			require.NotNil(t, e.KeyExpiresAt)
			require.True(t, e.UpdatedAt.Add(time.Hour).Equal(*e.KeyExpiresAt))

			// An hour passes for one of them.
			db, postgres := open(t, s.database)
			ago := "strftime('%Y-%m-%d %H:%M:%f+00:00', 'now', '-61 minutes')"
			if postgres {
				ago = "clock_timestamp() - interval '61 minutes'"
			}
			_, err = db.ExecContext(t.Context(), "UPDATE jobs SET updated_at = "+ago+" WHERE id = '"+old.ID+"'") //nolint:gosec // the test's own
			require.NoError(t, err)
			await.Until(t, "the job is removed", func() bool { return g.jobByKey(t, "old") == nil })

			require.NotEqual(t, old.ID, g.create(t, intent("old")).ID, "the key makes a new job")
			again := g.mutate(t, "createJob", createMutation, intent("young"))
			require.True(t, again.Replayed)
			require.Equal(t, young.ID, again.Job.ID)
		})
	}
}

func TestNothingIsRemovedUnlessConfigured(t *testing.T) {
	t.Parallel()
	g, _ := newGateway(t, settings{database: sqlite(t)})
	j := g.create(t, intent("k"))
	g.becomes(t, j.ID, "SUCCEEDED")
	require.Nil(t, field[expiry](t, g.client, "job", keyExpiresQuery, variables{"id": j.ID}).KeyExpiresAt)
}
