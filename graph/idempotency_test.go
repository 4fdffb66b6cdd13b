package graph_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const create = `mutation { createJob(input: {task: "triage", input: 1}) {
	__typename ... on InvalidInput { code issues { path message } } } }`

const createWithKey = `mutation { createJob(input: {task: "triage", input: 1, idempotencyKey: "in"}) {
	__typename ... on InvalidInput { code issues { path message } } } }`

func TestHeaderMayCarryTheKey(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, query string
		headers     []string
		key         string // "" means InvalidInput
	}{
		{name: "plain", query: create, headers: []string{"abc-123"}, key: "abc-123"},
		{name: "quoted", query: create, headers: []string{`"abc"`}, key: "abc"},
		{name: "quoted with escapes", query: create, headers: []string{`"a\"b\\c"`}, key: `a"b\c`},
		{name: "same as the input's", query: createWithKey, headers: []string{"in"}, key: "in"},
		{name: "quoted, same as the input's", query: createWithKey, headers: []string{`"in"`}, key: "in"},
		{name: "only the input's", query: createWithKey, key: "in"},
		{name: "differs", query: createWithKey, headers: []string{"other"}},
		{name: "empty", query: create, headers: []string{""}},
		{name: "two lines", query: create, headers: []string{"a", "a"}},
		{name: "open quote", query: create, headers: []string{`"abc`}},
		{name: "one quote", query: create, headers: []string{`"`}},
		{name: "bad escape", query: create, headers: []string{`"a\bc"`}},
		{name: "escape at the end", query: create, headers: []string{`"abc\"`}},
		{name: "parameters", query: create, headers: []string{`"abc";x=1`}},
		{name: "two through aliases", headers: []string{"abc"},
			query: `mutation { createJob(input: {task: "t", input: 1}) { __typename ... on InvalidInput { code issues { path } } }
				b: createJob(input: {task: "t", input: 1}) { __typename } }`},
		{name: "two through a fragment", headers: []string{"abc"},
			query: `mutation { ...F createJob(input: {task: "t", input: 1}) { __typename ... on InvalidInput { code issues { path } } } }
				fragment F on Mutation { b: createJob(input: {task: "t", input: 2}) { __typename } }`},
		{name: "one, the other is skipped", headers: []string{"abc"}, key: "abc",
			query: `mutation { createJob(input: {task: "t", input: 1}) { __typename }
				b: createJob(input: {task: "t", input: 1}) @skip(if: true) { __typename } c: createJob(input: {task: "t", input: 1}) @include(if: false) { __typename } }`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			var headers []string
			for _, h := range c.headers {
				headers = append(headers, "Idempotency-Key", h)
			}
			a := b.post(t, asAlice, c.query, "", headers...)
			if c.key == "" {
				require.Equal(t, "InvalidInput", a.at(t, "createJob", "__typename"), a.body)
				require.Equal(t, "INVALID_INPUT", a.at(t, "createJob", "code"))
				require.Equal(t, "/idempotencyKey", a.at(t, "createJob", "issues", 0, "path"))
				require.Zero(t, b.jobs.calls)
				return
			}
			require.Equal(t, "CreateJobSuccess", a.at(t, "createJob", "__typename"), a.body)
			require.Equal(t, c.key, *b.jobs.only().IdempotencyKey)
		})
	}
}

func TestHeaderIsIgnoredByWhatCreatesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.Empty(t, b.post(t, asAlice, `{ viewer { subject } }`, "", "Idempotency-Key", "").Errors)
}

func TestTraceContextIsTheRequests(t *testing.T) {
	t.Parallel()
	const given = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	b := setup(t)
	require.Empty(t, b.post(t, asAlice, createWithKey, "", "Traceparent", given).Errors)
	require.Equal(t, given, *b.jobs.only().Traceparent)

	for _, headers := range [][]string{nil, {"Traceparent", "nonsense"}, {"Traceparent", given, "Traceparent", given}} {
		b = setup(t)
		require.Empty(t, b.post(t, asAlice, createWithKey, "", headers...).Errors)
		require.Nil(t, b.jobs.only().Traceparent)
	}

	b = setup(t)
	next, _ := b.stream(t, asAlice, createWithKey, "", "Traceparent", given)
	require.Equal(t, "next", next().name)
	require.Equal(t, given, *b.jobs.only().Traceparent)

	b = setup(t) // a socket lives longer than one request
	s := b.dialWith(t, "Traceparent", given)
	s.send(`{"type":"connection_init","payload":{"Authorization":"` + asAlice + `"}}`)
	s.receive()
	s.subscribe("1", createWithKey, "")
	require.Equal(t, "next", s.receive().Type)
	require.Nil(t, b.jobs.only().Traceparent)
}

func TestHeaderOfAHandshakeIsIgnored(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.dialWith(t, "Idempotency-Key", "abc")
	s.send(`{"type":"connection_init","payload":{"Authorization":"` + asAlice + `"}}`)
	s.receive()
	s.subscribe("1", create, "")
	require.Equal(t, "next", s.receive().Type)
	require.Nil(t, b.jobs.only().IdempotencyKey)
}
