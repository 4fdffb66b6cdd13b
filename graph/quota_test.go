package graph_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/graph"
	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/quota"
)

// limited is an endpoint whose owners have these limits.
func limited(t *testing.T, l quota.Limits, change ...func(*graph.Options)) *bundle {
	t.Helper()
	q, err := quota.New(l, nil, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return setup(t, append(change, func(o *graph.Options) { o.Transport.Limiter = q })...)
}

const who = `{ viewer { subject } }`

var overStream = []string{"Accept", "text/event-stream"}

func TestTheRateOfAnOwnerIsBoundedOnEveryTransport(t *testing.T) {
	t.Parallel()
	b := limited(t, quota.Limits{PerMinute: 1, Burst: 3}) // none is given back while the test runs
	s := b.open(t, asAlice)
	create := `{"input":{"idempotencyKey":"k","task":"triage","input":{}}}`
	require.NotEmpty(t, b.post(t, asAlice, createWith, create).at(t, "createJob"))
	require.NotEmpty(t, b.post(t, asAlice, `{`, "").code(), "what is malformed counts too")
	s.subscribe("1", who, "")
	require.Equal(t, "next", s.receive().Type)
	require.Equal(t, "complete", s.receive().Type)

	calls := b.jobs.calls
	for name, a := range map[string]answer{
		"a replay":     b.post(t, asAlice, createWith, create),
		"GET":          b.get(t, asAlice, who, ""),
		"stream":       b.post(t, asAlice, who, "", overStream...),
		"another type": b.post(t, asAlice, who, "", "Accept", "application/graphql-response+json"),
		"a large body": b.post(t, asAlice, who, `{"x":"`+strings.Repeat("x", 1<<20-200)+`"}`),
	} {
		require.Equal(t, http.StatusTooManyRequests, a.status, name)
		require.Equal(t, "RATE_LIMITED", a.code(), name)
		wait, err := strconv.Atoi(a.header.Get("Retry-After"))
		require.NoError(t, err, name)
		require.Greater(t, wait, 30)
		require.LessOrEqual(t, wait, 60)
		require.Contains(t, a.body, `"retryAfterMs":`)
		require.NotContains(t, a.body, `"data"`)
	}
	require.Equal(t, calls, b.jobs.calls, "nothing ran")

	s.subscribe("2", createWith, create)
	m := s.receive()
	require.Equal(t, "error", m.Type)
	require.Equal(t, "2", m.ID)
	require.Contains(t, string(m.Payload), `"RATE_LIMITED"`)
	require.Contains(t, string(m.Payload), `"retryAfterMs":`)
	s.send(`{"type":"ping"}`)
	require.Equal(t, "pong", s.receive().Type, "the socket goes on")
	require.Equal(t, calls, b.jobs.calls)

	require.Equal(t, "mallory", b.post(t, asMallory, who, "").at(t, "viewer", "subject"))
}

// Each counts once, on its own.
func TestWhatIsRefusedBeforeItRunsCountsToo(t *testing.T) {
	t.Parallel()
	over := func(t *testing.T, payload string) func(*bundle) string {
		t.Helper()
		var s *socket
		return func(b *bundle) string {
			if s == nil {
				s = b.open(t, asAlice)
			}
			s.send(`{"type":"subscribe","id":"1","payload":` + payload + `}`)
			m := s.receive()
			require.Equal(t, "error", m.Type)
			require.Equal(t, "1", m.ID)
			var errs []struct{ Extensions struct{ Code string } }
			require.NoError(t, json.Unmarshal(m.Payload, &errs))
			return errs[0].Extensions.Code
		}
	}
	for name, c := range map[string]struct {
		code string
		ask  func(b *bundle) string
	}{
		"NotAcceptable": {"NOT_ACCEPTABLE", func(b *bundle) string { return b.post(t, asAlice, who, "", "Accept", "text/html").code() }},
		"InvalidJSON":   {"INVALID_JSON", func(b *bundle) string { return b.raw(t, asAlice, `{"query":"","query":""}`).code() }},
		"NoQuery":       {"BAD_REQUEST", func(b *bundle) string { return b.raw(t, asAlice, `{}`).code() }},
		"DuplicateKeys": {"INVALID_JSON", over(t, `{"query":"{a}","query":"{b}"}`)},
		"LoneSurrogate": {"INVALID_JSON", over(t, `{"query":"\ud800"}`)},
		"Unparsable":    {"GRAPHQL_PARSE_FAILED", over(t, `{"query":"{"}`)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := limited(t, quota.Limits{PerMinute: 1, Burst: 2})
			require.Equal(t, c.code, c.ask(b))
			require.Equal(t, c.code, c.ask(b))
			require.Equal(t, "RATE_LIMITED", c.ask(b))
		})
	}
}

func TestTheSocketsOfAnOwnerAreBounded(t *testing.T) {
	t.Parallel()
	b := limited(t, quota.Limits{Sockets: 2})
	j := b.Job(t, alice, "k")
	first := b.open(t, asAlice)
	next, stop := b.stream(t, asAlice, watchEvents, `{"id":"`+j.ID+`"}`)
	require.Equal(t, "next", next().name)

	// A socket that makes room does so a moment after its client has left.
	open := func(t *testing.T) *socket {
		t.Helper()
		s := b.dial(t, "graphql-transport-ws")
		s.send(greeting)
		_, _, err := s.conn.Read(s.ctx)
		if err == nil {
			return s
		}
		require.EqualValues(t, 4430, websocket.CloseStatus(err))
		require.ErrorContains(t, err, "Too many sockets")
		return nil
	}
	require.Nil(t, open(t))
	a := b.post(t, asAlice, who, "", overStream...)
	require.Equal(t, http.StatusTooManyRequests, a.status)
	require.Equal(t, "TOO_MANY_SOCKETS", a.code())
	require.Equal(t, "alice", b.post(t, asAlice, who, "").at(t, "viewer", "subject"), "single requests are no sockets")
	b.open(t, asMallory)

	stop()
	var second *socket
	await.Until(t, "a stream that ends makes room", func() bool { second = open(t); return second != nil })
	require.Nil(t, open(t))
	_ = first.conn.Close(1000, "")
	await.Until(t, "and a socket too", func() bool { return open(t) != nil })
	second.subscribe("1", who, "")
	require.Equal(t, "next", second.receive().Type)
}

func TestConnectionsEndAtTheirAge(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *graph.Options) { o.Transport.Lifetime = 100 * time.Millisecond })
	j := b.Job(t, alice, "k")
	s := b.open(t, asAlice)
	_ = s.conn.Write(s.ctx, websocket.MessageText, []byte(`{"id":"1","type":"subscribe","payload":`+request(watchEvents, `{"id":"`+j.ID+`"}`)+`}`))
	for { // a slow machine may be too late for the first event
		_, _, err := s.conn.Read(s.ctx)
		if err == nil {
			continue
		}
		require.EqualValues(t, 4410, websocket.CloseStatus(err))
		require.ErrorContains(t, err, "Socket lifetime over")
		break
	}
	began := time.Now()
	next, _ := b.stream(t, asAlice, watchEvents, `{"id":"`+j.ID+`"}`)
	e := next()
	for e.name == "next" {
		e = next()
	}
	require.Equal(t, "EOF", e.name, "a client takes `complete` for the end of the job")
	require.Less(t, time.Since(began), await.Patience, "or the client has ended it")

	// Both may come back.
	b.stream(t, asAlice, watchEvents, `{"id":"`+j.ID+`"}`)
	b.open(t, asAlice)
}

// What is refused before it is executed has one code, whatever brought it.
func TestLimitsOfAnOperationHoldOnEveryTransport(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *graph.Options) {
		o.Limits.Depth, o.Limits.Tokens, o.Limits.Aliases, o.Limits.Complexity = 5, 60, 2, 100
	})
	s := b.open(t, asAlice)
	n := 0
	for query, code := range map[string]string{
		`{ jobs { edges { node { attempts { job { id } } } } } }`:                             "QUERY_TOO_DEEP",
		`{ viewer { subject } ` + strings.Repeat("a ", 60) + `}`:                              "TOO_MANY_TOKENS",
		`{ a: viewer { subject } b: viewer { subject } c: viewer { subject } }`:               "TOO_MANY_ALIASES",
		`{ jobs(first: 99) { edges { node { id state } } } }`:                                 "QUERY_TOO_COMPLEX",
		`{ jobs(where: {taskContains: "` + strings.Repeat("x", 1001) + `"}) { totalCount } }`: "FILTER_TOO_LARGE",
	} {
		require.Equal(t, code, b.post(t, asAlice, query, "").code(), query)
		require.Equal(t, code, b.get(t, asAlice, query, "").code(), query)
		next, _ := b.stream(t, asAlice, query, "")
		require.Contains(t, next().data, `"`+code+`"`)
		require.Equal(t, "complete", next().name)
		n++
		s.subscribe(strconv.Itoa(n), query, "")
		m := s.receive()
		require.Equal(t, "error", m.Type)
		require.Contains(t, string(m.Payload), `"`+code+`"`)
	}
}

func TestWithoutIntrospectionTheSchemaIsNotTold(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *graph.Options) { o.NoIntrospection = true })
	s := b.open(t, asAlice)
	for i, query := range []string{
		introspection, `{ __schema { queryType { name } } }`, `{ a: __type(name: "Job") { name } }`,
		`{ ...F } fragment F on Query { ... on Query { __type(name: "Job") { name } } }`,
		`query A { viewer { subject } } query B { __schema { queryType { name } } }`,
	} {
		a := b.raw(t, asAlice, `{"query":`+strconv.Quote(query)+`,"operationName":null}`)
		require.Equal(t, "INTROSPECTION_DISABLED", a.code(), query)
		require.Nil(t, a.Data)
		next, _ := b.stream(t, asAlice, query, "")
		require.Contains(t, next().data, `"INTROSPECTION_DISABLED"`)
		s.subscribe(strconv.Itoa(i), query, "")
		require.Contains(t, string(s.receive().Payload), `"INTROSPECTION_DISABLED"`)
	}
	require.Equal(t, "Query", b.post(t, asAlice, `{ __typename }`, "").at(t, "__typename"))
	require.Equal(t, "Viewer", b.post(t, asAlice, `{ viewer { __typename } }`, "").at(t, "viewer", "__typename"))
	for _, query := range []string{
		`{ viewr { subject } }`, `{ viewer { subjet } }`, `{ jobs(frist: 1) { totalCount } }`, `{ node(id: "x") { ... on Jop { id } } }`,
		`{ viewer }`, `{ jobs(where: {stat: QUEUED}) { totalCount } }`, `{ jobs(where: {state: QUEUD}) { totalCount } }`,
	} {
		a := b.post(t, asAlice, query, "")
		require.NotEmpty(t, a.code(), query)
		require.NotContains(t, a.body, "Did you mean", query)
	}
}
