package graph_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
	"github.com/docket-gateway/docket/internal/await"
)

const (
	watchAttempts = `subscription($id: ID!) { attemptUpdated(jobId: $id) { id number state error { code } finishedAt job { id } } }`
	watchEvents   = `subscription($id: ID!, $after: Int) { jobEvents(jobId: $id, after: $after) { number type from to attempt { number } detail } }`
)

// states reads attempts' states until the stream completes.
func states(t *testing.T, next func() event) (all []string) {
	t.Helper()
	for {
		e := next()
		if e.name != "next" {
			require.Equal(t, "complete", e.name)
			return all
		}
		var a answer
		require.NoError(t, json.Unmarshal([]byte(e.data), &a))
		all = append(all, a.at(t, "attemptUpdated", "state").(string))
	}
}

func TestWatchingAttemptsOverSSE(t *testing.T) {
	t.Parallel()
	b := setup(t)
	j := b.Job(t, alice, "k")
	first := b.Attempt(t, j.ID)
	next, _ := b.stream(t, asAlice, watchAttempts, `{"id":"`+j.ID+`"}`)
	require.Contains(t, next().data, "STARTING")
	go func() {
		b.Move(t, first.ID, attempt.StateRUNNING, "")
		b.Move(t, first.ID, attempt.StateFAILED, `{"code":"JAMMED","message":"jam"}`)
		second := b.Attempt(t, j.ID)
		b.Move(t, second.ID, attempt.StateRUNNING, "")
		b.Move(t, second.ID, attempt.StateSUCCEEDED, "")
		b.Finish(t, j.ID, job.StateSUCCEEDED, second.ID)
	}()
	require.Equal(t, []string{"RUNNING", "FAILED", "STARTING", "RUNNING", "SUCCEEDED"}, states(t, next))
}

func TestWatchingEventsOverWebSocket(t *testing.T) {
	t.Parallel()
	b := setup(t)
	j := b.Job(t, alice, "k")
	s := b.open(t, asAlice)
	s.subscribe("all", watchEvents, `{"id":"`+j.ID+`"}`)
	s.subscribe("late", watchEvents, `{"id":"`+j.ID+`","after":2}`)
	at := b.Attempt(t, j.ID)
	b.Move(t, at.ID, attempt.StateUNKNOWN, `{"code":"ACK_TIMEOUT","message":"silence"}`)
	b.Finish(t, j.ID, job.StateCANCELLED, "")

	got := map[string][]string{}
	for open := 2; open > 0; {
		m := s.receive()
		if m.Type == "complete" {
			open--
			continue
		}
		require.Equal(t, "next", m.Type)
		var a answer
		require.NoError(t, json.Unmarshal(m.Payload, &a))
		got[m.ID] = append(got[m.ID], a.at(t, "jobEvents", "type").(string))
	}
	require.Equal(t, map[string][]string{
		"all":  {"JOB_CREATED", "ATTEMPT_CREATED", "ATTEMPT_STATE", "JOB_STATE"},
		"late": {"ATTEMPT_STATE", "JOB_STATE"},
	}, got)
}

func TestWatchingWithAnEventSource(t *testing.T) {
	t.Parallel()
	b := setup(t)
	j := b.Job(t, alice, "k")
	b.Finish(t, j.ID, job.StateCANCELLED, "")
	get := func(query string) (*http.Response, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+"?"+url.Values{
			"query": {query}, "variables": {`{"id":"` + j.ID + `"}`},
		}.Encode(), nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", asAlice)
		r.Header.Set("Accept", "text/event-stream")
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer resp.Body.Close()
		var all strings.Builder
		buf := make([]byte, 4096)
		for {
			n, err := resp.Body.Read(buf)
			all.Write(buf[:n])
			if err != nil {
				return resp, all.String()
			}
		}
	}
	resp, text := get(watchEvents)
	require.Equal(t, "text/event-stream; charset=utf-8", resp.Header.Get("Content-Type"))
	require.True(t, strings.HasPrefix(text, ":\nevent: next\nid: 1\ndata: {"), text)
	require.True(t, strings.HasSuffix(text, "\n\nevent: complete\ndata:\n\n"), text)
	resp, _ = get(`mutation { cancelJob(input: {jobId: "x"}) { __typename } }`)
	require.Equal(t, http.StatusMethodNotAllowed, resp.StatusCode)
}

func TestAStreamThatBreaksDoesNotReadAsComplete(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{"SSE", "WebSocket"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			j := b.Job(t, alice, "k")
			variables := `{"id":"` + j.ID + `"}`
			tear := func() { // a hole in the log, which cannot happen
				_, err := b.Store.DB().ExecContext(t.Context(), "UPDATE jobs SET last_event = 5 WHERE id = ?", j.ID)
				require.NoError(t, err)
				b.Changed(j.ID)
			}
			if transport == "SSE" {
				next, _ := b.stream(t, asAlice, watchEvents, variables)
				next()
				tear()
				e := next()
				require.Equal(t, "next", e.name)
				require.Contains(t, e.data, `"code":"INTERNAL"`)
				require.NotContains(t, e.data, `"data"`)
				require.Equal(t, "EOF", next().name)
				return
			}
			s := b.open(t, asAlice)
			s.subscribe("1", watchEvents, variables)
			s.receive()
			tear()
			m := s.receive()
			require.Equal(t, "error", m.Type)
			require.Contains(t, string(m.Payload), `"code":"INTERNAL"`)
		})
	}
}

func TestRefusesSubscriptionsThatCannotBe(t *testing.T) {
	t.Parallel()
	b := setup(t)
	j := b.Job(t, alice, "k")
	next, _ := b.stream(t, asAlice, watchEvents, `{"id":"nonsense"}`)
	require.Contains(t, next().data, "NOT_FOUND")
	require.Equal(t, "complete", next().name)
	next, _ = b.stream(t, asAlice, watchEvents, `{"id":"job_01h455vb4pex5vsknk084sn02q"}`)
	require.Contains(t, next().data, `"path":["jobEvents"]`, "an error of the field, not of a stream that broke")
	next, _ = b.stream(t, asAlice, watchEvents, `{"id":"`+j.ID+`","after":-1}`)
	require.Contains(t, next().data, "BAD_USER_INPUT")
	next, _ = b.stream(t, asAlice, `subscription { nope }`, "")
	require.Contains(t, next().data, "GRAPHQL_VALIDATION_FAILED")
	require.Equal(t, "complete", next().name)
	a := b.post(t, asAlice, watchEvents, `{"id":"`+j.ID+`"}`)
	require.Equal(t, http.StatusNotAcceptable, a.status)
	require.Equal(t, "NOT_ACCEPTABLE", a.code())
}

func TestAnOpenStreamKeepsItsConnectionAlive(t *testing.T) {
	t.Parallel()
	b := setup(t, fast)
	j := b.Job(t, alice, "k")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url, strings.NewReader(request(watchEvents, `{"id":"`+j.ID+`","after":1}`)))
	require.NoError(t, err)
	r.Header.Set("Authorization", asAlice)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	text := ""
	for strings.Count(text, ":\n") < 3 {
		buf := make([]byte, 64)
		n, err := resp.Body.Read(buf)
		require.NoError(t, err)
		text += string(buf[:n])
	}
}

func TestClientsThatGoLeaveNothingBehind(t *testing.T) { //nolint:paralleltest // it counts goroutines
	b := setup(t)
	j := b.Job(t, alice, "k")
	variables := `{"id":"` + j.ID + `"}`
	before := goleak.IgnoreCurrent()
	for range 10 {
		next, stop := b.stream(t, asAlice, watchAttempts+" ", variables)
		_ = next
		stop()
		next, stop = b.stream(t, asAlice, watchEvents, variables)
		next()
		stop()
		s := b.open(t, asAlice)
		s.subscribe("1", watchEvents, variables)
		s.receive()
		_ = s.conn.CloseNow()
	}
	http.DefaultClient.CloseIdleConnections()
	await.Until(t, "nobody watches", func() bool { return b.hub.Watched() == 0 })
	http.DefaultClient.CloseIdleConnections()
	goleak.VerifyNone(t, before)
}
