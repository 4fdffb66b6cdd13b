package graph_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/lexer"

	"github.com/docket-gateway/docket/graph"
)

// secrets are what a client may have written; none may come back in an error.
var secrets = []string{"CANARY", "98765432123"}

func requireNoEcho(t *testing.T, request string, errs any) {
	t.Helper()
	text, err := json.Marshal(errs)
	require.NoError(t, err)
	for _, s := range secrets {
		require.NotContains(t, string(text), s, request)
	}
	require.Less(t, len(text), 16<<10, "it is bounded")
}

// Each message of the parser and of a rule that quotes what stands in the document.
func TestErrorsDoNotRepeatValues(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for query, says := range map[string]string{
		`"CANARY"`:                                      "Unexpected <EOF>",
		`"""CANARY""" { viewer { subject } }`:           "Unexpected BlockString",
		`{ viewer "CANARY" }`:                           "Expected Name, found String",
		`{ viewer CANARY: }`:                            "Expected Name, found }",
		`CANARY { a }`:                                  "Unexpected Name",
		`fragment F CANARY { a }`:                       `Expected "on", found Name`,
		`{ a(b: 98765432123x) }`:                        "", // two tokens, to this parser
		`{ a(b: 0CANARY) }`:                             "",
		`{ a(b: "\uZZCANARY") }`:                        "Unexpected <Invalid>",
		`{ a(b: "\qCANARY") }`:                          "Unexpected <Invalid>",
		`{ a(b: "CANARY`:                                "Unexpected <Invalid>",
		"{ a(b: \"CANARY\x01\") }":                      "Unexpected <Invalid>",
		`{ a(b: 'CANARY') }`:                            "Unexpected <Invalid>",
		`{ a(b: ?CANARY) }`:                             "Unexpected <Invalid>",
		`{ a(b: 1.CANARY) }`:                            "Unexpected <Invalid>",
		`{ jobs(first: "CANARY") { totalCount } }`:      "Int cannot represent non-integer value: <string>",
		`{ jobs(first: CANARY) { totalCount } }`:        "Int cannot represent non-integer value: <enum value>",
		`{ jobs(first: 98765432123.5) { totalCount } }`: "Int cannot represent non-integer value: <number>",
		`{ jobs(first: {b: "CANARY", a: [98765432123]}) { totalCount } }`:                 `Field "b" is not defined by type "Int"`,
		`{ jobs(first: ["CANARY", {a: CANARY}]) { totalCount } }`:                         "Int cannot represent non-integer value: <list>",
		`{ jobs(first: 98765432123) { totalCount } }`:                                     "an Int must be from",
		`{ job(id: CANARY) { id } }`:                                                      "ID cannot represent a non-string and non-integer value: <enum value>",
		`{ job(id: 98765432123.5) { id } }`:                                               "ID cannot represent",
		`{ jobByKey(idempotencyKey: 98765432123) { id } }`:                                "String cannot represent a non string value: <number>",
		`{ jobs(where: {state: "CANARY"}) { totalCount } }`:                               `Enum "JobState" cannot represent non-enum value: <string>`,
		`{ jobs(where: {state: CANARY}) { totalCount } }`:                                 `Value <enum value> does not exist in "JobState" enum`,
		`{ jobs(where: {state: 98765432123}) { totalCount } }`:                            `Enum "JobState" cannot represent non-enum value: <number>`,
		`{ jobs(where: "CANARY") { totalCount } }`:                                        `Expected value of type "JobWhereInput", found <string>`,
		`{ jobs(where: [["CANARY"]]) { totalCount } }`:                                    "found <list>",
		`{ viewer @include(if: "CANARY") { subject } }`:                                   "Boolean cannot represent a non boolean value: <string>",
		`{ ... @skip(if: CANARY) { viewer { subject } } }`:                                "Boolean cannot represent a non boolean value: <enum value>",
		`{ ...F @skip(if: "CANARY") } fragment F on Query { viewer { subject } }`:         "<string>",
		`query($n: Int = "CANARY") { jobs(first: $n) { totalCount } }`:                    "<string>",
		`query($n: Int @skip(if: "CANARY")) { jobs(first: $n) { totalCount } }`:           "",
		`mutation { createJob(input: {task: 98765432123, input: 1}) { __typename } }`:     "<number>",
		`mutation { createJob(input: {task: "t", input: {x: [CANARY]}}) { __typename } }`: "a scalar has no enum values",
		`{ a: job(id: "CANARY") { id } a: job(id: "CANARY2") { id } }`:                    "they have differing arguments",
		`{ jobs(after: "CANARY") { totalCount } }`:                                        "",
		`{ jobs(where: {createdAt: "CANARY"}) { totalCount } }`:                           "",
		`{ jobs(where: {createdAt: 98765432123}) { totalCount } }`:                        "",
		`{ jobs(where: {taskContains: "CANARY\u0000"}) { totalCount } }`:                  "NUL",
		`{ jobs(first: -98765432) { totalCount } }`:                                       "a page cannot",
	} {
		a := b.post(t, asAlice, query, "")
		require.NotEmpty(t, a.Errors, query)
		requireNoEcho(t, query, a.Errors)
		require.NotEmpty(t, a.code(), query)
		require.Contains(t, a.Errors[0].Message, says, query)
	}

	// Without suggestions there are other rules.
	quiet := setup(t, func(o *graph.Options) { o.NoIntrospection = true })
	for _, query := range []string{
		`{ jobs(first: CANARY) { totalCount } }`, `{ jobs(where: {state: CANARY}) { totalCount } }`, `{ jobs(where: {state: "CANARY"}) { totalCount } }`,
	} {
		a := quiet.post(t, asAlice, query, "")
		require.Equal(t, "GRAPHQL_VALIDATION_FAILED", a.code())
		requireNoEcho(t, query, a.Errors)
	}
}

func TestErrorsAreBoundedWhateverTheClientSends(t *testing.T) {
	t.Parallel()
	b := setup(t)
	long := strings.Repeat("S", 900_000)
	many := strings.Repeat(" a", 5000)
	for query, variables := range map[string]string{
		`{ jobs(first: "` + long + `") { totalCount } }`: "",
		`{ ` + long + ` }`: "",
		`{ ` + strings.Repeat("x"+long[:400]+" ", 100) + ` }`:                                    "",
		`{ viewer {` + many[:4000] + `} }`:                                                       "",
		`query($` + long + `: Int!) { viewer { subject } }`:                                      "",
		`query($` + long[:9000] + `: Int!) { jobs(first: $` + long[:9000] + `) { totalCount } }`: `{}`,
		`query($` + long[:9000] + `: Int) { jobs(first: $` + long[:9000] + `) { totalCount } }`:  `{"` + long[:9000] + `":"x"}`,
		`{ viewer { ...` + long + ` } }`:                                                         "",
		`{ viewer @` + long + ` { subject } }`:                                                   "",
		`{ jobs(` + long + `: 1) { totalCount } }`:                                               "",
		`{ jobs(first: {` + long + `: 1}) { totalCount } }`:                                      "",
		`query($w: JobWhereInput) { jobs(where: $w) { totalCount } }`:                            `{"w":{"` + long + `":1}}`,
		`query($w: JobWhereInput!) { jobs(where: $w) { totalCount } }`:                           `{"w":{"CANARY is no name":1}}`,
		`query($w: JobState) { jobs(where: {state: $w}) { totalCount } }`:                        `{"w":"` + long + `"}`,
		`query($w: Int) { jobs(first: $w) { totalCount } }`:                                      `{"w":"` + long + `"}`,
	} {
		a := b.post(t, asAlice, query, variables)
		require.NotEmpty(t, a.Errors)
		require.NotEmpty(t, a.code())
		require.Less(t, len(a.body), 16<<10, "%.60s: %.300s", query, a.body)
		require.NotContains(t, a.body, "SSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSS")
		requireNoEcho(t, query[:40], a.Errors)
	}
}

// canaries are literals of every kind. A name among the values is one too.
var canaries = []string{
	`"CANARY"`, `"""CANARY"""`, `98765432123`, `-98765432123.5`, `9.8765432123e9`, `CANARY`, `["CANARY"]`, `{a: "CANARY"}`, `[98765432123, CANARY]`, `"CANARY\u0000"`,
}

// A canary in the place of every literal of documents that use every kind of argument, valid there or not.
func TestNoLiteralOfADocumentComesBackInAnError(t *testing.T) {
	t.Parallel()
	b := setup(t)
	j := b.Job(t, alice, "k")
	for _, document := range []string{
		`query($n: Int = 5, $on: Boolean = true) {
			jobs(first: 3, after: null, orderBy: {direction: ASC, field: CREATED_AT},
				where: {not: {state: FAILED}, or: [{task: "x", createdAtGT: "2020-01-02T03:04:05Z"}, {stateIn: [QUEUED, RUNNING], version: 3}]}) {
				edges { node @include(if: true) { id events(after: 0, first: 7) { number } } }
			}
			attempts(first: $n, where: {number: 1}) { totalCount }
			job(id: "` + j.ID + `") @skip(if: false) { id }
			jobByKey(idempotencyKey: "k") { id ... @include(if: $on) { state } }
			nodes(ids: ["` + j.ID + `"]) { id }
			targets(task: "triage") { id }
		}`,
		`mutation { startAttempt(input: {jobId: "` + j.ID + `", target: "demo/laser"}) { __typename } }`,
		`mutation { resolveAttempt(input: {attemptId: "att_01h455vb4pex5vsknk084sn02q", outcome: FAILED, note: "n"}) { __typename } }`,
		`mutation { createJob(input: {idempotencyKey: "other", task: "triage", input: {a: [1, "b", 2.5, true, null]}, fallbacks: ["demo/laser"], hedgeAfterMs: 5}) { __typename } }`,
	} {
		require.Empty(t, b.post(t, asOperator, document, "").Errors)
		literals := 0
		tokens := lexer.New(&ast.Source{Input: document})
		for {
			token, err := tokens.ReadToken()
			require.NoError(t, err)
			if token.Kind == lexer.EOF {
				break
			}
			literal := token.Kind == lexer.String || token.Kind == lexer.Int || token.Kind == lexer.Float ||
				token.Kind == lexer.Name && slices.Contains(strings.Fields("true false null ASC FAILED QUEUED RUNNING CREATED_AT"), token.Value)
			if !literal {
				continue
			}
			literals++
			for _, canary := range canaries {
				query := document[:token.Pos.Start] + canary + document[token.Pos.End:]
				requireNoEcho(t, query, b.post(t, asOperator, query, "").Errors)
			}
		}
		require.Greater(t, literals, 1)
	}
}

// And in every place of the variables.
func TestNoVariableComesBackInAnError(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for query, variables := range map[string]string{
		`query($v: JobWhereInput) { jobs(where: $v) { totalCount } }`: `{"v":<{"not":<{"state":<"FAILED">}>,"or":[<{"task":<"x">,"createdAtGT":<"2020-01-02T03:04:05Z">}>,{"stateIn":<[<"QUEUED">]>,"version":<1>}]}>}`,
		`query($v: JobOrder) { jobs(orderBy: $v) { totalCount } }`:    `{"v":<{"direction":<"ASC">,"field":<"CREATED_AT">}>}`,
		`query($a: Int, $b: Cursor, $c: ID!, $d: String!, $e: Int) { jobs(first: $a, after: $b) { totalCount } job(id: $c) { id events(after: $e) { number } } jobByKey(idempotencyKey: $d) { id } }`: `{"a":<1>,"b":<null>,"c":<"x">,"d":<"x">,"e":<1>}`,
		`mutation($v: ResolveAttemptInput!) { resolveAttempt(input: $v) { __typename } }`:                                                                                                             `{"v":<{"attemptId":<"x">,"outcome":<"FAILED">,"note":<"n">,"result":<1>}>}`,
		`mutation($v: CreateJobInput!) { createJob(input: $v) { __typename } }`:                                                                                                                       `{"v":<{"task":<"triage">,"input":<1>,"fallbacks":<[<"x">]>,"hedgeAfterMs":<1>}>}`,
	} {
		plain := strings.NewReplacer("<", "", ">", "")
		require.Empty(t, b.post(t, asOperator, query, plain.Replace(variables)).Errors, query)
		for at, c := range variables {
			if c != '<' {
				continue
			}
			end, depth := at, 0
			for depth++; depth > 0; {
				end++
				switch variables[end] {
				case '<':
					depth++
				case '>':
					depth--
				}
			}
			for _, canary := range []string{
				`"CANARY"`, `98765432123`, `9876543212.35e9`, `["CANARY"]`, `{"CANARY?":1}`, `{"a":"CANARY"}`, `"CANARY\u0000"`, `"` + strings.Repeat("CANARY", 3000) + `"`,
			} {
				given := plain.Replace(variables[:at]) + canary + plain.Replace(variables[end:])
				requireNoEcho(t, query+given, b.post(t, asOperator, query, given).Errors)
			}
		}
	}
}
