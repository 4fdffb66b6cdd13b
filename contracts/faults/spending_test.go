package faults_test

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/faults"
	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/openaicompat"
	"github.com/docket-gateway/docket/providers/providertest"
)

func echo(t *testing.T) contracts.Suite {
	t.Helper()
	suites, err := contracts.LoadSuites(fstest.MapFS{
		"echo/task.yaml":          {Data: []byte("name: echo\nversion: v1\ntarget: some/model-1\nmax_output_tokens: 1000\n")},
		"echo/input.schema.json":  {Data: []byte(`{"type": "object"}`)},
		"echo/output.schema.json": {Data: []byte(`{"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}}`)},
		"echo/system.tmpl":        {Data: []byte("Obey.")},
		"echo/prompt.tmpl":        {Data: []byte("Echo {{json .Input}}")},
		"echo/cases/one.json":     {Data: []byte(`{"input": {}}`)},
	})
	require.NoError(t, err)
	return suites[0]
}

// The answer that is cut off is paid for: a cap counts it with the most that it can be, and a report says that it has no price.
func TestTheRequestThatIsCutOffIsAccountedFor(t *testing.T) {
	t.Parallel()
	_, url := providertest.Start(t)
	// A thousand tokens of an answer are 1 at the most; what is read costs nothing.
	r := registry(t, providers.Config{Kind: openaicompat.Kind, BaseURL: url, Models: []providers.Model{{Name: model,
		PricePerMillion: providers.Price{Input: "0", Output: "1000"}}}}, openaicompat.New)
	runner := contracts.NewRunner(contracts.Deps{Targets: contracts.FromRegistry(r), Faults: faults.New(r)})
	run := func(limit string) (report.Result, *contracts.Spending, error) {
		spending, err := contracts.NewSpending(limit)
		require.NoError(t, err)
		res, _, err := runner.Run(t.Context(), echo(t), "some/model-1", contracts.Options{Runs: 1, Concurrency: 1, Spending: spending})
		return res, spending, err
	}
	res, spending, err := run("10")
	require.NoError(t, err)
	require.Equal(t, report.Passed, res.Summary(report.CheckFaults))
	require.Equal(t, 1, res.Cost.Unpriced)
	require.Regexp(t, `^1\.0`, spending.Spent(), "the run and the canary cost nearly nothing, the one that was cut off what it can cost")

	_, _, err = run("0.9")
	require.ErrorIs(t, err, contracts.ErrMaxCost)
}
