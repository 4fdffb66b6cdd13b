package sse_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/providers/sse"
)

func readAll(r *sse.Reader) (events []string, err error) {
	for {
		e, err := r.Next()
		if err != nil {
			return events, err
		}
		events = append(events, e.Name+"|"+string(e.Data))
	}
}

func TestReader(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		in      string
		want    []string
		damaged int
	}{
		"LF":                               {"data: a\n\ndata: b\n\n", []string{"|a", "|b"}, 0},
		"CRLF":                             {"data: a\r\n\r\ndata: b\r\n\r\n", []string{"|a", "|b"}, 0},
		"CR":                               {"data: a\r\rdata: b\r\r", []string{"|a", "|b"}, 0},
		"CommentsBetweenAndWithin":         {": hi\n\ndata: a\n: in\ndata: b\n\n:\n\n", []string{"|a\nb"}, 0},
		"JoinsDataLines":                   {"data: a\ndata:\ndata: b\n\n", []string{"|a\n\nb"}, 0},
		"OneSpaceIsTheSyntaxMoreIsData":    {"data:  a\n\ndata:b\n\n", []string{"| a", "|b"}, 0},
		"NamesEvents":                      {"event: error\ndata: a\n\ndata: b\n\n", []string{"error|a", "|b"}, 0},
		"NameWithoutDataDoesNotStick":      {"event: ping\n\ndata: b\n\n", []string{"|b"}, 0},
		"ByteOrderMark":                    {"\xef\xbb\xbfdata: a\n\n", []string{"|a"}, 0},
		"ByteOrderMarkOnlyAtTheStart":      {"data: a\n\n\xef\xbb\xbfdata: b\n\n", []string{"|a"}, 1},
		"EndWithoutBlankLine":              {"data: a\n\ndata: [DONE]\n", []string{"|a", "|[DONE]"}, 0},
		"EndWithoutLineEnd":                {"data: a\n\ndata: [DONE]", []string{"|a", "|[DONE]"}, 0},
		"CountsDamagedLines":               {"data: a\n\nata: {\"x\":1}\n\n{\"y\":2}\n\ndata: b\n\n", []string{"|a", "|b"}, 2},
		"IdAndRetryAreNotDamage":           {"id: 1\nretry: 5\ndata: a\n\n", []string{"|a"}, 0},
		"KeepsCharactersOfSeveralBytes":    {"data: prüfen 🖨️\n\n", []string{"|prüfen 🖨️"}, 0},
		"EmptyInput":                       {"", nil, 0},
		"CarriageReturnThenBlankLineFeeds": {"data: a\r\n\n", []string{"|a"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, in := range []io.Reader{strings.NewReader(tc.in), iotest.OneByteReader(strings.NewReader(tc.in))} {
				r := sse.NewReader(in, 1024)
				got, err := readAll(r)
				require.ErrorIs(t, err, io.EOF)
				require.Equal(t, tc.want, got)
				require.Equal(t, tc.damaged, r.DamagedLines())
			}
		})
	}
}

func TestReaderKeepsDamagedLines(t *testing.T) {
	t.Parallel()
	r := sse.NewReader(strings.NewReader("data: a\n\n{\r\n  \"error\": {}\r\n\r\n}"), 1024)
	got, err := readAll(r)
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, []string{"|a"}, got)
	require.Equal(t, "{\n  \"error\": {}\n}\n", string(r.Damaged())) //nolint:testifylint // to the byte

	r = sse.NewReader(strings.NewReader(strings.Repeat(strings.Repeat("x", 1000)+"\n", 100)), 2048)
	_, err = readAll(r)
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, 100, r.DamagedLines())
	require.Less(t, len(r.Damaged()), 64<<10)
}

func TestReaderBoundsLinesAndEvents(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]string{
		"Line":  "data: " + strings.Repeat("a", 2000) + "\n\n",
		"Event": strings.Repeat("data: "+strings.Repeat("a", 400)+"\n", 5) + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := readAll(sse.NewReader(strings.NewReader(in), 1024))
			require.ErrorIs(t, err, sse.ErrEventTooLarge)
			require.Empty(t, got)
		})
	}
}

func TestReaderKeepsTheReadError(t *testing.T) {
	t.Parallel()
	broken := errors.New("reset")
	r := sse.NewReader(io.MultiReader(strings.NewReader("data: a\n\ndata: whole\nda"), iotest.ErrReader(broken)), 1024)
	got, err := readAll(r)
	require.ErrorIs(t, err, broken)
	require.Equal(t, []string{"|a", "|whole"}, got)

	r = sse.NewReader(io.MultiReader(strings.NewReader("data: [DO"), iotest.ErrReader(broken)), 1024)
	got, err = readAll(r)
	require.ErrorIs(t, err, broken)
	require.Empty(t, got)
}
