package transport

import (
	"bytes"
	"encoding/json"

	"github.com/coder/websocket"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// malformed is the answer to a subscribe message whose payload is JSON that may be read in more than one way: a key twice, a
// lone surrogate, nested too deep. ok is false for all other messages, and if its id or type may be read in more than one way
// too: nobody can tell then whom to answer.
func malformed(kind websocket.MessageType, data []byte) (answer message, ok bool) {
	p := check(data)
	if kind != websocket.MessageText || p == nil {
		return message{}, false
	}
	envelope, ok := withoutPayload(data)
	if !ok {
		return message{}, false
	}
	m, ok := parse(kind, envelope) // which checks it as check did the whole
	if !ok || m.Type != "subscribe" || m.ID == "" {
		return message{}, false
	}
	return errorMessage(m.ID, codedError(p.code, p.message)), true
}

// withoutPayload empties the objects under payload in a JSON object. ok is false if data is no JSON object, or a payload is none.
func withoutPayload(data []byte) (envelope []byte, ok bool) {
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	rest := 0 // of data, from here on, is not in envelope yet
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, false
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return nil, false
		}
		if name == "payload" {
			if value[0] != '{' {
				return nil, false
			}
			end := int(d.InputOffset())
			envelope = append(append(envelope, data[rest:end-len(value)]...), "{}"...)
			rest = end
		}
	}
	return append(envelope, data[rest:]...), true
}

func errorMessage(id string, err *gqlerror.Error) message {
	text, failed := json.Marshal(gqlerror.List{err})
	if failed != nil {
		panic(failed) // not reachable: texts and codes are ours
	}
	return message{ID: id, Type: "error", Payload: text}
}
