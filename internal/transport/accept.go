package transport

import (
	"mime"
	"strconv"
	"strings"
)

const (
	jsonType     = "application/json"
	responseType = "application/graphql-response+json"
	streamType   = "text/event-stream"
)

// negotiate picks what the client likes best; of equals the first that it names. Whoever takes anything gets JSON, and a
// stream only who names it. ok is false if there is nothing that the client takes.
func negotiate(accept []string) (mediaType string, ok bool) {
	if len(accept) == 0 {
		return jsonType, true
	}
	best := 0.0
	for _, line := range accept {
		for part := range strings.SplitSeq(line, ",") {
			name, params, err := mime.ParseMediaType(part)
			if err != nil {
				continue
			}
			q := 1.0
			if given, has := params["q"]; has {
				if q, err = strconv.ParseFloat(given, 64); err != nil || q < 0 || q > 1 {
					continue
				}
			}
			switch name {
			case jsonType, responseType, streamType:
			case "*/*", "application/*":
				name = jsonType
			default:
				continue
			}
			if charset, has := params["charset"]; has && !isUTF8(charset) {
				continue
			}
			if q > best {
				best, mediaType = q, name
			}
		}
	}
	return mediaType, best > 0
}

func isUTF8(charset string) bool {
	return strings.EqualFold(charset, "utf-8") || strings.EqualFold(charset, "utf8")
}
