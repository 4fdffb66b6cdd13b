package anthropic

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/exchange"
	"github.com/docket-gateway/docket/providers/sse"
)

// maxEvent bounds one event of a stream.
const maxEvent = 4 << 20

// reader reads the answer of a request, which offered a tool or did not.
type reader struct{ tool bool }

// read reads the body of a 2xx answer of POST /v1/messages: a stream, or a whole message from a server in between that does not
// stream.
func (r reader) read(a exchange.Answer) (providers.Outcome, error) {
	return exchange.ReadForm(a, "message", r.readWhole, r.readStream)
}

// readWhole reads a message in one piece.
func (r reader) readWhole(body io.Reader) (providers.Outcome, error) {
	raw, err := io.ReadAll(body)
	if err != nil {
		return providers.Outcome{}, err
	}
	raw = bytes.TrimSpace(raw)
	m, ok := decodeMessage(raw)
	if ok {
		return m.outcome(r.tool), nil
	}
	if exchange.CutShort(raw) {
		return exchange.CutOff("the answer's JSON ends early"), nil
	}
	if e, ok := readErrorBody(raw); ok {
		return e.InStream(), nil
	}
	return exchange.Malformed("an answer that is not a message"), nil
}

// decodeMessage decodes with the SDK's type, which takes anything for a message, and says what is none.
func decodeMessage(raw []byte) (message, bool) {
	var w sdk.Message
	if !exchange.WellFormed(raw) || json.Unmarshal(raw, &w) != nil || w.JSON.Type.Raw() != `"message"` || !text(w.JSON.ID) || !text(w.JSON.StopReason) {
		return message{}, false
	}
	m := message{id: w.ID, stop: w.StopReason}
	m.usage.start(w.Usage)
	take(&m.usage.output, w.Usage.JSON.OutputTokens, w.Usage.OutputTokens)
	for _, c := range w.Content {
		b := block{kind: c.Type, name: c.Name, input: c.JSON.Input.Raw()}
		if c.Type == "text" {
			if !text(c.JSON.Text) {
				return message{}, false
			}
			b.text = []byte(c.Text)
		}
		m.blocks = append(m.blocks, b)
	}
	return m, true
}

// readStream reads events up to message_stop. A damaged event, or one out of its order, makes the answer unusable, since nobody
// can tell what it was; whether the provider ended the stream or it was cut is only known at the end, so reading goes on.
func (r reader) readStream(body io.Reader, labelled bool) (providers.Outcome, error) {
	events := sse.NewReader(body, maxEvent)
	var s stream
	with := func(out providers.Outcome) providers.Outcome {
		out.ProviderRequestID, out.Usage = s.id, s.usage.billed()
		return out
	}
	some := false
	for {
		event, err := events.Next()
		switch {
		case errors.Is(err, sse.ErrEventTooLarge):
			return with(exchange.Malformed("an event that is too large")), nil
		case errors.Is(err, io.EOF):
			// With a clean end and not one event it was no stream at all, unless the server called it one.
			if !some && events.DamagedLines() > 0 && !labelled {
				return exchange.Malformed("neither a stream nor a message"), nil
			}
			return with(exchange.CutOff("the stream ended without message_stop")), nil
		case err != nil:
			return with(providers.Outcome{}), err
		}
		some = true
		data := bytes.TrimSpace(event.Data)
		if len(data) == 0 {
			continue
		}
		var e sdk.MessageStreamEventUnion
		if !exchange.WellFormed(data) || json.Unmarshal(data, &e) != nil {
			s.damaged = true
			continue
		}
		switch e.Type {
		case "message_stop":
			if s.damaged || s.anyOpen() || events.DamagedLines() > 0 {
				return with(exchange.Malformed("a stream with damaged events")), nil
			}
			return s.outcome(r.tool), nil
		case "error":
			body, ok := readErrorBody(data)
			if !ok {
				return with(exchange.Malformed("an error event without an error")), nil
			}
			return with(body.InStream()), nil
		default:
			if !s.take(e) {
				s.damaged = true
			}
		}
	}
}

// stream is a message on its way.
type stream struct {
	message
	started bool
	damaged bool
}

func (s *stream) anyOpen() bool {
	for _, b := range s.blocks {
		if b.open {
			return true
		}
	}
	return false
}

// at returns the open block with that index, nil if there is none.
func (s *stream) at(e sdk.MessageStreamEventUnion) *block {
	if !e.JSON.Index.Valid() || text(e.JSON.Index) || e.Index < 0 || e.Index >= int64(len(s.blocks)) || !s.blocks[e.Index].open {
		return nil
	}
	return &s.blocks[e.Index]
}

// take reads one event and returns false if it is damaged. ping and kinds of events that are not known yet say nothing
// (https://platform.claude.com/docs/en/build-with-claude/streaming#other-events).
func (s *stream) take(e sdk.MessageStreamEventUnion) bool {
	switch e.Type {
	case "message_start":
		if s.started || e.Message.JSON.Type.Raw() != `"message"` || !text(e.Message.JSON.ID) {
			return false
		}
		s.started, s.id = true, e.Message.ID
		s.usage.start(e.Message.Usage)
	case "content_block_start":
		c := e.ContentBlock
		if !s.started || text(e.JSON.Index) || !e.JSON.Index.Valid() || e.Index != int64(len(s.blocks)) || !text(c.JSON.Type) {
			return false
		}
		b := block{kind: c.Type, name: c.Name, input: c.JSON.Input.Raw(), open: true}
		if c.Type == "text" {
			b.text = []byte(c.Text)
		}
		s.blocks = append(s.blocks, b)
	case "content_block_delta":
		b := s.at(e)
		return b != nil && b.take(e.Delta)
	case "content_block_stop":
		b := s.at(e)
		if b == nil {
			return false
		}
		b.open = false
	case "message_delta":
		if !s.started {
			return false
		}
		if text(e.Delta.JSON.StopReason) {
			s.stop = e.Delta.StopReason
		}
		s.usage.delta(e.Usage)
	case "":
		return false
	}
	return true
}

// take adds a piece and returns false if it is damaged or not one of its block's. Other kinds of pieces, such as citations, are
// not part of the answer.
func (b *block) take(d sdk.MessageStreamEventUnionDelta) bool {
	switch d.Type {
	case "text_delta":
		if b.kind != "text" || !text(d.JSON.Text) {
			return false
		}
		b.text = append(b.text, d.Text...)
	case "input_json_delta":
		if b.kind == "text" || !text(d.JSON.PartialJSON) {
			return false
		}
		b.text = append(b.text, d.PartialJSON...)
	case "":
		return false
	}
	return true
}
