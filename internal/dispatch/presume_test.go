package dispatch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/internal/jobs"
	"github.com/docket-gateway/docket/providers"
)

func TestPresumesDeadWhatTheProviderCannotBeWorkingOn(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		for name, tc := range map[string]struct {
			after time.Duration
			want  attempt.State
		}{
			"Off":    {0, attempt.StateUNKNOWN},
			"Longer": {2 * time.Hour, attempt.StateUNKNOWN},
			"Over":   {time.Minute, attempt.StateCANCELLED},
		} {
			t.Run(name, func(t *testing.T) {
				s := newScript(nil)
				p := start(t, address, options{idle: true, script: s,
					registry: configured(t, s, func(c *providers.Config) { c.PresumeDeadAfter = tc.after })})
				j, a := p.lost(t, "route", "")
				p.later(t, a)
				p.reconciled(t)
				a = p.attempt(t, a.ID)
				require.Equal(t, tc.want, a.State)
				s.once(t)
				if tc.want == attempt.StateCANCELLED {
					require.Equal(t, jobs.CodePresumedDead, *a.ErrorCode)
					require.Equal(t, "fake/b", p.attempts(t, j.ID)[1].Target)
				}
				_, err := p.CancelJob(p.ann, j.ID, nil) // the databases' rows are for the other cases too
				require.NoError(t, err)
			})
		}
	})
}
