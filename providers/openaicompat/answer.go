package openaicompat

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"strings"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/exchange"
	"github.com/docket-gateway/docket/providers/sse"
)

// maxEvent bounds one event of a stream. Servers that answer with a single chunk put the whole output in it.
const maxEvent = 4 << 20

// readAnswer reads the body of a 2xx answer: a stream, or a whole completion from a server that does not stream. Content
// types are not trusted for that, since servers label either as the other.
func readAnswer(a exchange.Answer, limit int) (providers.Outcome, error) {
	body := bufio.NewReader(a.Body)
	mediaType, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type"))
	if strings.Contains(mediaType, "html") {
		return malformed("an HTML page"), nil
	}
	first, err := peek(body)
	if err != nil && !errors.Is(err, io.EOF) {
		return providers.Outcome{}, err
	}
	switch first {
	case '<':
		return malformed("a page instead of a completion"), nil
	case '{', '[':
		return readWhole(body, limit)
	default:
		return readStream(body, mediaType == "text/event-stream", limit)
	}
}

// peek skips a byte order mark and white space and returns the first character after them, 0 at the end.
func peek(r *bufio.Reader) (byte, error) {
	for {
		c, _, err := r.ReadRune()
		if err != nil {
			return 0, err
		}
		if !strings.ContainsRune("\ufeff \t\r\n", c) {
			if err := r.UnreadRune(); err != nil {
				return 0, err
			}
			b, err := r.Peek(1)
			if err != nil {
				return 0, err
			}
			return b[0], nil
		}
	}
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
		if cutShort(raw) {
			return truncated("the answer's JSON ends early"), nil
		}
		return malformed("an answer that is not a completion"), nil
	}
	if e, ok := readErrorBody(raw); ok {
		out := e.InStream()
		out.ProviderRequestID = c.ID
		return out, nil
	}
	var s answer
	s.add(c)
	return s.outcome(true, limit), nil
}

// cutShort says whether raw is the beginning of a JSON text rather than something else.
func cutShort(raw []byte) bool {
	d := json.NewDecoder(bytes.NewReader(raw))
	for {
		if _, err := d.Token(); err != nil {
			return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) && !json.Valid(raw)
		}
	}
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
			return s.with(malformed("an event that is too large")), nil
		case errors.Is(err, io.EOF):
			// With a clean end and not one event it was no stream at all, unless the server called it one.
			if !s.any && events.DamagedLines() > 0 && !labelled {
				return malformed("neither a stream nor a completion"), nil
			}
			return s.with(truncated("the stream ended without its end marker")), nil
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
		e, failed := readErrorBody(data)
		if event.Name == "error" && !failed { // the error's fields without an envelope
			e, failed = readErrorObject(json.RawMessage(data))
		}
		if failed {
			s.id = c.ID
			return s.with(e.InStream()), nil
		}
		s.add(c)
	}
}

func malformed(what string) providers.Outcome {
	return providers.Outcome{Kind: providers.Failed, Failure: &providers.Failure{
		Code: providers.CodeMalformedAnswer, Message: "the provider answered with " + what}}
}

func truncated(message string) providers.Outcome {
	return providers.Outcome{Kind: providers.Unknown, Failure: &providers.Failure{
		Code: providers.CodeTruncatedStream, Message: message}}
}
