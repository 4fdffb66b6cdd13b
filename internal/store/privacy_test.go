package store_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent/privacy"
	"github.com/docket-gateway/docket/internal/store"
	"github.com/docket-gateway/docket/internal/viewer"
)

func TestPrivacy(t *testing.T) {
	t.Parallel()

	// counts reads every entity.
	counts := func(s *store.Store, ctx context.Context) map[string]func() (int, error) {
		c := s.Client()
		return map[string]func() (int, error){
			"Job":            func() (int, error) { return c.Job.Query().Count(ctx) },
			"Attempt":        func() (int, error) { return c.Attempt.Query().Count(ctx) },
			"JobEvent":       func() (int, error) { return c.JobEvent.Query().Count(ctx) },
			"Owner":          func() (int, error) { return c.Owner.Query().Count(ctx) },
			"TaskVersion":    func() (int, error) { return c.TaskVersion.Query().Count(ctx) },
			"ContractResult": func() (int, error) { return c.ContractResult.Query().Count(ctx) },
		}
	}
	fill := func(t *testing.T, s *store.Store) {
		t.Helper()
		addJob(t, s, "ann", `{}`)
		addJob(t, s, "bob", `{}`)
		s.Client().ContractResult.Create().SetTask("t").SetTaskVersion("v").SetTarget("a/b").SetConfigDigest("c").SetCasesDigest("c").
			SetChecksVersion("c").SetDigest("d").SetMode("live").SetPassed(true).SetReport([]byte(`{}`)).SetRanBy("ci").ExecX(system(t))
	}

	t.Run("DeniesReadsWithoutViewer", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, s *store.Store) {
			fill(t, s)
			for name, count := range counts(s, t.Context()) {
				_, err := count()
				require.ErrorIs(t, err, privacy.Deny, name)
			}
		})
	})

	t.Run("ShowsOwnersTheirOwnRows", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, s *store.Store) {
			fill(t, s)
			for _, tc := range []struct {
				ctx  context.Context
				want map[string]int
			}{
				{person(t, "ann", false), map[string]int{"Job": 1, "Attempt": 1, "JobEvent": 1, "Owner": 1, "TaskVersion": -1, "ContractResult": 1}},
				{person(t, "eve", false), map[string]int{"Job": 0, "Attempt": 0, "JobEvent": 0, "Owner": 0, "TaskVersion": -1, "ContractResult": 1}},
				{person(t, "olga", true), map[string]int{"Job": 2, "Attempt": 2, "JobEvent": 2, "Owner": 2, "TaskVersion": 2, "ContractResult": 1}},
				{system(t), map[string]int{"Job": 2, "Attempt": 2, "JobEvent": 2, "Owner": 2, "TaskVersion": 1, "ContractResult": 1}},
			} {
				for name, count := range counts(s, tc.ctx) {
					n, err := count()
					v, _ := viewer.FromContext(tc.ctx)
					if name == "TaskVersion" && !v.System() {
						require.ErrorIs(t, err, privacy.Deny, "it holds prompts")
						continue
					}
					require.NoError(t, err, name)
					require.Equal(t, tc.want[name], n, "%s as %s", name, v.Subject)
				}
			}
			// The same subject of another issuer is somebody else.
			other := viewer.NewContext(t.Context(), viewer.Viewer{Issuer: "other", Subject: "ann"})
			require.Zero(t, s.Client().Job.Query().CountX(other))
		})
	})

	t.Run("LetsNobodyButDocketWrite", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, s *store.Store) {
			fill(t, s)
			c := s.Client()
			j := c.Job.Query().FirstX(system(t))
			for who, ctx := range map[string]context.Context{
				"nobody": t.Context(), "owner": person(t, "ann", false), "operator": person(t, "olga", true),
			} {
				for name, write := range map[string]func() error{
					"update job":          func() error { return c.Job.Update().SetLastEvent(9).Exec(ctx) },
					"update one job":      func() error { return c.Job.UpdateOneID(j.ID).SetLastEvent(9).Exec(ctx) },
					"create job":          func() error { return c.Job.Create().SetOwnerID(j.OwnerID).Exec(ctx) },
					"delete jobs":         func() error { _, err := c.Job.Delete().Exec(ctx); return err },
					"update attempts":     func() error { return c.Attempt.Update().SetState("CANCELLED").Exec(ctx) },
					"delete attempts":     func() error { _, err := c.Attempt.Delete().Exec(ctx); return err },
					"delete events":       func() error { _, err := c.JobEvent.Delete().Exec(ctx); return err },
					"create event":        func() error { return c.JobEvent.Create().SetJobID(j.ID).Exec(ctx) },
					"create owner":        func() error { return c.Owner.Create().SetID("x").Exec(ctx) },
					"delete versions":     func() error { _, err := c.TaskVersion.Delete().Exec(ctx); return err },
					"create result":       func() error { return c.ContractResult.Create().SetPassed(true).Exec(ctx) },
					"delete results":      func() error { _, err := c.ContractResult.Delete().Exec(ctx); return err },
					"update own entities": func() error { return j.Update().SetLastEvent(9).Exec(ctx) },
				} {
					require.ErrorIs(t, write(), privacy.Deny, "%s as %s", name, who)
				}
			}
			require.Equal(t, 1, c.Job.GetX(system(t), j.ID).LastEvent)
		})
	})
}
