package graph_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAScalarHasNoEnumValues(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, query := range []string{
		`mutation { createJob(input: {task: "triage", input: FOO}) { __typename } }`,
		`mutation { createJob(input: {task: "triage", input: {x: FOO}}) { __typename } }`,
		`mutation { createJob(input: {task: "triage", input: {x: [1, {y: FOO}]}}) { __typename } }`,
		`mutation { a: createJob(input: {task: "triage", input: 1}) { __typename } b: createJob(input: {task: "triage", input: [FOO]}) { __typename } }`,
		`mutation { ...F } fragment F on Mutation { createJob(input: {task: "triage", input: {x: FOO}}) { __typename } }`,
		`mutation($j: JSON! = {x: FOO}) { createJob(input: {task: "triage", input: $j}) { __typename } }`,
		`mutation($j: CreateJobInput! = {task: "triage", input: {x: FOO}}) { createJob(input: $j) { __typename } }`,
	} {
		a := b.post(t, asAlice, query, "", "Accept", "application/graphql-response+json")
		require.Equal(t, "GRAPHQL_VALIDATION_FAILED", a.code(), query)
		require.Equal(t, http.StatusBadRequest, a.status, query)
		require.Contains(t, a.body, "in quotes", query)
		require.Contains(t, a.body, "locations", query)

		next, _ := b.stream(t, asAlice, query, "")
		require.Contains(t, next().data, "GRAPHQL_VALIDATION_FAILED", query)

		s := b.open(t, asAlice)
		s.subscribe("1", query, "")
		m := s.receive()
		require.Equal(t, "error", m.Type, query)
		require.Contains(t, string(m.Payload), "GRAPHQL_VALIDATION_FAILED", query)
	}
	require.Equal(t, "GRAPHQL_VALIDATION_FAILED", b.get(t, asAlice, `{ jobs(after: FOO) { totalCount } }`, "").code())
	require.Zero(t, b.jobs.calls)

	// Enums themselves, and strings and words in JSON, are as before.
	require.Empty(t, b.post(t, asAlice, `{ jobs(where: {stateIn: [QUEUED]}, orderBy: {field: CREATED_AT, direction: DESC}) { totalCount } }`, "").Errors)
	require.Empty(t, b.post(t, asAlice, `mutation { createJob(input: {task: "triage", input: {x: "FOO", y: true, z: null}}) { __typename } }`, "").Errors)
	require.JSONEq(t, `{"x":"FOO","y":true,"z":null}`, string(b.jobs.only().Input))
}

func TestAnIntHas32Bits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, c := range []struct{ query, variables string }{
		{`{ jobs(first: 2147483648) { totalCount } }`, ""},
		{`{ jobs(first: 99999999999999999999) { totalCount } }`, ""},
		{`{ attempts(where: {numberGT: -2147483649}) { totalCount } }`, ""},
		{`{ attempts(where: {numberIn: [1, 3000000000]}) { totalCount } }`, ""},
		{`{ attempts(where: {or: [{number: 3000000000}]}) { totalCount } }`, ""},
		{`query($n: Int = 3000000000) { jobs(first: $n) { totalCount } }`, ""},
		{`query($n: Int) { jobs(first: $n) { totalCount } }`, `{"n":3000000000}`},
		{`query($w: AttemptWhereInput) { attempts(where: $w) { totalCount } }`, `{"w":{"numberIn":[3000000000]}}`},
		{`query($w: AttemptWhereInput = {numberIn: [3000000000]}) { attempts(where: $w) { totalCount } }`, ""},
		{`mutation { createJob(input: {task: "triage", input: 1, hedgeAfterMs: 2147483648}) { __typename } }`, ""},
		{`{ ...F } fragment F on Query { jobs(first: 2147483648) { totalCount } }`, ""},
	} {
		a := b.post(t, asAlice, c.query, c.variables, "Accept", "application/graphql-response+json")
		require.Equal(t, "GRAPHQL_VALIDATION_FAILED", a.code(), c.query)
		require.Equal(t, http.StatusBadRequest, a.status, c.query)
		for _, word := range []string{"strconv", "parsing", "value out of range", "ParseInt"} {
			require.NotContains(t, a.body, word, "Go's words are not the client's")
		}
	}
	require.Zero(t, b.jobs.calls)
	require.Empty(t, b.post(t, asAlice, `{ attempts(where: {numberGT: -2147483648, numberLT: 2147483647}) { totalCount } }`, "").Errors)
	require.Empty(t, b.post(t, asAlice, `mutation { createJob(input: {task: "triage", input: 99999999999999999999}) { __typename } }`, "").Errors, "a JSON number has no bound of 32 bits")
}
