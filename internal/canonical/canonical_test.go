package canonical

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/gowebpki/jcs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestCanonicalize(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct{ raw, want string }{
		"OrdersKeysByUTF16":           {"{\"\U0001F600\":1,\"\uFB33\":2,\"a\":3}", "{\"a\":3,\"\U0001F600\":1,\"\uFB33\":2}"},
		"KeepsArrayOrder":             {`[3, 1, 2]`, `[3,1,2]`},
		"DropsWhiteSpace":             {" { \"a\" : [ 1 , true , null ] } ", `{"a":[1,true,null]}`},
		"UnescapesStrings":            {`"\u0061\/\u00e9\ud83d\ude00"`, "\"a/é\U0001F600\""},
		"EscapesControlCharacters":    {`"\u0000\u001f\n\u007f"`, "\"\\u0000\\u001f\\n\u007f\""},
		"DoesNotNormalizeUnicode":     {`"e\u0301"`, "\"e\u0301\""},
		"KeepsStringsThatLookTagged":  {`["n1","s1","n","s",""]`, `["n1","s1","n","s",""]`},
		"KeepsKeysThatLookTagged":     {`{"n1":1,"s1":"n1"}`, `{"n1":1,"s1":"n1"}`},
		"KeepsQuotesBeforeColons":     {`["a\":",":"]`, `["a\":",":"]`},
		"KeepsBigIntegers":            {`9007199254740993`, `9007199254740993`},
		"KeepsDigitsBeyondADouble":    {`0.1000000000000000055`, `0.1000000000000000055`},
		"WritesEqualNumbersOneWay":    {`[1, 1.0, 1e0, 10e-1, 0.1e+1, 1E00]`, `[1,1,1,1,1,1]`},
		"TakesTheSignOffZero":         {`[-0, -0.0, 0e400, 0.000, -0e-5]`, `[0,0,0,0,0]`},
		"WritesPlainUpTo21Digits":     {`[1e20, 1e21, 123456789012345678901]`, `[100000000000000000000,1e+21,123456789012345678901]`},
		"WritesPlainDownToMillionths": {`[0.000001, 0.0000001, -12.5e-8]`, `[0.000001,1e-7,-1.25e-7]`},
		"WritesLongNumbersShort":      {`[1234567890123456789012.5, 1e400, 1e-400]`, `[1.2345678901234567890125e+21,1e+400,1e-400]`},
		"ClampsTheExponent":           {`[10e400, 12.34e400, 0.1e-400, 0.012e-400]`, `[10e+400,12.34e+400,0.1e-400,0.012e-400]`},
		"IgnoresZerosInExponents":     {`1e0000000000000000000000000000000000001`, `10`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Canonicalize([]byte(tc.raw))
			require.NoError(t, err)
			require.Equal(t, tc.want, string(got))
			again, err := Canonicalize(got)
			require.NoError(t, err)
			require.Equal(t, tc.want, string(again))
		})
	}
}

func TestCanonicalizeKeepsBigDifferencesApart(t *testing.T) {
	t.Parallel()

	for _, pair := range [][2]string{
		{`9007199254740993`, `9007199254740992`},
		{`0.1`, `0.1000000000000000055`},
		{`1e400`, `1e399`},
		{`1`, `"1"`},
		{`1`, `"n1"`},
		{`"n1"`, `"sn1"`},
		{`[1,2]`, `[2,1]`},
		{`{"a":null}`, `{}`},
		{`{"a":[]}`, `{"a":{}}`},
		{`"é"`, `"e\u0301"`},
	} {
		a, err := Canonicalize([]byte(pair[0]))
		require.NoError(t, err)
		b, err := Canonicalize([]byte(pair[1]))
		require.NoError(t, err)
		require.NotEqual(t, string(a), string(b))
	}
}

func TestCanonicalizeBoundsNumbers(t *testing.T) {
	t.Parallel()

	digits := func(n int) string { return strings.Repeat("7", n) }
	for name, tc := range map[string]struct{ raw, pointer, rule string }{
		"TakesExponent400":             {raw: `[1e400, 1e-400, -1E+400]`},
		"RefusesExponent401":           {`{"a/b":[0,1e401]}`, "/a~1b/1", ruleExponent},
		"RefusesExponentMinus401":      {`{"~":1e-401}`, "/~0", ruleExponent},
		"RefusesZeroWithBigExponent":   {`0e999`, "", ruleExponent},
		"RefusesExponentPastIntegers":  {`[[1e999999999999999999999999999999]]`, "/0/0", ruleExponent},
		"RefusesExponentPastIntegers2": {`1e-18446744073709551617`, "", ruleExponent},
		"Takes1000Digits":              {raw: digits(1000)},
		"Takes1000DigitsAroundAPoint":  {raw: "-" + digits(500) + "." + digits(500) + "e-400"},
		"Refuses1001Digits":            {`{"n":` + digits(1001) + `}`, "/n", ruleDigits},
		"Refuses1001DigitsWithPoint":   {"1." + digits(1000), "", ruleDigits},
		"CountsZeros":                  {"0." + strings.Repeat("0", 1000), "", ruleDigits},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, Check([]byte(tc.raw)))
			_, err := Canonicalize([]byte(tc.raw))
			if tc.rule == "" {
				require.NoError(t, err)
				require.NoError(t, CheckNumbers([]byte(tc.raw)))
				return
			}
			want := &NumberError{Pointer: tc.pointer, Rule: tc.rule}
			require.Equal(t, want, err)
			require.Equal(t, want, CheckNumbers([]byte(tc.raw)))
		})
	}
}

func TestCanonicalizeChecksFirst(t *testing.T) {
	t.Parallel()

	_, err := Canonicalize([]byte(`{"a":1,"\u0061":2}`))
	var syntax *SyntaxError
	require.ErrorAs(t, err, &syntax)
	require.Equal(t, ruleDuplicate, syntax.Rule)
}

func TestCanonicalizeIsRFC8785WithoutNumbers(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		raw := drawText(t, drawTree(t, false, 4))
		want, err := jcs.Transform([]byte(raw))
		require.NoError(t, err)
		got, err := Canonicalize([]byte(raw))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
	})
}

func TestCanonicalizeWritesShortDoublesAsRFC8785(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		f := rapid.Float64().Draw(t, "f")
		raw, err := json.Marshal(f)
		require.NoError(t, err)
		want, err := jcs.NumberToJSON(f)
		require.NoError(t, err)
		got, err := Canonicalize(raw)
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	})
}

func TestCanonicalizeAgreesWithTheOracle(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		tree := drawTree(t, true, 4)
		other := tree
		if rapid.Bool().Draw(t, "mutate") {
			other = mutate(t, tree)
		}
		a, b := drawText(t, tree), drawText(t, other)
		ca, err := Canonicalize([]byte(a))
		require.NoError(t, err)
		cb, err := Canonicalize([]byte(b))
		require.NoError(t, err)
		require.Equal(t, sameDocument(t, []byte(a), []byte(b)), string(ca) == string(cb), "%s\n%s", a, b)
		require.True(t, sameDocument(t, []byte(a), ca), "%s\n%s", a, ca)
		again, err := Canonicalize(ca)
		require.NoError(t, err)
		require.Equal(t, string(ca), string(again))
		fromValue, err := CanonicalizeValue(decode(t, []byte(a)))
		require.NoError(t, err)
		require.Equal(t, string(ca), string(fromValue))
	})
}

func FuzzCanonicalize(f *testing.F) {
	for _, seed := range []string{
		`{"a":1}`, `[1.0,1e0,-0]`, `"\ud83d\ude00"`, `10e400`, `{"n1":"n1","s":[]}`, `0.00000012`, `[9007199254740993,9007199254740992]`,
	} {
		f.Add([]byte(seed), []byte(`{ "a": 1.0 }`))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		ca, err := Canonicalize(a)
		if err != nil {
			var syntax *SyntaxError
			var number *NumberError
			require.True(t, errors.As(err, &syntax) || errors.As(err, &number), "%v", err)
			return
		}
		again, err := Canonicalize(ca)
		require.NoError(t, err)
		require.Equal(t, string(ca), string(again))
		require.True(t, sameDocument(t, a, ca))
		if cb, err := Canonicalize(b); err == nil {
			require.Equal(t, sameDocument(t, a, b), string(ca) == string(cb))
		}
	})
}

func BenchmarkCanonicalize(b *testing.B) {
	raw := bigDocument()
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Canonicalize(raw); err != nil {
			b.Fatal(err)
		}
	}
}
