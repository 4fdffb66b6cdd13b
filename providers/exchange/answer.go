package exchange

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/docket-gateway/docket/providers"
)

// Malformed is the outcome of an answer that came to its end and cannot be read.
func Malformed(what string) providers.Outcome {
	return failed(providers.CodeMalformedAnswer, "the provider answered with "+what)
}

// CutOff is the outcome of an answer that ended without its end marker, with the connection in order.
func CutOff(message string) providers.Outcome {
	return unknown(providers.CodeTruncatedStream, message)
}

// firstByte skips a byte order mark and white space and returns the first character after them, 0 at the end.
func firstByte(r *bufio.Reader) (byte, error) {
	for {
		c, _, err := r.ReadRune()
		if err != nil {
			return 0, err
		}
		if !strings.ContainsRune("\ufeff \t\r\n", c) {
			if err := r.UnreadRune(); err != nil {
				return 0, err
			}
			b, err := r.Peek(1)
			if err != nil {
				return 0, err
			}
			return b[0], nil
		}
	}
}

// CutShort says whether raw is the beginning of a JSON text rather than something else.
func CutShort(raw []byte) bool {
	d := json.NewDecoder(bytes.NewReader(raw))
	for {
		if _, err := d.Token(); err != nil {
			return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) && !json.Valid(raw)
		}
	}
}

// WellFormed says whether a JSON text can be decoded without a silent repair: encoding/json, and the SDKs with it,
// replace invalid UTF-8 and lone surrogates.
func WellFormed(data []byte) bool { return utf8.Valid(data) && !loneSurrogate(data) }

// loneSurrogate looks for a \u escape of half a surrogate pair without its other half.
func loneSurrogate(data []byte) bool {
	if !bytes.Contains(data, []byte(`\u`)) {
		return false
	}
	high := false // the last thing read was the first half of a pair
	for i := 0; i < len(data); i++ {
		if data[i] == '\\' && i+5 < len(data) && data[i+1] == 'u' {
			code, err := strconv.ParseUint(string(data[i+2:i+6]), 16, 32)
			low := err == nil && code >= 0xdc00 && code <= 0xdfff
			if low != high {
				return true
			}
			high = err == nil && code >= 0xd800 && code <= 0xdbff
			i += 5
			continue
		}
		if high {
			return true
		}
		if data[i] == '\\' {
			i++ // the escaped character, so that \\u is not taken for \u
		}
	}
	return high
}
