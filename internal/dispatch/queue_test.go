package dispatch

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/jobs"
	"github.com/docket-gateway/docket/providers"
)

// TestBoundsRequestsInFlight: who waits for a place holds nothing, no lease either.
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
		p := start(t, address, options{script: s, places: 2})
		var ids []string
		for range 5 {
			_, a := p.create(t, "single")
			ids = append(ids, a.ID)
		}
		states := func() (running, waiting int) {
			for _, id := range ids {
				switch a := p.attempt(t, id); {
				case a.State == attempt.StateRUNNING:
					running++
				case a.State == attempt.StateSTARTING && a.LeaseToken == nil && a.SentAt == nil:
					waiting++
				}
			}
			return running, waiting
		}
		await.Until(t, "2 run and 3 wait", func() bool { r, w := states(); return r == 2 && w == 3 })
		close(release)
		for _, id := range ids {
			p.becomes(t, id, attempt.StateSUCCEEDED)
		}
		require.EqualValues(t, 2, most.Load())
	})
}

// TestAFullProviderHoldsUpNobodyElse: far more attempts wait for one provider than there are places anywhere.
func TestAFullProviderHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		release := make(chan struct{})
		s := newScript(nil)
		slow := newScript(held(release))
		registry, err := providers.NewRegistry([]providers.Config{
			{Name: "fake", Kind: "slow", BaseURL: "http://127.0.0.1:1", MaxConcurrency: 4, Models: []providers.Model{{Name: "a"}}},
			{Name: "fast", Kind: "fast", BaseURL: "http://127.0.0.1:1", MaxConcurrency: 1, Models: []providers.Model{{Name: "a"}}},
		}, map[string]providers.Factory{
			"slow": func(providers.Config) (providers.Provider, error) { return slow, nil },
			"fast": func(providers.Config) (providers.Provider, error) { return s, nil },
		})
		require.NoError(t, err)
		p := start(t, address, options{registry: registry})
		var waiting []string
		for range 100 {
			_, a := p.create(t, "single")
			waiting = append(waiting, a.ID)
		}
		for range 4 {
			slow.next(t)
		}
		for range 3 { // one place is enough
			_, a := p.createWith(t, jobs.CreateInput{Task: "single", Target: new("fast/a")})
			require.Equal(t, a.ID, s.next(t).AttemptID)
			p.becomes(t, a.ID, attempt.StateSUCCEEDED)
		}
		require.Len(t, slow.requests(), 4)
		close(release)
		for _, id := range waiting {
			p.becomes(t, id, attempt.StateSUCCEEDED)
		}
		slow.once(t, waiting...)
	})
}

// TestAnUnknownAttemptGivesItsPlaceBack although its worker goes on listening.
func TestAnUnknownAttemptGivesItsPlaceBack(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		p := start(t, address, options{places: 1, script: newScript(func(c *call) providers.Outcome {
			if c.number > 1 {
				return ok()
			}
			c.ack()
			c.r.Unknown(timedOut())
			c.until(nil)
			return aborted()
		})})
		_, lingers := p.create(t, "single")
		p.becomes(t, lingers.ID, attempt.StateUNKNOWN)
		_, next := p.create(t, "single")
		p.becomes(t, next.ID, attempt.StateSUCCEEDED)
		require.Equal(t, attempt.StateUNKNOWN, p.attempt(t, lingers.ID).State)
	})
}

// TestAnAttemptOfAProviderThatIsGoneIsNotLeftWaiting: the configuration lost a provider while attempts waited for it.
func TestAnAttemptOfAProviderThatIsGoneIsNotLeftWaiting(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		before := start(t, address, options{lease: shortLease, idle: true})
		j, a := before.create(t, "single")
		s := newScript(nil)
		p := start(t, address, options{lease: shortLease, script: s, registry: scripted(t, s, providers.Config{Name: "other"})})
		a = p.becomes(t, a.ID, attempt.StateFAILED)
		require.Equal(t, codeTargetUnknown, *a.ErrorCode)
		require.Equal(t, job.StateFAILED, p.job(t, j.ID).State)
		p.script.once(t)
	})
}

// TestAnAttemptWaitsForTheProcessThatKnowsItsProvider: the other one must neither take it nor move it, for as long as the
// first one is busy.
func TestAnAttemptWaitsForTheProcessThatKnowsItsProvider(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		release := make(chan struct{})
		p := start(t, address, options{places: 1, script: newScript(held(release))})
		s := newScript(nil)
		other := start(t, address, options{lease: shortLease, script: s, idle: true, registry: scripted(t, s, providers.Config{Name: "other"})})
		_, first := p.create(t, "single")
		p.becomes(t, first.ID, attempt.StateRUNNING)
		_, waits := p.create(t, "single")
		p.exec(t, "UPDATE attempts SET due_at = "+p.store.Now(-time.Hour)+" WHERE id = '"+waits.ID+"'")
		p.exec(t, "UPDATE river_job SET scheduled_at = '2020-01-01' WHERE id = (SELECT queue_entry FROM attempts WHERE id = '"+waits.ID+"')")
		swept, err := other.SweepQueue(t.Context())
		require.NoError(t, err)
		require.Zero(t, swept)
		close(release)
		p.becomes(t, waits.ID, attempt.StateSUCCEEDED)
	})
}

// TestAnAttemptFromTheRestIsMovedToItsProvidersQueue: nobody seemed to serve the provider for a while, or an older Docket added it.
func TestAnAttemptFromTheRestIsMovedToItsProvidersQueue(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		release := make(chan struct{})
		p := start(t, address, options{places: 1, idle: true, script: newScript(held(release))})
		var ids []string
		for range 2 * restWorkers {
			_, a := p.create(t, "single")
			ids = append(ids, a.ID)
		}
		p.exec(t, "UPDATE river_job SET queue = '"+restQueue+"'")
		p.work(t)
		await.Until(t, "none waits for a place in the queue for the rest", func() bool {
			return p.number(t, "SELECT count(*) FROM river_job WHERE queue = '"+restQueue+"' AND finalized_at IS NULL") == 0
		})
		close(release)
		for _, id := range ids {
			p.becomes(t, id, attempt.StateSUCCEEDED)
		}
		p.script.once(t, ids...)
	})
}

func TestQueueOf(t *testing.T) {
	t.Parallel()
	seen := map[string]string{restQueue: ""}
	// What configuration allows and River does not: runs of separators, one at the end, dots, 63 characters.
	for _, provider := range []string{"a", "a-", "a--b", "a_b", "a-b", "a.b", "attempts", strings.Repeat("a", 63), strings.Repeat("a", 62), strings.Repeat("a-", 31)} {
		name := queueOf(provider)
		require.LessOrEqual(t, len(name), 64)
		require.Regexp(t, `^[a-z0-9]+(-[a-z0-9]+)*$`, name)
		require.NotContains(t, seen, name, provider)
		seen[name] = provider
	}
	require.Equal(t, "attempts-openai-7d3194f7", queueOf("openai"), "processes of different versions agree")
}
