package exchange

import (
	"bufio"
	"errors"
	"io"
	"mime"
	"strings"

	"github.com/docket-gateway/docket/providers"
)

// ReadForm reads the body of a 2xx answer by its form: an answer in one piece, or a stream of events, which labelled says is
// labelled as one. Content types are not trusted for that, since servers label either as the other. A page is malformed;
// what names the piece that was expected instead of it.
func ReadForm(a Answer, what string,
	whole func(body io.Reader) (providers.Outcome, error),
	stream func(body io.Reader, labelled bool) (providers.Outcome, error),
) (providers.Outcome, error) {
	body := bufio.NewReader(a.Body)
	mediaType, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type"))
	if strings.Contains(mediaType, "html") {
		return Malformed("an HTML page"), nil
	}
	first, err := firstByte(body)
	if err != nil && !errors.Is(err, io.EOF) {
		return providers.Outcome{}, err
	}
	switch first {
	case '<':
		return Malformed("a page instead of a " + what), nil
	case '{', '[':
		return whole(body)
	default:
		return stream(body, mediaType == "text/event-stream")
	}
}
