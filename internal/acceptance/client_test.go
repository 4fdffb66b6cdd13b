package acceptance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// client speaks GraphQL with one gateway as one person.
type client struct {
	url     string // http://127.0.0.1:port
	subject string // of auth.mode dev: name or name:operator; empty for the operator "local"
	token   string // of auth.mode token, in place of subject
	http    *http.Client
}

func newClient(t *testing.T, addr string) *client {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	return &client{url: "http://" + addr, subject: "alice", http: &http.Client{Transport: transport}}
}

// as is the same gateway for somebody else.
func (c *client) as(subject string) *client {
	other := *c
	other.subject = subject
	return &other
}

// with is the same gateway with another credential.
func (c *client) with(token string) *client {
	other := *c
	other.subject, other.token = "", token
	return &other
}

func (c *client) authorization() string {
	if c.token != "" {
		return "Bearer " + c.token
	}
	if c.subject == "" {
		return ""
	}
	return "Bearer dev:" + c.subject
}

type graphQLError struct {
	Message    string
	Path       []any
	Extensions struct{ Code string }
}

type response struct {
	status int
	Data   map[string]json.RawMessage
	Errors []graphQLError
	text   string
}

// codes are those of the top-level errors.
func (r response) codes() []string {
	var out []string
	for _, e := range r.Errors {
		out = append(out, e.Extensions.Code)
	}
	return out
}

type variables map[string]any

// body is a GraphQL request's.
func body(query string, vars variables) []byte {
	b, err := json.Marshal(map[string]any{"query": query, "variables": vars})
	if err != nil {
		panic(err) // only plain values are given
	}
	return b
}

// send posts bytes as they are. Headers are pairs.
func (c *client) send(ctx context.Context, text []byte, headers ...string) (response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/graphql", bytes.NewReader(text))
	if err != nil {
		return response{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	if a := c.authorization(); a != "" {
		req.Header.Set("Authorization", a)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := c.http.Do(req)
	if err != nil {
		return response{}, err
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return response{}, err
	}
	out := response{status: res.StatusCode, text: string(raw)}
	if err := json.Unmarshal(raw, &out); err != nil {
		return out, fmt.Errorf("status %d, not JSON: %q", res.StatusCode, raw)
	}
	return out, nil
}

// post is for a request that may have top-level errors.
func (c *client) post(t *testing.T, query string, vars variables, headers ...string) response {
	t.Helper()
	res, err := c.send(t.Context(), body(query, vars), headers...)
	require.NoError(t, err)
	return res
}

// field runs an operation with one root field and decodes its value.
func field[T any](t *testing.T, c *client, name, query string, vars variables) T {
	t.Helper()
	res := c.post(t, query, vars)
	require.Empty(t, res.Errors, res.text)
	return decode[T](t, res.Data[name])
}

func decode[T any](t *testing.T, raw json.RawMessage) T {
	t.Helper()
	var out T
	require.NoError(t, json.Unmarshal(raw, &out), "%s", raw)
	return out
}

// getStatus is the status of a GET.
func (c *client) getStatus(t *testing.T, path string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.url+path, nil)
	require.NoError(t, err)
	res, err := c.http.Do(req)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	return res.StatusCode
}
