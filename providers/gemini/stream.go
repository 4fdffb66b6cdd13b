package gemini

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/exchange"
	"github.com/docket-gateway/docket/providers/sse"
)

// maxEvent bounds one event of a stream, which may hold the whole output.
const maxEvent = 16 << 20

// readAnswer reads the body of a 2xx answer of streamGenerateContent: a stream of events, or, from a server in between that
// makes none, a response or a list of them.
func readAnswer(a exchange.Answer) (providers.Outcome, error) {
	return exchange.ReadForm(a, "response", readWhole, readStream)
}

// readWhole reads what came in one piece.
func readWhole(body io.Reader) (providers.Outcome, error) {
	raw, err := io.ReadAll(body)
	if err != nil {
		return providers.Outcome{}, err //nolint:wrapcheck // as it is, for exchange
	}
	raw = bytes.TrimSpace(raw)
	if !json.Valid(raw) && exchange.CutShort(raw) {
		return exchange.CutOff("the answer's JSON ends early"), nil
	}
	chunks := []json.RawMessage{raw}
	if bytes.HasPrefix(raw, []byte("[")) && json.Unmarshal(raw, &chunks) != nil {
		chunks = []json.RawMessage{raw} // no response either
	}
	var s answer
	for _, c := range chunks {
		if e, ok := readError(c); ok {
			return s.with(e.InStream()), nil
		}
		s.damaged = s.add(c) != nil || s.damaged
	}
	return s.outcome(true), nil
}

// readStream reads events up to the end of the stream, since nothing else marks it: a finish reason says that the candidate
// is complete, but older models sent one with each chunk. With a clean end and no finish reason the stream was cut, also where
// no chunk had a candidate: nothing tells that from a stream that a box in between ended before the first one. A damaged
// event makes the answer unusable, but whether it was ended or cut is only known at the end, so reading goes on.
func readStream(body io.Reader, labelled bool) (providers.Outcome, error) {
	events := sse.NewReader(body, maxEvent)
	var s answer
	for {
		event, err := events.Next()
		switch {
		case errors.Is(err, sse.ErrEventTooLarge):
			return s.with(exchange.Malformed("an event that is too large")), nil
		case errors.Is(err, io.EOF):
			// An error in the middle of a stream comes as bare lines of JSON
			// (https://github.com/googleapis/python-genai/issues/1162); the SDK's iterateResponseStream looks for it too.
			if e, ok := readError(events.Damaged()); ok {
				return s.with(e.InStream()), nil
			}
			damaged := events.DamagedLines() > 0
			if !s.any && damaged && !labelled {
				return exchange.Malformed("neither a stream nor a response"), nil
			}
			s.damaged = s.damaged || damaged
			return s.outcome(false), nil
		case err != nil:
			return s.with(providers.Outcome{}), err //nolint:wrapcheck // as it is, for exchange
		}
		s.any = true
		data := bytes.TrimSpace(event.Data)
		if len(data) == 0 {
			continue
		}
		if e, ok := readError(data); ok {
			return s.with(e.InStream()), nil
		}
		if s.add(data) != nil {
			s.damaged = true
		}
	}
}
