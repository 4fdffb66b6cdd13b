package acceptance

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/providers/providertest"
)

const countQuery = `query($where: JobWhereInput){jobs(first: 1, where: $where){totalCount}}`

func (c *client) count(t *testing.T, where variables) int {
	t.Helper()
	return field[struct{ TotalCount int }](t, c, "jobs", countQuery, variables{"where": where}).TotalCount
}

// Of a hundred jobs some are done, some are sent and some wait for a worker when the process is killed.
func TestKilledInTheMiddleOfAHundredJobs(t *testing.T) {
	t.Parallel()
	for name, fresh := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := fresh(t)
			const hundred, done, sent = 100, 10, 8
			const lease = 3 * time.Second // on a busy machine a shorter one ends before a living worker can renew it
			f := startFake(t)
			s := settings{database: database, url: f.url, lease: lease, places: sent, tasks: writeTasks(t)}
			for range done {
				f.Enqueue(providertest.OK())
			}
			for range sent / 2 {
				f.Enqueue(providertest.Hold(providertest.OK()), providertest.AckThenHold())
			}
			p := s.serve(t)
			var ids []string
			for i := range hundred {
				ids = append(ids, p.create(t, variables{
					"idempotencyKey": fmt.Sprint("job ", i), "task": "echo", "input": variables{"text": fmt.Sprint(i)}}).ID)
			}
			f.arrives(t, done+sent)
			await.Until(t, "the first ones done", func() bool { return p.count(t, variables{"state": "SUCCEEDED"}) == done })
			await.Until(t, "half of what is sent acknowledged", func() bool { return p.count(t, variables{"state": "RUNNING"}) == sent/2 })
			p.kill(t)
			killed := time.Now()

			p = s.serve(t)
			ready := time.Now()
			require.Equal(t, hundred, p.count(t, nil))
			await.Until(t, "all settled", func() bool {
				return p.count(t, variables{"state": "SUCCEEDED"}) == hundred-sent && p.count(t, variables{"state": "UNKNOWN"}) == sent
			})
			held := map[string]bool{}
			for _, e := range f.sent()[done : done+sent] {
				held[e.Key] = true
			}
			var unknown []job
			for _, id := range ids {
				j := p.job(t, id)
				require.Len(t, j.Attempts, 1, "%+v", j)
				if !held[j.last().ID] {
					require.Equal(t, "SUCCEEDED", j.State)
					continue
				}
				require.Equal(t, "UNKNOWN", j.State)
				require.Equal(t, "WORKER_LOST", j.last().code())
				events := p.events(t, id)
				at := events[len(events)-1].At
				require.WithinRange(t, at, killed, ready.Add(2*lease), "found within two leases")
				unknown = append(unknown, j)
			}
			require.Len(t, unknown, sent)
			f.requireOnce(t)
			require.Len(t, f.sent(), hundred)

			endUnknown(t, p.client, unknown)
			require.Equal(t, hundred, p.count(t, variables{"stateIn": []string{"SUCCEEDED", "FAILED", "CANCELLED"}}))
			require.Len(t, f.sent(), hundred+1, "one was started again by hand")
			f.requireOnce(t)
			p.terminate(t)
			p.exits(t)
		})
	}
}

// endUnknown ends jobs whose attempt is UNKNOWN in all the ways that there are.
func endUnknown(t *testing.T, c *client, unknown []job) {
	t.Helper()
	operator := c.as("root:operator")
	resolve := func(j job, verdict string, result any) outcome {
		input := variables{"attemptId": j.last().ID, "outcome": verdict, "note": "asked the provider"}
		if result != nil {
			input["result"] = result
		}
		return operator.resolve(t, input)
	}
	ways := []func(j job) (state string){
		func(j job) string {
			require.Equal(t, "WAITING", c.cancelAttempt(t, j.last().ID).Job.State)
			require.Equal(t, typeJobCancelled, c.cancelJob(t, j.ID).Typename)
			return "CANCELLED"
		},
		func(j job) string {
			require.Equal(t, typeJobCancelled, c.cancelJob(t, j.ID).Typename)
			return "CANCELLED"
		},
		func(j job) string {
			o := resolve(j, "SUCCEEDED", variables{"text": "by hand"})
			require.Equal(t, typeResolved, o.Typename, "%+v", o)
			require.JSONEq(t, `{"text": "by hand"}`, string(o.Job.Result))
			return "SUCCEEDED"
		},
		func(j job) string {
			o := resolve(j, "FAILED", nil) // and the only fallback has not been proved
			require.Equal(t, typeResolved, o.Typename, "%+v", o)
			return "FAILED"
		},
		func(j job) string {
			require.Equal(t, "WAITING", resolve(j, "CANCELLED", nil).Job.State)
			require.Equal(t, typeStarted, c.start(t, j.ID, primary).Typename)
			return "SUCCEEDED"
		},
	}
	require.GreaterOrEqual(t, len(unknown), len(ways))
	for i, j := range unknown {
		c.becomes(t, j.ID, ways[i%len(ways)](j))
	}
}

func TestKilledDuringBurstOfCreates(t *testing.T) {
	t.Parallel()
	for name, fresh := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := fresh(t)
			const clients, enough = 16, 80
			f := startFake(t)
			s := settings{database: database, url: f.url, lease: 3 * time.Second, places: 4, tasks: writeTasks(t)}
			p := s.serve(t)
			var (
				mu       sync.Mutex
				keys     []string
				answered = map[string]string{} // ids by key
				count    atomic.Int64
				wait     sync.WaitGroup
			)
			for n := range clients {
				wait.Go(func() {
					for i := 0; ; i++ {
						key := fmt.Sprintf("burst %d %d", n, i)
						mu.Lock()
						keys = append(keys, key)
						mu.Unlock()
						o, err := outcomes(p.send(t.Context(), body(createMutation, variables{"input": intent(key)})))
						if err != nil { // killed
							return
						}
						count.Add(1)
						mu.Lock()
						answered[key] = o[0].Job.ID
						mu.Unlock()
					}
				})
			}
			await.Until(t, "enough jobs", func() bool { return count.Load() >= enough })
			p.kill(t)
			wait.Wait()
			require.Greater(t, len(keys), len(answered), "it was killed in the middle")

			p = s.serve(t)
			for key, id := range answered {
				j := p.jobByKey(t, key)
				require.NotNil(t, j, "the acknowledged job of %q is gone", key)
				require.Equal(t, id, j.ID)
			}
			ids := maps.Clone(answered)
			for _, key := range slices.Concat(keys, keys) { // as clients do that got no answer
				o := p.mutate(t, "createJob", createMutation, intent(key))
				require.Equal(t, typeCreated, o.Typename)
				if id, ok := ids[key]; ok {
					require.Equal(t, id, o.Job.ID)
					require.True(t, o.Replayed)
				}
				ids[key] = o.Job.ID
			}
			require.Equal(t, len(keys), p.count(t, nil))
			require.Len(t, slices.Compact(slices.Sorted(maps.Values(ids))), len(keys))
			await.Until(t, "all settled", func() bool { return p.count(t, variables{"stateIn": []string{"SUCCEEDED", "UNKNOWN"}}) == len(keys) })
			require.LessOrEqual(t, p.count(t, variables{"state": "UNKNOWN"}), s.places, "only what a worker had in its hands")
			f.requireOnce(t)
		})
	}
}

// intent is a createJob's input, as good as any other.
func intent(key string) variables {
	return variables{"idempotencyKey": key, "task": "echo", "input": variables{"text": key}}
}

// Nobody has to start anything: the process that is left settles what the killed one had sent, and takes over the rest.
func TestOtherProcessGoesOnForAKilledOne(t *testing.T) {
	t.Parallel()
	const lease = 3 * time.Second
	database, folder := databases.DSN(t), writeTasks(t)
	var ps [2]*process
	var fakes [2]*fake
	for i := range ps {
		fakes[i] = startFake(t)
		fakes[i].OnModel("primary", acknowledged(nil, ""))
		ps[i] = settings{database: database, url: fakes[i].url, lease: lease, places: 1, tasks: folder}.serve(t)
	}
	var sent []job
	for _, key := range []string{"one", "other"} { // one for each worker
		j := ps[1].create(t, intent(key))
		sent = append(sent, j)
		ps[1].attemptBecomes(t, j.ID, 1, "RUNNING")
	}
	victim, survivor := ps[0], ps[1]
	lost, held := sent[0], sent[1]
	if fakes[0].sent()[0].Key != lost.last().ID {
		lost, held = held, lost
	}
	waiting := survivor.create(t, intent("waiting"))
	watched := survivor.watch(t, "SSE", lost.ID)
	fakes[1].OnModel("primary", providertest.OK())

	victim.kill(t)
	killed := time.Now()
	survivor.becomes(t, lost.ID, "UNKNOWN")
	events := survivor.events(t, lost.ID)
	require.WithinRange(t, events[len(events)-1].At, killed, killed.Add(2*lease), "found within two leases")
	require.Equal(t, "RUNNING", survivor.job(t, held.ID).State, "whose worker lives")
	require.Equal(t, "QUEUED", survivor.job(t, waiting.ID).State, "behind the only worker")
	require.Equal(t, typeJobCancelled, survivor.cancelJob(t, held.ID).Typename)
	survivor.becomes(t, waiting.ID, "SUCCEEDED")

	require.Equal(t, typeJobCancelled, survivor.cancelJob(t, lost.ID).Typename)
	requireStory(t, rest[event](t, watched.events, "jobEvents"), 0, survivor.events(t, lost.ID))
	for _, f := range fakes {
		f.requireOnce(t)
	}
	require.Len(t, fakes[0].sent(), 1)
	require.Len(t, fakes[1].sent(), 2)
}
