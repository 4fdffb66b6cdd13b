package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/jobevent"
	"github.com/docket-gateway/docket/internal/viewer"
)

func TestEvents(t *testing.T) {
	t.Parallel()

	t.Run("HaveNoGapsUnderConcurrency", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j := b.create(t, "race")
			b.running(t, b.last(t, j.ID))
			got := inParallel(40, func(i int) (struct{}, error) {
				for range 3 {
					_, _ = b.StartAttempt(b.ann, j.ID, nil)
					a := b.last(t, j.ID)
					switch i % 4 {
					case 0:
						_, _ = b.CancelAttempt(b.ann, a.ID, nil)
					case 1:
						if l, err := b.Take(t.Context(), a.ID, *a.QueueEntry); err == nil {
							_ = b.MarkSent(t.Context(), l)
							_ = b.Acknowledge(t.Context(), l, "", "")
						}
					case 2:
						_, _ = b.Settle(t.Context(), a.ID, Outcome{Failure: &Failure{Code: "X"}})
					}
				}
				return struct{}{}, nil
			})
			require.Len(t, got, 40)
			b.eventTypes(t, j.ID) // checks the numbers
			b.replay(t, j.ID)
		})
	})

	t.Run("AreCommittedWithTheirChangeOrNot", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			for name, change := range map[string]func(j, a string) error{
				"cancel attempt": func(_, a string) error { _, err := b.CancelAttempt(b.ann, a, nil); return err },
				"cancel job":     func(j, _ string) error { _, err := b.CancelJob(b.ann, j, nil); return err },
				"claim":          func(_, a string) error { _, err := b.Settle(t.Context(), a, answer("x")); return err },
				"fail": func(_, a string) error {
					_, err := b.Settle(t.Context(), a, Outcome{Failure: &Failure{Code: "X"}})
					return err
				},
				"unknown": func(_, a string) error {
					_, err := b.Settle(t.Context(), a, Outcome{Unknown: true, Failure: &Failure{Code: "X"}})
					return err
				},
				"start": func(j, _ string) error { _, err := b.StartAttempt(b.ann, j, nil); return err },
				"hedge": func(_, a string) error { return b.Hedge(t.Context(), a) },
			} {
				j := b.create(t, "race")
				a := b.last(t, j.ID)
				b.running(t, a)
				jobBefore, attemptBefore, entries := b.job(t, j.ID), b.attempt(t, a.ID), b.queue.len()
				require.NoError(t, b.blockEvents(t, j.ID))
				require.Error(t, change(j.ID, a.ID), name)
				require.Equal(t, jobBefore.String(), b.job(t, j.ID).String(), name)
				require.Equal(t, attemptBefore.String(), b.attempt(t, a.ID).String(), name)
				require.Len(t, b.attempts(t, j.ID), 1, name)
				require.Equal(t, entries, b.queue.len(), name)
				require.False(t, b.queue.hasStopped(a.ID), name)
			}
		})
	})

	t.Run("NameWhoActed", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			for _, tc := range []struct {
				ctx  context.Context
				want string
			}{{b.ann, `{"code":"CANCELLED","note":"enough","by":"ann"}`}, {b.op, `{"code":"CANCELLED","note":"enough","by":"olga","operator":true}`}} {
				j := b.create(t, "plain")
				a := b.last(t, j.ID)
				_, err := b.CancelAttempt(tc.ctx, a.ID, new("enough"))
				require.NoError(t, err)
				e := b.event(t, j.ID, EventAttemptState)
				require.JSONEq(t, tc.want, string(e.Detail))
				require.Equal(t, "STARTING", *e.From)
				require.Equal(t, "CANCELLED", *e.To)
				require.Equal(t, a.ID, *e.AttemptID)
			}
		})
	})

	t.Run("HoldNoInputAndNoKey", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			c, err := b.Create(b.ann, input("canary-key", `{"text":"canary-text"}`))
			require.NoError(t, err)
			b.running(t, b.last(t, c.Job.ID))
			b.settle(t, b.last(t, c.Job.ID), Outcome{Output: json.RawMessage(`{"answer":17,"canary":"canary-output"}`)})
			b.sent(t, b.last(t, c.Job.ID))
			b.settle(t, b.last(t, c.Job.ID), answer("canary-result"))
			for _, row := range b.texts(t, "SELECT * FROM job_events") {
				require.NotContains(t, row, "canary-")
			}
			require.Equal(t, []string{"jobs"}, b.find(t, "canary-result"))
		})
	})
}

// replay checks that the log alone tells the states that the rows have.
func (b *testBundle) replay(t *testing.T, jobID string) {
	t.Helper()
	states, jobState := map[string]string{}, ""
	for _, e := range b.job(t, jobID).QueryEvents().Order(jobevent.ByNumber()).AllX(b.sys) {
		from, to := "", ""
		if e.From != nil {
			from = *e.From
		}
		if e.To != nil {
			to = *e.To
		}
		switch e.Type {
		case EventAttemptCreated, EventAttemptState:
			require.Equal(t, states[*e.AttemptID], from, "event %d", e.Number)
			states[*e.AttemptID] = to
		case EventJobCreated, EventJobState:
			require.Equal(t, jobState, from, "event %d", e.Number)
			jobState = to
		}
	}
	require.Equal(t, jobState, string(b.job(t, jobID).State))
	for _, a := range b.attempts(t, jobID) {
		require.Equal(t, string(a.State), states[a.ID])
	}
}

// blockEvents makes the job's next event fail: its number is taken.
func (b *testBundle) blockEvents(t *testing.T, jobID string) error {
	t.Helper()
	return b.exec(t, fmt.Sprintf("INSERT INTO job_events (job_id, number, type, at) SELECT id, last_event + 1, 'BLOCK', created_at FROM jobs WHERE id = '%s'", jobID))
}

func viewerOf(ctx context.Context) viewer.Viewer {
	v, _ := viewer.FromContext(ctx)
	return v
}

func (b *testBundle) lastEvent(t *testing.T, jobID string) *ent.JobEvent {
	t.Helper()
	return b.job(t, jobID).QueryEvents().Order(jobevent.ByNumber(entsql.OrderDesc())).FirstX(b.sys)
}

// details returns what all events of a job say, one a line.
func (b *testBundle) details(t *testing.T, jobID string) string {
	t.Helper()
	var sb strings.Builder
	for _, e := range b.job(t, jobID).QueryEvents().AllX(b.sys) {
		sb.Write(e.Detail)
		sb.WriteByte('\n')
	}
	return sb.String()
}
