package tasks_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/tasks"
)

func TestOnceIsTheSameTaskForASingleAttempt(t *testing.T) {
	t.Parallel()
	d, err := tasks.Load(folder(map[string]string{tasks.FileTask: `name: greet
version: "7"
target: a/b
fallbacks: [c/d, e/f]
temperature: 0.25
max_output_tokens: 77
race: allowed
hedge_after: 5s
retry: {max: 5, base: 1s, cap: 2s}
`}), "greet")
	require.NoError(t, err)
	once, err := d.Once("c/d")
	require.NoError(t, err)
	require.Equal(t, []string{"c/d"}, once.Route())
	require.False(t, once.RaceAllowed)
	require.Equal(t, time.Duration(0), once.HedgeAfter)
	require.Equal(t, 0, once.Retry.Max)
	require.NotEqual(t, d.Digest, once.Digest)

	require.Equal(t, []any{d.Name, d.Version, d.Temperature, d.MaxOutputTokens, d.InputSchemaJSON, d.OutputSchemaJSON, d.Contract},
		[]any{once.Name, once.Version, once.Temperature, once.MaxOutputTokens, once.InputSchemaJSON, once.OutputSchemaJSON, once.Contract})
	want, err := d.Render([]byte(`{"name":"Ann"}`))
	require.NoError(t, err)
	got, err := once.Render([]byte(`{"name":"Ann"}`))
	require.NoError(t, err)
	require.Equal(t, want, got)
	_, err = tasks.Parse(once.Stored)
	require.NoError(t, err, "a worker can read it back")

	_, err = d.Once("nowhere")
	require.ErrorContains(t, err, "target")
}
