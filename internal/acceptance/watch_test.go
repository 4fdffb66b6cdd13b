package acceptance

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// watch is one job seen by both subscriptions over one transport.
type watch struct {
	attempts, events *stream
}

func (c *client) watch(t *testing.T, transport, jobID string) watch {
	t.Helper()
	open := transports[transport]
	return watch{
		attempts: open(c, t, attemptsStream, variables{"id": jobID}),
		events:   open(c, t, eventsStream, variables{"id": jobID}),
	}
}

// requireStory fails unless the events are all of the job's, in order and without a gap.
func requireStory(t *testing.T, events []event, after int, stored []event) {
	t.Helper()
	require.NotEmpty(t, events)
	for i, e := range events {
		require.Equal(t, after+1+i, e.Number, "a gap")
	}
	require.Equal(t, stored[after:], events)
}

// states are what was seen of the attempt of that number, in order.
func states(attempts []attempt, number int) []string {
	var out []string
	for _, a := range attempts {
		if a.Number == number {
			out = append(out, a.State)
		}
	}
	return out
}

// changes are the states that the events tell of an attempt.
func changes(events []event, attemptID string) []string {
	var out []string
	for _, e := range events {
		if e.Attempt != nil && e.Attempt.ID == attemptID && e.To != "" {
			out = append(out, e.To)
		}
	}
	return out
}

// The provider takes each step on a signal, so that every state is there to be seen.
func TestSubscriberSeesEveryStep(t *testing.T) {
	t.Parallel()
	for name, fresh := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := fresh(t)
			for transport := range transports {
				t.Run(transport, func(t *testing.T) {
					g, f := newGateway(t, settings{database: database})
					prove(t, g.config, "echo", second)
					acknowledge, jam, finish := make(chan struct{}), make(chan struct{}), make(chan struct{})
					f.OnModel("primary", jams(acknowledge, jam))
					f.OnModel("second", acknowledged(finish, "printed"))
					j := g.create(t, intent(transport))
					w := g.watch(t, transport, j.ID)

					first := item[attempt](t, w.attempts, "attemptUpdated")
					require.Equal(t, "STARTING", first.State)
					close(acknowledge)
					require.Equal(t, "RUNNING", item[attempt](t, w.attempts, "attemptUpdated").State)
					close(jam)
					failed := item[attempt](t, w.attempts, "attemptUpdated")
					require.Equal(t, "FAILED", failed.State)
					require.Equal(t, first.ID, failed.ID)
					require.NotEmpty(t, failed.code())
					fallback := item[attempt](t, w.attempts, "attemptUpdated")
					require.Equal(t, "STARTING", fallback.State)
					require.Equal(t, "FALLBACK", fallback.Reason)
					require.Equal(t, second, fallback.Target)
					require.Equal(t, "RUNNING", item[attempt](t, w.attempts, "attemptUpdated").State)

					// Somebody who comes later sees where things are.
					later := g.watch(t, transport, j.ID)
					require.Equal(t, "FAILED", item[attempt](t, later.attempts, "attemptUpdated").State)
					require.Equal(t, "RUNNING", item[attempt](t, later.attempts, "attemptUpdated").State)
					close(finish)
					for _, s := range []*stream{w.attempts, later.attempts} {
						last := rest[attempt](t, s, "attemptUpdated")
						require.Len(t, last, 1)
						require.Equal(t, "SUCCEEDED", last[0].State)
					}
					stored := g.events(t, j.ID)
					requireStory(t, rest[event](t, w.events, "jobEvents"), 0, stored)
					requireStory(t, rest[event](t, later.events, "jobEvents"), 0, stored)
					require.Equal(t, []string{"STARTING", "RUNNING", "FAILED"}, changes(stored, first.ID))
					require.Equal(t, []string{"STARTING", "RUNNING", "SUCCEEDED"}, changes(stored, fallback.ID))

					// And from any event on.
					resumed := transports[transport](g.client, t, eventsStream, variables{"id": j.ID, "after": 4})
					requireStory(t, rest[event](t, resumed, "jobEvents"), 4, stored)
				})
			}
		})
	}
}

// Each of the two processes has one worker, which its provider keeps busy: of two jobs made at the first, one is worked on
// by the second.
func TestTwoProcessesShareTheWork(t *testing.T) {
	t.Parallel()
	database := databases.DSN(t)
	var ps [2]*process
	var fakes [2]*fake
	finish := make(chan struct{})
	folder := writeTasks(t)
	for i := range ps {
		fakes[i] = startFake(t)
		fakes[i].OnModel("primary", acknowledged(finish, "printed"))
		ps[i] = settings{database: database, url: fakes[i].url, places: 1, tasks: folder}.serve(t)
	}
	var jobs []job
	for _, key := range []string{"a", "b"} {
		jobs = append(jobs, ps[0].create(t, intent(key)))
	}
	var watches []watch
	for _, j := range jobs {
		for _, p := range ps {
			for transport := range transports {
				w := p.watch(t, transport, j.ID)
				watches = append(watches, w)
				seen := item[attempt](t, w.attempts, "attemptUpdated")
				for seen.State != "RUNNING" { // it is watched while it happens
					seen = item[attempt](t, w.attempts, "attemptUpdated")
				}
			}
		}
	}
	for _, f := range fakes {
		require.Len(t, f.sent(), 1, "each process works on one")
	}
	require.NotEqual(t, fakes[0].sent()[0].Key, fakes[1].sent()[0].Key)
	close(finish)
	for i, w := range watches {
		j := jobs[i/4]
		last := rest[attempt](t, w.attempts, "attemptUpdated")
		require.Len(t, last, 1)
		require.Equal(t, "SUCCEEDED", last[0].State)
		requireStory(t, rest[event](t, w.events, "jobEvents"), 0, ps[1].events(t, j.ID))
	}
	for _, j := range jobs {
		for _, p := range ps {
			require.Equal(t, "SUCCEEDED", p.job(t, j.ID).State)
		}
	}
	// One key, at both.
	o := ps[1].mutate(t, "createJob", createMutation, intent("a"))
	require.True(t, o.Replayed)
	require.Equal(t, jobs[0].ID, o.Job.ID)
	for _, p := range ps {
		p.terminate(t)
		p.exits(t)
	}
}
