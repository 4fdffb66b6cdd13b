package storetest_test

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/store"
	"github.com/docket-gateway/docket/internal/store/storetest"
	"github.com/docket-gateway/docket/internal/viewer"
)

var databases = storetest.New()

func TestMain(m *testing.M) { databases.Main(m) }

func open(t *testing.T, address string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestEveryTestHasAMigratedDatabaseOfItsOwn(t *testing.T) {
	t.Parallel()
	for name, fresh := range databases.Both() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, second := open(t, fresh(t)), open(t, fresh(t))
			require.Equal(t, name == "PostgreSQL", first.Postgres())
			sys := viewer.NewSystemContext(t.Context())
			first.Client().Owner.Create().SetID("o").SetIssuer("test").SetSubject("ann").ExecX(sys)
			require.Equal(t, 1, first.Client().Owner.Query().CountX(sys))
			require.Zero(t, second.Client().Owner.Query().CountX(sys))
		})
	}
}

func TestEachRunsOnBoth(t *testing.T) {
	t.Parallel()
	var postgres, sqlite atomic.Int32
	t.Run("Each", func(t *testing.T) {
		t.Parallel()
		databases.Each(t, func(t *testing.T, address string) {
			if open(t, address).Postgres() {
				postgres.Add(1)
			} else {
				sqlite.Add(1)
			}
		})
		t.Cleanup(func() { require.Equal(t, []int32{1, 1}, []int32{postgres.Load(), sqlite.Load()}) }) // once both are over
	})
}
