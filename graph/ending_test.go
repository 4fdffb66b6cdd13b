package graph_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/auth"
)

// ending is dev mode with credentials that end: when they expire, or when the test revokes them.
type ending struct {
	auth.Dev

	expires time.Duration // from each use; 0: never

	mu      sync.Mutex
	revokes []func()
	watched chan struct{}
}

func (e *ending) Authenticate(ctx context.Context, authorization string) (auth.Identity, error) {
	switch authorization {
	case "Bearer late":
		return auth.Identity{}, auth.ErrExpired
	case "Bearer whoever":
		return auth.Identity{}, fmt.Errorf("%w: no keys", auth.ErrUnavailable)
	case "":
		return auth.Identity{}, auth.ErrUnauthenticated
	}
	id, err := e.Dev.Authenticate(ctx, authorization)
	if e.expires != 0 {
		id.Expires = time.Now().Add(e.expires)
	}
	id.Watch = func(revoked func()) func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.revokes = append(e.revokes, revoked)
		if e.watched != nil {
			e.watched <- struct{}{}
		}
		return func() {}
	}
	return id, err
}

func (e *ending) revoke() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, revoke := range e.revokes {
		revoke()
	}
}

// closing is how the socket ends, and what came before that.
func (s *socket) closing() (code int, reason string, before []string) {
	s.t.Helper()
	for {
		_, text, err := s.conn.Read(s.ctx)
		if err != nil {
			var e websocket.CloseError
			require.ErrorAs(s.t, err, &e)
			return int(e.Code), e.Reason, before
		}
		before = append(before, string(text))
	}
}

func TestASocketEndsWithItsCredentials(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		credentials *ending
		revoke      bool
	}{
		"Expired": {&ending{expires: 300 * time.Millisecond}, false},
		"Revoked": {&ending{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupBehind(t, auth.NewGuard(c.credentials))
			j := b.Job(t, alice, "k")
			var sockets []*socket
			for range 8 {
				s := b.open(t, asAlice)
				for id := range 4 {
					s.subscribe(fmt.Sprint(id), `subscription { jobEvents(jobId: "`+j.ID+`") { number } }`, "")
				}
				sockets = append(sockets, s)
			}
			for _, s := range sockets {
				if c.revoke {
					require.Equal(t, "next", s.receive().Type)
				}
			}
			if c.revoke {
				c.credentials.revoke()
			}
			for _, s := range sockets {
				code, reason, before := s.closing()
				require.Equal(t, 4403, code)
				require.Equal(t, "Forbidden", reason)
				for _, text := range before { // neither is true: the subscription has neither ended nor failed
					require.NotContains(t, text, `"complete"`)
					require.NotContains(t, text, `"error"`)
				}
			}
		})
	}
}

// To the client its connection is lost, and it comes back with what credentials it has then.
func TestAStreamEndsWithItsCredentialsAndIsNotComplete(t *testing.T) {
	t.Parallel()
	for name, credentials := range map[string]*ending{
		"Expired": {expires: 300 * time.Millisecond},
		"Revoked": {watched: make(chan struct{}, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupBehind(t, auth.NewGuard(credentials))
			j := b.Job(t, alice, "k")
			next, _ := b.stream(t, asAlice, `subscription { jobEvents(jobId: "`+j.ID+`") { number } }`, "")
			require.Contains(t, next().data, `"number":1`)
			if credentials.watched != nil {
				<-credentials.watched
				credentials.revoke()
			}
			require.Equal(t, "EOF", next().name)
		})
	}
}

// A request is answered if its credentials were good when it came: a mutation must not end half-way by the clock.
func TestARequestOutlivesItsCredentials(t *testing.T) {
	t.Parallel()
	b := setupBehind(t, auth.NewGuard(&ending{expires: time.Nanosecond}))
	require.Equal(t, "alice", b.post(t, asAlice, `{ viewer { subject } }`, "").at(t, "viewer", "subject"))
}

func TestInitClosesByWhatIsWrong(t *testing.T) {
	t.Parallel()
	b := setupBehind(t, auth.NewGuard(&ending{}))
	for payload, want := range map[string]int{
		`{"Authorization":"Bearer late"}`:    4403,
		`{"Authorization":"Bearer whoever"}`: 1013, // try again: nobody said that it is wrong
		`{}`:                                 4403,
	} {
		s := b.dial(t, "graphql-transport-ws")
		s.send(`{"type":"connection_init","payload":` + payload + `}`)
		code, _, before := s.closing()
		require.Equal(t, want, code, payload)
		require.NotContains(t, strings.Join(before, ""), "late")
	}
	require.NotContains(t, b.log.String(), "late")
}

func TestTheHandshakesCredentialsEndTheSocketToo(t *testing.T) {
	t.Parallel()
	b := setupBehind(t, auth.NewGuard(&ending{expires: 300 * time.Millisecond}))
	s := b.dialWith(t, "Authorization", asAlice)
	s.send(`{"type":"connection_init"}`)
	code, _, _ := s.closing()
	require.Equal(t, 4403, code)
}
