package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/gate"
	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/internal/tasks"
)

// Refresh runs the contracts of which nothing current is known, at the targets that pick names for each task, and
// records the results. A result that is current stands, also a failure: nothing has changed that could make it another.
// It returns what it ran. One that cannot be run does not keep it from the others; the errors are joined.
func Refresh(ctx context.Context, suites []contracts.Suite, pick func(*tasks.Definition) []string, check CheckFunc, runner Runner, recorder Recorder) ([]report.Result, error) {
	var (
		ran  []report.Result
		errs []error
	)
	for _, s := range suites {
		for _, target := range pick(s.Task) {
			if ctx.Err() != nil {
				return ran, errors.Join(append(errs, context.Cause(ctx))...)
			}
			d, err := check(ctx, s.Task, target)
			if err == nil && (d.State == gate.Passed || d.State == gate.Failed) {
				continue
			}
			var res report.Result
			if err == nil {
				res, _, err = runner.Run(ctx, s, target, contracts.Options{Mode: report.Live})
			}
			if err == nil {
				ran = append(ran, res)
				err = recorder.Record(ctx, res)
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("%s at %s: %w", s.Task.Name, target, err))
			}
		}
	}
	return ran, errors.Join(errs...)
}
