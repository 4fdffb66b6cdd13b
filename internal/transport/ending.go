package transport

import (
	"context"
	"errors"

	"github.com/coder/websocket"
)

// Ending is the cause of a context's end that a client is told of, such as that its credentials have expired.
type Ending interface {
	error
	Code() string   // for extensions.code
	CloseCode() int // for a WebSocket
}

// closeTryAgain is that of an Ending that is no verdict on the client.
const closeTryAgain = int(websocket.StatusTryAgainLater)

// ending is what to tell the client of err; ok is false if there is nothing.
func ending(err error) (e Ending, ok bool) { return e, errors.As(err, &e) }

// ended is why ctx ended by the server's will; ok is false while it has not, or if it ended otherwise.
func ended(ctx context.Context) (e Ending, ok bool) {
	if ctx.Err() == nil {
		return nil, false
	}
	return ending(context.Cause(ctx))
}

// closing is the code and reason of a socket's end.
func closing(e Ending) (code int, reason string) {
	if e.CloseCode() == closeTryAgain {
		return closeTryAgain, "Try again later"
	}
	return e.CloseCode(), "Forbidden"
}
