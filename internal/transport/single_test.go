package transport

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/await"
)

// large is more than the buffers of these tests' connections.
const large = 256 << 10

func TestAClientThatDoesNotReadItsAnswerIsGivenUp(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	s := serve(t, operations{"mutation": func(ctx context.Context) graphql.ResponseHandler {
		context.AfterFunc(ctx, func() { close(over) })
		return graphql.OneShot(&graphql.Response{Data: []byte(`"` + strings.Repeat("x", large) + `"`)})
	}}, Options{WriteTimeout: 100 * time.Millisecond})
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.URL, "http://"))
	require.NoError(t, err)
	defer c.Close()
	body := `{"query":"mutation"}`
	_, err = fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	require.NoError(t, err)
	await.Receive(t, "the request is over", over)
}

func TestALargeAnswerComesWhole(t *testing.T) {
	t.Parallel()
	s := serve(t, operations{"mutation": func(context.Context) graphql.ResponseHandler {
		return graphql.OneShot(&graphql.Response{Data: []byte(`"` + strings.Repeat("x", large) + `"`)})
	}}, Options{})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, strings.NewReader(`{"query":"mutation"}`))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	res, err := s.client.Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	require.Equal(t, http.StatusOK, res.StatusCode)
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Len(t, text, large+len(`{"data":""}`))
}
