package cassette

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	vcr "gopkg.in/dnaeon/go-vcr.v4/pkg/cassette"

	"github.com/docket-gateway/docket/contracts/golden"
)

// Headers of ours: the step that a request belongs to, which is recorded, and how long an answer took, which never leaves this
// package.
const (
	stepHeader = "Docket-Step"
	tookHeader = "Docket-Took"
)

// matches is go-vcr's matcher: the step, method, path, query and body are the same. Headers are not looked at: those of
// an adapter hold the key, the attempt's id (idempotency key, client request id) and the trace context, which are others each
// time, and else what comes with the adapter's version. Bodies hold none of these. The host is the endpoint's, which is
// compared as such.
func matches(r *http.Request, recorded vcr.Request) bool {
	return r.Header.Get(stepHeader) == recorded.Headers.Get(stepHeader) && difference(r, recorded) == ""
}

// difference says where a request is not the recorded one; empty: nowhere.
func difference(r *http.Request, recorded vcr.Request) string {
	if r.Method != recorded.Method {
		return fmt.Sprintf("the method, %s instead of %s", r.Method, recorded.Method)
	}
	u, err := url.Parse(recorded.URL)
	if err != nil || u.EscapedPath() != r.URL.EscapedPath() {
		return fmt.Sprintf("the path %s", r.URL.EscapedPath())
	}
	if scrubQuery(u.Query()).Encode() != scrubQuery(r.URL.Query()).Encode() {
		return "the query"
	}
	body, err := bodyOf(r)
	switch {
	case err != nil:
		return "the body, which could not be read"
	case string(body) == recorded.Body:
		return ""
	}
	want, got := json.RawMessage(recorded.Body), json.RawMessage(body)
	if !json.Valid(want) || !json.Valid(got) {
		return "the body"
	}
	if list := golden.Compare(golden.Mode{Kind: golden.ModeExact}, "", want, got); len(list) > 0 {
		return "the body at " + golden.Shorten(list[0].Pointer)
	}
	return "how the body is written: the order of its keys or its spaces"
}

// bodyOf reads a request's body and leaves it to be read again.
func bodyOf(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	raw, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(raw))
	return raw, err
}

// tellDuration is the hook that sends an answer's time along, to be told to the attempt.
func tellDuration(i *vcr.Interaction) error {
	if i.Response.Headers == nil {
		i.Response.Headers = http.Header{}
	}
	i.Response.Headers.Set(tookHeader, i.Response.Duration.String())
	return nil
}

// absent says why a request has no answer on the tape.
func (t *tape) absent(r *http.Request) string {
	step := r.Header.Get(stepHeader)
	what := fmt.Sprintf("%s %s", r.Method, r.URL.EscapedPath())
	if step != "" {
		what = step + ", " + what
	}
	var of []*vcr.Interaction
	runs := map[int]bool{}
	for _, i := range t.Interactions {
		recorded := i.Request.Headers.Get(stepHeader)
		if n := number(recorded); n > 0 {
			runs[n] = true
		}
		if recorded == step {
			of = append(of, i)
		}
	}
	if len(of) == 0 && number(step) > 0 {
		return fmt.Sprintf("%s: it holds %d runs of the case, each of which is served once", what, len(runs))
	}
	nearest := ""
	for _, i := range of {
		d := difference(r, i.Request)
		if d == "" {
			return what + ": its answer was served already, and no answer is served twice"
		}
		if nearest == "" || strings.HasPrefix(d, "the body") {
			nearest = d
		}
	}
	if nearest == "" {
		return what + ": no such step was recorded"
	}
	return what + ": the request differs in " + nearest
}
