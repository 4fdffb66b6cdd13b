package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
	"github.com/docket-gateway/docket/ent/predicate"
	"github.com/docket-gateway/docket/internal/schema"
	"github.com/docket-gateway/docket/internal/store"
	"github.com/docket-gateway/docket/internal/tasks"
	"github.com/docket-gateway/docket/internal/viewer"
)

// Codes of attempt errors that this package gives. Providers have their own.
const (
	CodeCancelled         = "CANCELLED"
	CodeReplaced          = "REPLACED"
	CodeSuperseded        = "SUPERSEDED"
	CodeWorkerLost        = "WORKER_LOST"
	CodeContractNotPassed = "CONTRACT_NOT_PASSED"
	CodeResolved          = "RESOLVED_AS_FAILED"
	CodeOutputNotJSON     = "OUTPUT_NOT_JSON"
	CodeOutputInvalid     = "OUTPUT_INVALID"
)

// Failure is why an attempt is FAILED, UNKNOWN or CANCELLED. Message holds no input, output or key.
type Failure struct {
	Code       string
	Message    string
	Retryable  bool
	RetryAfter time.Duration // 0 if the provider did not say
}

// Usage is what an attempt used. Nil counts were not told.
type Usage struct {
	InputTokens  *int
	OutputTokens *int
}

// Outcome is what is known of an attempt. With a nil Failure it is a complete answer.
type Outcome struct {
	Output            json.RawMessage
	Failure           *Failure
	Unknown           bool // the failure leaves open what the provider does
	Usage             Usage
	ProviderRequestID string
}

// Verdict says what became of an attempt that somebody tried to settle.
type Verdict struct {
	Landed  bool // false: it was settled before, and nothing but its usage was kept
	Attempt *ent.Attempt
	Job     *ent.Job
}

// Settle records an attempt's outcome. Workers, sweepers and operators go the same way: whoever is second changes nothing
// and is told what had happened.
//
// A complete answer is validated here and nowhere else, so that none can become a result that breaks the task's output
// schema or carries an undeclared key.
func (s *Service) Settle(ctx context.Context, attemptID string, o Outcome) (Verdict, error) {
	sys := viewer.NewSystemContext(ctx)
	by, _ := viewer.FromContext(sys)
	a, err := s.store.Client().Attempt.Query().Where(attempt.ID(attemptID)).WithJob().Only(sys)
	if err != nil {
		return Verdict{}, fmt.Errorf("settle attempt %s: %w", attemptID, err)
	}
	if o.Failure == nil {
		task, err := s.version(sys, s.store.Client(), a.Edges.Job.TaskVersion)
		if err != nil {
			return Verdict{}, err
		}
		if f := checkOutput(task, o.Output); f != nil {
			o.Output, o.Failure = nil, f
		}
	}
	switch {
	case o.Failure == nil:
		err = s.claim(sys, by, a, o, nil)
	case o.Unknown:
		err = s.change(sys, by, a.JobID, func(c *change) error { return c.unknown(attemptID, o) })
	default:
		err = s.change(sys, by, a.JobID, func(c *change) error { return c.failed(attemptID, o, nil) })
	}
	if err != nil && !errors.Is(err, errLost) {
		return Verdict{}, fmt.Errorf("settle attempt %s: %w", attemptID, err)
	}
	lost := err != nil
	if lost {
		if err := s.dropped(sys, by, a, o); err != nil {
			return Verdict{}, err
		}
	}
	v := Verdict{Landed: !lost}
	v.Attempt, err = s.store.Client().Attempt.Query().Where(attempt.ID(attemptID)).WithJob().Only(sys)
	if err != nil {
		return Verdict{}, fmt.Errorf("read attempt %s: %w", attemptID, err)
	}
	v.Job = v.Attempt.Edges.Job
	return v, nil
}

// claim writes a result by compare-and-swap: the job's version is the one that the attempt was created under, never a
// newer one, and its result slot is empty. It returns errLost, and writes nothing, if either row is not there any more.
func (s *Service) claim(sys context.Context, by viewer.Viewer, a *ent.Attempt, o Outcome, d detail) error {
	return s.store.Tx(sys, func(tx *store.Tx) error {
		n, err := tx.Job.Update().
			Where(job.ID(a.JobID), job.Version(a.JobVersion), job.CompletedByIDIsNil()).
			SetState(job.StateSUCCEEDED).SetResult(o.Output).SetCompletedByID(a.ID).AddVersion(1).Save(sys)
		if err != nil {
			return fmt.Errorf("claim job %s: %w", a.JobID, err)
		}
		if n != 1 {
			return errLost
		}
		j, err := tx.Job.Get(sys, a.JobID) // the update above holds its lock
		if err != nil {
			return fmt.Errorf("read job %s: %w", a.JobID, err)
		}
		return s.changeLocked(sys, tx, j, by, func(c *change) error { return c.won(a.ID, o, d) })
	})
}

// won moves the winner, by the same guarded update as every move, and supersedes whatever else is open.
func (c *change) won(attemptID string, o Outcome, d detail) error {
	winner, err := c.find(attemptID)
	if err != nil {
		return err
	}
	// The claim has already written the job's new state; what it was before follows from the attempts.
	if before, ok := whileOpen(c.attempts); ok {
		c.state = before
	}
	err = c.move(winner, attempt.StateSUCCEEDED, d, both(setUsage(o), func(u *ent.AttemptUpdate) {
		u.ClearErrorCode().ClearErrorMessage().ClearErrorRetryable().ClearErrorRetryAfterMs()
	}))
	if err != nil {
		return err
	}
	for _, a := range c.attempts {
		if !open(a) {
			continue
		}
		f := &Failure{Code: CodeSuperseded, Message: "Another attempt of the job won."}
		if err := c.move(a, attempt.StateSUPERSEDED, detail{"code": CodeSuperseded, "winner": attemptID}, setFailure(f)); err != nil {
			return err
		}
	}
	c.becomes(job.StateSUCCEEDED, false, nil)
	return nil
}

// dropped keeps only the usage of an answer that came too late. An attempt that is still open although its claim failed
// is SUPERSEDED; one that is terminal stays as it is.
func (s *Service) dropped(sys context.Context, by viewer.Viewer, a *ent.Attempt, o Outcome) error {
	s.metrics.RaceLost()
	s.log.LogAttrs(sys, slog.LevelInfo, "outcome dropped: the attempt or its job was settled before",
		slog.String("job", a.JobID), slog.String("attempt", a.ID))
	return s.change(sys, by, a.JobID, func(c *change) error {
		now, err := c.find(a.ID)
		if err != nil {
			return err
		}
		if o.Failure == nil && open(now) {
			f := &Failure{Code: CodeSuperseded, Message: "The job's result slot had moved."}
			if err := c.move(now, attempt.StateSUPERSEDED, detail{"code": CodeSuperseded}, setFailure(f)); err != nil {
				return err
			}
			if st, ok := whileOpen(c.attempts); ok {
				c.becomes(st, false, nil)
			} else if !final(c.job) && c.job.State != job.StateFAILED {
				c.becomes(job.StateWAITING, false, nil)
			}
		}
		if o.Usage.InputTokens == nil && o.Usage.OutputTokens == nil {
			return nil
		}
		u := c.tx.Attempt.Update().Where(attempt.ID(a.ID), attempt.InputTokensIsNil(), attempt.OutputTokensIsNil())
		setUsage(o)(u)
		if err := u.Exec(c.ctx); err != nil {
			return fmt.Errorf("keep the usage of attempt %s: %w", a.ID, err)
		}
		return nil
	})
}

// unknown records that nobody can tell. It blocks new attempts and leaves the job's version alone, so that a late answer
// can still win.
func (c *change) unknown(attemptID string, o Outcome, guards ...predicate.Attempt) error {
	a, err := c.find(attemptID)
	if err != nil {
		return err
	}
	if err := c.move(a, attempt.StateUNKNOWN, failureDetail(o.Failure), both(setFailure(o.Failure), setUsage(o)), guards...); err != nil {
		return err
	}
	s, _ := whileOpen(c.attempts)
	c.becomes(s, false, nil)
	return nil
}

// failed records a definite no and decides what follows, in the same transaction.
func (c *change) failed(attemptID string, o Outcome, d detail, guards ...predicate.Attempt) error {
	a, err := c.find(attemptID)
	if err != nil {
		return err
	}
	if d == nil {
		d = failureDetail(o.Failure)
	}
	if err := c.move(a, attempt.StateFAILED, d, both(setFailure(o.Failure), setUsage(o)), guards...); err != nil {
		return err
	}
	return c.settled(a, o.Failure)
}

// checkOutput is the rule for results: one JSON text, exactly as it came, that keeps the output schema and carries no
// undeclared key.
func checkOutput(task *tasks.Definition, output []byte) *Failure {
	issues := task.OutputSchema.ValidateOutput(output)
	if len(issues) == 0 {
		return nil
	}
	if issues[0].Rule == "syntax" {
		return &Failure{Code: CodeOutputNotJSON, Message: "The answer is not one JSON text: " + issues[0].Message}
	}
	return &Failure{Code: CodeOutputInvalid, Message: "The answer breaks the task's output schema: " + describe(issues)}
}

// describe names the first broken rules, without any value.
func describe(issues []schema.Issue) string {
	const most = 5
	var b strings.Builder
	for i, is := range issues[:min(most, len(issues))] {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%s: %s", is.Pointer, is.Message)
	}
	if n := len(issues) - most; n > 0 {
		fmt.Fprintf(&b, "; and %d more", n)
	}
	return b.String()
}

func setFailure(f *Failure) func(*ent.AttemptUpdate) {
	return func(u *ent.AttemptUpdate) {
		u.SetErrorCode(f.Code).SetErrorMessage(f.Message).SetErrorRetryable(f.Retryable)
		if f.RetryAfter > 0 {
			u.SetErrorRetryAfterMs(int(f.RetryAfter.Milliseconds()))
		} else {
			u.ClearErrorRetryAfterMs()
		}
	}
}

func setUsage(o Outcome) func(*ent.AttemptUpdate) {
	return func(u *ent.AttemptUpdate) {
		u.SetNillableInputTokens(o.Usage.InputTokens).SetNillableOutputTokens(o.Usage.OutputTokens)
		if o.ProviderRequestID != "" {
			u.SetProviderRequestID(o.ProviderRequestID)
		}
	}
}

func both(f, g func(*ent.AttemptUpdate)) func(*ent.AttemptUpdate) {
	return func(u *ent.AttemptUpdate) { f(u); g(u) }
}

func failureDetail(f *Failure) detail {
	d := detail{"code": f.Code, "message": f.Message, "retryable": f.Retryable}
	if f.RetryAfter > 0 {
		d["retryAfterMs"] = f.RetryAfter.Milliseconds()
	}
	return d
}
