package jobs

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
	"github.com/docket-gateway/docket/ent/jobevent"
)

func input(key, raw string) CreateInput {
	return CreateInput{IdempotencyKey: &key, Task: "plain", Input: json.RawMessage(raw)}
}

func TestCreate(t *testing.T) {
	t.Parallel()

	t.Run("StoresJobAttemptEventsAndQueueEntryTogether", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			c, err := b.Create(b.ann, input("k", `{"text":"a"}`))
			require.NoError(t, err)
			require.False(t, c.Replayed)
			require.Equal(t, job.StateQUEUED, c.Job.State)
			require.Equal(t, 1, c.Job.Version)
			require.Equal(t, "demo/a", c.Job.Target)
			require.Equal(t, []string{"demo/b", "demo/c"}, c.Job.Fallbacks)
			as := b.attempts(t, c.Job.ID)
			require.Len(t, as, 1)
			require.Equal(t, attempt.StateSTARTING, as[0].State)
			require.Equal(t, attempt.ReasonPRIMARY, as[0].Reason)
			require.Equal(t, 1, as[0].JobVersion)
			require.Equal(t, []int64{*as[0].QueueEntry}, b.queue.of(as[0].ID))
			require.Equal(t, []string{EventJobCreated, EventAttemptCreated}, b.eventTypes(t, c.Job.ID))
			require.Equal(t, 1, b.notifier.count(c.Job.ID))
		})
	})

	t.Run("LeavesNothingWhenTheQueueFails", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			b.queue.fail(errBroken)
			_, err := b.Create(b.ann, input("k", `{"text":"a"}`))
			require.ErrorIs(t, err, errBroken)
			require.Zero(t, b.store.Client().Job.Query().CountX(b.sys))
			require.Zero(t, b.store.Client().Attempt.Query().CountX(b.sys))
			require.Zero(t, b.store.Client().JobEvent.Query().CountX(b.sys))
			b.queue.fail(nil)
			c, err := b.Create(b.ann, input("k", `{"text":"a"}`))
			require.NoError(t, err)
			require.False(t, c.Replayed)
		})
	})

	t.Run("NamesTheConflictWhileTheFirstIsBeingInserted", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			got := inParallel(40, func(i int) (Created, error) {
				if i%2 == 0 {
					return b.Create(b.ann, input("k", `{"text":"even"}`))
				}
				return b.Create(b.ann, input("k", `{"text":"odd"}`))
			})
			stored := b.store.Client().Job.Query().OnlyX(b.sys)
			won := 0
			if strings.Contains(string(stored.Input), "odd") {
				won = 1
			}
			for i, r := range got {
				if i%2 == won {
					require.NoError(t, r.err)
					require.Equal(t, stored.ID, r.value.Job.ID)
					continue
				}
				var conflict *IdempotencyConflictError
				require.ErrorAs(t, r.err, &conflict)
				require.Equal(t, stored.ID, conflict.Job.ID)
				require.NotContains(t, conflict.Error(), string(stored.Input))
			}
			require.Equal(t, 1, b.queue.len())
		})
	})

	t.Run("KeepsKeysOfOwnersApartAndByteForByte", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			seen := map[string]bool{}
			for _, key := range []string{"k", "K", "k ", " k", strings.Repeat("~", 255)} {
				c, err := b.Create(b.ann, input(key, `{"text":"a"}`))
				require.NoError(t, err)
				require.False(t, c.Replayed, key)
				seen[c.Job.ID] = true
			}
			c, err := b.Create(b.bob, input("k", `{"text":"other"}`))
			require.NoError(t, err)
			require.False(t, c.Replayed)
			require.False(t, seen[c.Job.ID])
		})
	})

	t.Run("RefusesWithoutViewer", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			_, err := b.Create(t.Context(), input("k", `{"text":"a"}`))
			require.ErrorIs(t, err, ErrUnauthenticated)
		})
	})

	t.Run("FailsClosedWhenTheDatabaseCannotSay", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			require.NoError(t, b.exec(t, "ALTER TABLE jobs RENAME TO jobs_away"))
			_, err := b.Create(b.ann, input("k", `{"text":"a"}`))
			require.Error(t, err)
			require.NotErrorAs(t, err, new(*InvalidInputError))
			// Not even an invalid input may be called invalid: nobody knows whether the key was used.
			_, err = b.Create(b.ann, input("k", `{"wrong":"a"}`))
			require.Error(t, err)
			require.NotErrorAs(t, err, new(*InvalidInputError))
			require.Zero(t, b.queue.len())
		})
	})
}

var errBroken = errors.New("broken on purpose")

type result[T any] struct {
	value T
	err   error
}

// inParallel starts n calls at the same moment and returns their results in order.
func inParallel[T any](n int, f func(i int) (T, error)) []result[T] {
	out := make([]result[T], n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			out[i].value, out[i].err = f(i)
		})
	}
	close(start)
	wg.Wait()
	return out
}

func (b *testBundle) eventTypes(t *testing.T, jobID string) []string {
	t.Helper()
	types := []string{}
	for i, e := range b.store.Client().JobEvent.Query().Where(jobevent.JobID(jobID)).Order(jobevent.ByNumber()).AllX(b.sys) {
		require.Equal(t, i+1, e.Number, "events of a job have no gaps")
		types = append(types, e.Type)
	}
	require.Equal(t, len(types), b.job(t, jobID).LastEvent)
	return types
}
