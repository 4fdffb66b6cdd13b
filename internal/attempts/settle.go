package attempts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
	"github.com/docket-gateway/docket/internal/auth"
	"github.com/docket-gateway/docket/internal/jobs"
)

// Resolver settles one attempt: *jobs.Service.
type Resolver interface {
	ResolveAttempt(ctx context.Context, r jobs.Resolution) (jobs.AttemptAndJob, error)
}

// SettleOptions say which UNKNOWN attempts become what.
type SettleOptions struct {
	Provider string                   // required
	Known    bool                     // the provider is configured
	Target   func(target string) bool // says whether a target is configured
	Removed  bool                     // what is not configured is gone for good: routes go on without it
	Window   Window                   // of sent_at
	Outcome  string                   // failed or cancelled
	Note     string                   // required, at most 10,000 bytes
	DryRun   bool
	Operator string // the subject that the events name, required
}

// movesRoutes says that what follows is decided with this process's configuration.
func (o SettleOptions) movesRoutes() bool { return outcomes[o.Outcome] == attempt.StateFAILED }

var outcomes = map[string]attempt.State{"failed": attempt.StateFAILED, "cancelled": attempt.StateCANCELLED}

func (o SettleOptions) check() error {
	switch {
	case o.Provider == "":
		return fmt.Errorf("%w: --provider is required", ErrUsage)
	case outcomes[o.Outcome] == "":
		return fmt.Errorf("%w: --outcome must be failed or cancelled", ErrUsage)
	case strings.TrimSpace(o.Note) == "":
		return fmt.Errorf("%w: --note is required; it is kept with each attempt", ErrUsage)
	case !auth.ValidSubject(o.Operator):
		return fmt.Errorf("%w: --operator must be 1 to 255 bytes of printable characters, without spaces at its ends; "+
			"it is kept with each attempt", ErrUsage)
	}
	// What would be refused at each attempt is refused at once, in a dry run too.
	var bad *jobs.InvalidInputError
	if err := o.resolution("").Check(); errors.As(err, &bad) {
		return fmt.Errorf("%w: --%s %s", ErrUsage, strings.TrimPrefix(bad.Issues[0].Path, "/"), bad.Issues[0].Message)
	}
	return errors.Join(checkProvider(o.Provider), o.Window.check())
}

func (o SettleOptions) resolution(attemptID string) jobs.Resolution {
	return jobs.Resolution{AttemptID: attemptID, Outcome: outcomes[o.Outcome], Note: o.Note}
}

// tally counts what became of the attempts that were found.
type tally struct{ found, settled, late, failed int }

// Settle settles the UNKNOWN attempts of a provider that were sent in the window, one transaction each, with a line for each
// and a summary. What it does cannot be taken back: an attempt that is settled stays so, whatever the provider answers later.
//
// With the outcome failed the routes of the jobs go on with this configuration. One that does not know the provider, or a
// fallback to come, is refused before anything is changed, unless both are said to be removed.
//
// It returns ExitOK if all were settled (or there were none), ExitPartly if somebody else was first at some, some failed or
// it was interrupted. An error means that it could not do its work.
func Settle(ctx context.Context, c *ent.Client, r Resolver, o SettleOptions, std Streams) (int, error) {
	if err := o.check(); err != nil {
		return ExitUnusable, err
	}
	// A configuration without the provider is hardly that of the processes that serve: it would end jobs whose fallbacks it
	// does not know.
	if o.movesRoutes() && !o.Known && !o.Removed {
		return ExitUnusable, fmt.Errorf("%w: there is no provider %q in this configuration; use the one of the processes that serve, "+
			"--outcome cancelled, or --removed if it is gone for good", ErrUsage, o.Provider)
	}
	ctx = operator(ctx, o.Operator)
	where := append(ofProvider(o.Provider), attempt.StateEQ(attempt.StateUNKNOWN))
	where = append(where, o.Window.predicates()...)
	// All are found first: what comes of settling one, and may be UNKNOWN soon too, is not meant.
	var found []*ent.Attempt
	err := each(ctx, c, 0, where, func(a *ent.Attempt) error { found = append(found, a); return nil })
	if err != nil {
		return ExitUnusable, err
	}
	if len(found) == 0 && !o.Known {
		return ExitUnusable, fmt.Errorf("%w: there is no provider %q in the configuration, and no such attempt", ErrUsage, o.Provider)
	}
	if o.movesRoutes() && !o.Removed {
		if err := knowsFallbacks(ctx, c, found, o.Target); err != nil {
			return ExitUnusable, err
		}
	}
	t := tally{found: len(found)}
	for _, a := range found {
		if ctx.Err() != nil {
			break
		}
		text := "would be settled"
		if !o.DryRun {
			text = t.resolve(ctx, r, a, o)
		}
		if _, err := fmt.Fprintf(std.Out, "%s  %s  %s  sent %s  %s\n", a.ID, a.JobID, a.Target, stamp(a.SentAt), text); err != nil {
			return ExitUnusable, fmt.Errorf("write: %w", err)
		}
	}
	if _, err := fmt.Fprintln(std.Out, t.summary(o)); err != nil {
		return ExitUnusable, fmt.Errorf("write: %w", err)
	}
	if !o.DryRun && t.settled < t.found {
		return ExitPartly, nil
	}
	return ExitOK, nil
}

// knowsFallbacks fails if a job has a fallback to come that this configuration does not know, and would skip.
func knowsFallbacks(ctx context.Context, c *ent.Client, found []*ent.Attempt, known func(string) bool) error {
	for some := range slices.Chunk(found, page) {
		ids := make([]string, 0, len(some))
		for _, a := range some {
			ids = append(ids, a.JobID)
		}
		js, err := c.Job.Query().Where(job.IDIn(ids...)).WithAttempts().All(ctx)
		if err != nil {
			return fmt.Errorf("read the jobs of attempts: %w", err)
		}
		for _, j := range js {
			for _, target := range j.Fallbacks {
				tried := slices.ContainsFunc(j.Edges.Attempts, func(a *ent.Attempt) bool { return a.Target == target })
				if !tried && !known(target) {
					return fmt.Errorf("%w: job %s has the fallback %q, whose provider %q is not in this configuration or lacks the model; "+
						"use the one of the processes that serve, --outcome cancelled, or --removed if it is gone for good",
						ErrUsage, j.ID, target, jobs.ProviderOf(target))
				}
			}
		}
	}
	return nil
}

// resolve settles one attempt and says what became of it.
func (t *tally) resolve(ctx context.Context, r Resolver, a *ent.Attempt, o SettleOptions) string {
	done, err := r.ResolveAttempt(ctx, o.resolution(a.ID))
	var finished *jobs.AttemptFinishedError
	switch {
	case err == nil:
		t.settled++
		return fmt.Sprintf("%s, job %s", done.Attempt.State, done.Job.State)
	case errors.As(err, &finished):
		t.late++
		return fmt.Sprintf("was %s before, job %s", finished.Attempt.State, finished.Job.State)
	case errors.Is(err, jobs.ErrNotFound): // purged with its job
		t.late++
		return "is gone"
	default:
		t.failed++
		return "error: " + err.Error()
	}
}

func (t *tally) summary(o SettleOptions) string {
	if o.DryRun {
		return fmt.Sprintf("%d UNKNOWN attempts of %s would become %s. Nothing was changed.", t.found, o.Provider, outcomes[o.Outcome])
	}
	text := fmt.Sprintf("%d UNKNOWN attempts of %s: %d settled as %s, %d settled by somebody else before, %d failed.",
		t.found, o.Provider, t.settled, outcomes[o.Outcome], t.late, t.failed)
	if left := t.found - t.settled - t.late - t.failed; left > 0 {
		text += fmt.Sprintf(" Interrupted: %d not reached.", left)
	}
	return text
}
