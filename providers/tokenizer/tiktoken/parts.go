package tiktoken

import (
	"iter"
	"unicode"
	"unicode/utf8"
)

// maxPart bounds in bytes what is encoded at once. Splitting a text into words and merging a word's bytes both take the
// square of the length for some texts, and who writes a job's input chooses the text.
const maxPart = 1 << 10

// parts cuts a text, preferably where the encodings' patterns cut it as well, so that the tokens stay the same.
func parts(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for len(text) > maxPart {
			n := cut(text)
			if !yield(text[:n]) {
				return
			}
			text = text[n:]
		}
		if text != "" {
			yield(text)
		}
	}
}

// cut returns the last good place at or before maxPart, or maxPart itself, at the beginning of a rune. The text is longer.
func cut(text string) int {
	end := maxPart
	for end > maxPart-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	for i := end; i > maxPart/2; {
		after, _ := utf8.DecodeRuneInString(text[i:])
		before, size := utf8.DecodeLastRuneInString(text[:i])
		if between(before, after) {
			return i
		}
		i -= size
	}
	return end
}

// between says whether no word of either encoding's pattern goes over from before to after, whatever is around them: a
// space begins a word unless it follows white space, and letters and digits end at punctuation, but for an apostrophe.
func between(before, after rune) bool {
	if after == ' ' {
		return !unicode.IsSpace(before)
	}
	return (unicode.IsLetter(before) || unicode.IsNumber(before)) && after != '\'' && (unicode.IsPunct(after) || unicode.IsSymbol(after))
}
