package attempts

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
)

// The formats of a list.
const (
	Table = "table"
	JSON  = "json"
)

// ListOptions say what is listed.
type ListOptions struct {
	State    string // one of the attempt states
	Provider string // empty: all
	Format   string // Table or JSON
	Limit    int    // at most so many, at least 1
}

// item is an attempt in a list. It holds nothing of input and output.
type item struct {
	ID                string     `json:"id"`
	JobID             string     `json:"jobId"`
	Number            int        `json:"number"`
	Target            string     `json:"target"`
	State             string     `json:"state"`
	ErrorCode         *string    `json:"errorCode"`
	CreatedAt         time.Time  `json:"createdAt"`
	SentAt            *time.Time `json:"sentAt"`
	FinishedAt        *time.Time `json:"finishedAt"`
	ProviderRequestID *string    `json:"providerRequestId"`
}

// List writes the attempts in a state, oldest first.
func List(ctx context.Context, c *ent.Client, o ListOptions, std Streams) error {
	state := attempt.State(o.State)
	if err := attempt.StateValidator(state); err != nil {
		return fmt.Errorf("%w: %q is not a state of attempts", ErrUsage, o.State)
	}
	if !slices.Contains([]string{Table, JSON}, o.Format) {
		return fmt.Errorf("%w: the format %q is not known", ErrUsage, o.Format)
	}
	if o.Limit < 1 {
		return fmt.Errorf("%w: --limit must be at least 1", ErrUsage)
	}
	if err := checkProvider(o.Provider); err != nil {
		return err
	}
	where := append(ofProvider(o.Provider), attempt.StateEQ(state))
	items := []item{}
	err := each(operator(ctx, ""), c, o.Limit+1, where, func(a *ent.Attempt) error {
		items = append(items, item{a.ID, a.JobID, a.Number, a.Target, string(a.State), a.ErrorCode, a.CreatedAt.UTC(), a.SentAt, a.FinishedAt, a.ProviderRequestID})
		return nil
	})
	if err != nil {
		return err
	}
	if len(items) > o.Limit {
		items = items[:o.Limit]
		if _, err := fmt.Fprintf(std.Err, "There are more than %d; --limit shows more of them.\n", o.Limit); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	if o.Format == JSON {
		enc := json.NewEncoder(std.Out)
		enc.SetIndent("", "  ")
		if err := enc.Encode(struct {
			Format   int    `json:"format"`
			Attempts []item `json:"attempts"`
		}{1, items}); err != nil {
			return fmt.Errorf("write: %w", err)
		}
		return nil
	}
	w := tabwriter.NewWriter(std.Out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "ATTEMPT\tJOB\tTARGET\tSTATE\tSENT\tERROR") // Flush tells of errors
	for _, i := range items {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", i.ID, i.JobID, i.Target, i.State, stamp(i.SentAt), orDash(i.ErrorCode))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}
