package canonical

import (
	"strconv"
	"strings"
)

// pointerMax keeps a text made of long keys from being copied into an error, in bytes.
const pointerMax = 1024

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// AppendPointer returns the RFC 6901 pointer of the member token of what pointer points to.
func AppendPointer(pointer, token string) string {
	return pointer + "/" + pointerEscaper.Replace(token)
}

// AppendIndex returns the RFC 6901 pointer of an element of the array that pointer points to.
func AppendIndex(pointer string, index int) string {
	return pointer + "/" + strconv.Itoa(index)
}

// Pointer returns the RFC 6901 pointer with the given tokens; without any it points to the whole document.
func Pointer(tokens ...string) string {
	var b strings.Builder
	for _, token := range tokens {
		b.WriteByte('/')
		b.WriteString(pointerEscaper.Replace(token))
	}
	return b.String()
}
