package operation

import (
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/gqlerror"
)

// checkSurrogates refuses escapes of lone surrogates in the document's strings, which the parser would turn into U+FFFD.
func checkSurrogates(query string) *gqlerror.Error {
	for i := 0; i < len(query); {
		switch rest := query[i:]; {
		case rest[0] == '#':
			i += endOfLine(rest)
		case strings.HasPrefix(rest, `"""`):
			i += blockString(rest) // has no escapes but of its own end
		case rest[0] == '"':
			n, ok := plainString(rest)
			if !ok {
				return fail(CodeInvalidJSON, "a string holds a lone surrogate")
			}
			i += n
		default:
			i++
		}
	}
	return nil
}

func endOfLine(s string) int {
	if n := strings.IndexAny(s, "\r\n"); n >= 0 {
		return n
	}
	return len(s)
}

func blockString(s string) int {
	for i := 3; i < len(s); {
		switch {
		case strings.HasPrefix(s[i:], `\"""`):
			i += 4
		case strings.HasPrefix(s[i:], `"""`):
			i += 3
			for i < len(s) && s[i] == '"' { // the last three quotes are the end
				i++
			}
			return i
		default:
			i++
		}
	}
	return len(s)
}

// plainString returns the length of the string that s begins with; a broken one ends with its line, and the parser
// refuses it later.
func plainString(s string) (n int, ok bool) {
	for i := 1; i < len(s); {
		switch c := s[i]; {
		case c == '"':
			return i + 1, true
		case c == '\n' || c == '\r':
			return i, true
		case c != '\\':
			i++
		default:
			first, isUnicode := unicodeEscape(s[i:])
			switch {
			case !isUnicode:
				i += 2
			case first < 0xD800 || first > 0xDFFF:
				i += 6
			default:
				second, isUnicode := unicodeEscape(s[i+6:])
				if first > 0xDBFF || !isUnicode || second < 0xDC00 || second > 0xDFFF {
					return 0, false
				}
				i += 12
			}
		}
	}
	return len(s), true
}

func unicodeEscape(s string) (uint64, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(s[2:6], 16, 16)
	return n, err == nil
}
