package jobs

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBacklogCountsWhatWaitsForAPerson(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, b *testBundle) {
		got, err := b.Backlog(t.Context())
		require.NoError(t, err)
		require.Equal(t, Backlog{Unknown: map[string]int{}}, got)

		b.unknown(t, "plain")
		b.unknown(t, "single")
		_, a := b.unknown(t, "single")
		_, err = b.CancelAttempt(b.ann, a.ID, nil)
		require.NoError(t, err)
		b.running(t, b.last(t, b.create(t, "plain").ID))

		got, err = b.Backlog(t.Context())
		require.NoError(t, err)
		require.Equal(t, Backlog{Unknown: map[string]int{"demo": 2}, Waiting: 1}, got)
	})
}
