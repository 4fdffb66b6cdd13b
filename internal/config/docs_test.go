package config

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// keys lists the path of every scalar and of every list of scalars, with [] for list elements.
func keys(t reflect.Type, path string) []string {
	if isScalar(t) {
		return []string{path}
	}
	if t.Kind() == reflect.Slice {
		if isScalar(t.Elem()) {
			return []string{path}
		}
		return keys(t.Elem(), path+"[]")
	}
	var all []string
	for i := range t.NumField() {
		if key := t.Field(i).Tag.Get("yaml"); key != "-" {
			all = append(all, keys(t.Field(i).Type, join(path, key))...)
		}
	}
	return all
}

func TestEveryFieldHasAKey(t *testing.T) {
	t.Parallel()
	all := keys(reflect.TypeFor[Config](), "")
	require.Greater(t, len(all), 30)
	for _, k := range all {
		require.NotContains(t, k+".", "..", "a field without a yaml tag")
		require.NotEqual(t, byte('.'), k[len(k)-1], "a field without a yaml tag")
	}
}

func TestExampleFileEqualsDefaults(t *testing.T) {
	t.Parallel()
	cfg, err := Load("../../docket.example.yaml", nil)
	require.NoError(t, err)
	require.Equal(t, Default(), cfg)
}

// commented is a line of the example that is meant to be used by removing its #: no space follows the #, or it belongs
// to such an entry.
var commented = regexp.MustCompile(`(?m)^  #(- |  )`)

func TestExampleFileLoadsWithEverythingInUse(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docket.example.yaml")
	require.NoError(t, err)
	used := commented.ReplaceAllString(string(text), "  $1")
	cfg, err := Load(write(t, used), []string{"OPENAI_API_KEY=k", "ANTHROPIC_API_KEY=k", "GEMINI_API_KEY=k", "OPENAI_CALLBACK_SECRET=" + secretA})
	require.NoError(t, err)
	_, missing := cfg.Usable()
	require.Empty(t, missing)
	require.Len(t, cfg.Providers, 5)
	require.Equal(t, secretA, cfg.Providers[1].CallbackSecrets[0].Reveal())
	require.Equal(t, Prices{Input: "0.15", CachedInput: "0.075", Output: "0.60"}, cfg.Providers[1].Models[0].PricePerMillion)
	require.Equal(t, StructuredNative, cfg.Providers[2].Models[0].StructuredOutput)
	require.Equal(t, "gemini", cfg.Providers[3].Name)
	require.Equal(t, "local", cfg.Providers[4].Name)
}

func TestExampleFileShowsEveryKey(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docket.example.yaml")
	require.NoError(t, err)
	for _, path := range keys(reflect.TypeFor[Config](), "") {
		key := path[strings.LastIndex(path, ".")+1:]
		require.Regexp(t, `(?m)(^[ #-]*|[{,] ?)`+regexp.QuoteMeta(strings.TrimSuffix(key, "[]"))+`:`, string(text), path)
	}
}

func TestDocumentationNamesEveryKeyWithItsDefaultAndVariable(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/configuration.md")
	require.NoError(t, err)
	rows := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if key, ok := strings.CutPrefix(line, "| `"); ok {
			key, rest, _ := strings.Cut(key, "` |")
			require.NotContains(t, rows, key)
			rows[key] = rest
		}
	}
	all := keys(reflect.TypeFor[Config](), "")
	for _, path := range all {
		require.Contains(t, rows, path)
	}
	require.Len(t, rows, len(all), "documents keys that do not exist")

	for prefix, defaults := range map[string]any{"": *Default(), "providers[].": defaultProvider()} {
		eachScalar(addressable(defaults), "", func(path string, v reflect.Value) {
			row := rows[prefix+path]
			if prefix == "" {
				require.Contains(t, row, "`"+EnvName(path)+"`", path)
			}
			if text := shown(v); text != "" {
				require.True(t, strings.HasPrefix(row, " `"+text+"`"), "default of %s is %s, documented is%s", prefix+path, text, row)
			} else {
				require.True(t, strings.HasPrefix(row, " none |"), path)
			}
		})
	}
}

func addressable(v any) reflect.Value {
	p := reflect.New(reflect.TypeOf(v))
	p.Elem().Set(reflect.ValueOf(v))
	return p.Elem()
}

// shown is a value as a person writes it: 120s, not 2m0s.
func shown(v reflect.Value) string {
	if v.Type() == durationType {
		return fmt.Sprintf("%ds", v.Int()/1e9)
	}
	return fmt.Sprint(v.Interface())
}
