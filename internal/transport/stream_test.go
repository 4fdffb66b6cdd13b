package transport

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

func TestEventsCarryTheirNumberAndAStreamResumesAfterIt(t *testing.T) {
	t.Parallel()
	c := &counted{after: 2, last: 6}
	s := serve(t, operations{"s": c.open}, Options{})
	for name, k := range map[string]struct {
		header string
		first  int
	}{
		"without":               {"", 3},
		"after what it says":    {"4", 5},
		"the greater one rules": {"1", 3},
		"zero is before all":    {"0", 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, ask := range []func(*testing.T, string, ...string) *http.Response{s.get, s.post} {
				next := events(ask(t, "s", "Last-Event-ID", k.header).Body)
				for n := k.first; n <= c.last; n++ {
					require.Equal(t, fmt.Sprint(n), next().id)
				}
				require.Equal(t, sse{name: "complete"}, next())
				require.Equal(t, "EOF", next().name)
			}
		})
	}
}

func TestAMalformedLastEventIDIsAnError(t *testing.T) {
	t.Parallel()
	c := &counted{last: 6}
	s := serve(t, operations{"s": c.open}, Options{})
	for _, value := range []string{"x", "-1", "+1", "1.5", " ", "4294967296", "0x1", "18446744073709551617"} {
		resp := s.get(t, "s", "Last-Event-ID", value)
		if value == " " { // it is trimmed on the way, so it is none
			require.Equal(t, http.StatusOK, resp.StatusCode)
			continue
		}
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, http.StatusBadRequest, resp.StatusCode, value) // an EventSource stops at it
		require.JSONEq(t, `{"errors":[{"message":"Last-Event-ID is not the number of an event","extensions":{"code":"BAD_REQUEST"}}]}`, string(body))
	}
	resp := s.get(t, "s", "Last-Event-ID", "1", "Last-Event-ID", "2")
	require.Equal(t, http.StatusBadRequest, resp.StatusCode)
}

// An EventSource connects again after every end, and takes 204 for the last one. Who sends a body is none.
func TestAnEventSourceThatHasAllIsToldToStop(t *testing.T) {
	t.Parallel()
	c := &counted{last: 6}
	s := serve(t, operations{"s": c.open}, Options{})
	resp := s.get(t, "s", "Last-Event-ID", "6")
	require.Equal(t, http.StatusNoContent, resp.StatusCode)
	require.Empty(t, resp.Header.Get("Content-Type"))
	resp = s.get(t, "s", "Last-Event-ID", "5")
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Equal(t, "6", events(resp.Body)().id)
	resp = s.post(t, "s", "Last-Event-ID", "6")
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Equal(t, "complete", events(resp.Body)().name)
}

// A comment with an empty line after it breaks graphql-sse's client when both come in one piece.
func TestCommentsHaveNoEmptyLine(t *testing.T) {
	t.Parallel()
	c := &counted{last: 1}
	s := serve(t, operations{"s": c.open}, Options{})
	body, err := io.ReadAll(s.get(t, "s").Body)
	require.NoError(t, err)
	require.Equal(t, ":\nevent: next\nid: 1\ndata: {\"data\":{\"n\":1,\"pad\":\"\"}}\n\nevent: complete\ndata:\n\n", string(body))
}

// An element that cannot be told is the end of its stream: what came after it would be a gap. It has no number, so the
// client asks for it again.
func TestAnElementThatCannotBeToldEndsItsStream(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{}, 2)
	torn := func(ctx context.Context) graphql.ResponseHandler {
		context.AfterFunc(ctx, func() { ended <- struct{}{} })
		n := Resume(ctx, 0)
		return func(ctx context.Context) *graphql.Response {
			n++
			Announce(ctx, n)
			if n == 2 {
				return &graphql.Response{Data: []byte("null"), Errors: gqlerror.List{codedError("INTERNAL", "internal error")}}
			}
			return number(n, 0)
		}
	}
	s := serve(t, operations{"s": torn}, Options{})
	next := events(s.get(t, "s").Body)
	require.Equal(t, "1", next().id)
	e := next()
	require.Empty(t, e.id)
	require.Contains(t, e.data, "INTERNAL")
	require.Equal(t, "EOF", next().name)
	<-ended

	socket := s.greet(t)
	socket.subscribe("1", "s")
	require.Equal(t, "next", socket.receive().Type)
	require.Equal(t, "error", socket.receive().Type)
	<-ended // and with it all that it holds
	socket.subscribe("1", "s")
	require.Equal(t, "next", socket.receive().Type)
}

// What is wrong with a request is wrong the next time too. Of all else clients hear nothing that would keep them from coming back.
func TestAStreamIsCompleteIfTheSameRequestWouldBringNoMore(t *testing.T) {
	t.Parallel()
	fails := func(code string) func(context.Context) graphql.ResponseHandler {
		return func(context.Context) graphql.ResponseHandler {
			return graphql.OneShot(&graphql.Response{Errors: gqlerror.List{codedError(code, "no")}})
		}
	}
	s := serve(t, operations{
		"mistake": fails("BAD_USER_INPUT"), "gone": fails("NOT_FOUND"), "broken": fails("INTERNAL"), "cancelled": fails("CANCELLED"),
		"mutation": fails("INTERNAL"), // its answer is all that there is of it
		"panics":   func(context.Context) graphql.ResponseHandler { panic("no") },
	}, Options{})
	for query, complete := range map[string]bool{
		"mistake": true, "gone": true, "mutation": true, "broken": false, "cancelled": false, "panics": false,
	} {
		next := events(s.post(t, query).Body)
		require.Contains(t, next().data, `"errors"`, query)
		if complete {
			require.Equal(t, "complete", next().name, query)
		}
		require.Equal(t, "EOF", next().name, query)
	}
}

// Clients take the end of a stream without `complete`, and 1001, for a reason to connect again.
func TestAShutdownEndsSocketsAndStreamsSoThatClientsResume(t *testing.T) {
	t.Parallel()
	s := serve(t, operations{"s": silent}, Options{})
	socket := s.greet(t)
	socket.subscribe("1", "s")
	early := s.dial(t) // that has not introduced itself
	resp := s.get(t, "s")

	waited := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	require.ErrorIs(t, s.handler.Wait(ctx), context.DeadlineExceeded, "they are open")
	s.stop()
	go func() { waited <- s.handler.Wait(t.Context()) }()
	require.Equal(t, closeGoingAway, socket.closed())
	require.Equal(t, closeGoingAway, early.closed())
	require.NoError(t, <-waited)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NotContains(t, string(body), "complete")
}

func TestAStreamThatEndsWithItsContextIsNotComplete(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h, q, w := New(nil, Options{}), newQueue(Options{}), httptest.NewRecorder()
	q.end() // as whoever fills it does when its context is over
	h.writeEvents(ctx, &eventWriter{w: w, control: http.NewResponseController(w), timeout: time.Second}, q, nil)
	require.Empty(t, w.Body.String())
}
