package dispatch

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/jobs"
	"github.com/docket-gateway/docket/internal/pgtest"
	"github.com/docket-gateway/docket/internal/store/storetest"
)

func TestAnAnswerSurvivesARestartOfTheDatabase(t *testing.T) {
	t.Parallel()
	cluster := pgtest.StartFor(t)
	address, err := cluster.CreateDatabase(t.Context(), "docket")
	require.NoError(t, err)
	require.NoError(t, storetest.Migrate(address))
	release, away := make(chan struct{}), make(chan struct{}, 1)
	p := start(t, address, options{script: newScript(held(release)), wrap: func(j Jobs) Jobs {
		return &seesErrors{Jobs: j, away: away}
	}})
	j, a := p.create(t, "single")
	p.becomes(t, a.ID, attempt.StateRUNNING)

	require.NoError(t, cluster.Kill())
	// A backend can outlive the server's first process for a moment: none of the pool's may be used again.
	p.store.Pool().Reset()
	await.Until(t, "the database is gone", func() bool { return p.store.Ping(t.Context()) != nil })
	close(release) // the provider answers while nobody can write it down
	await.Receive(t, "failed write", away)
	require.NoError(t, cluster.Restart(t.Context()))

	await.Until(t, "the answer is written", func() bool {
		found, err := p.store.Client().Attempt.Get(p.sys, a.ID)
		return err == nil && found.State == attempt.StateSUCCEEDED
	})
	require.JSONEq(t, good, string(p.job(t, j.ID).Result))

	_, b := p.create(t, "single") // and work goes on
	p.becomes(t, b.ID, attempt.StateSUCCEEDED)
	p.script.once(t, a.ID, b.ID)
}

// seesErrors tells when an outcome could not be written.
type seesErrors struct {
	Jobs

	away chan<- struct{}
}

func (s *seesErrors) Settle(ctx context.Context, id string, o jobs.Outcome) (jobs.Verdict, error) {
	v, err := s.Jobs.Settle(ctx, id, o)
	if err != nil {
		select {
		case s.away <- struct{}{}:
		default:
		}
	}
	return v, err
}
