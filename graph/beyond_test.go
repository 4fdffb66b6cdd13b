package graph_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent/job"
)

// requireBeyond wants what a client is told whose number the log does not have.
func requireBeyond(t *testing.T, code, body string) {
	t.Helper()
	var a struct {
		Errors []struct {
			Message    string
			Extensions struct {
				Code      string
				LastEvent int
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(body), &a), body)
	require.Len(t, a.Errors, 1, body)
	require.Equal(t, code, a.Errors[0].Extensions.Code)
	require.Contains(t, a.Errors[0].Message, "number 1")
	require.Equal(t, 1, a.Errors[0].Extensions.LastEvent)
}

// What the log will have under a number that it does not have yet is not what the client knows: it was told by another
// database, or made the number up. To wait for it would lose all events up to it.
func TestANumberBeyondTheLogIsAnError(t *testing.T) {
	t.Parallel()
	b := setup(t)
	open, finished := b.Job(t, alice, "open"), b.Job(t, alice, "finished") // one event each
	variables := func(id, after string) string { return `{"id":"` + id + `","after":` + after + `}` }

	for _, after := range []string{"2", "40", "2147483647"} {
		next, _ := b.stream(t, asAlice, watchEvents, variables(open.ID, after))
		e := next()
		require.Equal(t, "next", e.name)
		requireBeyond(t, "BAD_USER_INPUT", e.data)
		require.Equal(t, event{name: "complete"}, next(), "the request is at fault, not the connection")
		require.Equal(t, "EOF", next().name)

		s := b.open(t, asAlice)
		s.subscribe("1", watchEvents, variables(open.ID, after))
		m := s.receive()
		require.Equal(t, "error", m.Type)
		requireBeyond(t, "BAD_USER_INPUT", `{"errors":`+string(m.Payload)+`}`)
	}

	// Its log stays as it is.
	_, err := b.Store.DB().ExecContext(t.Context(), "UPDATE jobs SET state = ? WHERE id = ?", job.StateCANCELLED, finished.ID)
	require.NoError(t, err)
	for _, id := range []string{open.ID, finished.ID} {
		for method, after := range map[string]string{http.MethodGet: "null", http.MethodPost: "1"} {
			resp, text := b.resume(t, method, watchEvents, variables(id, after), "2")
			require.Equal(t, http.StatusBadRequest, resp.StatusCode, "%s %s", method, text)
			require.Equal(t, "application/json; charset=utf-8", resp.Header.Get("Content-Type"))
			requireBeyond(t, "BAD_REQUEST", text)
		}
	}
	// It was the argument that is greater.
	resp, text := b.resume(t, http.MethodPost, watchEvents, variables(finished.ID, "3"), "2")
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Contains(t, text, "BAD_USER_INPUT")
	// Elsewhere the header means nothing.
	resp, _ = b.resume(t, http.MethodPost, watchAttempts, `{"id":"`+finished.ID+`"}`, "2")
	require.Equal(t, http.StatusOK, resp.StatusCode)
	// The last one is no mistake.
	resp, _ = b.resume(t, http.MethodGet, watchEvents, variables(finished.ID, "null"), "1")
	require.Equal(t, http.StatusNoContent, resp.StatusCode)
}

// resume asks for an event stream that ends by itself, with a Last-Event-ID.
func (b *bundle) resume(t *testing.T, method, query, variables, last string) (*http.Response, string) {
	t.Helper()
	address, body := b.url, ""
	if method == http.MethodGet {
		address += "?" + url.Values{"query": {query}, "variables": {variables}}.Encode()
	} else {
		body = request(query, variables)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Authorization", asAlice)
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Last-Event-Id", last)
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp, string(text)
}
