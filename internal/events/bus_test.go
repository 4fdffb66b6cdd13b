package events

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/pgtest"
)

var databases = pgtest.New()

func TestMain(m *testing.M) { databases.Main(m) }

type replica struct {
	*Hub
	bus *Bus
}

func newReplica(t *testing.T, dsn string) *replica {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), dsn)
	require.NoError(t, err)
	hub := NewHub()
	r := &replica{Hub: hub, bus: NewBus(hub, pool, func(ctx context.Context) (*pgx.Conn, error) {
		return pgx.Connect(ctx, dsn)
	}, nil)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.bus.Run(ctx)
	}()
	await.Receive(t, "the bus listens", r.bus.listening)
	<-r.look // of the first time
	t.Cleanup(func() {
		cancel()
		<-done
		pool.Close()
	})
	return r
}

func TestBusWakesTheOtherReplica(t *testing.T) {
	t.Parallel()
	dsn := databases.DSN(t)
	here, there := newReplica(t, dsn), newReplica(t, dsn)
	watched := there.Watch("job_a")
	defer watched.Stop()
	here.JobChanged("job_b")
	here.JobChanged("job_a")
	await.Receive(t, "the watcher is woken", watched.Changed)
}

func TestBusHasThePollLookAfterALostConnection(t *testing.T) {
	t.Parallel()
	dsn := databases.DSN(t)
	r := newReplica(t, dsn)
	watched := r.Watch("job_a")
	defer watched.Stop()

	admin, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer func() { require.NoError(t, admin.Close(context.WithoutCancel(t.Context()))) }()
	_, err = admin.Exec(t.Context(),
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query = 'LISTEN docket_jobs'")
	require.NoError(t, err)

	await.Receive(t, "the poll is told to look", r.look) // nothing changed, but something could have
	await.Receive(t, "the bus listens", r.bus.listening)
	newReplica(t, dsn).JobChanged("job_a")
	await.Receive(t, "the watcher is woken", watched.Changed)
}
