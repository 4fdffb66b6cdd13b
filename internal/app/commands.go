package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"os/user"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/docket-gateway/docket/contracts/command"
	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/internal/config"
	"github.com/docket-gateway/docket/internal/store"
	"github.com/docket-gateway/docket/internal/telemetry"
)

// Exit codes of the program. The contract commands have their own, which agree.
const (
	exitOK       = 0
	exitFailed   = 1
	exitUnusable = 2
)

// Main runs one command and returns its exit code. The first SIGINT or SIGTERM asks it to end, a second one ends it.
func Main(args, environ []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	return run(ctx, args, environ, stdout, stderr)
}

func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	p := &program{environ: environ, out: stdout, err: stderr}
	root := p.commands() //nolint:contextcheck // commands get theirs when they run
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	if err := root.ExecuteContext(ctx); err != nil {
		_, _ = fmt.Fprintln(stderr, "docket:", err)
		if p.code == exitOK {
			p.code = exitFailed
		}
		var usage *usageError
		if errors.As(err, &usage) || errors.Is(err, config.ErrInvalid) {
			p.code = exitUnusable
		}
	}
	return p.code
}

// usageError is a command line that cannot be understood.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

// noArgs refuses what is not a flag, as a mistake in the command line.
func noArgs(cmd *cobra.Command, args []string) error {
	if err := cobra.NoArgs(cmd, args); err != nil {
		return &usageError{err}
	}
	return nil
}

// oneOf is for a command that has only others under it. Without it a misspelt one would print the help and succeed.
func oneOf(c *cobra.Command, under ...*cobra.Command) *cobra.Command {
	names := make([]string, 0, len(under))
	for _, u := range under {
		names = append(names, u.Name())
	}
	c.Args = noArgs
	c.RunE = func(*cobra.Command, []string) error {
		return &usageError{fmt.Errorf("%s: say which: %s", c.Name(), strings.Join(names, ", "))}
	}
	c.AddCommand(under...)
	return c
}

// program is one invocation.
type program struct {
	environ  []string
	out, err io.Writer
	path     string // of the configuration
	code     int
}

func (p *program) commands() *cobra.Command {
	root := &cobra.Command{
		Use:   "docket",
		Short: "One durable job per user intent, any number of attempts, exactly one winner",
		Args:  noArgs, SilenceErrors: true, SilenceUsage: true, RunE: p.serve,
	}
	root.PersistentFlags().StringVar(&p.path, "config", "", "configuration file (default docket.yaml if there, or $DOCKET_CONFIG)")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	root.CompletionOptions.DisableDefaultCmd = true

	migrate := oneOf(&cobra.Command{Use: "migrate", Short: "Look after the database schema"},
		&cobra.Command{Use: "up", Short: "Apply what is not applied yet", Args: noArgs, RunE: p.migrateUp},
		&cobra.Command{Use: "status", Short: "List the migrations; exit code 1 if one is not applied", Args: noArgs, RunE: p.migrateStatus},
	)
	root.AddCommand(
		&cobra.Command{Use: "serve", Short: "Serve the API and work on jobs (the default)", Args: noArgs, RunE: p.serve},
		migrate, p.contracts(), p.attempts(), p.keys(),
		&cobra.Command{Use: "version", Short: "Print the version", Args: noArgs, RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(p.out, "docket", version())
			return err
		}},
	)
	return root
}

func (p *program) load() (*config.Config, *slog.Logger, error) {
	cfg, err := config.Load(p.path, p.environ)
	if err != nil {
		return nil, nil, err
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.Log.Level)); err != nil {
		return nil, nil, fmt.Errorf("log.level: %w", err)
	}
	log := telemetry.NewLogger(p.err, level, cfg.Log.Format == "json")
	for _, w := range cfg.Warnings {
		log.Warn("configuration", "warning", w)
	}
	return cfg, log, nil
}

func (p *program) serve(cmd *cobra.Command, _ []string) error {
	ctx := cmd.Context()
	cfg, log, err := p.load()
	if err != nil {
		return err
	}
	g, err := Start(ctx, cfg, log)
	if err != nil {
		return err
	}
	log.InfoContext(ctx, "docket is ready", "version", version(), "url", "http://"+g.Addr()+"/", "graphql", "http://"+g.Addr()+"/graphql",
		"database", cfg.Database, "tasks", len(g.suites), "targets", len(g.registry.Targets()))
	return p.wait(ctx, g, log)
}

// wait serves until the program is to end, or the gateway does not listen any more: the process ends with an error then,
// for whatever keeps it running to start a new one.
func (p *program) wait(ctx context.Context, g *Gateway, log *slog.Logger) error {
	var failed error
	select {
	case <-ctx.Done():
	case failed = <-g.Failed():
		log.ErrorContext(ctx, "the gateway does not listen any more", "error", failed)
	}
	log.InfoContext(ctx, "stopping", "at_most", g.cfg.ShutdownTimeout)
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.cfg.ShutdownTimeout)
	defer cancel()
	return errors.Join(failed, g.Stop(bound))
}

func (p *program) migrateUp(cmd *cobra.Command, _ []string) error {
	return p.withStore(cmd.Context(), func(ctx context.Context, s *store.Store) error {
		if err := s.Migrate(ctx); err != nil {
			return err
		}
		_, err := fmt.Fprintln(p.out, "the schema is up to date")
		return err
	})
}

func (p *program) migrateStatus(cmd *cobra.Command, _ []string) error {
	err := p.withStore(cmd.Context(), func(ctx context.Context, s *store.Store) error {
		list, err := s.Migrations(ctx)
		if err != nil {
			return err
		}
		w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
		for _, m := range list {
			state := "applied"
			if !m.Applied {
				state, p.code = "PENDING", exitFailed
			}
			if _, err := fmt.Fprintf(w, "%d\t%s\t%s\n", m.Version, m.Name, state); err != nil {
				return err
			}
		}
		return w.Flush()
	}, store.Existing()) // who only looks leaves no empty database behind
	if errors.Is(err, fs.ErrNotExist) {
		p.code = exitFailed
		_, err = fmt.Fprintln(p.out, "there is no database yet: every step is PENDING")
		return err
	}
	if err != nil {
		p.code = exitUnusable // nothing can be said, which is not the same as a migration that is not applied
	}
	return err
}

func (p *program) withStore(ctx context.Context, f func(context.Context, *store.Store) error, options ...store.Option) error {
	cfg, _, err := p.load()
	if err != nil {
		return err
	}
	s, err := store.Open(ctx, cfg.Database.Reveal(), append(options, store.WithDirect(cfg.DatabaseDirect.Reveal()))...)
	if err != nil {
		return err
	}
	return errors.Join(f(ctx, s), s.Close())
}

func (p *program) contracts() *cobra.Command {
	var o command.Options
	var format string
	flags := func(c *cobra.Command) {
		c.Flags().StringVar(&o.Task, "task", "", "one task (default all)")
		c.Flags().StringVar(&o.Target, "target", "", "one target, provider/model (default each task's route)")
		c.Flags().StringVar(&format, "format", string(report.Table), "table, json, junit or html")
		c.Flags().StringVar(&o.Output, "output", "", "write the report to this file")
	}
	run := p.contractsRun(&o, &format)
	flags(run)
	status := &cobra.Command{Use: "status", Short: "Say which gates are open; exit code 1 if one is closed", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Format = report.Format(format)
			return p.withParts(cmd.Context(), func(ctx context.Context, ps *parts) error {
				if err := requireSchema(ctx, ps.store); err != nil {
					return err
				}
				p.code = command.ShowStatus(ctx, ps.suites, ps.check, o, command.Streams{Out: p.out, Err: p.err})
				return nil
			}, store.Existing())
		}}
	flags(status)
	return oneOf(&cobra.Command{Use: "contracts", Short: "Run contract suites and look at the gates"}, append([]*cobra.Command{run, status}, p.exchangeCommands()...)...)
}

// requireSchema is for commands that only look.
func requireSchema(ctx context.Context, s *store.Store) error {
	list, err := s.Migrations(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(list, func(m store.Migration) bool { return !m.Applied }) {
		return errors.New("the database's schema is not up to date; `docket migrate up` or the first start brings it there")
	}
	return nil
}

// withParts is for commands whose exit code 2 means that they could not do their work.
func (p *program) withParts(ctx context.Context, f func(context.Context, *parts) error, options ...store.Option) error {
	return p.withPartsOf(ctx, whole, f, options...)
}

func whole(_ context.Context, cfg *config.Config, _ *slog.Logger) (*config.Config, error) {
	return cfg, nil
}

// withPartsOf is withParts with what part leaves of the configuration.
func (p *program) withPartsOf(ctx context.Context, part func(context.Context, *config.Config, *slog.Logger) (*config.Config, error),
	f func(context.Context, *parts) error, options ...store.Option,
) error {
	cfg, log, err := p.load()
	if err == nil {
		cfg, err = part(ctx, cfg, log)
	}
	if err != nil {
		p.code = exitUnusable
		return err
	}
	ps, err := build(ctx, cfg, log, time.Now, options...)
	if err != nil {
		p.code = exitUnusable
		return err
	}
	if err := errors.Join(f(ctx, ps), ps.store.Close()); err != nil {
		p.code = exitUnusable
		return err
	}
	return nil
}

// whoami is who ran a contract by hand.
func whoami() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "unknown"
}

// version is the module's, or the revision that the program was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return "development"
}
