package app

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/internal/attempts"
	"github.com/docket-gateway/docket/internal/config"
	"github.com/docket-gateway/docket/internal/store"
)

// attempts are the commands for attempts that wait for a person.
func (p *program) attempts() *cobra.Command {
	var l attempts.ListOptions
	list := &cobra.Command{Use: "list", Short: "List the attempts in a state, oldest first", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withParts(cmd.Context(), func(ctx context.Context, ps *parts) error {
				if err := requireSchema(ctx, ps.store); err != nil {
					return err
				}
				return attempts.List(ctx, ps.store.Client(), l, attempts.Streams{Out: p.out, Err: p.err})
			}, store.Existing())
		}}
	list.Flags().StringVar(&l.State, "state", string(attempt.StateUNKNOWN), "state of the attempts")
	list.Flags().StringVar(&l.Provider, "provider", "", "one provider (default all)")
	list.Flags().StringVar(&l.Format, "format", attempts.Table, "table or json")
	list.Flags().IntVar(&l.Limit, "limit", 1000, "at most so many")

	var s attempts.SettleOptions
	var since, until string
	settle := &cobra.Command{Use: "settle", Args: noArgs,
		Short: "Settle a provider's UNKNOWN attempts; exit code 0 all settled, 1 not all, 2 could not run",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withParts(cmd.Context(), func(ctx context.Context, ps *parts) error {
				var err error
				now := time.Now()
				if s.Window.Since, err = attempts.ParseTime(since, now); err != nil {
					return err
				}
				if s.Window.Until, err = attempts.ParseTime(until, now); err != nil {
					return err
				}
				if err := requireSchema(ctx, ps.store); err != nil {
					return err
				}
				s.Known = slices.ContainsFunc(ps.cfg.Providers, func(c config.Provider) bool { return c.Name == s.Provider })
				s.Target = known{ps.registry}.Known
				service, _, err := ps.service(unheard{}, unheard{})
				if err != nil {
					return err
				}
				p.code, err = attempts.Settle(ctx, ps.store.Client(), service, s, attempts.Streams{Out: p.out, Err: p.err})
				return err
			}, store.Existing())
		}}
	settle.Flags().StringVar(&s.Provider, "provider", "", "the provider (required)")
	settle.Flags().StringVar(&since, "since", "", "sent then or later: RFC 3339, or 2h for two hours ago (default any time)")
	settle.Flags().StringVar(&until, "until", "", "sent before then (default any time)")
	settle.Flags().StringVar(&s.Outcome, "outcome", "", "failed (the route goes on) or cancelled (the owner decides) (required)")
	settle.Flags().StringVar(&s.Note, "note", "", "why; it is kept with each attempt (required)")
	settle.Flags().BoolVar(&s.Removed, "removed", false, "providers and fallbacks that are not in the configuration are gone for good: the route goes on without them")
	settle.Flags().BoolVar(&s.DryRun, "dry-run", false, "change nothing and say what would be settled")
	settle.Flags().StringVar(&s.Operator, "operator", whoami(), "who settles; it is kept with each attempt")

	return oneOf(&cobra.Command{Use: "attempts", Short: "Look at attempts and settle those that wait for a person"}, list, settle)
}

// unheard stands for watchers and metrics in a command. Processes that serve find changes by their slow poll.
type unheard struct{}

func (unheard) JobChanged(string)             {}
func (unheard) RaceLost()                     {}
func (unheard) AttemptSettled(string, string) {}
func (unheard) WebhookTried(string)           {}
