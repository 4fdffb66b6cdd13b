package app

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/docket-gateway/docket/internal/apikeys"
	"github.com/docket-gateway/docket/internal/config"
	"github.com/docket-gateway/docket/internal/store"
)

// keys are the commands for API keys. They need the database and no running gateway.
func (p *program) keys() *cobra.Command {
	return oneOf(&cobra.Command{Use: "keys", Short: "Make, list and revoke API keys"}, p.keysCreate(), p.keysList(), p.keysRevoke())
}

func (p *program) keysCreate() *cobra.Command {
	n := apikeys.NewKey{}
	var expires string
	c := &cobra.Command{Use: "create", Short: "Make an API key for an owner and print it, this once", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if n.Expires, err = parseExpiry(expires, time.Now()); err != nil {
				return &usageError{fmt.Errorf("--expires: %w", err)}
			}
			return p.withKeys(cmd.Context(), func(ctx context.Context, cfg *config.Config, s *store.Store) error {
				configured := cfg.Auth.JWT.Issuer
				if n.Issuer == "" {
					n.Issuer = configured
				}
				if n.Issuer == "" {
					return &usageError{errors.New("--issuer: name the owner's issuer; auth.jwt.issuer says none")}
				}
				key, row, err := apikeys.Create(ctx, s.Client(), n)
				if errors.Is(err, apikeys.ErrInvalid) {
					return &usageError{err}
				}
				if err != nil {
					return err
				}
				if configured != "" && n.Issuer != configured {
					_, _ = fmt.Fprintf(p.err, "Note: %q is not auth.jwt.issuer, %q: JWTs of the same subject are another owner's.\n", n.Issuer, configured)
				}
				until := "never expires"
				if row.ExpiresAt != nil {
					until = "expires at " + row.ExpiresAt.UTC().Format(time.RFC3339)
				}
				if _, err := fmt.Fprintf(p.err, "%s is for the subject %q of %q and %s. The key is shown this once:\n", row.ID, row.Subject, row.Issuer, until); err != nil {
					return err
				}
				_, err = fmt.Fprintln(p.out, key)
				return err
			})
		}}
	c.Flags().StringVar(&n.Issuer, "issuer", "", "issuer of the owner, the claim iss of its JWTs byte for byte (default auth.jwt.issuer)")
	c.Flags().StringVar(&n.Subject, "subject", "", "subject of the owner, the claim sub of its JWTs (required)")
	c.Flags().BoolVar(&n.Operator, "operator", false, "the key of an operator, who sees and acts on all jobs")
	c.Flags().StringVar(&expires, "expires", "", "90d, 12h, or a time as RFC 3339 (default never)")
	c.Flags().StringVar(&n.Note, "note", "", "what it is for; it is shown in the list")
	c.Flags().StringVar(&n.By, "by", whoami(), "who makes it")
	return c
}

func (p *program) keysList() *cobra.Command {
	var format string
	c := &cobra.Command{Use: "list", Short: "List the API keys, oldest first; never the keys themselves", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if format != apikeys.Table && format != apikeys.JSON {
				return &usageError{fmt.Errorf("--format: the format %q is not known", format)}
			}
			return p.withKeys(cmd.Context(), func(ctx context.Context, _ *config.Config, s *store.Store) error {
				return apikeys.List(ctx, s.Client(), format, p.out)
			})
		}}
	c.Flags().StringVar(&format, "format", apikeys.Table, "table or json")
	return c
}

func (p *program) keysRevoke() *cobra.Command {
	var by string
	c := &cobra.Command{Use: "revoke ID", Short: "Revoke an API key by its id, for good",
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.ExactArgs(1)(cmd, args); err != nil {
				return &usageError{err}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withKeys(cmd.Context(), func(ctx context.Context, _ *config.Config, s *store.Store) error {
				again, err := apikeys.Revoke(ctx, s.Client(), args[0], by)
				if errors.Is(err, apikeys.ErrNotFound) { // not repeated: it may be a whole key
					return fmt.Errorf("%w; an id is key_ and the 26 characters after dk_, see `docket keys list`", err)
				}
				if err != nil {
					return err
				}
				says := "is revoked"
				if again {
					says = "was revoked before"
				}
				_, err = fmt.Fprintln(p.out, args[0], says)
				return err
			})
		}}
	c.Flags().StringVar(&by, "by", whoami(), "who revokes it")
	return c
}

func (p *program) withKeys(ctx context.Context, f func(context.Context, *config.Config, *store.Store) error) error {
	cfg, _, err := p.load()
	if err != nil {
		return err
	}
	s, err := store.Open(ctx, cfg.Database.Reveal(), store.Existing())
	if err != nil {
		return err
	}
	if err = requireSchema(ctx, s); err == nil {
		err = f(ctx, cfg, s)
	}
	return errors.Join(err, s.Close())
}

// farthest bounds how far an expiry may lie ahead.
const farthest = 100 * 365 * 24 * time.Hour

// parseExpiry reads 90d, a duration or a time; nothing is never.
func parseExpiry(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	var at time.Time
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return time.Time{}, fmt.Errorf("%q is not a number of days such as 90d", text)
		}
		at = now.AddDate(0, 0, int(n))
	} else if d, err := time.ParseDuration(text); err == nil {
		at = now.Add(d)
	} else if at, err = time.Parse(time.RFC3339, text); err != nil {
		return time.Time{}, fmt.Errorf("%q is not 90d, 12h or a time such as 2026-12-31T00:00:00Z", text)
	}
	if !at.After(now) || at.After(now.Add(farthest)) {
		return time.Time{}, fmt.Errorf("%s is not between now and 100 years from now", text)
	}
	return at, nil
}
