package apikeys

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/internal/logtest"
	"github.com/docket-gateway/docket/internal/store"
	"github.com/docket-gateway/docket/internal/store/storetest"
	"github.com/docket-gateway/docket/internal/viewer"
)

var databases = storetest.New()

func TestMain(m *testing.M) { databases.Main(m) }

// testBundle is a database, the keys in it and a clock.
type testBundle struct {
	store  *store.Store
	client *ent.Client // counts
	keys   *Keys
	log    *logtest.Buffer
	reads  *atomic.Int64
	writes *atomic.Int64
	moved  *atomic.Int64 // how far the clock is ahead
}

// eachDatabase runs a test on SQLite and on PostgreSQL.
func eachDatabase(t *testing.T, f func(t *testing.T, b *testBundle)) {
	t.Helper()
	databases.Each(t, func(t *testing.T, address string) { f(t, setup(t, address)) })
}

func setup(t *testing.T, address string) *testBundle {
	t.Helper()
	s, err := store.Open(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	b := &testBundle{store: s, log: &logtest.Buffer{}, reads: &atomic.Int64{}, writes: &atomic.Int64{}, moved: &atomic.Int64{}}
	name := dialect.SQLite
	if s.Postgres() {
		name = dialect.Postgres
	}
	count := func(_ context.Context, args ...any) {
		for _, a := range args {
			text, _ := a.(string)
			switch {
			case strings.Contains(text, "SELECT"):
				b.reads.Add(1)
			case strings.Contains(text, "UPDATE"):
				b.writes.Add(1)
			}
		}
	}
	b.client = ent.NewClient(ent.Driver(dialect.DebugWithContext(entsql.OpenDB(name, s.DB()), count)))
	b.keys = b.another(Options{})
	return b
}

// another is what a second process has.
func (b *testBundle) another(o Options) *Keys {
	o.Now = b.now
	o.Logger = slog.New(slog.NewTextHandler(b.log, nil))
	return New(b.client, o)
}

func (b *testBundle) now() time.Time          { return time.Now().Add(time.Duration(b.moved.Load())) }
func (b *testBundle) advance(d time.Duration) { b.moved.Add(int64(d)) }

func (b *testBundle) create(t *testing.T, change ...func(*NewKey)) (key string, row *ent.APIKey) {
	t.Helper()
	n := NewKey{Issuer: "https://issuer.example", Subject: "alice", By: "tester"}
	for _, c := range change {
		c(&n)
	}
	key, row, err := Create(t.Context(), b.client, n)
	require.NoError(t, err)
	return key, row
}

func (b *testBundle) row(t *testing.T, id string) *ent.APIKey {
	t.Helper()
	row, err := b.store.Client().APIKey.Get(viewer.NewSystemContext(t.Context()), id)
	require.NoError(t, err)
	return row
}
