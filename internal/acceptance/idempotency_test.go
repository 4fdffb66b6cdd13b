package acceptance

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const many = 200

// together runs f n times at once and returns what all brought.
func together(t *testing.T, n int, f func(ctx context.Context, i int) ([]outcome, error)) []outcome {
	t.Helper()
	var (
		start = make(chan struct{})
		mu    sync.Mutex
		all   []outcome
		errs  []error
		wait  sync.WaitGroup
	)
	for i := range n {
		wait.Go(func() {
			<-start
			out, err := f(t.Context(), i)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, out...)
			if err != nil {
				errs = append(errs, err)
			}
		})
	}
	close(start)
	wait.Wait()
	require.Empty(t, errs)
	return all
}

// outcomes decodes all root fields of an answer.
func outcomes(r response, err error) ([]outcome, error) {
	if err != nil {
		return nil, err
	}
	if len(r.Errors) > 0 {
		return nil, fmt.Errorf("%s", r.text)
	}
	var out []outcome
	for _, raw := range r.Data {
		var o outcome
		if err := json.Unmarshal(raw, &o); err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

// outcomeOf is what a createJob came to.
func outcomeOf(t *testing.T, r response) outcome {
	t.Helper()
	require.Empty(t, r.Errors, r.text)
	return decode[outcome](t, r.Data["createJob"])
}

// requireOneJob fails unless all are answers of one job that exactly one of them made. It returns the job's id.
func requireOneJob(t *testing.T, all []outcome) string {
	t.Helper()
	made := 0
	for _, o := range all {
		require.Equal(t, typeCreated, o.Typename, "%+v", o)
		require.Equal(t, all[0].Job.ID, o.Job.ID)
		if !o.Replayed {
			made++
		}
	}
	require.Equal(t, 1, made, "answers with replayed: false")
	return all[0].Job.ID
}

// aliased is one document with n createJobs of the same input.
func aliased(n int) string {
	var b strings.Builder
	b.WriteString("mutation($input: CreateJobInput!){")
	for i := range n {
		fmt.Fprintf(&b, "a%d: createJob(input: $input){ __typename ...on CreateJobSuccess{replayed job{id}} ...on UserError{code message} }\n", i)
	}
	return b.String() + "}"
}

// raw is a createJob request whose input is the text as it stands.
func raw(key, input string) []byte {
	return fmt.Appendf(nil, `{"query": %q, "variables": {"input": {"task": "echo", "idempotencyKey": %q, "input": %s}}}`, createMutation, key, input)
}

func TestFingerprintsAreCanonical(t *testing.T) {
	t.Parallel()
	for name, fresh := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := fresh(t)
			g, _ := newGateway(t, settings{database: database})
			create := func(t *testing.T, key, input string) outcome {
				t.Helper()
				all, err := outcomes(g.send(t.Context(), raw(key, input)))
				require.NoError(t, err)
				return all[0]
			}
			for i, row := range []struct {
				name, first, again string
				same               bool
			}{
				{"key order", `{"a": 1, "b": {"c": 2, "d": 3}}`, `{"b": {"d": 3, "c": 2}, "a": 1}`, true},
				{"white space", `{"a":[1,2]}`, "{ \"a\" :\n[ 1 , 2 ] }", true},
				{"1 and 1.0", `{"n": 1}`, `{"n": 1.0}`, true},
				{"1 and 1e0", `{"n": 1}`, `{"n": 1e0}`, true},
				{"0 and -0", `{"n": 0}`, `{"n": -0}`, true},
				{"escapes", `{"s": "a/é"}`, `{"s": "\u0061\/\u00e9"}`, true},
				{"beyond a double", `{"n": 9007199254740993}`, `{"n": 9007199254740992}`, false},
				{"many digits", `{"n": 0.1}`, `{"n": 0.1000000000000000055}`, false},
				{"array order", `{"a": [1, 2]}`, `{"a": [2, 1]}`, false},
				{"number and string", `{"n": 1}`, `{"n": "1"}`, false},
				{"null and left out", `{"n": null}`, `{}`, false},
				{"Unicode forms", "{\"s\": \"\u00e9\"}", "{\"s\": \"e\u0301\"}", false},
			} {
				key := fmt.Sprintf("row %d", i)
				first, again := create(t, key, row.first), create(t, key, row.again)
				require.Equal(t, typeCreated, first.Typename, row.name)
				require.False(t, first.Replayed, row.name)
				require.Equal(t, first.Job.ID, again.Job.ID, row.name)
				require.Equal(t, row.same, again.Typename == typeCreated && again.Replayed, row.name)
				require.Equal(t, !row.same, again.Typename == typeConflict, row.name)
			}

			// Literals in the document are the same values as variables.
			res, err := g.send(t.Context(), body(`mutation{createJob(input: {idempotencyKey: "row 6", task: "echo", input: {n: 9007199254740993}}){`+created+`}}`, nil))
			all, err := outcomes(res, err)
			require.NoError(t, err)
			require.True(t, all[0].Replayed)
			require.JSONEq(t, `{"n": 9007199254740993}`, string(all[0].Job.Input))
			require.Contains(t, string(all[0].Job.Input), "9007199254740993", "no digit is lost on the way back")
		})
	}
}

func TestAmbiguousJSONIsRefusedAtEveryEntry(t *testing.T) {
	t.Parallel()
	for name, fresh := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := fresh(t)
			g, f := newGateway(t, settings{database: database})
			before := counts(t, database)
			for name, input := range map[string]string{
				"duplicate keys":             `{"a": 1, "a": 2}`,
				"duplicate keys, equal":      `{"a": {"b": 1, "b": 1}}`,
				"duplicate keys, by escapes": `{"a": 1, "\u0061": 2}`,
				"lone high surrogate":        `{"a": "\ud800"}`,
				"lone low surrogate":         `{"a": "\udc00x"}`,
				"lone surrogate as a key":    `{"\ud83d": 1}`,
				"invalid UTF-8":              "{\"a\": \"\xff\"}",
				"truncated UTF-8":            "{\"a\": \"\xc3\"}",
				"not JSON":                   `{"a": }`,
			} {
				text := raw("k", input)
				res, err := g.send(t.Context(), text)
				require.NoError(t, err)
				require.Equal(t, []string{"INVALID_JSON"}, res.codes(), name)
				require.Equal(t, http.StatusBadRequest, res.status, name)
				require.Nil(t, res.Data["createJob"], name)

				res, err = g.send(t.Context(), text, "Accept", "text/event-stream, application/json;q=0.1")
				require.NoError(t, err)
				require.Equal(t, []string{"INVALID_JSON"}, res.codes(), name)

				requireSocketRefuses(t, g.client, text, name)
			}
			res := g.post(t, `mutation{createJob(input: {idempotencyKey: "k", task: "echo", input: {a: 1, a: 2}}){`+created+`}}`, nil)
			require.Contains(t, res.codes(), "GRAPHQL_VALIDATION_FAILED")
			res = g.post(t, `mutation{createJob(input: {idempotencyKey: "k", task: "echo", input: {a: "\ud800"}}){`+created+`}}`, nil)
			require.Equal(t, []string{"INVALID_JSON"}, res.codes())
			require.Equal(t, before, counts(t, database))
			require.Empty(t, f.sent())
		})
	}
}
