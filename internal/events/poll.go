package events

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/job"
)

const (
	// PollInterval is how long a lost notice can cost, the time of one look added.
	PollInterval = time.Second
	// pollBatch bounds one statement; there are as many as it takes for all watched jobs.
	pollBatch = 1000
	// pollPatience bounds one look: a database that hangs is asked again.
	pollPatience = 30 * time.Second
)

// Heads reads the number of each job's last event. Jobs that are not there are left out.
type Heads func(ctx context.Context, jobIDs []string) (map[string]int, error)

// HeadsOf reads from client, under the viewer of the context: it must be one that sees all jobs.
func HeadsOf(client *ent.Client) Heads {
	return func(ctx context.Context, jobIDs []string) (map[string]int, error) {
		rows, err := client.Job.Query().Where(job.IDIn(jobIDs...)).Select(job.FieldID, job.FieldLastEvent).All(ctx)
		if err != nil {
			return nil, fmt.Errorf("read the last events of %d jobs: %w", len(jobIDs), err)
		}
		heads := make(map[string]int, len(rows))
		for _, j := range rows {
			heads[j.ID] = j.LastEvent
		}
		return heads, nil
	}
}

// Poll finds changes that no notice told of, until ctx ends: every interval it reads all watched jobs together, however many
// watchers they have, and wakes those watchers that have not seen the last event. One poll for each process is enough.
func (h *Hub) Poll(ctx context.Context, read Heads, every time.Duration, log *slog.Logger) {
	t := time.NewTicker(every)
	defer t.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		case <-h.look:
		}
		err := h.lookOnce(ctx, read)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !failing { // once, and not every second
			log.WarnContext(ctx, "watched jobs could not be looked at; subscriptions may be late", "error", err)
		}
		failing = err != nil
	}
}

func (h *Hub) lookOnce(ctx context.Context, read Heads) error {
	ctx, cancel := context.WithTimeout(ctx, pollPatience)
	defer cancel()
	for ids := range slices.Chunk(h.watchedIDs(), pollBatch) {
		heads, err := read(ctx, ids)
		if err != nil {
			return err
		}
		h.wakeBehind(ids, heads)
	}
	return nil
}

// watchedIDs are the jobs of those who wait for something: who has not looked yet will look anyway.
func (h *Hub) watchedIDs() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	ids := make([]string, 0, len(h.watchers))
	for id, watchers := range h.watchers {
		for w := range watchers {
			if w.saw >= 0 {
				ids = append(ids, id)
				break
			}
		}
	}
	return ids
}

// wakeBehind wakes who has seen less than there is. A job that is not there any more is news too.
func (h *Hub) wakeBehind(ids []string, heads map[string]int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range ids {
		last, there := heads[id]
		for w := range h.watchers[id] {
			if w.saw >= 0 && (!there || w.saw < last) {
				signal(w.wake)
			}
		}
	}
}
