package providertest

import (
	"fmt"
	"time"
)

// Misbehaviour is one way of a provider to go wrong, or to be odd and right, and what becomes of the attempt.
type Misbehaviour struct {
	Name   string // good for a model's name
	Behave Behaviour
	Limits Limits
	State  string // of the attempt when the request is over
	Code   string // of its error
	// Breaks says that the answer is complete and its text is not valid: what follows is not the adapter's to say.
	Breaks bool
	// Silent says that nothing came that acknowledges the request, before a time-out if there is one.
	Silent bool
}

// Limits are the time-outs that a misbehaviour is about. A zero is one that it does not reach.
type Limits struct{ Ack, Idle, Total time.Duration }

const (
	short = 500 * time.Millisecond // a time-out that is reached
	long  = time.Second            // what goes beyond it
)

// Misbehaviours are all of them, each of which ends by itself or within a few seconds. answer is a valid output of the
// task that is asked for, with a character of more than one byte in it.
func Misbehaviours(answer string) []Misbehaviour {
	const unknown, failed, succeeded = "UNKNOWN", "FAILED", "SUCCEEDED"
	good := Says(answer, "stop")
	return []Misbehaviour{
		{Name: "no-answer", Behave: Hang(), Limits: Limits{Ack: short}, State: unknown, Code: "ACK_TIMEOUT", Silent: true},
		{Name: "late-answer-in-time", Behave: pause(long, good), State: succeeded},
		{Name: "late-answer-after-the-time-out", Behave: pause(long, good), Limits: Limits{Ack: short}, State: succeeded, Silent: true},
		{Name: "reset", Behave: Reset(), State: unknown, Code: "CONNECTION_LOST", Silent: true},
		{Name: "closed", Behave: Drop(), State: unknown, Code: "CONNECTION_LOST", Silent: true},
		{Name: "truncated-stream", Behave: DropAfter(2), State: unknown, Code: "CONNECTION_LOST"},
		{Name: "truncated-stream-cleanly", Behave: CutAfter(2), State: unknown, Code: "STREAM_TRUNCATED"},
		{Name: "truncated-body", Behave: Status(200, "application/json", `{"choices":[{"message":{"content":"{}`), State: unknown, Code: "STREAM_TRUNCATED"},
		{Name: "stream-without-its-end-marker", Behave: NoDone(), State: unknown, Code: "STREAM_TRUNCATED"},
		{Name: "stream-that-falls-silent", Behave: AckThenSilent(), Limits: Limits{Idle: short}, State: unknown, Code: "IDLE_TIMEOUT"},
		{Name: "stream-without-an-end", Behave: Drip(short / 10), Limits: Limits{Total: 2 * long}, State: unknown, Code: "TOTAL_TIMEOUT"},
		{Name: "content-length-too-long", Behave: WrongContentLength(), State: unknown, Code: "CONNECTION_LOST"},
		{Name: "content-length-too-short", Behave: ShortContentLength(answer), State: unknown, Code: "STREAM_TRUNCATED"},
		{Name: "html-with-200", Behave: HTML(200), State: failed, Code: "MALFORMED_ANSWER"},
		{Name: "error-object-with-200", Behave: Error(200, "fake_failure"), State: failed, Code: "PROVIDER_ERROR"},
		{Name: "slow-drip", Behave: SlowDrip(answer, short/10), State: succeeded},
		{Name: "50-megabytes", Behave: Huge(50 << 20), State: failed, Code: "MALFORMED_ANSWER"},
		{Name: "crlf-and-comments", Behave: func(x *Exchange) { x.crlf(answer) }, State: succeeded},
		{Name: "characters-split-between-chunks", Behave: SplitBytes(answer), State: succeeded},
		{Name: "error-event-in-mid-stream", Behave: ErrorEvent("fake_failure"), State: failed, Code: "PROVIDER_ERROR"},
		{Name: "duplicated-chunks", Behave: func(x *Exchange) { x.duplicated(answer) }, State: failed, Code: "OUTPUT_NOT_JSON", Breaks: true},
	}
}

func pause(d time.Duration, b Behaviour) Behaviour {
	return func(x *Exchange) {
		if x.Pause(d) {
			b(x)
		}
	}
}

// SlowDrip streams the output one character at a time, with a pause before each, and ends well.
func SlowDrip(output string, interval time.Duration) Behaviour {
	return func(x *Exchange) {
		x.Headers()
		for _, c := range output {
			if !x.Pause(interval) {
				return
			}
			x.Content(string(c))
		}
		x.Finish("stop", Tokens(output))
	}
}

// ShortContentLength sends a good answer in one piece and promises less than half of it.
func ShortContentLength(output string) Behaviour {
	return func(x *Exchange) {
		body := fmt.Sprintf(`{"id":"chatcmpl-short","choices":[{"index":0,"message":{"role":"assistant","content":%s},"finish_reason":"stop"}]}`, quote(output))
		x.Raw(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body)/2, body))
	}
}
