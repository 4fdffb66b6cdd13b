package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent/job"
)

func TestOpenJobsOfAnOwner(t *testing.T) {
	t.Parallel()

	t.Run("AreBoundedUnderConcurrentCallsOfTwoProcesses", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			other := b.restarted(allTasks(t))
			b.maxOpenJobs, other.maxOpenJobs = 3, 3
			got := inParallel(24, func(i int) (Created, error) {
				s := []*testBundle{b, other}[i%2]
				return s.Create(s.ann, input(fmt.Sprint("k", i), `{"text":"a"}`))
			})
			created := 0
			for _, r := range got {
				if r.err == nil {
					created++
					continue
				}
				var refused *InvalidInputError
				require.ErrorAs(t, r.err, &refused)
				require.Equal(t, CodeTooManyOpenJobs, refused.Code)
				require.Len(t, refused.Issues, 1)
				require.NotContains(t, refused.Error(), ": :", "the issue is at the root")
			}
			require.Equal(t, 3, created)
			require.Equal(t, 3, b.store.Client().Job.Query().CountX(b.sys))
			require.Equal(t, 3, b.queue.len(), "nothing is left of those that were refused")
			_, err := b.Create(b.bob, input("k", `{"text":"a"}`))
			require.NoError(t, err, "another owner has a bound of its own")
		})
	})

	t.Run("ConsumeNoKeyAndLeaveReplaysAndConflictsAlone", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			b.maxOpenJobs = 1
			first, err := b.Create(b.ann, input("k", `{"text":"a"}`))
			require.NoError(t, err)
			again, err := b.Create(b.ann, input("k", `{"text":"a"}`))
			require.NoError(t, err)
			require.True(t, again.Replayed)
			_, err = b.Create(b.ann, input("k", `{"text":"b"}`))
			require.ErrorAs(t, err, new(*IdempotencyConflictError))
			var refused *InvalidInputError
			_, err = b.Create(b.ann, input("second", `{"text":"a"}`))
			require.ErrorAs(t, err, &refused)
			require.Equal(t, CodeTooManyOpenJobs, refused.Code)

			_, err = b.CancelJob(b.ann, first.Job.ID, nil)
			require.NoError(t, err)
			second, err := b.Create(b.ann, input("second", `{"text":"other"}`))
			require.NoError(t, err, "the key was not consumed, and what is finished does not count")
			require.False(t, second.Replayed)
		})
	})

	t.Run("AreThoseOfEveryStateThatIsNotTheLastAndNobodyElses", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			b.maxOpenJobs = 1
			held, err := b.Create(b.ann, input("held", `{"text":"a"}`))
			require.NoError(t, err)
			require.NotContains(t, openJobs, job.StateSUCCEEDED) // which no row is without a winner
			for i, state := range []job.State{
				job.StateQUEUED, job.StateRUNNING, job.StateUNKNOWN, job.StateWAITING, job.StateFAILED, job.StateCANCELLED,
			} {
				b.store.Client().Job.UpdateOneID(held.Job.ID).SetState(state).ExecX(b.sys)
				for who, ctx := range map[string]context.Context{"ann": b.ann, "bob": b.bob} {
					c, err := b.Create(ctx, input(fmt.Sprint("k", i), `{"text":"a"}`))
					if who == "ann" && !Finished(state) {
						var refused *InvalidInputError
						require.ErrorAs(t, err, &refused, state)
						require.Equal(t, CodeTooManyOpenJobs, refused.Code)
						continue
					}
					require.NoError(t, err, "%s %s", who, state)
					_, err = b.CancelJob(ctx, c.Job.ID, nil)
					require.NoError(t, err)
				}
			}
		})
	})
}

func TestATaskMayTakeLessInputThanTheServer(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, b *testBundle) {
		small := b.restarted(someTasks(t, testTask{"plain", "max_input_bytes: 32\n", testOutput}))
		create := func(key, text string) (Created, error) {
			return small.Create(b.ann, input(key, `{"text":"`+text+`"}`))
		}
		_, err := create("k", strings.Repeat("a", 21)) // 32 bytes
		require.NoError(t, err)
		var refused *InvalidInputError
		_, err = create("large", strings.Repeat("a", 22))
		require.ErrorAs(t, err, &refused)
		require.Equal(t, CodeInputTooLarge, refused.Code)
		require.Equal(t, "/input", refused.Issues[0].Path)

		// A job of before the bound is still met.
		before, err := b.Create(b.ann, CreateInput{IdempotencyKey: new("before"), Task: "plain", Input: json.RawMessage(`{"text":"` + strings.Repeat("a", 99) + `"}`)})
		require.NoError(t, err)
		again, err := create("before", strings.Repeat("a", 99))
		require.NoError(t, err)
		require.Equal(t, before.Job.ID, again.Job.ID)

		small.maxInput = 16
		_, err = create("larger", strings.Repeat("a", 10))
		require.ErrorAs(t, err, &refused, "the server's own limit stays")
	})
}
