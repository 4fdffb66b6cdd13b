package providertest

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Behaviour answers one request, or does not.
type Behaviour func(x *Exchange)

// OK streams a good answer.
func OK() Behaviour {
	return func(x *Exchange) { x.stream(x.Output()) }
}

// Says streams the given output and ends with reason.
func Says(output, reason string) Behaviour {
	return func(x *Exchange) {
		x.Headers()
		for _, p := range Pieces(output, 3) {
			x.Content(p)
		}
		x.Finish(reason, Tokens(output))
	}
}

func (x *Exchange) stream(output string) { Says(output, "stop")(x) }

// Slow is OK after d without a sign of life.
func Slow(d time.Duration) Behaviour {
	return func(x *Exchange) {
		if x.Pause(d) {
			OK()(x)
		}
	}
}

// After is b once the signal comes.
func After(signal <-chan struct{}, b Behaviour) Behaviour {
	return func(x *Exchange) {
		if x.Until(signal) {
			b(x)
		}
	}
}

// Hold is b after the next Release, with no sign of life before.
func Hold(b Behaviour) Behaviour {
	return func(x *Exchange) {
		if x.held() {
			b(x)
		}
	}
}

// AckThenHold acknowledges, and answers after the next Release.
func AckThenHold() Behaviour {
	return func(x *Exchange) {
		x.Headers()
		if x.held() {
			output := x.Output()
			x.Content(output)
			x.Finish("stop", Tokens(output))
		}
	}
}

// Hang never answers.
func Hang() Behaviour {
	return func(x *Exchange) { x.Until(nil) }
}

// AckThenSilent acknowledges, sends a first piece and then nothing.
func AckThenSilent() Behaviour {
	return func(x *Exchange) {
		x.Headers()
		x.Content("{")
		x.Until(nil)
	}
}

// Reset resets the connection after the request was read.
func Reset() Behaviour { return func(x *Exchange) { x.Break(true) } }

// Drop closes the connection after the request was read.
func Drop() Behaviour { return func(x *Exchange) { x.Break(false) } }

// CutAfter streams some pieces and then ends the stream cleanly, without its end marker.
func CutAfter(n int) Behaviour {
	return func(x *Exchange) { x.begin(n) }
}

// DropAfter streams some pieces and then breaks the connection.
func DropAfter(n int) Behaviour {
	return func(x *Exchange) {
		x.begin(n)
		x.Break(true)
	}
}

func (x *Exchange) begin(n int) {
	x.Headers()
	for i, p := range Pieces(x.Output(), n+2) {
		if i < n {
			x.Content(p)
		}
	}
}

// NoDone streams a good answer with its finish reason and leaves out the end marker.
func NoDone() Behaviour {
	return func(x *Exchange) {
		x.Headers()
		x.Content(x.Output())
		x.Data(`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`)
	}
}

// WrongContentLength promises more than it sends.
func WrongContentLength() Behaviour {
	return func(x *Exchange) {
		x.Raw("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 100000\r\n\r\ndata: " + x.Chunk("{") + "\n\n")
	}
}

// Whole answers with a completion in one piece, as servers do that do not stream.
func Whole(reason string) Behaviour {
	return func(x *Exchange) {
		output := x.Output()
		x.Respond(http.StatusOK, "application/json", fmt.Sprintf(
			`{"id":"chatcmpl-whole","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":%s},"finish_reason":%s}],"usage":{"prompt_tokens":11,"prompt_tokens_details":{"cached_tokens":%d},"completion_tokens":%d}}`,
			quote(output), quote(reason), CachedTokens, Tokens(output)))
	}
}

// HTML is a page with the given status.
func HTML(status int) Behaviour {
	return Status(status, "text/html; charset=utf-8", "<!doctype html><html><body>Bad gateway</body></html>")
}

// Error is the provider's own error with the given status and code. Headers are pairs.
func Error(status int, code string, headers ...string) Behaviour {
	return Status(status, "application/json", ErrorBody(code), headers...)
}

// ErrorBody is the JSON of the provider's own error.
func ErrorBody(code string) string {
	return fmt.Sprintf(`{"error":{"message":"the fake provider says no","type":"fake_error","param":null,"code":%s}}`, quote(code))
}

// Status answers with any status and body. Headers are pairs.
func Status(status int, contentType, body string, headers ...string) Behaviour {
	return func(x *Exchange) { x.Respond(status, contentType, body, headers...) }
}

// Events streams the given data, one event each, and ends cleanly.
func Events(data ...string) Behaviour {
	return func(x *Exchange) {
		x.Headers()
		for _, d := range data {
			x.Data(d)
		}
	}
}

// Drip streams one piece per interval, for ever.
func Drip(interval time.Duration) Behaviour {
	return func(x *Exchange) {
		x.Headers()
		for x.Pause(interval) {
			x.Content(".")
		}
	}
}

// Huge streams chunks until n bytes are sent, and then ends well.
func Huge(n int) Behaviour {
	return func(x *Exchange) {
		x.Headers()
		chunk := "data: " + x.Chunk(strings.Repeat("a", 64<<10)) + "\n\n"
		for sent := 0; sent < n && !x.gone(); sent += len(chunk) {
			if _, err := x.w.Write([]byte(chunk)); err != nil {
				return
			}
		}
		x.Finish("stop", 1)
	}
}

// CRLF streams a good answer with CRLF line ends, comments, a byte order mark and events over several data lines.
func CRLF() Behaviour {
	return func(x *Exchange) { x.crlf(x.Output()) }
}

func (x *Exchange) crlf(output string) {
	x.Headers()
	x.Write("\ufeff: hello\r\n\r\n")
	for _, p := range Pieces(output, 3) {
		x.Write(": keep-alive\r\nevent: message\r\nid: 1\r\ndata: " + strings.Replace(x.Chunk(p), `,"choices"`, ",\r\ndata: \"choices\"", 1) + "\r\n\r\n")
	}
	x.Write("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\r\n\r\ndata:[DONE]\r\n\r\n")
}

// SplitBytes streams the output one byte at a time, so that characters are split between writes.
func SplitBytes(output string) Behaviour {
	return func(x *Exchange) {
		x.Headers()
		for _, b := range []byte("data: " + x.Chunk(output) + "\n\n") {
			x.Write(string([]byte{b}))
		}
		x.Finish("stop", 1)
	}
}

// ErrorEvent streams a piece and then the provider's error.
func ErrorEvent(code string) Behaviour {
	return func(x *Exchange) {
		x.Headers()
		x.Content("{")
		x.Data(ErrorBody(code))
	}
}

// DamagedEvent streams a good answer with one broken event in its middle.
func DamagedEvent() Behaviour {
	return func(x *Exchange) {
		x.Headers()
		for i, p := range Pieces(x.Output(), 3) {
			if i == 1 {
				x.Data(`{"choices":[{"index":0,"delta":{"con`)
				continue
			}
			x.Content(p)
		}
		x.Finish("stop", 1)
	}
}

// Duplicated sends every piece twice.
func Duplicated() Behaviour {
	return func(x *Exchange) { x.duplicated(x.Output()) }
}

func (x *Exchange) duplicated(output string) {
	x.Headers()
	for _, p := range Pieces(output, 3) {
		x.Content(p)
		x.Content(p)
	}
	x.Finish("stop", Tokens(output))
}

// BreaksReused answers the first request of a connection in one piece, keeps the connection, and closes it unanswered
// when the next one was read. That is what net/http re-sends by itself if it may.
func BreaksReused() Behaviour {
	return func(x *Exchange) {
		if x.Entry.OnConnection > 1 {
			x.Break(false)
			return
		}
		Whole("stop")(x)
	}
}

var withNumber = regexp.MustCompile(`^(ok-slow|fail|error|drip)-([0-9]+)(ms|s)?$`)

// ByModelName returns the behaviour that a model's name asks for, OK for other names:
//
//	ok-slow-500ms   a good answer after that time
//	fail-500        the provider's own error with that status
//	error-502       a page with that status, as a box in the middle sends it
//	drip-100ms      pieces for ever
//	hang, ack-then-silent, hold, ack-then-hold (until POST /release), reset, drop, cut, drop-middle, no-done, whole,
//	html, error-200, error-event, damaged, huge, crlf, duplicated, refuse, length, quota, breaks-reused
func ByModelName(model string) Behaviour {
	if m := withNumber.FindStringSubmatch(model); m != nil {
		n, err := strconv.Atoi(m[2])
		d, errD := time.ParseDuration(m[2] + m[3])
		switch {
		case m[1] == "ok-slow" && errD == nil:
			return Slow(d)
		case m[1] == "drip" && errD == nil:
			return Drip(d)
		case m[1] == "fail" && err == nil && n >= 300 && n <= 599:
			return Error(n, "fake_failure")
		case m[1] == "error" && err == nil && n >= 300 && n <= 599:
			return HTML(n)
		}
	}
	if b, ok := named[model]; ok {
		return b
	}
	return OK()
}

var named = map[string]Behaviour{
	"hang": Hang(), "ack-then-silent": AckThenSilent(), "hold": Hold(OK()), "ack-then-hold": AckThenHold(),
	"reset": Reset(), "drop": Drop(), "cut": CutAfter(2), "drop-middle": DropAfter(2), "no-done": NoDone(),
	"whole": Whole("stop"), "html": HTML(http.StatusOK), "error-200": Error(http.StatusOK, "fake_failure"),
	"error-event": ErrorEvent("server_error"), "damaged": DamagedEvent(), "huge": Huge(50 << 20), "crlf": CRLF(),
	"duplicated": Duplicated(), "refuse": Events(`{"choices":[{"index":0,"delta":{"refusal":"no"},"finish_reason":"stop"}]}`, "[DONE]"),
	"length": Says("{", "length"), "quota": Error(http.StatusTooManyRequests, "insufficient_quota"), "breaks-reused": BreaksReused(),
}
