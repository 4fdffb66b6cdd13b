package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/report"
)

// Refresh runs the contracts whose gate is closed, at the targets of each suite's route that want accepts, and records
// the results. It returns what it ran. One that cannot be run does not keep it from the others; the errors are joined.
func Refresh(ctx context.Context, suites []contracts.Suite, want func(target string) bool, check CheckFunc, runner Runner, recorder Recorder) ([]report.Result, error) {
	var (
		ran  []report.Result
		errs []error
	)
	for _, s := range suites {
		for _, target := range s.Task.Route() {
			if !want(target) {
				continue
			}
			if ctx.Err() != nil {
				return ran, errors.Join(append(errs, context.Cause(ctx))...)
			}
			d, err := check(ctx, s.Task, target)
			if err == nil && d.Allowed {
				continue
			}
			var res report.Result
			if err == nil {
				res, err = runner.Run(ctx, s, target, report.Live, 0)
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
