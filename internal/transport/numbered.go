package transport

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// lastEventID is what an EventSource sends when it connects again: the number of the last event that it got.
const lastEventID = "Last-Event-ID"

type numberingKey struct{}

// numbering is between a resolver whose stream has numbered elements and the transport that carries it. Neither knows the
// other: the resolver says which number comes next, the transport which one the client has.
type numbering struct {
	resume  int // by Last-Event-ID, 0 for none
	numbers chan int

	// They are written before the first response and read after it, or by the one goroutine that takes responses.
	known bool            // whether the stream is numbered at all
	last  int             // the client has this one, or will before anything that is sent later
	over  bool            // nothing is left for this client
	wrong *gqlerror.Error // there is no element of the number that Last-Event-ID says
}

func withNumbering(ctx context.Context, resume int) (context.Context, *numbering) {
	n := &numbering{resume: resume, numbers: make(chan int, 1)}
	return context.WithValue(ctx, numberingKey{}, n), n
}

// Resume is for the resolver of a stream whose elements are numbered, before it returns the stream. It returns the number
// to go on after: the greater one of after and what the client's Last-Event-ID says.
func Resume(ctx context.Context, after int) int {
	n, ok := ctx.Value(numberingKey{}).(*numbering)
	if !ok {
		return after
	}
	n.known, n.last = true, max(after, n.resume)
	return n.last
}

// NoSuchNumber tells, before the resolver returns an error, that no element has the number that Resume returned: the
// stream's last one is number last.
func NoSuchNumber(ctx context.Context, last int) {
	if n, ok := ctx.Value(numberingKey{}).(*numbering); ok && n.resume > 0 && n.last == n.resume {
		n.wrong = codedError(CodeBadRequest, fmt.Sprintf("%s is not the number of an event: the last one is number %d", lastEventID, last))
		n.wrong.Extensions["lastEvent"] = last
	}
}

// NothingMore tells, before the stream is returned, that it will end without an element: the client has all of them.
func NothingMore(ctx context.Context) {
	if n, ok := ctx.Value(numberingKey{}).(*numbering); ok {
		n.over = true
	}
}

// Announce gives the element that is put into the stream next its number. It waits until the one before is on its way, or
// ctx ends.
func Announce(ctx context.Context, number int) {
	n, ok := ctx.Value(numberingKey{}).(*numbering)
	if !ok {
		return
	}
	select {
	case n.numbers <- number:
	case <-ctx.Done():
	}
}

// take returns the number of a response, if it has one. A response without data is no element: the client has to ask for
// it again, so it has no number.
func (n *numbering) take(resp *graphql.Response) (number int, ok bool) {
	select {
	case number = <-n.numbers:
	default:
		return 0, false
	}
	if broken(resp) {
		return 0, false
	}
	n.last = number
	return number, true
}

// slow is the end of a stream whose client does not take what it asked for.
func (n *numbering) slow() *graphql.Response {
	err := codedError(CodeSlowConsumer, "messages were not taken in time; subscribe again")
	if n.known {
		err.Extensions["resumeAfter"] = n.last
	}
	return &graphql.Response{Errors: gqlerror.List{err}}
}

// broken is true of a response that ends a stream: it has errors and no data. What comes after an element that could not be
// told would be a gap.
func broken(resp *graphql.Response) bool {
	return len(resp.Errors) > 0 && (len(resp.Data) == 0 || string(resp.Data) == "null")
}

// passing is true of a response that ends a stream for a reason that is not its client's: the same request may succeed.
func passing(resp *graphql.Response) bool {
	if !broken(resp) {
		return false
	}
	for _, err := range resp.Errors {
		switch err.Extensions["code"] {
		case CodeSlowConsumer, codeInternal, codeCancelled:
			return true
		}
	}
	return false
}

// resumeNumber reads Last-Event-ID, which counts for event streams only. An empty one is none.
func resumeNumber(r *http.Request) (number int, given bool, p *problem) {
	values := r.Header.Values(lastEventID)
	if len(values) == 0 || len(values) == 1 && values[0] == "" {
		return 0, false, nil
	}
	n, err := strconv.ParseUint(values[0], 10, 31)
	if err != nil || len(values) > 1 {
		return 0, false, badRequest("%s is not the number of an event", lastEventID)
	}
	return int(n), true, nil
}
