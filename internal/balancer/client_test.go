package balancer

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
	"github.com/stretchr/testify/require"
)

type job struct {
	ID, IdempotencyKey, State string
	Attempts                  []struct{ ID string }
	Events                    []struct{ Number int }
	Input                     json.RawMessage
}

type response struct {
	status int
	Data   struct {
		CreateJob struct {
			Typename string `json:"__typename"`
			Replayed bool
			Job      job
		}
		JobByKey *job
		Jobs     struct{ TotalCount int }
		Viewer   struct{ Subject string }
	}
	Errors []struct {
		Message    string
		Extensions struct{ Code string }
	}
}

type variables map[string]any

const (
	createDocument = `mutation($input: CreateJobInput!){createJob(input: $input){__typename ...on CreateJobSuccess{replayed job{id idempotencyKey input attempts{id}}}}}`
	byKeyDocument  = `query($key: String!){jobByKey(idempotencyKey: $key){id state attempts{id} events{number}}}`
	viewerDocument = `{viewer{subject}}`
	watchDocument  = `subscription($id: ID!, $after: Int){jobEvents(jobId: $id, after: $after){number}}`
)

// client speaks with a balancer or with one replica. It has no connection that could go stale.
type client struct{ url string }

var plain = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func encode(document string, vars variables) []byte {
	raw, err := json.Marshal(map[string]any{"query": document, "variables": vars})
	if err != nil {
		panic(err) // only plain values are given
	}
	return raw
}

func (c client) request(ctx context.Context, body []byte, key string) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/graphql", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.GetBody = nil // Go would repeat it by itself
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer dev:alice")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	return r, nil
}

// try posts the body, with the key as header if there is one. An answer that is not Docket's is an error.
func (c client) try(ctx context.Context, body []byte, key string) (out response, err error) {
	r, err := c.request(ctx, body, key)
	if err != nil {
		return out, err
	}
	res, err := plain.Do(r)
	if err != nil {
		return out, err
	}
	defer func() { _ = res.Body.Close() }()
	out.status = res.StatusCode
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		return out, fmt.Errorf("status %d: %w", res.StatusCode, err)
	}
	return out, nil
}

func (c client) post(t *testing.T, key, document string, vars variables) response {
	t.Helper()
	out, err := c.try(t.Context(), encode(document, vars), key)
	require.NoError(t, err)
	require.Empty(t, out.Errors)
	return out
}

func intent(key string, more variables) variables {
	input := variables{"task": "note", "input": variables{"text": "hello"}}
	if key != "" {
		input["idempotencyKey"] = key
	}
	for k, v := range more {
		input[k] = v
	}
	return variables{"input": input}
}

// follow gives the numbers of a job's events, after one of them, to each; it returns whether the stream was completed.
// begun is called when the stream is open.
type follow func(ctx context.Context, c client, id string, after int, begun func(), each func(number int)) (complete bool, err error)

var follows = map[string]follow{"WebSocket": overWebSocket, "SSE": overSSE}

type next struct {
	Data struct{ JobEvents struct{ Number int } }
}

func overWebSocket(ctx context.Context, c client, id string, after int, begun func(), each func(int)) (bool, error) {
	conn, res, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(c.url, "http")+"/graphql", &websocket.DialOptions{
		HTTPClient: plain, Subprotocols: []string{"graphql-transport-ws"},
	})
	if err != nil {
		return false, err
	}
	if res.Body != nil {
		_ = res.Body.Close()
	}
	defer func() { _ = conn.CloseNow() }()
	for _, m := range []any{
		variables{"type": "connection_init", "payload": variables{"Authorization": "Bearer dev:alice"}},
		variables{"type": "subscribe", "id": "1", "payload": variables{"query": watchDocument, "variables": variables{"id": id, "after": after}}},
	} {
		if err := wsjson.Write(ctx, conn, m); err != nil {
			return false, err
		}
	}
	for {
		var m struct {
			Type    string
			Payload json.RawMessage
		}
		if err := wsjson.Read(ctx, conn, &m); err != nil {
			return false, err
		}
		switch m.Type {
		case "connection_ack":
			begun()
		case "next":
			var n next
			if err := json.Unmarshal(m.Payload, &n); err != nil {
				return false, err
			}
			each(n.Data.JobEvents.Number)
		case "complete":
			return true, nil
		case "error":
			return false, fmt.Errorf("the subscription failed: %s", m.Payload)
		}
	}
}

func overSSE(ctx context.Context, c client, id string, after int, begun func(), each func(int)) (bool, error) {
	r, err := c.request(ctx, encode(watchDocument, variables{"id": id, "after": after}), "")
	if err != nil {
		return false, err
	}
	r.Header.Set("Accept", "text/event-stream")
	res, err := plain.Do(r)
	if err != nil {
		return false, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return false, fmt.Errorf("status %d", res.StatusCode)
	}
	begun()
	lines := bufio.NewScanner(res.Body)
	kind := ""
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		switch {
		case name == "event":
			kind = strings.TrimSpace(value)
		case name == "data" && kind == "complete":
			return true, nil
		case name == "data":
			var n next
			if err := json.Unmarshal([]byte(value), &n); err != nil {
				return false, err // cut off in the middle
			}
			each(n.Data.JobEvents.Number)
		}
	}
	return false, lines.Err() // also nil: the stream broke off
}
