package acceptance

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// settled starts a gateway and makes one job, so that the owner and the task version are there before rows are counted.
func settled(t *testing.T, database string) (*gateway, *fake) {
	t.Helper()
	g, f := newGateway(t, settings{database: database})
	g.becomes(t, g.create(t, variables{"idempotencyKey": "first", "task": "echo", "input": variables{}}).ID, "SUCCEEDED")
	return g, f
}

func TestInvalidInputIsToldAndStoresNothing(t *testing.T) {
	t.Parallel()
	for name, fresh := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := fresh(t)
			g, f := settled(t, database)
			before := counts(t, database)
			good := func(change variables) variables {
				input := variables{"idempotencyKey": "k", "task": "echo", "input": variables{"text": "hello"}}
				for name, value := range change {
					input[name] = value
				}
				return input
			}
			for name, row := range map[string]struct {
				input variables
				path  string
			}{
				"no key":              {good(variables{"idempotencyKey": nil}), "/idempotencyKey"},
				"empty key":           {good(variables{"idempotencyKey": ""}), "/idempotencyKey"},
				"long key":            {good(variables{"idempotencyKey": strings.Repeat("k", 256)}), "/idempotencyKey"},
				"key not ASCII":       {good(variables{"idempotencyKey": "schlüssel"}), "/idempotencyKey"},
				"key with a control":  {good(variables{"idempotencyKey": "a\nb"}), "/idempotencyKey"},
				"key with NUL":        {good(variables{"idempotencyKey": "a\x00b"}), "/idempotencyKey"},
				"key with DEL":        {good(variables{"idempotencyKey": "a\x7f"}), "/idempotencyKey"},
				"unknown task":        {good(variables{"task": "nope"}), "/task"},
				"empty task":          {good(variables{"task": ""}), "/task"},
				"unknown target":      {good(variables{"target": "fake/nope"}), "/target"},
				"empty target":        {good(variables{"target": ""}), "/target"},
				"unknown fallback":    {good(variables{"fallbacks": []string{second, "nope/nope"}}), "/fallbacks/1"},
				"wrong input":         {good(variables{"input": variables{"text": 5}}), "/input/text"},
				"input of other type": {good(variables{"input": []int{1}}), "/input"},
				"input null":          {good(variables{"input": variables{"text": nil}}), "/input/text"},
				"large input":         {good(variables{"input": variables{"text": strings.Repeat("a", 300<<10)}}), "/input"},
				"negative hedge":      {good(variables{"hedgeAfterMs": -1}), "/hedgeAfterMs"},
				"callback":            {good(variables{"callbackUrl": "nowhere"}), "/callbackUrl"},
			} {
				o := outcomeOf(t, g.post(t, createMutation, variables{"input": row.input}))
				require.Equal(t, typeInvalid, o.Typename, "%s: %+v", name, o)
				code := "INVALID_INPUT"
				if name == "large input" { // a limit has a code of its own
					code = "INPUT_TOO_LARGE"
				}
				require.Equal(t, code, o.Code, name)
				require.NotEmpty(t, o.Message, name)
				var paths []string
				for _, i := range o.Issues {
					require.NotEmpty(t, i.Message, name)
					paths = append(paths, i.Path)
				}
				require.Contains(t, paths, row.path, name)
			}
			for name, number := range map[string]string{
				"exponent too large": "1e401", "exponent too small": "1e-401", "too many digits": strings.Repeat("1", 1001),
			} {
				res, err := g.send(t.Context(), raw("k", `{"n": `+number+`}`))
				require.NoError(t, err)
				o := outcomeOf(t, res)
				require.Equal(t, typeInvalid, o.Typename, name)
				require.Equal(t, "/input/n", o.Issues[0].Path, name)
			}
			require.Equal(t, before, counts(t, database))
			require.Len(t, f.sent(), 1)

			// The key was not used up, and at its bounds it is good.
			g.create(t, good(nil))
			longest := g.create(t, good(variables{"idempotencyKey": strings.Repeat("k", 255)}))
			g.create(t, good(variables{"idempotencyKey": " ~"}))
			require.Equal(t, longest.ID, g.jobByKey(t, strings.Repeat("k", 255)).ID)
		})
	}
}

// deep has n selection sets inside of each other.
func deep(n int) string { return strings.Repeat("{jobs", n-1) + "{id" + strings.Repeat("}", n) }

func TestMalformedRequestIsToldAndStoresNothing(t *testing.T) {
	t.Parallel()
	for name, fresh := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := fresh(t)
			g, f := settled(t, database)
			before := counts(t, database)
			where := func(levels int) string {
				return `{jobs(where: ` + strings.Repeat("{not: ", levels) + `{task: "echo"}` + strings.Repeat("}", levels) + `){totalCount}}`
			}
			create := "mutation($input: CreateJobInput!){createJob(input: $input){" + created + "}}"
			for name, row := range map[string]struct {
				text    string
				code    string
				status  int
				headers []string
			}{
				"large body":           {text: string(body(create, variables{"input": strings.Repeat("a", 10<<20)})), code: "BODY_TOO_LARGE", status: 413},
				"malformed JSON":       {text: `{"query": "{viewer{subject}}"`, code: "INVALID_JSON", status: 400},
				"two documents":        {text: `{"query": "{viewer{subject}}"} {}`, code: "INVALID_JSON", status: 400},
				"empty body":           {text: ``, code: "INVALID_JSON", status: 400},
				"not an object":        {text: `[1]`, code: "BAD_REQUEST", status: 400},
				"no query":             {text: `{}`, code: "BAD_REQUEST", status: 400},
				"query of other type":  {text: `{"query": 5}`, code: "BAD_REQUEST", status: 400},
				"variables no object":  {text: `{"query": "{viewer{subject}}", "variables": [1]}`, code: "BAD_REQUEST", status: 400},
				"invalid UTF-8":        {text: "{\"query\": \"{viewer{subject}}\", \"operationName\": \"\xff\"}", code: "INVALID_JSON", status: 400},
				"lone surrogate":       {text: `{"query": "{viewer{subject}}", "operationName": "\udead"}`, code: "INVALID_JSON", status: 400},
				"form":                 {text: `query=x`, code: "UNSUPPORTED_MEDIA_TYPE", status: 415, headers: []string{"Content-Type", "application/x-www-form-urlencoded"}},
				"no GraphQL":           {text: string(body("createJob!", nil)), code: "GRAPHQL_PARSE_FAILED"},
				"unknown field":        {text: string(body("{nope}", nil)), code: "GRAPHQL_VALIDATION_FAILED"},
				"unknown input field":  {text: string(body(create, variables{"input": variables{"nope": 1, "task": "echo", "input": variables{}}})), code: "GRAPHQL_VALIDATION_FAILED"},
				"key of other type":    {text: string(body(create, variables{"input": variables{"idempotencyKey": 5, "task": "echo", "input": variables{}}})), code: "GRAPHQL_VALIDATION_FAILED"},
				"a thousand levels":    {text: string(body(deep(1000), nil)), code: "QUERY_TOO_DEEP"},
				"forty levels":         {text: string(body(deep(40), nil)), code: "QUERY_TOO_DEEP"},
				"ten thousand levels":  {text: string(body(deep(10_000), nil))},
				"a filter, deep":       {text: string(body(where(50), nil)), code: "FILTER_TOO_DEEP"},
				"many aliases":         {text: string(body(aliased(101), variables{"input": variables{}})), code: "TOO_MANY_ALIASES"},
				"many tokens":          {text: string(body("{"+strings.Repeat("viewer{subject} ", 20_000)+"}", nil)), code: "TOO_MANY_TOKENS"},
				"literals nested deep": {text: string(body(`mutation{createJob(input: {idempotencyKey: "k", task: "echo", input: `+strings.Repeat("[", 5000)+strings.Repeat("]", 5000)+`}){__typename}}`, nil))},
				"JSON nested deep":     {text: string(raw("k", strings.Repeat(`{"a":`, 20_000)+"1"+strings.Repeat("}", 20_000)))},
			} {
				res, err := g.send(t.Context(), []byte(row.text), row.headers...)
				require.NoError(t, err, name)
				require.Nil(t, res.Data["createJob"], name)
				require.NotEmpty(t, res.Errors, name)
				for _, e := range res.Errors {
					require.NotEmpty(t, e.Message, name)
					require.NotEmpty(t, e.Extensions.Code, name)
					require.NotEqual(t, "INTERNAL", e.Extensions.Code, name)
					require.Less(t, len(e.Message), 1000, name)
				}
				if row.code != "" {
					require.Contains(t, res.codes(), row.code, name)
				}
				if row.status != 0 {
					require.Equal(t, row.status, res.status, name)
				}
			}
			require.Equal(t, before, counts(t, database))
			require.Len(t, f.sent(), 1)
			require.Equal(t, http.StatusOK, g.getStatus(t, "/readyz"))
		})
	}
}

func TestUnauthenticatedRequestIsToldAndStoresNothing(t *testing.T) {
	t.Parallel()
	for name, fresh := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := fresh(t)
			g, _ := settled(t, database)
			before := counts(t, database)
			for _, subject := range []string{":operator", "alice:admin", " ", "alice:operator:operator", strings.Repeat("a", 300)} {
				res := g.as(subject).post(t, createMutation, variables{"input": intent("k")})
				require.Equal(t, []string{"UNAUTHENTICATED"}, slices.Compact(res.codes()), "%q: %s", subject, res.text)
				require.Equal(t, http.StatusUnauthorized, res.status, "%q", subject)
				_, err := g.as(subject).dial(t.Context())
				require.ErrorContains(t, err, "4403", "%q", subject)
			}
			require.Equal(t, before, counts(t, database), fmt.Sprint(before))
		})
	}
}
