package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/await"
)

// soon ends a stream soon after its client stopped reading, and never the connection.
var soon = Options{SlowAfter: 50 * time.Millisecond, WriteTimeout: time.Hour, PingInterval: time.Hour, Backlog: 8}

// A client that stops reading gets what was made for it, then why there is no more, and where to go on.
func TestASlowConsumerIsToldWhereToResume(t *testing.T) {
	t.Parallel()
	type errors []struct {
		Extensions struct {
			Code        string
			ResumeAfter int
		}
	}
	tell := func(t *testing.T, c *counted, read int, all errors) {
		t.Helper()
		require.Len(t, all, 1)
		require.Equal(t, CodeSlowConsumer, all[0].Extensions.Code)
		require.Equal(t, c.after+read, all[0].Extensions.ResumeAfter, "the last one that it was given")
		require.EqualValues(t, read, c.made.Load(), "nothing was made that it does not get")
		require.Less(t, read, 100, "memory is bounded") // kernel buffers, the queue, one under way
	}

	t.Run("WebSocket", func(t *testing.T) {
		t.Parallel()
		c, rest := &counted{after: 7, size: 8 << 10}, &counted{last: 2}
		s := serve(t, operations{"s": c.open, "rest": rest.open}, soon)
		socket := s.greet(t)
		socket.subscribe("1", "s")
		await.Until(t, "the subscription ends", func() bool { return c.ended.Load() == 1 })
		read := 0
		m := socket.receive()
		for ; m.Type == "next"; m = socket.receive() {
			read++
			require.Contains(t, string(m.Payload), fmt.Sprintf(`"n":%d,`, c.after+read))
		}
		require.Equal(t, "error", m.Type)
		var all errors
		require.NoError(t, json.Unmarshal(m.Payload, &all))
		tell(t, c, read, all)

		// The socket and the id are as good as before.
		socket.subscribe("1", "rest")
		for _, want := range []string{"next", "next", "complete"} {
			require.Equal(t, want, socket.receive().Type)
		}
	})

	t.Run("SSE", func(t *testing.T) {
		t.Parallel()
		c := &counted{after: 7, size: 8 << 10}
		s := serve(t, operations{"s": c.open}, soon)
		next := events(s.post(t, "s").Body)
		// The handler cannot return before the client reads, so the stream's context tells nothing here.
		made := int64(-1)
		require.Eventually(t, func() bool {
			before := made
			made = c.made.Load()
			return made > 0 && made == before
		}, await.Patience, 4*soon.SlowAfter)
		read := 0
		e := next()
		for ; e.id != ""; e = next() {
			read++
		}
		require.Equal(t, "next", e.name)
		var answer struct{ Errors errors }
		require.NoError(t, json.Unmarshal([]byte(e.data), &answer))
		tell(t, c, read, answer.Errors)
		require.Equal(t, "EOF", next().name, "not complete: clients that come back by themselves shall")
	})
}

func TestAStreamThatIsTakenSlowlyAndSteadilyGoesOn(t *testing.T) {
	t.Parallel()
	c := &counted{last: 20, size: 2 << 10}
	o := soon
	o.Backlog, o.SlowAfter = 1, 2*time.Second
	s := serve(t, operations{"s": c.open}, o)
	socket := s.greet(t)
	socket.subscribe("1", "s")
	for range c.last {
		require.Equal(t, "next", socket.receive().Type)
	}
	require.Equal(t, "complete", socket.receive().Type)
}

func TestABacklogHoldsUpNoOtherOperation(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	begun, release, written := make(chan struct{}), make(chan struct{}), []string{}
	first := true
	b := newOutbox(func(text []byte) error {
		if first {
			first = false
			close(begun)
			<-release
		}
		written = append(written, string(text))
		return nil
	}, &wg, 100)
	big, small, tiny := newQueue(Options{Backlog: 99, BacklogBytes: 99}), newQueue(Options{}), newQueue(Options{})
	b.send(big, []byte("big 1"))
	<-begun
	for i := 2; i <= 4; i++ {
		b.send(big, fmt.Appendf(nil, "big %d", i))
	}
	b.send(small, []byte("small 1"))
	b.send(small, []byte("small 2"))
	b.send(tiny, []byte("tiny 1"))
	b.reply([]byte("pong"))
	close(release)
	wg.Wait()
	require.Equal(t, []string{"big 1", "pong", "big 2", "small 1", "tiny 1", "big 3", "small 2", "big 4"}, written)
	require.Nil(t, b.turns)
}

func TestAnotherSubscriptionOfTheSocketGoesOnBesideASlowOne(t *testing.T) {
	t.Parallel()
	flood := &counted{size: 256}
	news := make(chan int, 1)
	s := serve(t, operations{"flood": flood.open, "news": func(context.Context) graphql.ResponseHandler {
		return func(ctx context.Context) *graphql.Response {
			select {
			case n := <-news:
				return number(n, 0)
			case <-ctx.Done():
				return nil
			}
		}
	}}, Options{Backlog: 16})
	socket := s.greet(t)
	socket.subscribe("news", "news")
	socket.subscribe("flood", "flood")
	for range 20 {
		socket.receive()
	}
	news <- 1
	for i := 0; ; i++ {
		if m := socket.receive(); m.ID == "news" {
			return
		}
		require.Less(t, i, 200, "it waits behind what is in the kernel's buffers, and not behind the backlog")
	}
}

func TestAClientThatAsksAndNeverReadsFillsNoMemory(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	release := make(chan struct{})
	b := newOutbox(func([]byte) error { <-release; return nil }, &wg, 3)
	for range 3 + spareReplies + 1 {
		require.True(t, b.admit())
		b.reply([]byte("pong"))
	}
	b.reply([]byte("pong"))
	admitted := make(chan bool)
	go func() { admitted <- b.admit() }()
	select {
	case <-admitted:
		require.Fail(t, "it reads on")
	case <-time.After(20 * time.Millisecond):
	}
	close(release)
	require.True(t, <-admitted)
	wg.Wait()
	b.fail()
	require.False(t, b.admit())
	b.reply([]byte("x"))
	require.Empty(t, b.replies)
}

func TestAQueueIsBoundedInMessagesAndBytes(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{
		"messages": {Backlog: 2, BacklogBytes: 1000},
		"bytes":    {Backlog: 100, BacklogBytes: 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := newQueue(o)
			for range 2 {
				require.NoError(t, q.room(t.Context(), time.Minute))
				q.push(make([]byte, 10))
			}
			require.ErrorIs(t, q.room(t.Context(), time.Millisecond), errSlow)
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(errors.New("gone"))
			require.ErrorIs(t, q.room(ctx, time.Minute), context.Canceled)
			_, ok, _ := q.pop()
			require.True(t, ok)
			require.NoError(t, q.room(t.Context(), time.Minute))
			q.drop()
			q.push(make([]byte, 10))
			_, ok, ended := q.pop()
			require.False(t, ok)
			require.True(t, ended)
		})
	}
}
