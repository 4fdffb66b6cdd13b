package campaign

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/campaign/verify"
)

// reserve is kept of go test's -timeout, to judge what was seen.
const reserve = 2 * time.Minute

// TestCampaign finds no violation.
func TestCampaign(t *testing.T) { //nolint:paralleltest // each run has the machine to itself
	path, err := released()
	require.NoError(t, err)
	for _, database := range []string{"PostgreSQL", "SQLite"} {
		t.Run(database, func(t *testing.T) {
			postgres := database == "PostgreSQL"
			kinds := slices.Concat(processFaults, providerFaults)
			if postgres {
				kinds = append(kinds, databaseFaults...)
			}
			seed := chooseSeed()
			t.Logf("go test ./internal/campaign -run Campaign/%s -campaign.intents=%d -campaign.seed=%d", database, *intentsFlag, seed)
			c := newCampaign(t, newPlan(seed, *intentsFlag, kinds), path, nil, postgres)
			violations := c.run(t, 0, *intentsFlag)
			c.summary(t)
			require.Empty(t, violations, verify.Report(violations))
		})
	}
}

// campaign is one run.
type campaign struct {
	plan     plan
	fleet    *fleet
	recorder *recorder
	book     *book
	http     *http.Client
	history  *verify.History
	struck   map[string]int // faults by kind
	took     time.Duration

	sabotaged bool // a guard is out of work: what does not come to rest is a finding, not a failure of the campaign
}

func newCampaign(t *testing.T, p plan, path string, env []string, postgres bool) *campaign {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 256}
	t.Cleanup(transport.CloseIdleConnections)
	c := &campaign{
		plan: p, recorder: &recorder{start: time.Now(), watched: map[string]int{}}, book: &book{tries: map[string]int{}},
		http: &http.Client{Transport: transport}, struck: map[string]int{},
	}
	providers := map[string]*provider{}
	for _, name := range []string{"fake", "mortal"} {
		providers[name] = startProvider(t, p, name, c.book, c.recorder.since)
	}
	c.fleet = newFleet(t, path, env, postgres, 3, providers)
	schema := jsonschema.MustCompileString("output.schema.json", outputSchema)
	c.history = &verify.History{
		MayRace: map[string]bool{echo: true, strict: false}, Resting: true,
		Conforms: func(_ string, output json.RawMessage) error {
			var v any
			if err := json.Unmarshal(output, &v); err != nil {
				return err
			}
			return schema.Validate(v)
		},
	}
	c.history.Proved = c.fleet.prove(t)
	return c
}

// run has the intents from one number to another pursued under the plan's faults, waits until nothing moves any more and
// returns what was wrong. It can be called again for the next ones.
func (c *campaign) run(t *testing.T, from, to int) []verify.Violation {
	t.Helper()
	began := time.Now()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	require.NoError(t, c.fleet.start(ctx))
	last, bounded := t.Deadline()
	last = last.Add(-reserve)
	var (
		users, watchers sync.WaitGroup
		next, done      atomic.Int64
		over            = make(chan struct{})
	)
	end, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	next.Store(int64(from))
	for range *usersFlag {
		users.Go(func() {
			for {
				number := int(next.Add(1)) - 1
				if number >= to || ctx.Err() != nil || bounded && time.Now().After(last) {
					return
				}
				u := &user{
					api:   &api{fleet: c.fleet, recorder: c.recorder, http: c.http},
					waits: c.patience(), intent: c.plan.intent(number), of: c.plan, r: c.plan.rng("user", number), end: end, wg: &watchers,
				}
				u.run(ctx)
				done.Add(1)
			}
		})
	}
	nemesis := make(chan error, 1)
	go func() {
		err := c.strike(ctx, over, from, to, func() int { return from + int(done.Load()) })
		if err != nil {
			cancel() // without it users would try a dead gateway until go test's -timeout
		}
		nemesis <- err
	}()
	users.Wait()
	close(over)
	require.NoError(t, <-nemesis)
	require.EqualValues(t, to-from, done.Load(), "intents that go test's -timeout left time for; give a longer one")
	require.NoError(t, c.fleet.start(ctx))
	c.rest(ctx, t)
	stopWatching()
	watchers.Wait()
	c.took += time.Since(began)
	return c.judge(t)
}

// strike lets the plan's faults happen, one after another, each when so many intents are done.
func (c *campaign) strike(ctx context.Context, over <-chan struct{}, from, to int, done func() int) error {
	for _, f := range c.plan.faults {
		if f.after < from || f.after >= to {
			continue
		}
		for done() < f.after {
			select {
			case <-over:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(5 * time.Millisecond):
			}
		}
		if err := c.fleet.strike(ctx, f); err != nil {
			return fmt.Errorf("%s: %w", f, err)
		}
		c.struck[f.kind]++
	}
	return nil
}

// rest waits until nothing moves by itself any more, and ends the gateways in good order.
func (c *campaign) rest(ctx context.Context, t *testing.T) {
	t.Helper()
	still := &verify.History{}
	quiet := c.until(ctx, t, "the end of what moves by itself", func() (bool, string) {
		if err := collect(ctx, c.fleet.database, still); err != nil {
			return false, err.Error()
		}
		n := 0
		var over []string
		for _, j := range still.Jobs {
			switch j.State {
			case "QUEUED", "RUNNING":
				n++
			case "SUCCEEDED", "FAILED", "CANCELLED":
				over = append(over, j.ID)
			}
		}
		for _, a := range still.Attempts { // will be presumed dead
			if a.State == "UNKNOWN" && a.Target == mortal {
				n++
			}
		}
		untold := c.recorder.untold(over)
		return n == 0 && untold == 0, fmt.Sprintf("%d jobs are left, %d subscribers were not told of an end", n, untold)
	})
	for _, m := range c.fleet.members {
		if !quiet {
			require.NoError(t, m.kill())
			continue
		}
		require.NoError(t, m.terminate(ctx))
	}
	c.until(ctx, t, "the end of the provider's answers", func() (bool, string) {
		c.book.mu.Lock()
		defer c.book.mu.Unlock()
		return c.book.open == 0, fmt.Sprint(c.book.open, " requests are open")
	})
}

func (c *campaign) judge(t *testing.T) []verify.Violation {
	t.Helper()
	h := c.history
	h.Calls, h.Streams, h.Requests = c.recorder.calls, c.recorder.streams, c.book.requests
	require.NoError(t, collect(t.Context(), c.fleet.database, h))
	return verify.Check(h)
}

// summary says how much the run has seen: a campaign in which nothing happened would prove nothing.
func (c *campaign) summary(t *testing.T) {
	t.Helper()
	h := c.history
	unanswered, types, states, fates, reasons := 0, map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	for _, call := range h.Calls {
		if !call.Answered() {
			unanswered++
			continue
		}
		types[call.Type]++
	}
	for _, j := range h.Jobs {
		states[j.State]++
	}
	for _, a := range h.Attempts {
		reasons[a.Reason+" "+a.State]++
	}
	for _, r := range h.Requests {
		fates[string(r.Fate)]++
	}
	t.Logf("%d intents in %s; %d calls, %d without an answer; %d streams\nanswers %v\njobs %v\nattempts %v\nrequests %v\nfaults %v",
		c.plan.intents, c.took.Round(time.Second), len(h.Calls), unanswered, len(h.Streams), types, states, reasons, fates, c.struck)
}

func (c *campaign) patience() time.Duration {
	if c.sabotaged {
		return 15 * time.Second // for what may never come
	}
	return await.Patience
}

// until polls. If the condition does not come true, that is for verify to judge where a guard is out of work, and fails the
// test otherwise.
func (c *campaign) until(ctx context.Context, t *testing.T, what string, condition func() (bool, string)) bool {
	t.Helper()
	bound, cancel := context.WithTimeout(ctx, c.patience())
	defer cancel()
	for {
		ok, word := condition()
		if ok {
			return true
		}
		select {
		case <-bound.Done():
			require.True(t, c.sabotaged, "waited in vain for %s: %s", what, word)
			return false
		case <-time.After(50 * time.Millisecond):
		}
	}
}
