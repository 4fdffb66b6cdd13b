package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/command"
	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/internal/config"
)

// contractsRun is `docket contracts run`. It shares some flags with other commands.
func (p *program) contractsRun(o *command.Options, format *string) *cobra.Command {
	var mode string
	c := &cobra.Command{Use: "run", Short: "Run contract suites; exit code 0 passed, 1 failed, 2 could not run", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Mode, o.Format = report.Mode(mode), report.Format(*format)
			part := usable // without its key a provider refuses, and that would be recorded as the target's failure
			if o.Mode == report.Replay {
				part = whole
			}
			return p.withPartsOf(cmd.Context(), part, func(ctx context.Context, ps *parts) error {
				if err := ps.store.Migrate(ctx); err != nil {
					return err
				}
				o.JournalDefault = p.journalFile(ps.cfg, *o)
				return ps.withRunner(whoami(), time.Now, func(runner *contracts.Runner) error {
					p.code = command.Run(ctx, ps.suites, runner, ps.recorder(time.Now), *o,
						command.Streams{Out: p.out, Err: p.err, Terminal: isTerminal(p.err)})
					return nil
				})
			})
		}}
	f := c.Flags()
	f.StringVar(&mode, "mode", string(report.Live), "live, record or replay")
	f.IntVar(&o.Runs, "runs", 0, "runs per case (default the task's)")
	f.StringVar(&o.Against, "against", "", "also run this target, and say where --target differs from it")
	f.BoolVar(&o.Update, "update", false, "write goldens of what came")
	f.IntVar(&o.Concurrency, "concurrency", contracts.DefaultConcurrency, "requests at once; at each provider at most its max_concurrency")
	f.StringVar(&o.MaxCost, "max-cost", "", "stop before more than this could be spent, in the currency of the targets' prices")
	f.BoolVar(&o.Resume, "resume", false, "take up the answers of the same command, which was stopped")
	f.StringVar(&o.Journal, "journal", "", "file that keeps the answers until the run is over (default in the user's folder for caches)")
	f.StringArrayVar(&o.Reports, "report", nil, "another report of the same run, as format=file; may be given again")
	f.BoolVar(&o.Quiet, "quiet", false, "tell no progress")
	return c
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// journalFile has another name for each command line that collects something else, so that two of them can run at once. It returns ""
// if there is no folder for caches.
func (p *program) journalFile(cfg *config.Config, o command.Options) string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	here, _ := os.Getwd()
	raw, err := json.Marshal([]any{here, p.path, cfg.Database.Reveal(), cfg.Tasks, o.Task, o.Target, o.Against, o.Mode, o.Runs})
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(raw)
	return filepath.Join(dir, "docket", "contracts-"+hex.EncodeToString(sum[:8])+".jsonl")
}

// Suites is what contract suites need outside of the program.
type Suites struct {
	List   []contracts.Suite
	Runner *contracts.Runner
	Close  func() error // ends what the runner started
}

// OpenSuites loads the suites of a configuration, found as the program finds it, and a runner of its targets. The task folders at the
// root of fsys stand in for those that the configuration names, if it is not nil. Secrets are asked for unless the mode is replay.
// The configuration's database is not opened.
func OpenSuites(ctx context.Context, path string, environ []string, fsys fs.FS, mode report.Mode, ranBy string) (*Suites, error) {
	cfg, err := config.Load(path, environ)
	if err != nil {
		return nil, err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})) // which providers are left out, and why
	if mode != report.Replay {
		if cfg, err = usable(ctx, cfg, log); err != nil {
			return nil, err
		}
	}
	p := &parts{cfg: cfg, log: log}
	if p.registry, err = newRegistry(cfg); err != nil {
		return nil, err
	}
	if fsys == nil {
		p.suites, err = loadSuites(cfg)
	} else {
		p.suites, err = contracts.LoadSuites(fsys)
	}
	if err != nil {
		return nil, err
	}
	if dir := onDisk(fsys); dir != "" {
		for i := range p.suites {
			p.suites[i].Dir = filepath.Join(dir, p.suites[i].Task.Name)
		}
	}
	runner, end := p.newRunner(ranBy, time.Now)
	return &Suites{List: p.suites, Runner: runner, Close: end}, nil
}

// onDisk is the folder that a file system shows, "" if it shows none.
func onDisk(fsys fs.FS) string {
	if fsys == nil {
		return ""
	}
	root, err := fsys.Open(".")
	if err != nil {
		return ""
	}
	defer func() { _ = root.Close() }()
	if f, ok := root.(*os.File); ok {
		return filepath.Clean(f.Name())
	}
	return ""
}
