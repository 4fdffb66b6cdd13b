package acceptance

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/providers/providertest"
)

const rootFields = `{__schema{queryType{fields{name}} mutationType{fields{name}} subscriptionType{fields{name}}}}`

// What alice owns is as good as absent for bob, through every field that there is.
func TestStrangerSeesAndTouchesNothing(t *testing.T) {
	t.Parallel()
	for name, fresh := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := fresh(t)
			g, f := newGateway(t, settings{database: database})
			f.OnModel("primary", acknowledged(nil, ""))
			alice, bob := g.client, g.as("bob")
			j := alice.create(t, variables{"idempotencyKey": "alice's key", "task": "echo", "input": variables{"text": "canary-of-alice"}})
			a := alice.attemptBecomes(t, j.ID, 1, "RUNNING")
			own := bob.create(t, variables{"idempotencyKey": "bob's key", "task": "echo", "input": variables{"text": "bob's"}})
			bob.attemptBecomes(t, own.ID, 1, "RUNNING")
			before, story := counts(t, database), alice.events(t, j.ID)

			null := func(query string, vars variables) func(t *testing.T) {
				return func(t *testing.T) {
					t.Helper()
					res := bob.post(t, query, vars)
					require.NotContains(t, res.text, "canary-of-alice")
					for name, value := range res.Data {
						require.Equal(t, "null", string(value), name)
					}
				}
			}
			onlyOwn := func(query string, vars variables) func(t *testing.T) {
				return func(t *testing.T) {
					t.Helper()
					res := bob.post(t, query, vars)
					require.Empty(t, res.Errors, res.text)
					require.NotContains(t, res.text, j.ID)
					require.NotContains(t, res.text, a.ID)
					require.NotContains(t, res.text, "alice")
				}
			}
			notFound := func(name, mutation string, input variables) func(t *testing.T) {
				return func(t *testing.T) {
					t.Helper()
					o := bob.mutate(t, name, mutation, input)
					require.Equal(t, typeNotFound, o.Typename)
					require.Equal(t, "NOT_FOUND", o.Code)
					require.NotContains(t, o.Message, j.ID)
				}
			}
			refused := func(query string) func(t *testing.T) {
				return func(t *testing.T) {
					t.Helper()
					for transport, open := range transports {
						m := open(bob, t, query, variables{"id": j.ID}).next(t)
						require.Equal(t, []string{"NOT_FOUND"}, m.codes(), transport)
						require.Empty(t, m.Data, transport)
					}
				}
			}
			checks := map[string][]func(t *testing.T){
				"viewer": {onlyOwn(`{viewer{subject operator}}`, nil)},
				"node": {
					null(`query($id: ID!){node(id: $id){id ...on Job{input}}}`, variables{"id": j.ID}),
					null(`query($id: ID!){node(id: $id){id ...on Attempt{state job{id input}}}}`, variables{"id": a.ID}),
				},
				"nodes": {func(t *testing.T) {
					t.Helper()
					res := bob.post(t, `query($ids: [ID!]!){nodes(ids: $ids){id}}`, variables{"ids": []string{j.ID, a.ID, own.ID}})
					require.NotContains(t, string(res.Data["nodes"]), j.ID)
					require.NotContains(t, string(res.Data["nodes"]), a.ID)
				}},
				"job":      {null(jobQuery, variables{"id": j.ID})},
				"jobByKey": {null(jobByKeyQuery, variables{"key": "alice's key"})},
				"jobs": {
					onlyOwn(`{jobs(first: 100){totalCount edges{node{id owner attempts{id job{id}}}}}}`, nil),
					func(t *testing.T) {
						t.Helper()
						require.Equal(t, 1, bob.count(t, nil))
						for _, where := range []variables{
							{"id": j.ID}, {"idempotencyKey": "alice's key"}, {"idempotencyKeyHasPrefix": "alice"},
							{"and": []variables{{"id": j.ID}}},
							{"hasAttemptsWith": []variables{{"id": a.ID}}}, {"not": variables{"id": own.ID}},
						} {
							require.Zero(t, bob.count(t, where), "%v", where)
						}
					},
				},
				"attempts": {
					onlyOwn(`{attempts(first: 100){totalCount edges{node{id job{id owner}}}}}`, nil),
					onlyOwn(`query($where: AttemptWhereInput){attempts(where: $where){totalCount edges{node{id}}}}`,
						variables{"where": variables{"not": variables{"hasJobWith": []variables{{"id": own.ID}}}}}),
				},
				"tasks":   {onlyOwn(`{tasks{name}}`, nil)},
				"targets": {onlyOwn(`{targets(task: "echo"){id contract{state}}}`, nil)},
				"createJob": {func(t *testing.T) {
					t.Helper()
					o := bob.mutate(t, "createJob", createMutation, variables{"idempotencyKey": "bob's key", "task": "echo", "input": variables{"text": "bob's"}})
					require.True(t, o.Replayed)
					require.Equal(t, own.ID, o.Job.ID)
				}},
				"startAttempt":  {notFound("startAttempt", startMutation, variables{"jobId": j.ID})},
				"cancelAttempt": {notFound("cancelAttempt", cancelAttemptMutation, variables{"attemptId": a.ID})},
				"cancelJob":     {notFound("cancelJob", cancelJobMutation, variables{"jobId": j.ID})},
				"resolveAttempt": {
					notFound("resolveAttempt", resolveMutation, variables{"attemptId": a.ID, "outcome": "FAILED", "note": "mine"}),
					func(t *testing.T) { // not even on one's own, without being an operator
						t.Helper()
						res := alice.post(t, resolveMutation, variables{"input": variables{"attemptId": a.ID, "outcome": "FAILED", "note": "mine"}})
						require.Equal(t, []string{"FORBIDDEN"}, res.codes())
					},
				},
				"attemptUpdated": {refused(attemptsStream)},
				"jobEvents":      {refused(eventsStream)},
			}
			type fields struct{ Fields []struct{ Name string } }
			schema := field[struct{ QueryType, MutationType, SubscriptionType fields }](t, bob, "__schema", rootFields, nil)
			var names []string
			for _, f := range slices.Concat(schema.QueryType.Fields, schema.MutationType.Fields, schema.SubscriptionType.Fields) {
				names = append(names, f.Name)
			}
			require.ElementsMatch(t, names, slices.Collect(maps.Keys(checks)), "each field needs its check")
			for name, list := range checks {
				for _, check := range list {
					t.Run(name, check)
				}
			}
			require.Equal(t, before, counts(t, database))
			require.Equal(t, story, alice.events(t, j.ID))
			require.Len(t, f.sent(), 2)
		})
	}
}

func TestOperatorActsOnAllByName(t *testing.T) {
	t.Parallel()
	for name, fresh := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := fresh(t)
			g, f := newGateway(t, settings{database: database})
			alice, operator := g.client, g.as("oscar:operator")
			f.Enqueue(providertest.Reset(), providertest.Reset(), providertest.Reset(), acknowledged(nil, ""))
			f.OnModel("primary", providertest.Reset())
			created := func(key string) job {
				j := alice.create(t, intent(key))
				return alice.becomes(t, j.ID, "UNKNOWN")
			}
			last := func(id string) event {
				events := operator.events(t, id)
				return events[len(events)-1]
			}
			byOscar := func(id string) {
				e := last(id)
				require.Equal(t, "oscar", e.Detail.By, "%+v", e)
				require.True(t, e.Detail.Operator)
			}

			resolved, cancelled, ended := created("a"), created("b"), created("c")
			require.Equal(t, 3, operator.count(t, variables{"state": "UNKNOWN"}))
			require.Equal(t, "alice", operator.job(t, resolved.ID).Owner)
			require.Nil(t, operator.jobByKey(t, "a"), "keys are each owner's own, an operator's too")
			seen := operator.overSSE(t, attemptsStream, variables{"id": resolved.ID})
			require.Equal(t, "UNKNOWN", item[attempt](t, seen, "attemptUpdated").State)

			o := operator.resolve(t, variables{"attemptId": resolved.last().ID, "outcome": "SUCCEEDED", "note": "seen", "result": variables{"nope": 1}})
			require.Equal(t, typeInvalid, o.Typename)
			o = operator.resolve(t, variables{"attemptId": resolved.last().ID, "outcome": "SUCCEEDED", "note": "seen", "result": variables{"text": "ok"}})
			require.Equal(t, typeResolved, o.Typename, "%+v", o)
			require.Equal(t, "SUCCEEDED", o.Job.State)
			byOscar(resolved.ID)
			rest[attempt](t, seen, "attemptUpdated")
			o = operator.resolve(t, variables{"attemptId": resolved.last().ID, "outcome": "FAILED", "note": "late"})
			require.Equal(t, typeAttemptOver, o.Typename)

			require.Equal(t, "WAITING", operator.cancelAttempt(t, cancelled.last().ID).Job.State)
			byOscar(cancelled.ID)
			require.Equal(t, typeStarted, operator.start(t, cancelled.ID, primary).Typename)
			var started event
			for _, e := range operator.events(t, cancelled.ID) {
				if e.Type == typeAttemptCreated {
					started = e
				}
			}
			require.Equal(t, "oscar", started.Detail.By)

			require.Equal(t, typeJobCancelled, operator.cancelJob(t, ended.ID).Typename)
			byOscar(ended.ID)
			o = alice.start(t, ended.ID, "")
			require.Equal(t, typeJobOver, o.Typename)
			require.Equal(t, "CANCELLED", alice.job(t, ended.ID).State, "and its owner sees it")
		})
	}
}
