package dispatch

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/providers"
)

// TestBoundsRequestsInFlight: who waits for a place has sent nothing and keeps its lease.
func TestBoundsRequestsInFlight(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		release := make(chan struct{})
		var inFlight, most atomic.Int32
		s := newScript(func(c *call) providers.Outcome {
			n := inFlight.Add(1)
			defer inFlight.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			return held(release)(c)
		})
		registry, err := providers.NewRegistry([]providers.Config{{Name: "fake", Kind: "scripted", BaseURL: "http://127.0.0.1:1",
			MaxConcurrency: 2, Models: []providers.Model{{Name: "a"}, {Name: "b"}, {Name: "c"}}}},
			map[string]providers.Factory{"scripted": func(providers.Config) (providers.Provider, error) { return s, nil }})
		require.NoError(t, err)
		p := start(t, address, options{lease: 2500 * time.Millisecond, script: s, registry: registry})
		var ids []string
		for range 5 {
			_, a := p.create(t, "single")
			ids = append(ids, a.ID)
		}
		states := func() (running, leased int) {
			for _, id := range ids {
				switch a := p.attempt(t, id); {
				case a.State == attempt.StateRUNNING:
					running++
				case a.State == attempt.StateSTARTING && a.LeaseToken != nil && a.SentAt == nil:
					leased++
				}
			}
			return running, leased
		}
		require.Eventually(t, func() bool { r, l := states(); return r == 2 && l == 3 }, 30*time.Second, 20*time.Millisecond)
		close(release)
		for _, id := range ids {
			p.becomes(t, id, attempt.StateSUCCEEDED)
		}
		require.EqualValues(t, 2, most.Load())
	})
}
