package graph_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/graph"
)

// fast makes time-outs short.
func fast(o *graph.Options) {
	o.Transport.InitTimeout = 20 * time.Millisecond
	o.Transport.PingInterval = 20 * time.Millisecond
	o.Transport.KeepAlive = 5 * time.Millisecond
}

const greeting = `{"type":"connection_init","payload":{"Authorization":"` + asAlice + `"}}`

func TestSocketsCloseWithTheProtocolsCodes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	j := b.Job(t, alice, "k")
	watch := `{"id":"1","type":"subscribe","payload":` + request(watchEvents, `{"id":"`+j.ID+`"}`) + `}`
	for name, c := range map[string]struct {
		send []string
		code int
	}{
		"no JSON":                 {[]string{greeting, `nonsense`}, 4400},
		"no JSON at first":        {[]string{`nonsense`}, 4400},
		"no object":               {[]string{greeting, `[]`}, 4400},
		"null":                    {[]string{greeting, `null`}, 4400},
		"no type":                 {[]string{greeting, `{}`}, 4400},
		"unknown type":            {[]string{greeting, `{"type":"start","id":"1"}`}, 4400},
		"a type of the server's":  {[]string{greeting, `{"type":"connection_ack"}`}, 4400},
		"payload is no object":    {[]string{`{"type":"connection_init","payload":"x"}`}, 4400},
		"subscribe without id":    {[]string{greeting, `{"type":"subscribe","payload":{"query":"{viewer{subject}}"}}`}, 4400},
		"subscribe without query": {[]string{greeting, `{"id":"1","type":"subscribe","payload":{}}`}, 4400},
		"subscribe, other case":   {[]string{greeting, `{"id":"1","type":"subscribe","payload":{"QUERY":"{viewer{subject}}"}}`}, 4400},
		"id twice":                {[]string{greeting, `{"id":"1","id":"2","type":"subscribe","payload":{"query":"{viewer{subject}}"}}`}, 4400},
		"duplicate key in a ping": {[]string{greeting, `{"type":"ping","payload":{"a":1,"a":2}}`}, 4400},
		"id is a number":          {[]string{greeting, `{"id":1,"type":"subscribe","payload":{"query":"{viewer{subject}}"}}`}, 4400},
		"key twice and id twice":  {[]string{greeting, `{"id":"1","type":"subscribe","payload":{"query":"{x}","query":"{y}"},"id":"2"}`}, 4400},
		"key twice, no id":        {[]string{greeting, `{"type":"subscribe","payload":{"query":"{x}","query":"{y}"}}`}, 4400},
		"key twice, two payloads": {[]string{greeting, `{"id":"1","type":"subscribe","payload":{"query":"{x}","query":"{y}"},"payload":{}}`}, 4400},
		"half an id":              {[]string{greeting, `{"id":"\ud800","type":"subscribe","payload":{"query":"{x}"}}`}, 4400},
		"key twice in complete":   {[]string{greeting, `{"id":"1","type":"complete","payload":{"a":1,"a":2}}`}, 4400},
		"key twice before init":   {[]string{`{"id":"1","type":"subscribe","payload":{"query":"{x}","query":"{y}"}}`}, 4401},
		"key twice, duplicate id": {[]string{greeting, watch, `{"id":"1","type":"subscribe","payload":{"query":"{x}","query":"{y}"}}`}, 4409},
		"subscribe before init":   {[]string{watch}, 4401},
		"bad token":               {[]string{`{"type":"connection_init","payload":{"Authorization":"Bearer nonsense"}}`}, 4403},
		"duplicate id":            {[]string{greeting, watch, watch}, 4409},
		"second init":             {[]string{greeting, greeting}, 4429},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := b.dial(t, "graphql-transport-ws")
			for _, text := range c.send {
				s.send(text)
			}
			require.Equal(t, c.code, s.closed())
		})
	}
}

func TestASocketNeedsItsSubprotocol(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.Equal(t, 4406, b.dial(t).closed())
	require.Equal(t, 4406, b.dial(t, "graphql-ws").closed())
}

func TestASocketWithoutInitIsClosed(t *testing.T) {
	t.Parallel()
	b := setup(t, fast)
	require.Equal(t, 4408, b.dial(t, "graphql-transport-ws").closed())
}

func TestASocketThatDoesNotAnswerPingsIsClosed(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *graph.Options) { o.Transport.PingInterval = 20 * time.Millisecond })
	s := b.open(t, asAlice)
	require.Equal(t, -1, s.closed(), "without the courtesy of a close frame")

	// Long enough for the answers of a loaded machine.
	s = setup(t, func(o *graph.Options) { o.Transport.PingInterval = 500 * time.Millisecond }).open(t, asAlice)
	for range 3 {
		require.Equal(t, "ping", s.receive().Type)
		s.send(`{"type":"pong"}`)
	}
	s.send(`{"type":"ping","payload":{"a":1}}`)
	m := s.receive()
	for m.Type == "ping" {
		m = s.receive()
	}
	require.Equal(t, "pong", m.Type)
	require.JSONEq(t, `{"a":1}`, string(m.Payload))
}

func TestAnIDMayBeUsedAgainOnceItIsOver(t *testing.T) {
	t.Parallel()
	b := setup(t)
	j := b.Job(t, alice, "k")
	s := b.open(t, asAlice)
	for range 20 { // completed by the client, while the server may be about to say something
		s.subscribe("1", watchEvents, `{"id":"`+j.ID+`"}`)
		m := s.receive()
		require.Equal(t, "next", m.Type)
		require.Contains(t, string(m.Payload), `"number":1`)
		s.send(`{"id":"1","type":"complete"}`)
	}
	for range 3 { // completed by the server
		s.subscribe("1", `{ viewer { subject } }`, "")
		require.Equal(t, "next", s.receive().Type)
		require.Equal(t, "complete", s.receive().Type)
	}
	for range 3 { // refused: one error, and nothing after it
		s.subscribe("1", `{ nope }`, "")
		m := s.receive()
		require.Equal(t, "error", m.Type)
		require.Contains(t, string(m.Payload), "GRAPHQL_VALIDATION_FAILED")
		s.subscribe("1", strings.Repeat("{ viewer ", 100)+strings.Repeat("}", 100), "")
		require.Equal(t, "error", s.receive().Type)
	}
	s.send(`{"id":"unknown","type":"complete"}`)
	s.subscribe("2", `{ viewer { subject } }`, "")
	require.Equal(t, "2", s.receive().ID)
}

func TestNamesInAPayloadAreReadByteForByte(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.open(t, asAlice)
	s.send(`{"id":"1","type":"subscribe","payload":{"query":"{ viewer { subject } }","QUERY":"{ nope }","Variables":{"a":1}}}`)
	m := s.receive()
	require.Equal(t, "next", m.Type, string(m.Payload))
	require.Contains(t, string(m.Payload), "alice")
}

func TestOperationsOnASocketAreBounded(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *graph.Options) { o.Transport.MaxOperations = 2 })
	j := b.Job(t, alice, "k")
	s := b.open(t, asAlice)
	for _, id := range []string{"1", "2"} {
		s.subscribe(id, watchEvents, `{"id":"`+j.ID+`"}`)
		require.Equal(t, "next", s.receive().Type)
	}
	s.subscribe("3", watchEvents, `{"id":"`+j.ID+`"}`)
	m := s.receive()
	require.Equal(t, "error", m.Type)
	require.Contains(t, string(m.Payload), "TOO_MANY_OPERATIONS")
}

func TestASocketOfAnotherSiteIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, resp, err := websocket.Dial(t.Context(), b.url, &websocket.DialOptions{
		Subprotocols: []string{"graphql-transport-ws"}, HTTPHeader: http.Header{"Origin": {"https://evil.example"}},
	})
	require.Error(t, err)
	require.Equal(t, http.StatusForbidden, resp.StatusCode)
}

func TestContentTypesAndMethods(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const query = `{ viewer { subject } }`
	for accept, want := range map[string]string{
		"":                                  "application/json; charset=utf-8",
		"*/*":                               "application/json; charset=utf-8",
		"application/json":                  "application/json; charset=utf-8",
		"application/json; charset=utf-8":   "application/json; charset=utf-8",
		"application/graphql-response+json": "application/graphql-response+json; charset=utf-8",
		"application/graphql-response+json, application/json;q=0.9":       "application/graphql-response+json; charset=utf-8",
		"application/json;q=0.1, application/graphql-response+json;q=0.5": "application/graphql-response+json; charset=utf-8",
		"text/html, */*;q=0.1": "application/json; charset=utf-8",
	} {
		var header []string
		if accept != "" {
			header = []string{"Accept", accept}
		}
		a := b.post(t, asAlice, query, "", header...)
		require.Equal(t, http.StatusOK, a.status, accept)
		require.Equal(t, want, a.header.Get("Content-Type"), accept)
	}
	require.Equal(t, "NOT_ACCEPTABLE", b.post(t, asAlice, query, "", "Accept", "text/html").code())
	require.Equal(t, "alice", b.get(t, asAlice, query, "").at(t, "viewer", "subject"))

	a := b.get(t, asAlice, create, "")
	require.Equal(t, http.StatusMethodNotAllowed, a.status)
	require.Equal(t, "METHOD_NOT_ALLOWED", a.code())
	require.Zero(t, b.jobs.calls)

	for _, c := range []struct {
		method, contentType, body string
		status                    int
		code                      string
	}{
		{http.MethodPost, "text/plain", request(query, ""), 415, "UNSUPPORTED_MEDIA_TYPE"},
		{http.MethodPost, "application/x-www-form-urlencoded", "query=x", 415, "UNSUPPORTED_MEDIA_TYPE"},
		{http.MethodPost, "application/json; charset=latin1", request(query, ""), 415, "UNSUPPORTED_MEDIA_TYPE"},
		{http.MethodPost, "", request(query, ""), 415, "UNSUPPORTED_MEDIA_TYPE"},
		{http.MethodPost, "application/json", `[]`, 400, "BAD_REQUEST"},
		{http.MethodPost, "application/json", `null`, 400, "BAD_REQUEST"},
		{http.MethodPost, "application/json", `{}`, 400, "BAD_REQUEST"},
		{http.MethodPost, "application/json", `{"query":1}`, 400, "BAD_REQUEST"},
		{http.MethodPost, "application/json", `{"query":"{a}","variables":[]}`, 400, "BAD_REQUEST"},
		{http.MethodPost, "application/json", `{"query":"{a}","operationName":{}}`, 400, "BAD_REQUEST"},
		{http.MethodPost, "application/json", `{"QUERY":"{a}"}`, 400, "BAD_REQUEST"},
		{http.MethodPost, "application/json", ``, 400, "INVALID_JSON"},
		{http.MethodPost, "application/json", `{"query":"{a}"} {}`, 400, "INVALID_JSON"},
		{http.MethodPut, "application/json", request(query, ""), 405, "METHOD_NOT_ALLOWED"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, b.url, strings.NewReader(c.body))
		require.NoError(t, err)
		r.Header.Set("Authorization", asAlice)
		if c.contentType != "" {
			r.Header.Set("Content-Type", c.contentType)
		}
		a := b.do(t, r)
		require.Equal(t, c.status, a.status, "%+v", c)
		require.Equal(t, c.code, a.code(), "%+v", c)
	}
	for _, raw := range []string{"", "?variables={}", "?query=a&query=b", "?query=%zz"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url, nil)
		require.NoError(t, err)
		r.URL = must(url.Parse(b.url + strings.ReplaceAll(raw, "%zz", "")))
		r.URL.RawQuery = strings.TrimPrefix(raw, "?")
		r.Header.Set("Authorization", asAlice)
		require.Equal(t, "BAD_REQUEST", b.do(t, r).code(), raw)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
