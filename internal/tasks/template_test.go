package tasks_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/tasks"
)

func TestRender(t *testing.T) {
	t.Parallel()

	t.Run("Templates", func(t *testing.T) {
		t.Parallel()
		for _, tc := range []struct{ name, prompt, input, want, err string }{
			{name: "KeepsBigIntegers", prompt: `{{.Input.n}} {{json .Input}}`, input: `{"n": 9007199254740993}`, want: `9007199254740993 {"n":9007199254740993}`},
			{name: "DoesNotEscapeHTML", prompt: `{{json .Input}}`, input: `{"a": "<b> & \"c\" é 日"}`, want: `{"a":"<b> & \"c\" é 日"}`},
			{name: "RefusesMissingKey", prompt: `{{.Input.subject}}`, input: `{}`, err: `map has no entry for key "subject"`},
			{name: "AsksForOptionalKeys", prompt: `{{if has .Input "subject"}}{{.Input.subject}}{{else}}none{{end}}`, input: `{}`, want: `none`},
			{name: "SeesOptionalKeys", prompt: `{{if has .Input "subject"}}{{.Input.subject}}{{else}}none{{end}}`, input: `{"subject": "s"}`, want: `s`},
			{name: "Trims", prompt: `{{trim .Input.a}}`, input: `{"a": "\n x \n"}`, want: `x`},
			{name: "LeavesTemplateCodeInInputAlone", prompt: `{{.Input.a}}`, input: `{"a": "{{.Schema}}{{define \"x\"}}"}`, want: `{{.Schema}}{{define "x"}}`},
			{name: "RefusesInputThatIsNotJSON", prompt: `x`, input: `{`, err: `not JSON`},
			{name: "BoundsTheSize", prompt: `{{range .Input.l}}{{$.Input.s}}{{end}}`, err: tasks.ErrPromptTooLarge.Error(),
				input: `{"s": "` + strings.Repeat("a", 1<<16) + `", "l": [` + strings.Repeat("0,", 100) + `0]}`},
		} {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				d, err := tasks.Load(folder(map[string]string{tasks.FilePrompt: tc.prompt}), "greet")
				require.NoError(t, err)
				got, err := d.Render(json.RawMessage(tc.input))
				if tc.err != "" {
					require.ErrorContains(t, err, tc.err)
					require.Empty(t, got)
					return
				}
				require.NoError(t, err)
				require.Equal(t, tc.want, got.User)
			})
		}
	})

	t.Run("GivesTheOutputSchema", func(t *testing.T) {
		t.Parallel()
		d, err := tasks.Load(folder(nil), "greet")
		require.NoError(t, err)
		got, err := d.Render(json.RawMessage(`{"name": "Ada"}`))
		require.NoError(t, err)
		require.Equal(t, "Greet \"Ada\".\n", got.User)
		require.JSONEq(t, goodOutput, strings.TrimPrefix(got.System, "Answer by "))
	})
}
