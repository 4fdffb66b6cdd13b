// Package sse reads server-sent events from providers' answers.
//
// It is our own because the readers at hand (go-sse, the OpenAI SDK's) follow the rule of the browser standard that a line which is
// not understood is skipped. For a browser that is kind; here a damaged line is a lost piece of the answer and must be
// noticed.
package sse

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// ErrEventTooLarge is returned for an event or line beyond the reader's bound. The reader is of no use afterwards.
var ErrEventTooLarge = errors.New("sse: event too large")

// Event is one event. Its data lines are joined by line feeds.
type Event struct {
	Name string
	Data []byte // valid until the next call
}

// Reader reads events. Lines may end in LF, CRLF or CR; a byte order mark and comments are skipped.
type Reader struct {
	in       *bufio.Reader
	maxEvent int
	line     []byte
	data     []byte
	damaged  int
	strange  []byte
	started  bool
	skipLF   bool
	err      error
}

// NewReader returns a reader that keeps at most about twice maxEvent bytes in memory.
func NewReader(r io.Reader, maxEvent int) *Reader {
	return &Reader{in: bufio.NewReaderSize(r, 32<<10), maxEvent: maxEvent}
}

// DamagedLines returns how many lines so far were neither a comment nor a known field (data, event, id, retry).
func (r *Reader) DamagedLines() int { return r.damaged }

// Damaged returns the text of the damaged lines so far, the first 64 KiB of it: some servers write an error into a stream
// without making an event of it.
func (r *Reader) Damaged() []byte { return r.strange }

// maxDamaged bounds what Damaged keeps.
const maxDamaged = 64 << 10

// Next returns the next event that has data. At a clean end it hands out an event that misses its blank line first,
// even one whose last line is not terminated: whether the whole is complete is for the protocol's end marker to say.
// Then it returns io.EOF. On any other error an unfinished event is dropped, unless all its lines had come.
func (r *Reader) Next() (Event, error) {
	if r.err != nil {
		return Event{}, r.err
	}
	var name string
	var hasData bool
	r.data = r.data[:0]
	for {
		line, err := r.readLine()
		if err == nil || errors.Is(err, io.EOF) && len(line) > 0 {
			if len(line) == 0 && hasData {
				return Event{Name: name, Data: r.data}, nil
			}
			if len(line) == 0 {
				name = ""
			} else {
				field, value, _ := bytes.Cut(line, []byte(":"))
				value = bytes.TrimPrefix(value, []byte(" "))
				switch string(field) {
				case "": // a comment
				case "data":
					if hasData {
						r.data = append(r.data, '\n')
					}
					hasData = true
					r.data = append(r.data, value...)
					if len(r.data) > r.maxEvent {
						r.err = ErrEventTooLarge
						return Event{}, r.err
					}
				case "event":
					name = string(value)
				case "id", "retry":
				default:
					r.damaged++
					if len(r.strange)+len(line) < maxDamaged {
						r.strange = append(append(r.strange, line...), '\n')
					}
				}
			}
		}
		if err != nil {
			r.err = err
			if hasData && !errors.Is(err, ErrEventTooLarge) {
				return Event{Name: name, Data: r.data}, nil
			}
			return Event{}, err
		}
	}
}

// readLine returns a line without its end. With io.EOF it returns what stood after the last end of line; with other
// errors nothing.
func (r *Reader) readLine() ([]byte, error) {
	r.line = r.line[:0]
	for {
		if _, err := r.in.Peek(1); err != nil {
			if !errors.Is(err, io.EOF) {
				r.line = r.line[:0]
			}
			return r.trimBOM(), err
		}
		got, _ := r.in.Peek(r.in.Buffered())
		if r.skipLF && got[0] == '\n' { // the rest of a CRLF; a lone CR did not wait for it
			r.skipLF = false
			_, _ = r.in.Discard(1)
			continue
		}
		r.skipLF = false
		end := lineEnd(got)
		if len(r.line)+end > r.maxEvent {
			return nil, ErrEventTooLarge
		}
		r.line = append(r.line, got[:end]...)
		if end == len(got) {
			_, _ = r.in.Discard(end)
			continue
		}
		r.skipLF = got[end] == '\r'
		_, _ = r.in.Discard(end + 1)
		return r.trimBOM(), nil
	}
}

// lineEnd returns where the first LF or CR stands, or b's length.
func lineEnd(b []byte) int {
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		b = b[:i]
	}
	if i := bytes.IndexByte(b, '\r'); i >= 0 {
		b = b[:i]
	}
	return len(b)
}

func (r *Reader) trimBOM() []byte {
	if !r.started {
		r.started = true
		return bytes.TrimPrefix(r.line, []byte("\xef\xbb\xbf"))
	}
	return r.line
}
