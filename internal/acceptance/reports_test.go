package acceptance

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/coder/websocket/wsjson"
	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/providers/providertest"
)

// Public bug reports of other systems as cases, at the endpoint: what went wrong there is done here, with its right
// outcome. Report 1, a sweeper that writes after the worker has completed, and the interleavings of the others are forced
// in internal/jobs/reports_test.go, under the same numbers.

// A stale job was recovered and started again, and the first executor's completion was written over the running one,
// which it was not. Shape of sidequestjs/sidequest issue 208.
//
// A's answer comes before B's, and is dropped: A was given up, and what its owner gave up never wins.
func TestBugReport2RecoveredAttemptFinishesLate(t *testing.T) {
	t.Parallel()
	for name, fresh := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := fresh(t)
			pair := replicas(t, settings{database: database, ack: 2 * time.Second, tasks: writeTasks(t)}) // B acknowledges within it
			finishA, finishB := make(chan struct{}), make(chan struct{})
			for _, r := range pair {
				r.fake.OnModel("primary", providertest.After(finishA, answer("a-canary-3391")))
			}
			c := pair[0].client
			j := c.create(t, variables{"idempotencyKey": "k", "task": "strict", "input": variables{"text": "hello"}})
			a := c.attemptBecomes(t, j.ID, 1, "UNKNOWN")
			_, other := who(t, pair)
			// Where another process cancels, the worker goes on listening for a while.
			require.Equal(t, "WAITING", other.cancelAttempt(t, a.ID).Job.State)
			for _, r := range pair {
				r.fake.OnModel("primary", acknowledged(finishB, "b-canary-8810"))
			}
			require.Equal(t, typeStarted, other.start(t, j.ID, primary).Typename)
			c.attemptBecomes(t, j.ID, 2, "RUNNING")

			close(finishA)
			await.Until(t, "the usage of A's answer", func() bool { return c.job(t, j.ID).Attempts[0].Usage != nil })
			now := c.job(t, j.ID)
			require.Equal(t, "RUNNING", now.State)
			require.Equal(t, "CANCELLED", now.Attempts[0].State)
			require.Equal(t, "null", string(now.Result))

			close(finishB)
			done := c.becomes(t, j.ID, "SUCCEEDED")
			require.JSONEq(t, `{"text": "b-canary-8810"}`, string(done.Result))
			require.Equal(t, done.Attempts[1].ID, done.CompletedBy.ID)
			require.Equal(t, "CANCELLED", done.Attempts[0].State)
			requireAbsent(t, database, "a-canary", "b-canary")
		})
	}
}

// A cancellation that lost to the completion was answered as if it had taken place, and nobody was told. Shape of
// temporalio/temporal issue 2860 and apache/datafusion-ballista issue 1493.
func TestBugReport3CancelLosesToACompletion(t *testing.T) {
	t.Parallel()
	for name, fresh := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, f := newGateway(t, settings{database: fresh(t)})
			j := g.create(t, intent("too late"))
			won := g.becomes(t, j.ID, "SUCCEEDED")
			verdict := g.cancelAttempt(t, won.last().ID)
			require.Equal(t, typeAttemptOver, verdict.Typename)
			require.Equal(t, "SUCCEEDED", verdict.Attempt.State)
			require.Equal(t, won.last().ID, verdict.Job.CompletedBy.ID, "who had won")
			require.Equal(t, won, verdict.Job)
			verdict = g.cancelJob(t, j.ID)
			require.Equal(t, typeJobOver, verdict.Typename)
			require.Equal(t, won, verdict.Job)
			require.Equal(t, won, g.job(t, j.ID))

			// At the same moment one of them wins, and what the cancellation was told is what is stored.
			for i := range 8 {
				finish := make(chan struct{})
				f.Enqueue(acknowledged(finish, "printed"))
				j := g.create(t, intent(fmt.Sprint("raced ", i)))
				g.attemptBecomes(t, j.ID, 1, "RUNNING")
				go close(finish)
				verdict := g.cancelJob(t, j.ID)
				stored := g.job(t, j.ID)
				require.Equal(t, stored.State, verdict.Job.State)
				require.Equal(t, stored.CompletedBy, verdict.Job.CompletedBy)
				if verdict.Typename == typeJobCancelled {
					require.Equal(t, "CANCELLED", stored.State)
					require.Equal(t, "CANCELLED", stored.last().State)
					require.Equal(t, "null", string(stored.Result))
					continue
				}
				require.Equal(t, typeJobOver, verdict.Typename)
				require.Equal(t, "SUCCEEDED", stored.State)
				require.Equal(t, stored.last().ID, stored.CompletedBy.ID)
			}
			f.requireOnce(t)
		})
	}
}

// A second enqueue of a unique job replaced the arguments of the one that was already there. Shape of oban-bg/oban
// issue 635 and graphile/worker issue 312.
func TestBugReport4DuplicateEnqueueReplacesTheInput(t *testing.T) {
	t.Parallel()
	for name, fresh := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := fresh(t)
			g, f := newGateway(t, settings{database: database})
			first := g.create(t, variables{"idempotencyKey": "k", "task": "echo", "input": variables{"text": "the first's secret"}})
			g.becomes(t, first.ID, "SUCCEEDED")

			for name, input := range map[string]variables{
				"input":             {"idempotencyKey": "k", "task": "echo", "input": variables{"text": "another"}},
				"task":              {"idempotencyKey": "k", "task": "strict", "input": variables{"text": "the first's secret"}},
				"target":            {"idempotencyKey": "k", "task": "echo", "input": variables{"text": "the first's secret"}, "target": primary},
				"fallbacks":         {"idempotencyKey": "k", "task": "echo", "input": variables{"text": "the first's secret"}, "fallbacks": []string{}},
				"task that is gone": {"idempotencyKey": "k", "task": "nope", "input": variables{"text": "the first's secret"}},
			} {
				o := outcomeOf(t, g.post(t, createMutation, variables{"input": input}))
				require.Equal(t, typeConflict, o.Typename, name)
				require.Equal(t, "IDEMPOTENCY_CONFLICT", o.Code)
				require.Equal(t, first.ID, o.Job.ID)
				require.Contains(t, o.Message, first.ID)
				require.NotContains(t, o.Message, "secret")
			}
			require.NotContains(t, g.log.String(), "secret")
			require.NotContains(t, g.log.String(), "another")

			// The race decides as the look-up does: of many different intents at once, one is made and the others meet it.
			all := together(t, 40, func(ctx context.Context, i int) ([]outcome, error) {
				return outcomes(g.send(ctx, body(createMutation, variables{"input": variables{
					"idempotencyKey": "raced", "task": "echo", "input": variables{"n": i},
				}})))
			})
			made := 0
			for _, o := range all {
				require.Equal(t, all[0].Job.ID, o.Job.ID)
				switch o.Typename {
				case typeCreated:
					require.False(t, o.Replayed)
					made++
				default:
					require.Equal(t, typeConflict, o.Typename)
				}
			}
			require.Equal(t, 1, made)
			g.becomes(t, all[0].Job.ID, "SUCCEEDED")

			// Keys are each owner's own.
			bob := g.as("bob")
			other := bob.create(t, variables{"idempotencyKey": "k", "task": "echo", "input": variables{"text": "another"}})
			require.NotEqual(t, first.ID, other.ID)
			require.Equal(t, "bob", other.Owner)
			bob.becomes(t, other.ID, "SUCCEEDED")
			require.Equal(t, first.ID, g.jobByKey(t, "k").ID)
			require.Equal(t, other.ID, bob.jobByKey(t, "k").ID)
			require.JSONEq(t, `{"text": "the first's secret"}`, string(g.job(t, first.ID).Input), "stored input never changes")
			require.Len(t, f.sent(), 3)
		})
	}
}

// A queue took the same entry a second time, and the work was done twice. Shape of taskforcesh/bullmq issue 458.
func TestBugReport4QueueEntryInsertedTwice(t *testing.T) {
	t.Parallel()
	for name, fresh := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := fresh(t)
			g, f := newGateway(t, settings{database: database})
			db, _ := open(t, database)
			twice := func(t *testing.T) { // the entry as it is, for any worker to take
				t.Helper()
				_, err := db.ExecContext(t.Context(), `INSERT INTO river_job (args, kind, max_attempts, metadata, priority, queue, state)
					SELECT args, kind, max_attempts, metadata, priority, queue, 'available' FROM river_job WHERE id = (SELECT min(id) FROM river_job)`)
				require.NoError(t, err)
				await.Until(t, "all entries are worked on but those that are held", func() bool {
					return query(t, db, "SELECT count(*) FROM river_job WHERE state NOT IN ('running', 'completed')")[0][0] == "0" &&
						query(t, db, "SELECT count(*) FROM river_job WHERE state = 'completed' AND id > (SELECT min(id) FROM river_job)")[0][0] != "0"
				})
			}
			finish := make(chan struct{})
			f.OnModel("primary", acknowledged(finish, "printed"))
			j := g.create(t, intent("k"))
			g.attemptBecomes(t, j.ID, 1, "RUNNING")
			twice(t)
			require.Len(t, f.sent(), 1)
			close(finish)
			won := g.becomes(t, j.ID, "SUCCEEDED")
			twice(t)
			require.Len(t, f.sent(), 1)
			require.Equal(t, won, g.job(t, j.ID))
		})
	}
}

// Of the same calls at the same time each looked, found nothing and ran. Shape of jcagarcia/grape-idempotency issue 10
// and mastodon/mastodon pull request 37879.
func TestBugReport5ManyCallsWithOneKeyAllRun(t *testing.T) {
	t.Parallel()
	for name, fresh := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := fresh(t)
			g, f := newGateway(t, settings{database: database})
			input := variables{"idempotencyKey": "one intent", "task": "echo", "input": variables{"text": "hello", "n": 1}}
			withoutKey := variables{"task": "echo", "input": variables{"text": "hello", "n": 1}}
			post := func(vars variables, headers ...string) func(ctx context.Context) ([]outcome, error) {
				return func(ctx context.Context) ([]outcome, error) {
					return outcomes(g.send(ctx, body(createMutation, variables{"input": vars}), headers...))
				}
			}

			all := together(t, many, func(ctx context.Context, _ int) ([]outcome, error) { return post(input)(ctx) })
			require.Len(t, all, many)
			id := requireOneJob(t, all)
			require.Len(t, g.becomes(t, id, "SUCCEEDED").Attempts, 1)
			require.Len(t, f.sent(), 1)

			input["idempotencyKey"] = "one request"
			// The default limit of aliases is 100.
			all, err := outcomes(g.send(t.Context(), body(aliased(50), variables{"input": input})))
			require.NoError(t, err)
			require.Len(t, all, 50)
			id = requireOneJob(t, all)
			require.Len(t, g.becomes(t, id, "SUCCEEDED").Attempts, 1)
			require.Len(t, f.sent(), 2)

			// A header could not say which of several it means.
			all, err = outcomes(g.send(t.Context(), body(aliased(2), variables{"input": withoutKey}), "Idempotency-Key", "of none"))
			require.NoError(t, err)
			require.Len(t, all, 2)
			require.Equal(t, typeInvalid, all[0].Typename)
			require.Equal(t, typeInvalid, all[1].Typename)
			o := outcomeOf(t, g.post(t, createMutation, variables{"input": input}, "Idempotency-Key", "of another"))
			require.Equal(t, typeInvalid, o.Typename, "header and input differ")

			input["idempotencyKey"] = "mixed"
			ways := []func(ctx context.Context) ([]outcome, error){
				post(input), post(withoutKey, "Idempotency-Key", "mixed"), post(withoutKey, "Idempotency-Key", `"mixed"`),
				post(input, "Idempotency-Key", "mixed"),
				func(ctx context.Context) ([]outcome, error) {
					return outcomes(g.send(ctx, body(aliased(5), variables{"input": input})))
				},
				func(ctx context.Context) ([]outcome, error) {
					conn, err := g.dial(ctx)
					if err != nil {
						return nil, err
					}
					defer func() { _ = conn.CloseNow() }()
					err = wsjson.Write(ctx, conn, map[string]any{
						"id": "1", "type": "subscribe", "payload": map[string]any{"query": createMutation, "variables": variables{"input": input}},
					})
					if err != nil {
						return nil, err
					}
					m, err := read(ctx, conn)
					return outcomes(m.response, err)
				},
			}
			all = together(t, 10*len(ways), func(ctx context.Context, i int) ([]outcome, error) { return ways[i%len(ways)](ctx) })
			require.Len(t, all, 100)
			id = requireOneJob(t, all)
			require.Len(t, g.becomes(t, id, "SUCCEEDED").Attempts, 1)
			require.Len(t, f.sent(), 3)
			f.requireOnce(t)
			require.Equal(t, 3, counts(t, database)["jobs"])
		})
	}
}

// The same through two processes, whose memories know nothing of each other.
func TestBugReport5ManyCallsWithOneKeyThroughTwoProcesses(t *testing.T) {
	t.Parallel()
	database, f, folder := databases.DSN(t), startFake(t), writeTasks(t)
	var ps [2]*process
	for i := range ps {
		ps[i] = settings{database: database, url: f.url, tasks: folder}.serve(t)
	}
	all := together(t, 64, func(ctx context.Context, i int) ([]outcome, error) {
		return outcomes(ps[i%2].send(ctx, body(createMutation, variables{"input": intent("one intent")})))
	})
	require.Len(t, all, 64)
	id := requireOneJob(t, all)
	for _, p := range ps {
		require.Len(t, p.becomes(t, id, "SUCCEEDED").Attempts, 1)
	}
	require.Len(t, f.sent(), 1)
	require.Equal(t, 1, counts(t, database)["jobs"])
}

// A request that validation rejected had already taken the key: sent again, and put right, it got the old error for ever.
// Shape of KanishJebaMathewM/Truxify pull request 2885.
func TestBugReport6RejectedRequestTakesTheKey(t *testing.T) {
	t.Parallel()
	for name, fresh := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := fresh(t)
			g, f := settled(t, database)
			rejected := map[string][]byte{
				"task":          body(createMutation, variables{"input": variables{"idempotencyKey": "task", "task": "nope", "input": variables{}}}),
				"target":        body(createMutation, variables{"input": variables{"idempotencyKey": "target", "task": "echo", "input": variables{}, "target": "no/where"}}),
				"schema":        raw("schema", `{"text": 5}`),
				"number":        raw("number", `{"n": 1e401}`),
				"ambiguous":     raw("ambiguous", `{"a": 1, "a": 2}`),
				"missing field": body(createMutation, variables{"input": variables{"idempotencyKey": "missing field", "input": variables{}}}),
				"two headers":   body(createMutation, variables{"input": variables{"idempotencyKey": "two headers", "task": "echo", "input": variables{}}}),
			}
			before := counts(t, database)
			for key, request := range rejected {
				header := key
				if key == "two headers" {
					header = "another"
				}
				res, err := g.send(t.Context(), request, "Idempotency-Key", header)
				require.NoError(t, err)
				if len(res.Errors) == 0 {
					require.Equal(t, typeInvalid, outcomeOf(t, res).Typename, "%s: %s", key, res.text)
				}
				require.Nil(t, g.jobByKey(t, key), key)
			}
			require.Equal(t, before, counts(t, database))
			for key := range rejected {
				j := g.create(t, variables{"idempotencyKey": key, "task": "echo", "input": variables{"text": "put right"}})
				g.becomes(t, j.ID, "SUCCEEDED")
			}
			require.Len(t, f.sent(), 1+len(rejected))
		})
	}
}

// A rule was kept by one way in and not by the others: aliases in one request, or a socket, went around it. Shape of
// VilnaCRM-Org/user-service issue 463 and directus/directus pull request 27801.
func TestBugReport7OneRuleAtEveryEntry(t *testing.T) {
	t.Parallel()
	const twice = `mutation($input: CreateJobInput!){a: createJob(input: $input){` + created + `} b: createJob(input: $input){` + created + `}}`
	post := func(query string, header bool) func(t *testing.T, c *client, key string, input variables) []outcome {
		return func(t *testing.T, c *client, key string, input variables) []outcome {
			t.Helper()
			var headers []string
			if header {
				headers = []string{"Idempotency-Key", key}
			} else {
				input["idempotencyKey"] = key
			}
			out, err := outcomes(c.send(t.Context(), body(query, variables{"input": input}), headers...))
			require.NoError(t, err)
			return out
		}
	}
	over := func(transport string) func(t *testing.T, c *client, key string, input variables) []outcome {
		return func(t *testing.T, c *client, key string, input variables) []outcome {
			t.Helper()
			input["idempotencyKey"] = key
			s := transports[transport](c, t, twice, variables{"input": input})
			out, err := outcomes(s.next(t).response, nil)
			require.NoError(t, err)
			require.Equal(t, "complete", s.next(t).end)
			return out
		}
	}
	entries := map[string]func(t *testing.T, c *client, key string, input variables) []outcome{
		"one": post(createMutation, false), "aliased twice": post(twice, false), "header": post(createMutation, true),
		"WebSocket": over("WebSocket"), "SSE": over("SSE"),
	}
	for name, fresh := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := fresh(t)
			g, f := newGateway(t, settings{database: database})
			for key, create := range entries {
				for _, o := range create(t, g.client, key, variables{"task": "echo", "input": variables{"text": 5}}) {
					require.Equal(t, typeInvalid, o.Typename, "%s: %+v", key, o)
					require.Equal(t, "/input/text", o.Issues[0].Path, key)
				}
				require.Nil(t, g.jobByKey(t, key))
				id := requireOneJob(t, create(t, g.client, key, variables{"task": "echo", "input": variables{"text": "hello"}}))
				for name, again := range entries {
					for _, o := range again(t, g.client, key, variables{"task": "echo", "input": variables{"text": "hello"}}) {
						require.Equal(t, typeCreated, o.Typename, "%s after %s: %+v", name, key, o)
						require.True(t, o.Replayed, "%s after %s", name, key)
						require.Equal(t, id, o.Job.ID)
					}
					for _, o := range again(t, g.client, key, variables{"task": "echo", "input": variables{"text": "another"}}) {
						require.Equal(t, typeConflict, o.Typename, "%s after %s: %+v", name, key, o)
						require.Equal(t, id, o.Job.ID)
					}
				}
				g.becomes(t, id, "SUCCEEDED")
			}
			require.Len(t, f.sent(), len(entries))
			require.Equal(t, len(entries), counts(t, database)["jobs"])
		})
	}
}
