package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/docket-gateway/docket/contracts/command"
	"github.com/docket-gateway/docket/contracts/exchange"
	"github.com/docket-gateway/docket/contracts/gate"
	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/internal/store"
	"github.com/docket-gateway/docket/internal/tasks"
)

// exchangeCommands carry results from where contracts run to where they count.
func (p *program) exchangeCommands() []*cobra.Command {
	return []*cobra.Command{p.contractsKeygen(), p.contractsExport(), p.contractsImport(), p.contractsLog()}
}

func (p *program) contractsKeygen() *cobra.Command {
	var output string
	c := &cobra.Command{Use: "keygen", Short: "Make a key to sign results with, NAME and NAME.pub; it overwrites nothing", Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			if output == "" {
				return &usageError{errors.New("--output: name the file of the key")}
			}
			key, err := exchange.GenerateKey()
			if err == nil {
				err = key.Write(output)
			}
			if err == nil {
				_, err = fmt.Fprintf(p.out, "%s signs, %s%s is for those who trust it: %s\n", output, output, exchange.PublicSuffix, key.ID)
			}
			if err != nil {
				p.code = exitUnusable
			}
			return err
		}}
	c.Flags().StringVar(&output, "output", "", "file of the private key; the public one is beside it (required)")
	return c
}

func (p *program) contractsExport() *cobra.Command {
	var o command.Options
	var keyFile string
	c := &cobra.Command{Use: "export", Args: noArgs,
		Short: "Write the results that decide on the gates, signed; exit code 0 all passed, 1 one is missing or failed, 2 could not",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if keyFile == "" {
				return &usageError{errors.New("--key: name the file of the key to sign with; docket contracts keygen makes one")}
			}
			return p.withParts(cmd.Context(), func(ctx context.Context, ps *parts) error {
				key, err := exchange.ReadPrivateKey(keyFile)
				if err != nil {
					return err
				}
				if err := requireSchema(ctx, ps.store); err != nil {
					return err
				}
				newest := func(ctx context.Context, d *tasks.Definition, target string) (gate.Stored, bool, error) {
					return ps.gate.Newest(ctx, ps.store.Client(), d, target)
				}
				p.code = command.Export(ctx, ps.suites, newest, key, time.Now(), o, command.Streams{Out: p.out, Err: p.err})
				return nil
			}, store.Existing())
		}}
	c.Flags().StringVar(&o.Task, "task", "", "one task (default all)")
	c.Flags().StringVar(&o.Target, "target", "", "one target, provider/model (default each task's route)")
	c.Flags().StringVar(&keyFile, "key", "", "file of the private key (required)")
	c.Flags().StringVar(&o.Output, "output", "", "file to write to (default standard output)")
	return c
}

func (p *program) contractsImport() *cobra.Command {
	var trust []string
	c := &cobra.Command{Use: "import FILE", Short: "Take over signed results, all or none; exit code 0 done, 1 refused, 2 could not",
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.ExactArgs(1)(cmd, args); err != nil {
				return &usageError{err}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withParts(cmd.Context(), func(ctx context.Context, ps *parts) error {
				in := command.Importing{Suites: ps.suites, Into: ps.recorder(time.Now), Check: ps.check, By: whoami(), Now: time.Now()}
				for _, file := range append(ps.cfg.Contracts.TrustedKeys, trust...) {
					k, err := exchange.ReadPublicKey(file)
					if err != nil {
						return err
					}
					in.Trusted = append(in.Trusted, k)
				}
				if len(in.Trusted) == 0 {
					return errors.New("no key is trusted: name a public key by --trust, or in the configuration by contracts.trusted_keys")
				}
				if err := ps.store.Migrate(ctx); err != nil {
					return err
				}
				p.code = command.Import(ctx, args[0], in, command.Streams{Out: p.out, Err: p.err})
				return nil
			})
		}}
	c.Flags().StringArrayVar(&trust, "trust", nil, "file with a public key to trust, beside contracts.trusted_keys; may be given again")
	return c
}

// maxEvents is what the log shows unless told otherwise.
const maxEvents = 200

func (p *program) contractsLog() *cobra.Command {
	var task, target, format string
	var limit int
	c := &cobra.Command{Use: "log", Short: "List when gates opened and closed, and why", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 {
				return &usageError{errors.New("--limit: must be 1 or more")}
			}
			return p.withParts(cmd.Context(), func(ctx context.Context, ps *parts) error {
				if err := requireSchema(ctx, ps.store); err != nil {
					return err
				}
				events, err := gate.Events(ctx, ps.store.Client(), task, target, limit)
				if err != nil {
					return err
				}
				p.code = command.ShowLog(events, report.Format(format), command.Streams{Out: p.out, Err: p.err})
				return nil
			}, store.Existing())
		}}
	c.Flags().StringVar(&task, "task", "", "one task (default all)")
	c.Flags().StringVar(&target, "target", "", "one target, provider/model (default all)")
	c.Flags().StringVar(&format, "format", string(report.Table), "table or json")
	c.Flags().IntVar(&limit, "limit", maxEvents, "the newest so many")
	return c
}
