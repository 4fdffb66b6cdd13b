package events

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHubWakesTheJobsWatchersAndCoalesces(t *testing.T) {
	t.Parallel()
	h := NewHub()
	a, b := h.Watch("job_a"), h.Watch("job_b")
	for range 3 {
		h.JobChanged("job_a")
	}
	require.Len(t, a.Changed, 1)
	require.Empty(t, b.Changed)
	require.Equal(t, 2, h.Watched())
	a.Stop()
	a.Stop()
	b.Stop()
	require.Zero(t, h.Watched())
	h.JobChanged("job_a")
}

func TestNoticesFitPostgreSQLsLimitAndLoseNothing(t *testing.T) {
	t.Parallel()
	ids := map[string]struct{}{}
	for i := range 1000 {
		ids["job_"+strings.Repeat("x", 22)+strconv.Itoa(1000+i)] = struct{}{}
	}
	got := map[string]struct{}{}
	for _, p := range payloads("origin", ids) {
		require.Less(t, len(p), 8000)
		origin, rest, _ := strings.Cut(p, ",")
		require.Equal(t, "origin", origin)
		for id := range strings.SplitSeq(rest, ",") {
			got[id] = struct{}{}
		}
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(ids)), slices.Collect(maps.Keys(got)))
	require.Empty(t, payloads("origin", nil))
}

func TestPendingNoticesAreBounded(t *testing.T) {
	t.Parallel()
	b := NewBus(NewHub(), nil, nil, nil)
	for i := range maxPending + 10 {
		b.add(strconv.Itoa(i))
	}
	require.Len(t, b.pending, maxPending)
}
