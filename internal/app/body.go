package app

import (
	"io"
	"net/http"
	"time"
)

// boundBodies gives a request's body a time to arrive, whether anybody reads it or not: the server reads the rest of what
// a handler left before it answers. http.Server.ReadTimeout would do so too, and end the streams that follow a body.
func boundBodies(next http.Handler, within time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			conn := http.NewResponseController(w)
			if err := conn.SetReadDeadline(time.Now().Add(within)); err != nil {
				http.Error(w, "the body cannot be read", http.StatusInternalServerError)
				return
			}
			r.Body = &boundBody{r.Body, conn}
		}
		next.ServeHTTP(w, r)
	})
}

// boundBody lifts the deadline at its end: from then on the connection is only watched for the client's leaving.
type boundBody struct {
	io.ReadCloser

	conn *http.ResponseController
}

func (b *boundBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF { //nolint:errorlint // readers return it as it is
		_ = b.conn.SetReadDeadline(time.Time{})
	}
	return n, err
}
