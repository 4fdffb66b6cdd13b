package openaicompat

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/exchange"
	"github.com/docket-gateway/docket/providers/sse"
)

// maxEvent bounds one event of a stream. Servers that answer with a single chunk put the whole output in it.
const maxEvent = 4 << 20

// ReadAnswer reads the body of a 2xx answer: a stream, or a whole completion from a server that does not stream. limit is
// the request's bound on output tokens, 0 if it had none.
func ReadAnswer(a exchange.Answer, limit int) (providers.Outcome, error) {
	return exchange.ReadForm(a, "completion",
		func(body io.Reader) (providers.Outcome, error) { return readWhole(body, limit) },
		func(body io.Reader, labelled bool) (providers.Outcome, error) {
			return readStream(body, labelled, limit)
		})
}

// readWhole reads a completion in one piece.
func readWhole(body io.Reader, limit int) (providers.Outcome, error) {
	raw, err := io.ReadAll(body)
	if err != nil {
		return providers.Outcome{}, err
	}
	raw = bytes.TrimSpace(raw)
	c, err := decode(raw)
	if err != nil {
		if exchange.CutShort(raw) {
			return exchange.CutOff("the answer's JSON ends early"), nil
		}
		return exchange.Malformed("an answer that is not a completion"), nil
	}
	if e, ok := ReadErrorBody(raw); ok {
		out := e.InStream()
		out.ProviderRequestID = c.ID
		return out, nil
	}
	var s answer
	s.add(c)
	return s.outcome(true, limit), nil
}

// readStream reads events up to the end marker. A damaged event makes the answer unusable, but whether the provider
// ended it or it was cut is only known at the end, so reading goes on.
func readStream(body io.Reader, labelled bool, limit int) (providers.Outcome, error) {
	events := sse.NewReader(body, maxEvent)
	var s answer
	for {
		event, err := events.Next()
		switch {
		case errors.Is(err, sse.ErrEventTooLarge):
			return s.with(exchange.Malformed("an event that is too large")), nil
		case errors.Is(err, io.EOF):
			// With a clean end and not one event it was no stream at all, unless the server called it one.
			if !s.any && events.DamagedLines() > 0 && !labelled {
				return exchange.Malformed("neither a stream nor a completion"), nil
			}
			return s.with(exchange.CutOff("the stream ended without its end marker")), nil
		case err != nil:
			return s.with(providers.Outcome{}), err
		}
		s.any = true
		data := bytes.TrimSpace(event.Data)
		if string(data) == "[DONE]" {
			s.damaged = s.damaged || events.DamagedLines() > 0
			return s.outcome(false, limit), nil
		}
		if len(data) == 0 {
			continue // keep-alives of some servers
		}
		c, err := decode(data)
		if err != nil {
			s.damaged = true
			continue
		}
		e, failed := ReadErrorBody(data)
		if event.Name == "error" && !failed { // the error's fields without an envelope
			e, failed = ReadErrorObject(json.RawMessage(data))
		}
		if failed {
			s.id = c.ID
			return s.with(e.InStream()), nil
		}
		s.add(c)
	}
}
