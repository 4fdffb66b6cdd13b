package contracts_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/demo"
)

// TestShippedContracts runs the shipped suites at the built-in demo, one subtest for each task, target, case and check.
// The laser keeps every contract; the inkjet and the fax break it as they are made to.
func TestShippedContracts(t *testing.T) {
	t.Parallel()
	suites, err := contracts.LoadSuites(contracts.ShippedTasks())
	require.NoError(t, err)
	config := demo.Config()
	config.IdleTimeout = 100 * time.Millisecond // the fax's silence need not last here
	registry, err := providers.NewRegistry([]providers.Config{config}, map[string]providers.Factory{
		demo.Kind: func(c providers.Config) (providers.Provider, error) { return demo.NewWithDelay(c, 0) },
	})
	require.NoError(t, err)
	runner := contracts.NewRunner(contracts.FromRegistry(registry), "go test", nil)
	failsWith := map[string]string{"demo/laser": "", "demo/inkjet": providers.CodeJammed, "demo/fax": providers.CodeIdleTimeout}

	for _, s := range suites {
		t.Run(s.Task.Name, func(t *testing.T) {
			t.Parallel()
			for target, code := range failsWith {
				t.Run(target, func(t *testing.T) {
					t.Parallel()
					res, err := runner.Run(t.Context(), s, target, report.Live, 2)
					require.NoError(t, err)
					require.Equal(t, code == "", res.Passed)
					require.Len(t, res.Cases, len(s.Cases))
					for _, c := range res.Cases {
						for _, run := range c.Runs {
							require.NotEmpty(t, run.Checks)
							for _, check := range run.Checks {
								t.Run(fmt.Sprintf("%s/run %d/%s", c.Name, run.Number, check.Name), func(t *testing.T) {
									t.Parallel()
									require.Equal(t, code, check.Code, check.Message)
									require.Equal(t, code == "", check.Status == report.Passed)
								})
							}
						}
					}
				})
			}
		})
	}
}
