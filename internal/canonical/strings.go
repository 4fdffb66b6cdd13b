package canonical

import (
	"unicode/utf16"
	"unicode/utf8"
)

// plain marks the bytes that stand for themselves in a string and need no second look.
var plain = func() (table [256]bool) {
	for c := 0x20; c < utf8.RuneSelf; c++ {
		table[c] = c != '"' && c != '\\'
	}
	return table
}()

// skipString reads the string that starts at pos and says whether it holds escapes.
func (s *scanner) skipString() (escapes bool, err error) {
	raw, i := s.raw, s.pos+1
	for {
		for i < len(raw) && plain[raw[i]] {
			i++
		}
		if i >= len(raw) {
			s.pos = len(raw)
			return false, s.fail(ruleEnd)
		}
		switch c := raw[i]; {
		case c == '"':
			s.pos = i + 1
			return escapes, nil
		case c == '\\':
			n, rule := escapeLength(raw[i:])
			if rule != "" {
				s.pos = i
				return false, s.fail(rule)
			}
			escapes = true
			i += n
		case c < 0x20:
			s.pos = i
			return false, s.fail(ruleControl)
		default:
			r, n := utf8.DecodeRune(raw[i:])
			if r == utf8.RuneError && n == 1 {
				s.pos = i
				return false, s.fail(ruleUTF8)
			}
			i += n
		}
	}
}

// escapeLength returns the length of the escape at the start of text, of both halves if it is a surrogate pair.
func escapeLength(text []byte) (int, string) {
	if len(text) < 2 {
		return 0, ruleEnd
	}
	switch text[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, ""
	case 'u':
	default:
		return 0, ruleEscape
	}
	first, ok := hexUnit(text)
	if !ok {
		return 0, ruleEscape
	}
	if !utf16.IsSurrogate(first) {
		return 6, ""
	}
	if len(text) < 12 || text[6] != '\\' || text[7] != 'u' {
		return 0, ruleSurrogate
	}
	second, ok := hexUnit(text[6:])
	if !ok || utf16.DecodeRune(first, second) == utf8.RuneError {
		return 0, ruleSurrogate
	}
	return 12, ""
}

// hexUnit reads \uXXXX at the start of text.
func hexUnit(text []byte) (rune, bool) {
	if len(text) < 6 {
		return 0, false
	}
	var r rune
	for _, c := range text[2:6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// appendUnescaped appends what the inside of a checked string stands for.
func appendUnescaped(out, text []byte) []byte {
	for i := 0; i < len(text); {
		if text[i] != '\\' {
			out = append(out, text[i])
			i++
			continue
		}
		switch c := text[i+1]; c {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, _ := hexUnit(text[i:])
			if i += 6; utf16.IsSurrogate(r) {
				second, _ := hexUnit(text[i:])
				r = utf16.DecodeRune(r, second)
				i += 6
			}
			out = utf8.AppendRune(out, r)
			continue
		default:
			out = append(out, c)
		}
		i += 2
	}
	return out
}
