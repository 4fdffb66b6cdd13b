package providertest

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// Request is what the fake reads of a request.
type Request struct {
	Model     string `json:"model"`
	MaxTokens int    `json:"max_tokens"`
	Stream    bool   `json:"stream"`
	Messages  []struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	} `json:"messages"`
	ResponseFormat struct {
		JSONSchema struct {
			Name   string          `json:"name"`
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	} `json:"response_format"`
}

// Exchange is a request whose body was read, and the means to answer it.
type Exchange struct {
	Request Request
	Entry   Entry

	w        http.ResponseWriter
	http     *http.Request
	server   *Server
	released <-chan struct{}
}

// Header is one of the request's headers.
func (x *Exchange) Header(name string) string { return x.http.Header.Get(name) }

// gone says whether the client went or the server ends.
func (x *Exchange) gone() bool {
	select {
	case <-x.http.Context().Done():
		return true
	case <-x.server.closing:
		return true
	default:
		return false
	}
}

// Until waits for the signal. It returns false if the client went or the server ends first.
func (x *Exchange) Until(signal <-chan struct{}) bool {
	select {
	case <-signal:
		return true
	case <-x.http.Context().Done():
	case <-x.server.closing:
	}
	return false
}

// Pause waits d, with Until's result.
func (x *Exchange) Pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-x.http.Context().Done():
	case <-x.server.closing:
	}
	return false
}

// held waits for the first Release after the request was logged.
func (x *Exchange) held() bool { return x.Until(x.released) }

// Output is what the request is answered with by itself, see Answer.
func (x *Exchange) Output() string {
	said := map[string]string{}
	for _, m := range x.Request.Messages {
		said[m.Role] = m.Content
	}
	f := x.Request.ResponseFormat.JSONSchema
	return Answer(f.Name, said["system"], said["user"], f.Schema)
}

// Headers sends status 200 with the headers of a stream.
func (x *Exchange) Headers() {
	x.w.Header().Set("Content-Type", "text/event-stream")
	x.name()
	x.w.WriteHeader(http.StatusOK)
	x.flush()
}

func (x *Exchange) name() {
	if x.server.protocol.Unnamed {
		return
	}
	header := x.server.protocol.RequestID
	if header == "" {
		header = "X-Request-Id"
	}
	x.w.Header().Set(header, x.id())
}

func (x *Exchange) id() string { return fmt.Sprintf("req_fake_%d", x.Entry.Number) }

// Write sends bytes as they are, at once.
func (x *Exchange) Write(s string) {
	_, _ = x.w.Write([]byte(s))
	x.flush()
}

func (x *Exchange) flush() { _ = http.NewResponseController(x.w).Flush() }

// Data sends one event.
func (x *Exchange) Data(data string) { x.Write("data: " + data + "\n\n") }

// Content sends a piece of output as a chunk.
func (x *Exchange) Content(piece string) { x.Data(x.Chunk(piece)) }

// Chunk returns the JSON of a chunk.
func (x *Exchange) Chunk(piece string) string {
	return fmt.Sprintf(`{"id":%s,"object":"chat.completion.chunk","model":%s,"choices":[{"index":0,"delta":{"content":%s},"finish_reason":null}]}`,
		quote("chatcmpl-"+x.id()), quote(x.Request.Model), quote(piece))
}

// Finish sends the finish reason, the usage and the end marker.
func (x *Exchange) Finish(reason string, outputTokens int) {
	x.Data(fmt.Sprintf(`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":%s}]}`, quote(reason)))
	x.Data(fmt.Sprintf(`{"object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":11,"prompt_tokens_details":{"cached_tokens":%d},"completion_tokens":%d,"total_tokens":%d}}`,
		CachedTokens, outputTokens, outputTokens+11))
	x.Data("[DONE]")
}

// Respond sends a whole answer.
func (x *Exchange) Respond(status int, contentType, body string, headers ...string) {
	x.name()
	x.w.Header().Set("Content-Type", contentType)
	for i := 0; i+1 < len(headers); i += 2 {
		x.w.Header().Set(headers[i], headers[i+1])
	}
	x.w.WriteHeader(status)
	_, _ = x.w.Write([]byte(body))
}

// Break closes the connection in the middle of whatever is being sent. With reset the client sees a reset instead of an end.
func (x *Exchange) Break(reset bool) {
	c, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := c.(*net.TCPConn); ok && reset {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// Raw takes the connection over and sends bytes as they are, headers included. It closes the connection.
func (x *Exchange) Raw(bytes string) {
	c, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_, _ = c.Write([]byte(bytes))
	_ = c.Close()
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `""`
	}
	return string(b)
}

// Pieces cuts s into about n parts, between characters.
func Pieces(s string, n int) []string {
	r := []rune(s)
	size := max(1, (len(r)+n-1)/n)
	var out []string
	for len(r) > 0 {
		k := min(size, len(r))
		out = append(out, string(r[:k]))
		r = r[k:]
	}
	return out
}

// CachedTokens is how many of the input tokens the fakes took from their cache.
const CachedTokens = 4

// Tokens is how many tokens the fakes count.
func Tokens(s string) int { return len(strings.Fields(s)) + 1 }
