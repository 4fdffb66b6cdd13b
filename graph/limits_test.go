package graph_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/graph"
)

func TestRefusesWhatIsTooLarge(t *testing.T) {
	t.Parallel()
	b := setup(t)
	deepFilter := strings.Repeat(`{not: `, 20) + `{target: "x"}` + strings.Repeat(`}`, 20)
	var aliases, fields, wide, chain strings.Builder
	for i := range 200 {
		fmt.Fprintf(&aliases, "a%d: viewer { subject } ", i)
	}
	for range 3000 {
		fields.WriteString("viewer { subject } ")
	}
	for range 200 {
		wide.WriteString(`{target: "x"}`)
	}
	// Each fragment uses the next one twice: 2^30 fields in a small document.
	for i := range 30 {
		fmt.Fprintf(&chain, "fragment F%d on Query { ...F%d ...F%d } ", i, i+1, i+1)
	}
	for name, c := range map[string]struct{ query, variables, code string }{
		"a thousand levels": {query: strings.Repeat("{ viewer ", 1000) + strings.Repeat("}", 1000), code: "QUERY_TOO_DEEP"},
		"levels by fragments": {
			query: `{ ...A } fragment A on Query { jobs { edges { node { ...B } } } } fragment B on Job { attempts { job { attempts { job ` +
				strings.Repeat("{ attempts { job ", 16) + "{ id }" + strings.Repeat("} }", 16) + ` } } } }`, code: "QUERY_TOO_DEEP"},
		"circle of fragments":          {query: `{ ...A } fragment A on Query { ...B } fragment B on Query { ...A }`, code: "GRAPHQL_VALIDATION_FAILED"},
		"tokens":                       {query: `{ viewer { subject } ` + strings.Repeat("a ", 20_000) + `}`, code: "TOO_MANY_TOKENS"},
		"aliases":                      {query: "{" + aliases.String() + "}", code: "TOO_MANY_ALIASES"},
		"fields":                       {query: "{" + fields.String() + "}", code: "TOO_MANY_FIELDS"},
		"exponential fragments":        {query: "{ ...F0 } " + chain.String() + "fragment F30 on Query { viewer { subject } }", code: "TOO_MANY_FIELDS"},
		"deep filter":                  {query: `{ jobs(where: ` + deepFilter + `) { totalCount } }`, code: "FILTER_TOO_DEEP"},
		"deep filter, variables":       {query: `query($w: JobWhereInput) { jobs(where: $w) { totalCount } }`, variables: `{"w":` + strings.Repeat(`{"not":`, 20) + `{}` + strings.Repeat(`}`, 20) + `}`, code: "FILTER_TOO_DEEP"},
		"part of a deep filter":        {query: `query($w: JobWhereInput) { jobs(where: {not: {not: {not: {not: $w}}}}) { totalCount } }`, variables: `{"w":` + strings.Repeat(`{"not":`, 5) + `{}` + strings.Repeat(`}`, 5) + `}`, code: "FILTER_TOO_DEEP"},
		"wide filter":                  {query: `{ jobs(where: {or: [` + wide.String() + `]}) { totalCount } }`, code: "FILTER_TOO_LARGE"},
		"lists in lists":               {query: `{ jobs(first: 200) { edges { node { events(first: 1000) { number } } } } }`, code: "QUERY_TOO_COMPLEX"},
		"lists in lists in lists":      {query: `{ jobs(first: 200) { edges { node { ` + strings.Repeat(`attempts { job { `, 8) + `events(first: 1000) { number }` + strings.Repeat(`} }`, 8) + ` } } } }`, code: "QUERY_TOO_COMPLEX"},
		"jobs in attempts":             {query: `{ job(id: "x") { attempts { job { attempts { job { attempts { id } } } } } } }`, code: "QUERY_TOO_COMPLEX"},
		"long text in a filter":        {query: `query($v: String) { jobs(where: {idempotencyKeyHasPrefix: $v}) { totalCount } }`, variables: `{"v":"` + strings.Repeat("x", 1001) + `"}`, code: "FILTER_TOO_LARGE"},
		"NUL in a filter":              {query: `{ jobs(where: {or: [{taskContains: "\u0000z"}]}) { totalCount } }`, code: "GRAPHQL_VALIDATION_FAILED"},
		"a cursor of a list":           {query: `{ jobs(after: "gqFppWpvYl94oXaRAQ") { totalCount edges { node { id } } } }`, code: "BAD_USER_INPUT"},
		"a cursor of a list, attempts": {query: `{ attempts(before: "gqFppWpvYl94oXaRAQ", last: 1) { totalCount edges { node { id } } } }`, code: "BAD_USER_INPUT"},
		"deferred":                     {query: `{ ... @defer { viewer { subject } } }`, code: "GRAPHQL_VALIDATION_FAILED"},
		"syntax":                       {query: `{ viewer { `, code: "GRAPHQL_PARSE_FAILED"},
		"unknown field":                {query: `{ nope }`, code: "GRAPHQL_VALIDATION_FAILED"},
		"no operation":                 {query: `fragment F on Query { viewer { subject } }`, code: "GRAPHQL_VALIDATION_FAILED"},
		"nothing":                      {query: ``, code: "GRAPHQL_VALIDATION_FAILED"},
		"an int of 64 bits":            {query: `{ jobs(first: 99999999999999999999) { totalCount } }`, code: "GRAPHQL_VALIDATION_FAILED"},
		"nodes":                        {query: `{ nodes(ids: [` + strings.Repeat(`"x" `, 101) + `]) { id } }`, code: "PAGE_TOO_LARGE"},
	} {
		a := b.post(t, asAlice, c.query, c.variables)
		require.Equal(t, c.code, a.code(), "%s: %.300s", name, a.body)
		require.Equal(t, http.StatusOK, a.status, name)
		if c.code != "PAGE_TOO_LARGE" && c.code != "BAD_USER_INPUT" { // these two are found when it is executed
			a = b.post(t, asAlice, c.query, c.variables, "Accept", "application/graphql-response+json")
			require.Equal(t, http.StatusBadRequest, a.status, name)
			require.NotContains(t, a.body, `"data"`, name)
		}
	}
}

func TestRefusesALargeBody(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, size := range []int{1 << 20, 10 << 20} {
		for _, accept := range []string{"application/json", "text/event-stream"} {
			a := b.post(t, asAlice, createWith, `{"input":{"task":"triage","input":"`+strings.Repeat("x", size)+`"}}`, "Accept", accept)
			require.Equal(t, http.StatusRequestEntityTooLarge, a.status)
			require.Equal(t, "BODY_TOO_LARGE", a.code())
		}
	}
	s := b.open(t, asAlice)
	_ = s.conn.Write(s.ctx, 1, []byte(strings.Repeat("x", 1<<20+1)))
	require.Equal(t, 1009, s.closed())
	require.Zero(t, b.jobs.calls)
}

func TestIntrospectionOfGraphiQLPasses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a := b.post(t, asAlice, introspection, "")
	require.NotEmpty(t, a.at(t, "__schema", "types"))
	closed := setup(t, func(o *graph.Options) { o.NoIntrospection = true })
	require.NotEmpty(t, closed.post(t, asAlice, introspection, "").code())
}

// introspection is what GraphiQL asks.
const introspection = `query IntrospectionQuery { __schema { description queryType { name kind } mutationType { name kind } subscriptionType { name kind }
	types { ...FullType } directives { name description isRepeatable locations args(includeDeprecated: true) { ...InputValue } } } }
fragment FullType on __Type { kind name description specifiedByURL isOneOf
	fields(includeDeprecated: true) { name description args(includeDeprecated: true) { ...InputValue } type { ...TypeRef } isDeprecated deprecationReason }
	inputFields(includeDeprecated: true) { ...InputValue } interfaces { ...TypeRef }
	enumValues(includeDeprecated: true) { name description isDeprecated deprecationReason } possibleTypes { ...TypeRef } }
fragment InputValue on __InputValue { name description type { ...TypeRef } defaultValue isDeprecated deprecationReason }
fragment TypeRef on __Type { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name
	ofType { kind name ofType { kind name ofType { kind name ofType { kind name } } } } } } } } } }`
