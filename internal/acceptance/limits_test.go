package acceptance

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/config"
)

// Two processes on one PostgreSQL, and a third on a database of its own.
func TestReplicasShareTheRateOfAnOwner(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	replica := func(database string) *gateway {
		cfg, err := config.Load(settings{database: database, url: f.url}.write(t), nil)
		require.NoError(t, err)
		cfg.Limits.RequestsPerMinute, cfg.Limits.Burst = 1, 3 // none is given back while the test runs
		return startWith(t, cfg)
	}
	database := databases.DSN(t)
	first, second, elsewhere := replica(database), replica(database), replica(sqlite(t))
	const who = `{ viewer { subject } }`
	for _, g := range []*gateway{first, second, first} {
		require.Equal(t, http.StatusOK, g.as("ann").post(t, who, nil).status)
	}
	for _, g := range []*gateway{first, second} {
		res := g.as("ann").post(t, who, nil)
		require.Equal(t, http.StatusTooManyRequests, res.status)
		require.Equal(t, []string{"RATE_LIMITED"}, res.codes())
		require.Equal(t, http.StatusOK, g.as("bob").post(t, who, nil).status)
	}
	require.Equal(t, http.StatusOK, elsewhere.as("ann").post(t, who, nil).status)
}
