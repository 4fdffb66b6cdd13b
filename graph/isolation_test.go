package graph_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"entgo.io/ent/privacy"
	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
	"github.com/docket-gateway/docket/graph/generated"
	"github.com/docket-gateway/docket/internal/viewer"
)

// A stranger asks for everything by the owner's own ids and keys. Each field of Query and Subscription must be here.
func TestAStrangerSeesNothingThroughAnyField(t *testing.T) {
	t.Parallel()
	b := setup(t)
	j := b.Job(t, alice, "alices-key")
	at := b.Attempt(t, j.ID)
	b.Move(t, at.ID, attempt.StateSUCCEEDED, "")
	b.Finish(t, j.ID, job.StateSUCCEEDED, at.ID)

	const (
		jobFields     = `{ id idempotencyKey owner input result attempts { id } events { number } completedBy { id } usage { cost } }`
		attemptFields = `{ id target job ` + jobFields + ` error { code } usage { cost } }`
	)
	ids, err := json.Marshal([]string{j.ID, at.ID})
	require.NoError(t, err)
	queries := map[string][]string{
		"viewer": {`{ viewer { subject operator } }`},
		"node": {
			`{ node(id: "` + j.ID + `") { id ... on Job ` + jobFields + ` } }`,
			`{ node(id: "` + at.ID + `") { id ... on Attempt ` + attemptFields + ` } }`,
		},
		"nodes":    {`{ nodes(ids: ` + string(ids) + `) { id ... on Job ` + jobFields + ` ... on Attempt ` + attemptFields + ` } }`},
		"job":      {`{ job(id: "` + j.ID + `") ` + jobFields + ` }`},
		"jobByKey": {`{ jobByKey(idempotencyKey: "alices-key") ` + jobFields + ` }`},
		"jobs": {
			`{ jobs { totalCount edges { cursor node ` + jobFields + ` } pageInfo { endCursor } } }`,
			`{ jobs(where: {idempotencyKey: "alices-key"}) { totalCount edges { node ` + jobFields + ` } } }`,
			`{ jobs(where: {not: {idempotencyKey: "x"}, or: [{id: "` + j.ID + `"}, {hasAttempts: true}, {hasAttemptsWith: [{id: "` + at.ID + `"}]}]}) { totalCount edges { node ` + jobFields + ` } } }`,
		},
		"attempts": {
			`{ attempts { totalCount edges { cursor node ` + attemptFields + ` } } }`,
			`{ attempts(where: {hasJobWith: [{idempotencyKey: "alices-key"}]}) { totalCount edges { node ` + attemptFields + ` } } }`,
			`{ attempts(where: {or: [{id: "` + at.ID + `"}, {hasJob: true}]}, last: 5) { totalCount edges { node ` + attemptFields + ` } } }`,
		},
		"tasks":   {`{ tasks { name } }`},
		"targets": {`{ targets(task: "triage") { id } }`},

		"attemptUpdated": {`subscription { attemptUpdated(jobId: "` + j.ID + `") ` + attemptFields + ` }`},
		"jobEvents": {
			`subscription { jobEvents(jobId: "` + j.ID + `") { number type attempt { id } detail } }`,
			`subscription { jobEvents(jobId: "` + j.ID + `", after: 1) { number } }`,
		},
	}
	schema := generated.NewExecutableSchema(generated.Config{}).Schema()
	for _, f := range append(schema.Query.Fields, schema.Subscription.Fields...) {
		if strings.HasPrefix(f.Name, "__") {
			continue
		}
		require.NotEmpty(t, queries[f.Name], "%s has no case", f.Name)
		stream := schema.Subscription.Fields.ForName(f.Name) != nil
		for _, q := range queries[f.Name] {
			body := func(as string) string {
				if !stream {
					return b.post(t, as, q, "").body
				}
				var all strings.Builder
				next, _ := b.stream(t, as, q, "")
				for e := next(); e.name != "EOF"; e = next() {
					all.WriteString(e.data)
				}
				return all.String()
			}
			own, strange := body(asAlice), body(asMallory)
			require.NotContains(t, own, `"errors"`, q)
			for _, secret := range []string{j.ID, at.ID, "alices-key", "alice", "number", "demo/fax", "9007199254740993", `"totalCount":1`} {
				require.NotContains(t, strange, secret, q)
			}
			if stream {
				require.Contains(t, strange, "NOT_FOUND", q)
			}
		}
	}
}

func TestOperatorsSeeAll(t *testing.T) {
	t.Parallel()
	b := setup(t)
	j := b.Job(t, alice, "k")
	b.Finish(t, j.ID, job.StateCANCELLED, "")
	require.Equal(t, "alice", b.post(t, asOperator, `{ job(id: "`+j.ID+`") { owner } }`, "").at(t, "job", "owner"))
	next, _ := b.stream(t, asOperator, `subscription { jobEvents(jobId: "`+j.ID+`") { number } }`, "")
	require.Contains(t, next().data, `"number":1`)
}

func TestASocketOfAStrangerSeesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	j := b.Job(t, alice, "k")
	s := b.open(t, asMallory)
	s.subscribe("1", `subscription { jobEvents(jobId: "`+j.ID+`") { number } }`, "")
	m := s.receive()
	require.Equal(t, "error", m.Type)
	require.Contains(t, string(m.Payload), "NOT_FOUND")
}

// The layer below the resolvers: it holds also where a resolver forgets.
func TestThePrivacyLayerIsClosedByDefault(t *testing.T) {
	t.Parallel()
	b := setup(t)
	j := b.Job(t, alice, "k")
	b.Attempt(t, j.ID)
	c := b.Store.Client()
	counts := func(ctx context.Context) (all []int, err error) {
		for _, count := range []func(context.Context) (int, error){
			c.Owner.Query().Count, c.Job.Query().Count, c.Attempt.Query().Count, c.JobEvent.Query().Count,
		} {
			n, err := count(ctx)
			if err != nil {
				return nil, err
			}
			all = append(all, n)
		}
		return all, nil
	}
	as := func(subject string, operator bool) context.Context {
		return viewer.NewContext(t.Context(), viewer.Viewer{Issuer: "dev", Subject: subject, Operator: operator})
	}
	own, err := counts(as("alice", false))
	require.NoError(t, err)
	require.Equal(t, []int{1, 1, 1, 2}, own)
	strange, err := counts(as("mallory", false))
	require.NoError(t, err)
	require.Equal(t, []int{0, 0, 0, 0}, strange)
	all, err := counts(as("olga", true))
	require.NoError(t, err)
	require.Equal(t, own, all)
	_, err = counts(t.Context())
	require.ErrorIs(t, err, privacy.Deny)
	require.ErrorIs(t, c.Job.Update().SetVersion(9).Exec(as("olga", true)), privacy.Deny)
}
