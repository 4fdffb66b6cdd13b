package command_test

import (
	"context"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/providers"
)

// straight is a round trip without a Docket: one request to the endpoint, read back as it came.
type straight struct{}

func (straight) RoundTrip(ctx context.Context, s contracts.Suite, c contracts.Case, ep contracts.Endpoint) (contracts.Trip, error) {
	prompt, err := s.Task.Render(c.Input)
	if err != nil {
		return contracts.Trip{}, err
	}
	out := ep.Target.Sender.Send(ctx, providers.Request{
		AttemptID: "att_trip", Task: s.Task.Name, Model: ep.Target.Model.Name, System: prompt.System, Prompt: prompt.User, Input: c.Input,
		Schema: s.Task.OutputSchemaJSON,
	}, deaf{})
	if out.Kind != providers.Completed {
		return contracts.Trip{State: "FAILED", Code: out.Failure.Code, Outcome: &out}, nil
	}
	return contracts.Trip{State: "SUCCEEDED", Answered: out.Output, Read: out.Output, Outcome: &out}, nil
}

type deaf struct{}

func (deaf) Acknowledged(providers.Acknowledgement) {}
func (deaf) Progress()                              {}
func (deaf) Unknown(providers.Failure)              {}

// harmless finds nothing wrong with any adapter.
type harmless struct{}

func (harmless) Inject(context.Context, contracts.Suite, contracts.Endpoint, report.Mode) ([]report.Check, error) {
	return []report.Check{{Name: report.CheckFaults, Aspect: "none", Status: report.Passed}}, nil
}
