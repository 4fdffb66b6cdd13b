package events

import (
	"context"
	"iter"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
	"github.com/docket-gateway/docket/internal/store"
	"github.com/docket-gateway/docket/internal/viewer"
)

// Cases from public reports of what goes wrong with subscriptions.

// numbers reads to the end.
func numbers(t *testing.T, all iter.Seq2[*ent.JobEvent, error]) (got []int) {
	t.Helper()
	for e, err := range all {
		require.NoError(t, err)
		got = append(got, e.Number)
	}
	return got
}

func TestAnEventBetweenQueryAndSubscribeIsDelivered(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bundle) {
		j := b.Job(t, alice, "k")
		a := b.Attempt(t, j.ID)
		head, err := b.follow.head(as(t, alice), j.ID) // the query
		require.NoError(t, err)
		b.Move(t, a.ID, attempt.StateRUNNING, "") // the event
		b.Finish(t, j.ID, job.StateCANCELLED, "")
		require.Equal(t, []int{3, 4}, numbers(t, b.follow.Events(as(t, alice), j.ID, head.LastEvent)))
	})
}

// The first transaction to number an event is the last to commit. Numbers are given under the lock of the job's row, so that
// the other waits, and nobody can see the later number without the earlier one.
func TestTransactionsThatCommitOutOfOrderLoseNoEvent(t *testing.T) {
	t.Parallel()
	b := over(seedPostgreSQL(t))
	slow, other := b.Job(t, alice, "slow"), b.Job(t, alice, "other")
	sys := viewer.NewSystemContext(t.Context())
	began, commit := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		err := b.Store.Tx(sys, func(tx *store.Tx) error {
			j, err := tx.LockJob(sys, slow.ID)
			if err != nil {
				return err
			}
			tx.JobEvent.Create().SetJobID(slow.ID).SetNumber(j.LastEvent + 1).SetType("FIRST").SaveX(sys)
			tx.Job.Update().Where(job.ID(slow.ID)).AddLastEvent(1).SaveX(sys)
			close(began)
			<-commit
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		b.hub.JobChanged(slow.ID)
	})
	<-began
	wg.Go(func() { b.Log(t, slow.ID, "SECOND") })
	// Transactions of other jobs go past it.
	b.Log(t, other.ID, "OTHER")
	e, err, _ := pull(t, b.follow.Events(as(t, alice), other.ID, 1))()
	require.NoError(t, err)
	require.Equal(t, "OTHER", e.Type)
	b.hub.JobChanged(slow.ID) // a notice ahead of its commit tells nothing
	head, err := b.follow.head(as(t, alice), slow.ID)
	require.NoError(t, err)
	require.Equal(t, 1, head.LastEvent)

	next := pull(t, b.follow.Events(as(t, alice), slow.ID, 1))
	close(commit)
	for i, want := range []string{"FIRST", "SECOND"} {
		e, err, ok := next()
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, 2+i, e.Number)
		require.Equal(t, want, e.Type)
	}
}

func TestAWatchThatBeginsAsTheLastOneEndsIsWoken(t *testing.T) {
	t.Parallel()
	h := NewHub()
	last := h.Watch("job_a")
	for range 2000 {
		old := last
		var wg sync.WaitGroup
		wg.Go(old.Stop)
		wg.Go(func() { last = h.Watch("job_a") })
		wg.Wait()
		require.Equal(t, 1, h.Watched())
		h.JobChanged("job_a")
		require.Empty(t, old.Changed, "it was freed")
		require.Len(t, last.Changed, 1)
		<-last.Changed
	}
	last.Stop()
	require.Zero(t, h.Watched())
}

// Before a page reloads, the server does not know that the old one is gone: both subscriptions are open for a while, and
// neither takes events from the other.
func TestAPageThatReloadsSplitsNoChannel(t *testing.T) {
	t.Parallel()
	b := setup(t)
	j := b.Job(t, alice, "k")
	before, after := pull(t, b.follow.Events(as(t, alice), j.ID, 0)), pull(t, b.follow.Events(as(t, alice), j.ID, 0))
	for n := 1; n <= 20; n++ {
		for _, next := range []func() (*ent.JobEvent, error, bool){before, after} {
			e, err, ok := next()
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, n, e.Number)
		}
		b.Log(t, j.ID, strconv.Itoa(n))
	}
	require.Equal(t, 1, b.hub.Watched(), "one look of the poll is for both")
}

// Two replicas, of which the second hears nothing of the first one's notices before the reader moves to it, and a third that
// is new.
func TestAReaderThatMovesBetweenReplicasMissesNothing(t *testing.T) {
	t.Parallel()
	dsn := databases.DSN(t)
	first, second := over(seedAt(t, dsn)), over(seedAt(t, dsn))
	j := first.Job(t, alice, "k")
	var got []int
	read := func(b *bundle, n int) {
		ctx, cancel := context.WithCancel(as(t, alice))
		defer cancel()
		next, stop := iter.Pull2(b.follow.Events(ctx, j.ID, len(got)))
		defer stop()
		for range n {
			e, err, ok := next()
			require.NoError(t, err)
			require.True(t, ok)
			got = append(got, e.Number)
		}
	}
	first.Log(t, j.ID, "2")
	read(first, 2)
	first.Log(t, j.ID, "3")
	read(second, 1)
	second.Log(t, j.ID, "4")
	first.Log(t, j.ID, "5")
	read(first, 2)
	restarted := over(seedAt(t, dsn))
	second.Finish(t, j.ID, job.StateCANCELLED, "")
	got = append(got, numbers(t, restarted.follow.Events(as(t, alice), j.ID, len(got)))...)
	require.Equal(t, []int{1, 2, 3, 4, 5, 6}, got)
}
