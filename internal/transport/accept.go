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

// negotiate picks what the client likes best; of equals the first that it names. Of the ranges that a type is in the most
// specific one counts (RFC 9110, 12.5.1), so one with q=0 refuses what `*/*` would let in. Whoever takes anything gets JSON,
// and a stream only who names it. An empty header is none. ok is false if there is nothing that the client takes.
func negotiate(accept []string) (mediaType string, ok bool) {
	ranges, empty := acceptable(accept)
	if empty {
		return jsonType, true
	}
	best, first := 0.0, 0
	for _, name := range []string{jsonType, responseType, streamType} {
		for _, by := range wider[name] {
			r, named := ranges[by]
			if !named {
				continue
			}
			if r.q > best || r.q == best && r.at < first {
				best, first, mediaType = r.q, r.at, name
			}
			break
		}
	}
	return mediaType, best > 0
}

// wider are the ranges that let a type in, the most specific one first.
var wider = map[string][]string{
	jsonType:     {jsonType, "application/*", "*/*"},
	responseType: {responseType, "application/*", "*/*"},
	streamType:   {streamType},
}

type mediaRange struct {
	q  float64
	at int // its place in the list
}

// acceptable reads the header. Of a range that is there twice the better one counts; what is malformed is passed over.
func acceptable(accept []string) (ranges map[string]mediaRange, empty bool) {
	ranges, empty = map[string]mediaRange{}, true
	at := 0
	for _, line := range accept {
		for part := range strings.SplitSeq(line, ",") {
			at++
			empty = empty && strings.TrimSpace(part) == ""
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
			if charset, has := params["charset"]; has && !isUTF8(charset) {
				continue
			}
			if before, has := ranges[name]; !has || q > before.q {
				ranges[name] = mediaRange{q, at}
			}
		}
	}
	return ranges, empty
}

func isUTF8(charset string) bool {
	return strings.EqualFold(charset, "utf-8") || strings.EqualFold(charset, "utf8")
}
