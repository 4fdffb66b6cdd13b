package jobs

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/tasks"
)

// TestEveryReplicaFollowsTheStoredOrderOfASchema: replicas may have the same version with its schema's keys in another order.
func TestEveryReplicaFollowsTheStoredOrderOfASchema(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, b *testBundle) {
		const first = `{"type":"object","properties":{"why":{"type":"string"},"answer":{"type":"number","minimum":2.50}}}`
		const second = `{"properties":{"answer":{"minimum":2.5,"type":"number"},"why":{"type":"string"}},"type":"object"}`
		one := b.restarted(someTasks(t, testTask{"ordered", "", first}))
		other := b.restarted(someTasks(t, testTask{"ordered", "", second}))
		later := b.restarted(someTasks(t, testTask{"else", "", second}))
		j := one.create(t, "ordered")
		require.Equal(t, j.TaskVersion, other.create(t, "ordered").TaskVersion)

		for _, replica := range []*testBundle{one, other, later} {
			d, err := replica.version(b.sys, b.store.Client(), j.TaskVersion)
			require.NoError(t, err)
			require.Equal(t, first, string(d.OutputSchemaJSON)) //nolint:testifylint // the order is the point
		}
		row, err := b.store.Client().TaskVersion.Get(b.sys, j.TaskVersion)
		require.NoError(t, err)
		d, err := tasks.Parse(row.Content)
		require.NoError(t, err)
		require.Equal(t, j.TaskVersion, d.Digest)
	})
}
