package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/openai/openai-go/v3/responses"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/exchange"
	"github.com/docket-gateway/docket/providers/openaicompat"
	"github.com/docket-gateway/docket/providers/sse"
)

// maxEvent bounds one event of a stream. The last one holds the whole response, with the request's instructions.
const maxEvent = 16 << 20

// readResponses reads the body of a 2xx answer of POST /responses: a stream, or a whole response from a server in between that
// does not stream.
func readResponses(a exchange.Answer) (providers.Outcome, error) {
	return exchange.ReadForm(a, "response",
		func(body io.Reader) (providers.Outcome, error) { return readWhole(body, a.Acknowledge) },
		func(body io.Reader, labelled bool) (providers.Outcome, error) {
			return readStream(body, labelled, a.Acknowledge)
		})
}

// readWhole reads a response in one piece.
func readWhole(body io.Reader, acknowledge func(string)) (providers.Outcome, error) {
	raw, err := io.ReadAll(body)
	if err != nil {
		return providers.Outcome{}, err
	}
	raw = bytes.TrimSpace(raw)
	resp, ok := decodeResponse(raw)
	if !ok {
		if exchange.CutShort(raw) {
			return exchange.CutOff("the answer's JSON ends early"), nil
		}
		if e, ok := openaicompat.ReadErrorBody(raw); ok {
			return e.InStream(), nil
		}
		return exchange.Malformed("an answer that is not a response"), nil
	}
	acknowledge(resp.ID)
	return outcome(resp), nil
}

// readStream reads events up to the one that ends the response. That one holds the whole response, so that the pieces
// before it are signs of life only. A damaged event makes the answer unusable all the same, since nobody can tell what it
// was; whether the provider ended the stream or it was cut is only known at the end, so reading goes on.
func readStream(body io.Reader, labelled bool, acknowledge func(string)) (providers.Outcome, error) {
	events := sse.NewReader(body, maxEvent)
	var known providers.Outcome // what the events so far said of the request
	with := func(out providers.Outcome) providers.Outcome {
		out.ProviderRequestID, out.Usage = known.ProviderRequestID, known.Usage
		return out
	}
	came, damaged := false, false
	for {
		event, err := events.Next()
		switch {
		case errors.Is(err, sse.ErrEventTooLarge):
			return with(exchange.Malformed("an event that is too large")), nil
		case errors.Is(err, io.EOF):
			// With a clean end and not one event it was no stream at all, unless the server called it one.
			if !came && events.DamagedLines() > 0 && !labelled {
				return exchange.Malformed("neither a stream nor a response"), nil
			}
			return with(exchange.CutOff("the stream ended without its last event")), nil
		case err != nil:
			return known, err
		}
		came = true
		data := bytes.TrimSpace(event.Data)
		if len(data) == 0 {
			continue
		}
		var head struct {
			Type     string          `json:"type"`
			Response json.RawMessage `json:"response"`
		}
		if !exchange.WellFormed(data) || json.Unmarshal(data, &head) != nil {
			damaged = true
			continue
		}
		switch head.Type {
		case "response.created", "response.queued", "response.in_progress":
			resp, ok := decodeResponse(head.Response)
			if !ok {
				damaged = true
				continue
			}
			known.ProviderRequestID = resp.ID
			acknowledge(resp.ID)
		case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
			resp, ok := decodeResponse(head.Response)
			if !ok {
				return with(exchange.Malformed("a last event without a response")), nil
			}
			out := outcome(resp)
			if damaged || events.DamagedLines() > 0 {
				known.Usage = out.Usage
				return with(exchange.Malformed("a stream with damaged events")), nil
			}
			if out.Kind == providers.Unknown {
				known.Usage = out.Usage
				return with(exchange.Malformed("a last event whose response has not ended")), nil
			}
			return out, nil
		case "error":
			e, ok := readErrorEvent(data)
			if !ok {
				return with(exchange.Malformed("an error event without an error")), nil
			}
			return with(e.InStream()), nil
		default:
			if e, ok := openaicompat.ReadErrorBody(data); ok { // as a box in the middle sends it
				return with(e.InStream()), nil
			}
		}
	}
}

// readErrorEvent reads an error event: its own fields, or an error object of the kind that other answers have.
func readErrorEvent(data []byte) (exchange.ErrorBody, bool) {
	if e, ok := openaicompat.ReadErrorBody(data); ok {
		return e, true
	}
	var e responses.ResponseErrorEvent
	if err := e.UnmarshalJSON(data); err != nil || e.Code == "" && e.Message == "" {
		return exchange.ErrorBody{}, false
	}
	return exchange.ErrorBody{Code: e.Code, Message: e.Message}, true
}
