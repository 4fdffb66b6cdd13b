package graph_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const createWith = `mutation($input: CreateJobInput!) { createJob(input: $input) { __typename } }`

// numbers are what a double would change, or refuse.
const numbers = `{"a":[0.1000000000000000055,9007199254740993,9007199254740992,1e400,-0,1.0,1,123456789012345678901234567890],"n":null,"s":"é😀"}`

const numbersInline = `{a: [0.1000000000000000055, 9007199254740993, 9007199254740992, 1e400, -0, 1.0, 1, 123456789012345678901234567890], n: null, s: "é\uD83D\uDE00"}`

func TestNumbersArriveExactly(t *testing.T) {
	t.Parallel()
	variables := `{"input":{"task":"triage","input":` + numbers + `}}`
	inline := `mutation { createJob(input: {task: "triage", input: ` + numbersInline + `}) { __typename } }`
	byDefault := `mutation($input: CreateJobInput! = {task: "triage", input: ` + numbersInline + `}) { createJob(input: $input) { __typename } }`
	jsonDefault := `mutation($j: JSON! = ` + numbersInline + `) { createJob(input: {task: "triage", input: $j}) { __typename } }`
	nested := `mutation($b: JSON, $s: String, $u: JSON) { createJob(input: {task: "triage", input:
		{a: [0.1000000000000000055, $b, 9007199254740992, 1e400, -0, 1.0, 1, 123456789012345678901234567890], n: null, s: $s, u: $u}}) { __typename } }`
	for name, send := range map[string]func(t *testing.T, b *bundle, query, variables string){
		"POST": func(t *testing.T, b *bundle, query, variables string) {
			require.Empty(t, b.post(t, asAlice, query, variables).Errors)
		},
		"SSE": func(t *testing.T, b *bundle, query, variables string) {
			next, _ := b.stream(t, asAlice, query, variables)
			e := next()
			require.Equal(t, "next", e.name)
			require.NotContains(t, e.data, "errors")
			require.Equal(t, "complete", next().name)
		},
		"WebSocket": func(t *testing.T, b *bundle, query, variables string) {
			s := b.open(t, asAlice)
			s.subscribe("1", query, variables)
			m := s.receive()
			require.Equal(t, "next", m.Type, string(m.Payload))
			require.NotContains(t, string(m.Payload), "errors")
			require.Equal(t, "complete", s.receive().Type)
		},
	} {
		for _, c := range []struct{ name, query, variables string }{
			{"variables", createWith, variables},
			{"inline", inline, ""},
			{"default", byDefault, ""},
			{"default of a part", jsonDefault, ""},
			{"variables inside of a literal", nested, `{"b":9007199254740993,"s":"é😀"}`},
		} {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				send(t, b, c.query, c.variables)
				require.Equal(t, numbers, string(b.jobs.only().Input)) //nolint:testifylint // digit by digit is the point
			})
		}
	}
}

func TestStoredNumbersComeBackExactly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	j := b.Job(t, alice, "k")
	for _, a := range []answer{
		b.post(t, asAlice, `query($id: ID!) { job(id: $id) { input } }`, `{"id":"`+j.ID+`"}`),
		b.get(t, asAlice, `query($id: ID!) { job(id: $id) { input } }`, `{"id":"`+j.ID+`"}`),
		b.get(t, asAlice, `{ job(id: "`+j.ID+`") { input } }`, ""),
	} {
		require.Contains(t, a.body, `{"n":9007199254740993}`)
	}
}

func TestLeftOutNullAndEmptyAreToldApart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, fields string
		none, empty  bool
	}{
		{name: "left out", fields: ``, none: true},
		{name: "null", fields: `,"fallbacks":null,"target":null,"hedgeAfterMs":null,"callbackUrl":null,"idempotencyKey":null`, none: true},
		{name: "empty", fields: `,"fallbacks":[]`, empty: true},
		{name: "one", fields: `,"fallbacks":["demo/fax"]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			a := b.post(t, asAlice, createWith, `{"input":{"task":"triage","input":{"x":null}`+c.fields+`}}`)
			require.Empty(t, a.Errors)
			in := b.jobs.only()
			require.Equal(t, `{"x":null}`, string(in.Input))
			require.Nil(t, in.Target)
			require.Nil(t, in.HedgeAfterMS)
			require.Nil(t, in.CallbackURL)
			require.Nil(t, in.IdempotencyKey)
			require.Equal(t, c.none, in.Fallbacks == nil)
			require.Equal(t, c.none || c.empty, len(in.Fallbacks) == 0)
		})
	}
}

func TestInlineEmptyFallbacksAreNotLeftOut(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a := b.post(t, asAlice, `mutation { createJob(input: {task: "triage", input: [], fallbacks: []}) { __typename } }`, "")
	require.Empty(t, a.Errors)
	require.NotNil(t, b.jobs.only().Fallbacks)
	require.Equal(t, "[]", string(b.jobs.only().Input))
}

func TestRefusesNullForTheWholeInput(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NotEmpty(t, b.post(t, asAlice, createWith, `{"input":{"task":"triage","input":null}}`).code())
	require.NotEmpty(t, b.post(t, asAlice, `mutation { createJob(input: {task: "triage", input: null}) { __typename } }`, "").code())
	require.Zero(t, b.jobs.calls)
}

func TestRefusesVariablesOfAnotherType(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, fields := range []string{
		`"idempotencyKey":5`, `"hedgeAfterMs":"5"`, `"hedgeAfterMs":5.5`, `"hedgeAfterMs":3000000000`, `"fallbacks":[1]`, `"target":true`,
	} {
		a := b.post(t, asAlice, createWith, `{"input":{"task":"triage","input":1,`+fields+`}}`)
		require.Equal(t, "GRAPHQL_VALIDATION_FAILED", a.code(), fields)
	}
	require.Zero(t, b.jobs.calls)
}

// malformed texts are found on the raw bytes: a decoder would pass over all but the last.
var malformed = map[string]string{
	"duplicate key":         `{"a":1,"a":2}`,
	"escaped duplicate key": `{"a":1,"\u0061":2}`,
	"lone surrogate":        `{"a":"\ud83d"}`,
	"invalid UTF-8":         "{\"a\":\"\xff\"}",
	"syntax":                `{"a":`,
}

func TestRefusesMalformedJSONAtEveryEntryPoint(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, text := range malformed {
		variables := `{"secret":"hunter2","input":{"task":"triage","input":` + text + `}}`
		require.Equal(t, name == "syntax", !strings.HasSuffix(text, "}"))

		a := b.post(t, asAlice, createWith, variables)
		require.Equal(t, http.StatusBadRequest, a.status, name)
		require.Equal(t, "INVALID_JSON", a.code(), name)
		require.NotContains(t, a.body, "hunter2")

		a = b.post(t, asAlice, createWith, variables, "Accept", "text/event-stream")
		require.Equal(t, http.StatusBadRequest, a.status, name)
		require.Equal(t, "INVALID_JSON", a.code(), name)

		for _, parameter := range []string{"variables", "extensions"} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
				b.url+"?"+url.Values{"query": {"{ viewer { subject } }"}, parameter: {text}}.Encode(), nil)
			require.NoError(t, err)
			r.Header.Set("Authorization", asAlice)
			a = b.do(t, r)
			require.Equal(t, http.StatusBadRequest, a.status, name)
			require.Equal(t, "INVALID_JSON", a.code(), name)
		}

		if name == "invalid UTF-8" {
			continue // the WebSocket library itself refuses it
		}
		s := b.open(t, asAlice)
		s.send(`{"id":"1","type":"subscribe","payload":` + request(createWith, variables) + `}`)
		if name == "syntax" {
			require.Equal(t, 4400, s.closed(), name)
			continue
		}
		m := s.receive()
		require.Equal(t, []string{"error", "1"}, []string{m.Type, m.ID}, name)
		require.Contains(t, string(m.Payload), `"code":"INVALID_JSON"`, name)
		require.NotContains(t, string(m.Payload), "hunter2")
		s.subscribe("1", "{ viewer { subject } }", "")
		require.Equal(t, "next", s.receive().Type, "the connection goes on, and the id is free")
	}
	require.Zero(t, b.jobs.calls)
}

func TestRefusesDuplicateKeysAndLoneSurrogatesInLiterals(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for literal, code := range map[string]string{
		`{a: 1, a: 2}`:             "GRAPHQL_VALIDATION_FAILED",
		`{o: {a: 1, a: 2}}`:        "GRAPHQL_VALIDATION_FAILED",
		`{a: "\uD83D"}`:            "INVALID_JSON",
		`{a: "\uD83Dx\uDE00"}`:     "INVALID_JSON",
		`{a: "\uDE00\uD83D"}`:      "INVALID_JSON",
		`{a: "\u{D83D}"}`:          "GRAPHQL_PARSE_FAILED",
		`{a: "\\\uDE00\uD83D"}`:    "INVALID_JSON",
		`{a: """x""" b: "\uDC00"}`: "INVALID_JSON",
	} {
		a := b.post(t, asAlice, `mutation { createJob(input: {task: "triage", input: `+literal+`}) { __typename } }`, "")
		require.Equal(t, code, a.code(), literal)
	}
	require.Zero(t, b.jobs.calls)
	a := b.post(t, asAlice, `mutation { createJob(input: {task: "t", input: ["\\uD83D", """\uD83D""", "\uD83D\uDE00"]}) { __typename } } # "\uD83D"`, "")
	require.Empty(t, a.Errors, a.body)
	require.Equal(t, `["\\uD83D","\\uD83D","😀"]`, string(b.jobs.only().Input))
}
