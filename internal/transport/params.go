package transport

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"

	"github.com/99designs/gqlgen/graphql"

	"github.com/docket-gateway/docket/internal/canonical"
)

// drainLimit is how much of a body that is too large is read and thrown away, so that the client hears why it was
// refused instead of a broken connection.
const drainLimit = 32 << 20

// problem is a request that no operation can be made of.
type problem struct {
	status        int
	code, message string
}

func badRequest(format string, args ...any) *problem {
	return &problem{status: http.StatusBadRequest, code: CodeBadRequest, message: fmt.Sprintf(format, args...)}
}

func (h *Handler) params(w http.ResponseWriter, r *http.Request) (*graphql.RawParams, *problem) {
	start := graphql.Now()
	var params *graphql.RawParams
	var p *problem
	if r.Method == http.MethodPost {
		params, p = h.fromBody(r)
	} else {
		params, p = fromURL(r.URL.RawQuery)
	}
	if p != nil {
		return nil, p
	}
	params.Headers = r.Header
	params.ReadTime = graphql.TraceTiming{Start: start, End: graphql.Now()}
	return params, nil
}

func (h *Handler) fromBody(r *http.Request) (*graphql.RawParams, *problem) {
	mediaType, options, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset, given := options["charset"]
	if err != nil || mediaType != jsonType || given && !isUTF8(charset) {
		return nil, &problem{http.StatusUnsupportedMediaType, CodeUnsupportedMediaType, "send " + jsonType + " in UTF-8"}
	}
	if r.Header.Get("Content-Encoding") != "" {
		return nil, &problem{http.StatusUnsupportedMediaType, CodeUnsupportedMediaType, "encoded bodies are not supported"}
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, h.o.BodyLimit+1))
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &problem{http.StatusRequestTimeout, CodeBodyTimeout, "the body did not arrive in time"}
	case err != nil:
		return nil, badRequest("the body could not be read")
	}
	if int64(len(body)) > h.o.BodyLimit {
		_, _ = io.CopyN(io.Discard, r.Body, drainLimit)
		return nil, &problem{
			http.StatusRequestEntityTooLarge, CodeBodyTooLarge, fmt.Sprintf("the body has more than %d bytes", h.o.BodyLimit),
		}
	}
	return decode(body)
}

// fromURL reads the parameters of a GET request.
func fromURL(raw string) (*graphql.RawParams, *problem) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, badRequest("the URL's parameters are malformed")
	}
	for _, name := range []string{"query", "operationName", "variables", "extensions", documentID} {
		if len(values[name]) > 1 {
			return nil, badRequest("the parameter %s is given more than once", name)
		}
	}
	params := &graphql.RawParams{Query: values.Get("query"), OperationName: values.Get("operationName")}
	for name, target := range map[string]*map[string]any{"variables": &params.Variables, "extensions": &params.Extensions} {
		text := []byte(values.Get(name))
		if len(text) == 0 {
			continue
		}
		if p := check(text); p != nil {
			return nil, p
		}
		if p := object(name, text, target); p != nil {
			return nil, p
		}
	}
	if p := nameDocument(params, values.Get(documentID), values.Get(shortDocumentID)); p != nil {
		return nil, p
	}
	if !values.Has("query") && !namesDocument(params) {
		return nil, badRequest("there is no query")
	}
	return params, nil
}

// check looks at the raw text, since decoders pass over duplicate keys, lone surrogates and invalid UTF-8 in silence.
func check(text []byte) *problem {
	err := canonical.Check(text)
	if err == nil {
		return nil
	}
	p := &problem{status: http.StatusBadRequest, code: CodeInvalidJSON, message: "the JSON text is malformed"}
	if syntax, ok := errors.AsType[*canonical.SyntaxError](err); ok {
		p.message = fmt.Sprintf("malformed JSON at byte %d: %s", syntax.Offset, syntax.Rule)
	}
	return p
}

// decode reads the parameters as the specification writes them, names byte for byte.
func decode(text []byte) (*graphql.RawParams, *problem) {
	if p := check(text); p != nil {
		return nil, p
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil || fields == nil {
		return nil, badRequest("the request is not a JSON object")
	}
	params := &graphql.RawParams{}
	var query *string
	if err := json.Unmarshal(orNull(fields["query"]), &query); err != nil {
		return nil, badRequest("query is no string")
	}
	if query != nil {
		params.Query = *query
	}
	if err := json.Unmarshal(orNull(fields["operationName"]), &params.OperationName); err != nil {
		return nil, badRequest("operationName is no string")
	}
	if p := object("variables", orNull(fields["variables"]), &params.Variables); p != nil {
		return nil, p
	}
	if p := object("extensions", orNull(fields["extensions"]), &params.Extensions); p != nil {
		return nil, p
	}
	var id, short string
	if err := json.Unmarshal(orNull(fields[documentID]), &id); err != nil {
		return nil, badRequest("%s is no string", documentID)
	}
	if json.Unmarshal(orNull(fields[shortDocumentID]), &short) != nil {
		short = "" // it is something else then
	}
	if p := nameDocument(params, id, short); p != nil {
		return nil, p
	}
	if query == nil && !namesDocument(params) {
		return nil, badRequest("query is missing")
	}
	return params, nil
}

func object(name string, text []byte, target *map[string]any) *problem {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // float64 would lose digits
	if err := d.Decode(target); err != nil {
		return badRequest("%s is no JSON object", name)
	}
	return nil
}

func orNull(text json.RawMessage) []byte {
	if text == nil {
		return []byte("null")
	}
	return text
}
