package jobs

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"math/big"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestFingerprint(t *testing.T) {
	t.Parallel()
	base := func() CreateInput { return CreateInput{Task: "plain", Input: json.RawMessage(`{"text":"a"}`)} }
	with := func(edit func(in *CreateInput)) CreateInput {
		in := base()
		edit(&in)
		return in
	}
	raw := func(s string) CreateInput { return CreateInput{Task: "plain", Input: json.RawMessage(s)} }

	for _, tc := range []struct {
		name string
		a, b CreateInput
		same bool
	}{
		{"the key is not part of it", base(), with(func(in *CreateInput) { in.IdempotencyKey = new("k") }), true},
		{"task", base(), with(func(in *CreateInput) { in.Task = "race" }), false},
		{"target that is the default", base(), with(func(in *CreateInput) { in.Target = new("demo/a") }), false},
		{"no fallbacks is not left out", base(), with(func(in *CreateInput) { in.Fallbacks = []string{} }), false},
		{"order of fallbacks", with(func(in *CreateInput) { in.Fallbacks = []string{"x/a", "x/b"} }), with(func(in *CreateInput) { in.Fallbacks = []string{"x/b", "x/a"} }), false},
		{"hedge of zero is not left out", base(), with(func(in *CreateInput) { in.HedgeAfterMS = new(0) }), false},
		{"callback", base(), with(func(in *CreateInput) { in.CallbackURL = new("https://a.example") }), false},
		{"callback that equals the target", with(func(in *CreateInput) { in.CallbackURL = new("x") }), with(func(in *CreateInput) { in.Target = new("x") }), false},
		{"key order and white space", raw(`{"a":1,"b":{"c":2,"d":3}}`), raw(" {\"b\": {\"d\":3,\n\"c\":2}, \"a\":1}"), true},
		{"array order", raw(`[1,2]`), raw(`[2,1]`), false},
		{"1, 1.0 and 1e0", raw(`[1,1,1]`), raw(`[1.0,1e0,10e-1]`), true},
		{"beyond a double", raw(`9007199254740993`), raw(`9007199254740992`), false},
		{"one tenth is not the double next to it", raw(`0.1`), raw(`0.1000000000000000055`), false},
		{"minus zero", raw(`-0`), raw(`0`), true},
		{"null in the input is a value", raw(`{"a":null}`), raw(`{}`), false},
		{"number and text", raw(`1`), raw(`"1"`), false},
		{"no normalisation of strings", raw(`"é"`), raw("\"e\u0301\""), false},
		{"escapes", raw(`"\u0041\/<"`), raw(`"A/\u003c"`), true},
		{"nul character", raw(`"\u0000"`), raw(`""`), false},
		{"large exponents", raw(`1e400`), raw(`10e399`), true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			a, err := tc.a.fingerprint()
			require.NoError(t, err)
			b, err := tc.b.fingerprint()
			require.NoError(t, err)
			require.Equal(t, tc.same, bytes.Equal(a, b))
		})
	}
}

// The fingerprint of one intent is for ever: jobs in databases have it.
func TestFingerprintNeverChanges(t *testing.T) {
	t.Parallel()
	in := CreateInput{
		Task: "plain", Input: json.RawMessage(`{"text":"é","n":1.50}`), Target: new("demo/b"), Fallbacks: []string{"demo/c"},
		HedgeAfterMS: new(5), CallbackURL: new("https://a.example/"),
	}
	sum, err := in.fingerprint()
	require.NoError(t, err)
	require.Equal(t, sha(`{"callbackUrl":"https://a.example/","fallbacks":["demo/c"],"hedgeAfterMs":5,"input":{"n":1.5,"text":"é"},"target":"demo/b","task":"plain"}`), sum)
}

// FuzzFingerprint: equal documents have equal fingerprints and different ones have different ones, whatever they look
// like. The oracle shares nothing with the code: encoding/json reads, math/big compares.
func FuzzFingerprint(f *testing.F) {
	for _, s := range []string{
		`1`, `1.0`, `1e0`, `9007199254740993`, `9007199254740992`, `0.1`, `0.1000000000000000055`, `-0`, `0`, `1e400`, `10e399`,
		`null`, `{}`, `{"a":null}`, `[]`, `[1,2]`, `[2,1]`, `{"a":1,"b":2}`, `{"b":2,"a":1}`, `"a"`, `"\u0061"`, `"é"`, "\"e\u0301\"",
		`{"a":{"b":[1,{"c":"x"}]}}`, `{"a":1,"a":1}`, `"\ud83d\ude00"`, `"😀"`, `{"n1":"n1"}`, `{"1":1}`, `"1"`, `true`,
	} {
		f.Add([]byte(s), []byte(`{"a":1}`), uint8(0))
		f.Add([]byte(s), []byte(s), uint8(1))
	}
	f.Fuzz(func(t *testing.T, left, right []byte, how uint8) {
		a := CreateInput{Task: "t", Input: left}
		b := CreateInput{Task: "t", Input: right}
		if how%2 == 1 { // the same document written in another way
			v, ok := oracleDecode(left)
			if !ok {
				return
			}
			var err error
			b.Input, err = json.MarshalIndent(v, "", "\t")
			require.NoError(t, err)
		}
		fa, errA := a.fingerprint()
		fb, errB := b.fingerprint()
		if errA != nil || errB != nil {
			var invalid *InvalidInputError
			for _, err := range []error{errA, errB} {
				if err != nil {
					require.ErrorAs(t, err, &invalid)
					require.True(t, strings.HasPrefix(invalid.Issues[0].Path, "/input"), invalid.Issues[0].Path)
				}
			}
			return
		}
		va, okA := oracleDecode(a.Input)
		vb, okB := oracleDecode(b.Input)
		require.True(t, okA && okB, "what has a fingerprint is JSON")
		require.Equal(t, oracleSame(va, vb), bytes.Equal(fa, fb), "%s and %s", a.Input, b.Input)
	})
}

func oracleDecode(raw []byte) (any, bool) {
	if !utf8.Valid(raw) {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil || d.More() {
		return nil, false
	}
	return v, true
}

func oracleSame(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			w, ok := b[k]
			if !ok || !oracleSame(v, w) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !oracleSame(a[i], b[i]) {
				return false
			}
		}
		return true
	case json.Number:
		b, ok := b.(json.Number)
		if !ok {
			return false
		}
		x, okX := new(big.Rat).SetString(a.String())
		y, okY := new(big.Rat).SetString(b.String())
		return okX && okY && x.Cmp(y) == 0
	default:
		return a == b
	}
}

func sha(s string) []byte {
	sum := sha256.Sum256([]byte(s))
	return sum[:]
}
