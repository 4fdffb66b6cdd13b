package operation

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
)

func TestLoneSurrogatesAreFoundInStringsOnly(t *testing.T) {
	t.Parallel()
	for query, fine := range map[string]bool{
		`{ a(b: "\uD83D\uDE00") }`:             true,
		`{ a(b: "\ud83d\ude00\ud83d\ude00") }`: true,
		`{ a(b: "\\uD83D") }`:                  true,
		`{ a(b: """\uD83D""") }`:               true,
		`{ a(b: """ \""" \uD83D """) }`:        true,
		`{ a(b: """x""""") }`:                  true,
		"{ a } # \"\\uD83D\"\n":                true,
		"{ a } # \"\r{ b(c: \"x\") }":          true,
		`{ a(b: "\u00e9\uFFFD\uD7FF\uE000") }`: true,
		`{ a(b: "\uD83D") }`:                   false,
		`{ a(b: "\uD83D\n") }`:                 false,
		`{ a(b: "\uD83D\uD83D\uDE00") }`:       false,
		`{ a(b: "\uDE00") }`:                   false,
		`{ a(b: """x""", c: "\uDE00") }`:       false,
		`{ a(b: "", c: "\uDE00") }`:            false,
		"# \" \n{ a(b: \"\\uDE00\") }":         false,
		"# \" \r{ a(b: \"\\uDE00\") }":         false,
	} {
		require.Equal(t, fine, checkSurrogates(query) == nil, query)
	}
}

// What passes holds no U+FFFD that the document did not, once it is parsed.
func FuzzSurrogates(f *testing.F) {
	for _, s := range []string{`"\uD83D\uDE00"`, `"\uD83D"`, `"""\uD83D"""`, `"\\" "\uDE00"`, "#\"\n\"\\uDE00\"", `"""" """`, `"\u{1F600}\uD800"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		query := "{ a(b: [" + s + "]) }"
		if !utf8.ValidString(query) || strings.ContainsRune(query, utf8.RuneError) || strings.Contains(strings.ToLower(query), "fffd") {
			return
		}
		if checkSurrogates(query) != nil {
			return
		}
		doc, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: query}, 1000)
		if err != nil {
			return
		}
		for _, op := range doc.Operations {
			eachField(op.SelectionSet, func(field *ast.Field) {
				for _, arg := range field.Arguments {
					require.NotContains(t, arg.Value.String(), "\uFFFD", query)
				}
			})
		}
	})
}
