package canonical

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestCheckAccepts(t *testing.T) {
	t.Parallel()

	for name, raw := range map[string]string{
		"Null":                   `null`,
		"SpaceAround":            " \t\r\n1 \t\r\n",
		"Empty":                  `[{},[],""]`,
		"SameKeyInOtherObjects":  `{"a":{"a":1},"b":{"a":1,"b":{"a":2}}}`,
		"KeysThatDifferInCase":   `{"a":1,"A":2}`,
		"KeysBeforeNormalizing":  `{"é":1,"e\u0301":2}`,
		"PairsOfSurrogates":      `"\ud83d\ude00\uD83D\uDE00"`,
		"ReplacementCharacter":   `"\ufffd` + "\uFFFD" + `"`,
		"Noncharacters":          `"\uffff\ufdd0"`,
		"AllEscapes":             `"\"\\\/\b\f\n\r\t\u0000"`,
		"HugeNumbers":            `[1e999999999999, -0.0e-0, 123456789012345678901234567890]`,
		"NestedToTheBound":       strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth),
		"SameKeyAfterClosing":    `[{"a":1},{"a":1}]`,
		"EscapedKeysThatDiffer":  `{"\u0061":1,"\u0062":2,"\n":3,"\\n":4}`,
		"KeyThatLooksUnescaped":  `{"\\u0061":1,"a":2}`,
		"ManyObjectsWithOneKeys": `[` + strings.Repeat(manyKeys(40, "")+",", 3) + `1]`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, Check([]byte(raw)))
			require.True(t, json.Valid([]byte(raw)))
		})
	}
}

func TestCheckRefuses(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		raw, rule, pointer string
		offset             int64
	}{
		"Empty":                         {"", ruleEmpty, "", 0},
		"OnlySpace":                     {" \n", ruleEmpty, "", 2},
		"ByteOrderMark":                 {"\ufeff{}", ruleBOM, "", 0},
		"SecondValue":                   {"1 2", ruleTrailing, "", 2},
		"SecondObject":                  {"{}{}", ruleTrailing, "", 2},
		"NulAfterValue":                 {"{}\x00", ruleTrailing, "", 2},
		"UnclosedArray":                 {"[1", ruleEnd, "/0", 2},
		"UnclosedObject":                {`{"a":`, ruleEnd, "/a", 5},
		"UnclosedString":                {`["a`, ruleEnd, "/0", 3},
		"TrailingComma":                 {`[1,]`, ruleValue, "/1", 3},
		"TrailingCommaInObject":         {`{"a":1,}`, ruleKey, "", 7},
		"WrongBracket":                  {`[1}`, ruleComma, "/0", 2},
		"MissingComma":                  {`{"a":1 "b":2}`, ruleComma, "/a", 7},
		"MissingColon":                  {`{"a" 1}`, ruleColon, "/a", 5},
		"BareKey":                       {`{a:1}`, ruleKey, "", 1},
		"SingleQuotes":                  {`['a']`, ruleValue, "/0", 1},
		"Comment":                       {`[/**/1]`, ruleValue, "/0", 1},
		"Fence":                         {"```json\n{}\n```", ruleValue, "", 0},
		"NotANumber":                    {`NaN`, ruleValue, "", 0},
		"LongerLiteral":                 {`truex`, ruleTrailing, "", 4},
		"ShorterLiteral":                {`[nul]`, ruleLiteral, "/0", 1},
		"LeadingZero":                   {`01`, ruleNumber, "", 1},
		"LeadingPlus":                   {`+1`, ruleValue, "", 0},
		"BareMinus":                     {`-`, ruleNumber, "", 1},
		"BarePoint":                     {`1.`, ruleNumber, "", 2},
		"PointFirst":                    {`.5`, ruleValue, "", 0},
		"BareExponent":                  {`1e+`, ruleNumber, "", 3},
		"Hexadecimal":                   {`0x10`, ruleTrailing, "", 1},
		"ControlCharacter":              {"\"a\nb\"", ruleControl, "", 2},
		"UnknownEscape":                 {`"\x41"`, ruleEscape, "", 1},
		"ShortUnicodeEscape":            {`"\u12"`, ruleEscape, "", 1},
		"EscapeAtTheEnd":                {`"\`, ruleEnd, "", 1},
		"LoneHighSurrogate":             {`{"a":"\ud83d"}`, ruleSurrogate, "/a", 6},
		"LoneLowSurrogate":              {`"\ude00"`, ruleSurrogate, "", 1},
		"SurrogatesInReverse":           {`"\ude00\ud83d"`, ruleSurrogate, "", 1},
		"TwoHighSurrogates":             {`"\ud83d\ud83d\ude00"`, ruleSurrogate, "", 1},
		"HighSurrogateThenText":         {`"\ud83dabcdefgh"`, ruleSurrogate, "", 1},
		"LoneSurrogateInKey":            {`{"a":{"\udfff":1}}`, ruleSurrogate, "/a", 7},
		"SurrogateAsUTF8":               {"\"\xed\xa0\x80\"", ruleUTF8, "", 1},
		"OverlongUTF8":                  {"\"\xc0\xaf\"", ruleUTF8, "", 1},
		"BrokenUTF8":                    {"[\"ok\",\"\xff\"]", ruleUTF8, "/1", 7},
		"BrokenUTF8InKey":               {"{\"\xff\":1}", ruleUTF8, "", 2},
		"BrokenUTF8OutsideOfStrings":    {"[\xff]", ruleValue, "/0", 1},
		"CutUTF8":                       {"\"\xe2\x82\"", ruleUTF8, "", 1},
		"DuplicateKey":                  {`{"a":1,"b":2,"a":3}`, ruleDuplicate, "/a", 13},
		"DuplicateEmptyKey":             {`{"":1,"":2}`, ruleDuplicate, "/", 6},
		"DuplicateKeyDeepDown":          {`[0,{"a~/":[{"x":1,"x":1}]}]`, ruleDuplicate, "/1/a~0~1/0/x", 18},
		"DuplicateKeyAfterInnerObject":  {`{"a":{"b":1,"c":{"d":1}},"a":2}`, ruleDuplicate, "/a", 25},
		"DuplicateKeyByEscape":          {`{"a":1,"\u0061":2}`, ruleDuplicate, "/a", 7},
		"DuplicateKeyByEscapeBefore":    {`{"\u0061":{"\u0062":1},"a":2}`, ruleDuplicate, "/a", 23},
		"DuplicateKeyByTwoEscapes":      {`{"\/\n":1,"\u002f\u000A":2}`, ruleDuplicate, "/~1\n", 10},
		"DuplicateKeyBySurrogates":      {"{\"\U0001F600\":1,\"\\ud83d\\ude00\":2}", ruleDuplicate, "/\U0001F600", 10},
		"NestedBeyondTheBound":          {strings.Repeat("[", MaxDepth+1), ruleDepth, strings.Repeat("/0", MaxDepth), MaxDepth},
		"NestedFarBeyondTheBound":       {strings.Repeat(`[`, 1<<20), ruleDepth, strings.Repeat("/0", MaxDepth), MaxDepth},
		"PointerThatWouldBeLong":        {`{"a":{"` + strings.Repeat("k", 2000) + `":x}}`, ruleValue, "/a", 2009},
		"DuplicateInABigObject":         {manyKeys(1000, `"k7":1`), ruleDuplicate, "/k7", 9891},
		"DuplicateLastInABigObject":     {manyKeys(17, `"k16":1`), ruleDuplicate, "/k16", 144},
		"DuplicateAtTheTablesThreshold": {manyKeys(16, `"k15":1`), ruleDuplicate, "/k15", 135},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := Check([]byte(tc.raw))
			var syntax *SyntaxError
			require.ErrorAs(t, err, &syntax)
			require.Equal(t, tc.rule, syntax.Rule)
			require.Equal(t, tc.pointer, syntax.Pointer)
			require.Equal(t, tc.offset, syntax.Offset)
			require.Equal(t, tc.rule, err.Error())
		})
	}
}

// manyKeys writes an object of n keys k0, k1, …, each with an object of its own, and more members at its end.
func manyKeys(n int, more string) string {
	var b strings.Builder
	b.WriteByte('{')
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"k%d":{}`, i)
	}
	if more != "" {
		b.WriteString("," + more)
	}
	b.WriteByte('}')
	return b.String()
}

func TestCheckFindsAnyRepeatedKey(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-c]{0,6}`), 1, 120, rapid.ID).Draw(t, "keys")
		repeated := rapid.IntRange(-1, len(keys)-1).Draw(t, "repeated")
		all := keys
		if repeated >= 0 {
			at := rapid.IntRange(repeated+1, len(keys)).Draw(t, "at")
			all = append(append(append([]string{}, keys[:at]...), keys[repeated]), keys[at:]...)
		}
		var b strings.Builder
		for i, k := range all {
			if i > 0 {
				b.WriteByte(',')
			}
			writeString(t, &b, k)
			b.WriteString(":")
			b.WriteString(rapid.SampledFrom([]string{"1", manyKeys(40, ""), `{"a":{"b":[]}}`}).Draw(t, "value"))
		}
		err := Check([]byte("[{" + b.String() + "}]"))
		if repeated < 0 {
			require.NoError(t, err)
			return
		}
		var syntax *SyntaxError
		require.ErrorAs(t, err, &syntax)
		require.Equal(t, ruleDuplicate, syntax.Rule)
		require.Equal(t, Pointer("0", keys[repeated]), syntax.Pointer)
	})
}

func TestScannerHashesTheKeysOfBigObjects(t *testing.T) {
	t.Parallel()

	open := func(keys int) *scanner {
		text := manyKeys(keys, "")
		s := &scanner{raw: []byte(text[:len(text)-1])}
		require.Error(t, s.run())
		return s
	}
	require.Zero(t, open(smallObject - 1).frames[0].slots)
	require.GreaterOrEqual(t, open(smallObject).frames[0].slots, 2*smallObject)
	require.GreaterOrEqual(t, open(5000).frames[0].slots, 2*5000)
}

func TestScannerAllocatesNothingOnceWarm(t *testing.T) { //nolint:paralleltest // it counts allocations
	raw := []byte(`{"a":[1,2,{"b":"\u00e9"}],"\u0063":` + manyKeys(100, "") + `}`)
	s := new(scanner)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		s.raw, s.pos = raw, 0
		if s.run() != nil {
			t.Fail()
		}
	}))
}

func FuzzCheck(f *testing.F) {
	for _, seed := range []string{
		`{"a":1}`, `{"a":1,"\u0061":2}`, `"\ud83d\ude00"`, `"\ud83d"`, "\"\xff\"", `[1e5,-0.1]`, `01`, `[[[[`, manyKeys(20, ""), "\ufeff1", `1 1`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		err := Check(raw)
		if err == nil {
			require.True(t, json.Valid(raw))
			return
		}
		var syntax *SyntaxError
		require.ErrorAs(t, err, &syntax)
		require.LessOrEqual(t, syntax.Offset, int64(len(raw)))
		switch syntax.Rule {
		case ruleDuplicate, ruleSurrogate, ruleUTF8, ruleDepth: // what decoders pass over
		default:
			require.False(t, json.Valid(raw), syntax.Rule)
		}
	})
}

// bigDocument is about 1 MiB of what requests look like.
func bigDocument() []byte {
	var b bytes.Buffer
	b.WriteByte('[')
	for i := 0; b.Len() < 1<<20; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":%d,"name":"customer %d","note":"%s","tags":["a","b","ü"],"total":{"amount":%d.50,"currency":"EUR"}}`,
			i, i, strings.Repeat("Lorem ipsum dolor. ", 8), i)
	}
	b.WriteByte(']')
	return b.Bytes()
}

func BenchmarkCheck(b *testing.B) {
	var keys bytes.Buffer
	keys.WriteByte('{')
	for i := 0; keys.Len() < 1<<20; i++ {
		if i > 0 {
			keys.WriteByte(',')
		}
		fmt.Fprintf(&keys, `"%x":0`, i)
	}
	keys.WriteByte('}')
	for name, raw := range map[string][]byte{
		"Documents":  bigDocument(),
		"OneString":  []byte(`"` + strings.Repeat("x", 1<<20) + `"`),
		"Escapes":    []byte(`"` + strings.Repeat(`\u00e9`, 1<<20/6) + `"`),
		"ManyKeys":   keys.Bytes(),
		"SmallLists": []byte(`[` + strings.Repeat(`[],`, 1<<20/3) + `0]`),
		"KeysOf17":   []byte(`[` + strings.Repeat(manyKeys(17, "")+",", 1<<20/130) + `0]`),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				if err := Check(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("EncodingJSONValid", func(b *testing.B) {
		raw := bigDocument()
		b.SetBytes(int64(len(raw)))
		for b.Loop() {
			json.Valid(raw)
		}
	})
}
