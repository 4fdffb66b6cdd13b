package tasks_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/tasks"
)

const (
	reasonFirst = `{"type": "object", "required": ["why", "answer"],
		"properties": {"why": {"type": "string", "description": "<a> & b"}, "answer": {"type": "number", "minimum": 2.50}}}`
	answerFirst = `{"properties": {"answer": {"minimum": 2.5, "type": "number"}, "why": {"description": "<a> & b", "type": "string"}},
		"type": "object", "required": ["why", "answer"]}`
)

// TestSchemasKeepTheirOrderAndDigits: a model writes in the order of the schema's keys, so reasons can come before an answer.
func TestSchemasKeepTheirOrderAndDigits(t *testing.T) {
	t.Parallel()
	const want = `{"type":"object","required":["why","answer"],` +
		`"properties":{"why":{"type":"string","description":"<a> & b"},"answer":{"type":"number","minimum":2.50}}}`
	load := func(schema string) *tasks.Definition {
		d, err := tasks.Load(folder(map[string]string{tasks.FileOutputSchema: schema}), "greet")
		require.NoError(t, err)
		return d
	}
	loaded := load(reasonFirst)
	stored, err := tasks.Parse(loaded.Stored)
	require.NoError(t, err)
	once, err := stored.Once("demo/fax")
	require.NoError(t, err)
	for name, d := range map[string]*tasks.Definition{"the folder's": loaded, "the database's": stored, "for one attempt": once} {
		require.Equal(t, want, string(d.OutputSchemaJSON), name) //nolint:testifylint // the order is the point
		prompt, err := d.Render([]byte(`{"name": "Ada"}`))
		require.NoError(t, err)
		require.Equal(t, "Answer by "+want+"\n", prompt.System, "%s: the model reads the order in which it is to write", name)
	}

	other := load(answerFirst)
	require.Equal(t, loaded.Digest, other.Digest, "the order is not part of the version")
	require.Equal(t, loaded.Content, other.Content)
	require.Equal(t, loaded.Parts(), other.Parts())
	require.NotEqual(t, loaded.Stored, other.Stored)

	old, err := tasks.Parse(loaded.Content)
	require.NoError(t, err, "rows from before the order was kept")
	require.Equal(t, loaded.Digest, old.Digest)
}
