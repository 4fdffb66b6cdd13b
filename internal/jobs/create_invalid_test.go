package jobs

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCreateInvalid(t *testing.T) {
	t.Parallel()

	t.Run("NamesThePathAndConsumesNoKey", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			good := func() CreateInput { return input("k", `{"text":"a"}`) }
			for _, tc := range []struct {
				name string
				edit func(in *CreateInput)
				path string
			}{
				{"no key", func(in *CreateInput) { in.IdempotencyKey = nil }, "/idempotencyKey"},
				{"empty key", func(in *CreateInput) { in.IdempotencyKey = new("") }, "/idempotencyKey"},
				{"long key", func(in *CreateInput) { in.IdempotencyKey = new(strings.Repeat("k", 256)) }, "/idempotencyKey"},
				{"key beyond ASCII", func(in *CreateInput) { in.IdempotencyKey = new("ké") }, "/idempotencyKey"},
				{"key with a control character", func(in *CreateInput) { in.IdempotencyKey = new("k\n") }, "/idempotencyKey"},
				{"key with DEL", func(in *CreateInput) { in.IdempotencyKey = new("k\x7f") }, "/idempotencyKey"},
				{"unknown task", func(in *CreateInput) { in.Task = "nope" }, "/task"},
				{"unknown target", func(in *CreateInput) { in.Target = new("demo/nope") }, "/target"},
				{"unknown fallback", func(in *CreateInput) { in.Fallbacks = []string{"demo/b", "demo/nope"} }, "/fallbacks/1"},
				{"no input", func(in *CreateInput) { in.Input = nil }, "/input"},
				{"input is no JSON", func(in *CreateInput) { in.Input = json.RawMessage(`{"text":`) }, "/input"},
				{"input breaks the schema", func(in *CreateInput) { in.Input = json.RawMessage(`{"text":1}`) }, "/input/text"},
				{"input has one key twice", func(in *CreateInput) { in.Input = json.RawMessage(`{"text":"a","text":"a"}`) }, "/input/text"},
				{"exponent out of bounds", func(in *CreateInput) { in.Input = json.RawMessage(`{"text":"a","n":1e401}`) }, "/input/n"},
				{"too many digits", func(in *CreateInput) {
					in.Input = json.RawMessage(`{"text":"a","n":` + strings.Repeat("1", 1001) + `}`)
				}, "/input/n"},
				{"input too large", func(in *CreateInput) {
					in.Input = json.RawMessage(`{"text":"` + strings.Repeat("a", 256<<10) + `"}`)
				}, "/input"},
				{"negative hedge", func(in *CreateInput) { in.HedgeAfterMS = new(-1) }, "/hedgeAfterMs"},
				{"hedge of years", func(in *CreateInput) { in.HedgeAfterMS = new(1 << 40) }, "/hedgeAfterMs"},
				{"callback is no URL", func(in *CreateInput) { in.CallbackURL = new("javascript:alert(1)") }, "/callbackUrl"},
			} {
				in := good()
				tc.edit(&in)
				_, err := b.Create(b.ann, in)
				var invalid *InvalidInputError
				require.ErrorAs(t, err, &invalid, tc.name)
				require.Equal(t, tc.path, invalid.Issues[0].Path, tc.name)
			}
			require.Zero(t, b.store.Client().Job.Query().CountX(b.sys))
			require.Zero(t, b.queue.len())
			c, err := b.Create(b.ann, good())
			require.NoError(t, err)
			require.False(t, c.Replayed)
		})
	})

	t.Run("LooksUpTheKeyBeforeBlamingTheConfiguration", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			in := input("k", `{"text":"a"}`)
			in.Target = new("demo/d")
			first, err := b.Create(b.ann, in)
			require.NoError(t, err)
			other := in
			other.Input = json.RawMessage(`{"text":"b"}`)

			stricter := someTasks(t, testTask{"plain", "", testOutput})
			gone := b.restarted(someTasks(t, testTask{"else", "", testOutput}))
			small := b.restarted(stricter)
			small.maxInput = 1
			for name, p := range map[string]*testBundle{"task removed": gone, "input too large": small} {
				again, err := p.Create(b.ann, in)
				require.NoError(t, err, name)
				require.True(t, again.Replayed, name)
				require.Equal(t, first.Job.ID, again.Job.ID, name)
				_, err = p.Create(b.ann, other)
				var conflict *IdempotencyConflictError
				require.ErrorAs(t, err, &conflict, name)
				// Another owner's key is another key.
				_, err = p.Create(b.bob, in)
				var invalid *InvalidInputError
				require.ErrorAs(t, err, &invalid, name)
			}
			b.targets.remove("demo/d")
			again, err := b.Create(b.ann, in)
			require.NoError(t, err)
			require.True(t, again.Replayed)
			// An input that the schema refuses, under a key that is used, is a conflict too.
			_, err = b.Create(b.ann, input("k", `{"wrong":1}`))
			var conflict *IdempotencyConflictError
			require.ErrorAs(t, err, &conflict)
		})
	})

	t.Run("ReplaysAfterTheTaskGotANewVersion", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			first, err := b.Create(b.ann, input("k", `{"text":"a"}`))
			require.NoError(t, err)
			next := b.restarted(someTasks(t, testTask{"plain", "fallbacks: [demo/d]\n", testOutput}))
			again, err := next.Create(b.ann, input("k", `{"text":"a"}`))
			require.NoError(t, err)
			require.True(t, again.Replayed)
			require.Equal(t, first.Job.TaskVersion, again.Job.TaskVersion)
			// The job keeps its own version: two retries, and demo/b before demo/d is thought of.
			a := b.last(t, first.Job.ID)
			l, err := next.Take(t.Context(), a.ID, *a.QueueEntry)
			require.NoError(t, err)
			require.Equal(t, first.Job.TaskVersion, l.Task.Digest)
			require.Equal(t, 2, l.Task.Retry.Max)
			held, err := next.HeldVersions(t.Context())
			require.NoError(t, err)
			require.Len(t, held, 2)
		})
	})

	t.Run("LeavesOutTheTargetAndRepeatedFallbacks", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			in := input("k", `{"text":"a"}`)
			in.Target, in.Fallbacks = new("demo/b"), []string{"demo/c", "demo/b", "demo/c"}
			c, err := b.Create(b.ann, in)
			require.NoError(t, err)
			require.Equal(t, []string{"demo/c"}, c.Job.Fallbacks)
			in = input("none", `{"text":"a"}`)
			in.Fallbacks = []string{}
			c, err = b.Create(b.ann, in)
			require.NoError(t, err)
			require.Empty(t, c.Job.Fallbacks)
		})
	})
}
