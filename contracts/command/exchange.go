package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/exchange"
	"github.com/docket-gateway/docket/contracts/gate"
	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/internal/tasks"
)

// NewestFunc returns the result that decides on a gate; ok is false if there is none for what is configured here.
type NewestFunc func(ctx context.Context, task *tasks.Definition, target string) (r gate.Stored, ok bool, err error)

// Export signs the results that decide on the selected gates and writes them to the output. ExitFailed means that it did, but that
// a selected result is missing or no pass; which ones is said.
func Export(ctx context.Context, suites []contracts.Suite, newest NewestFunc, key exchange.PrivateKey, now time.Time, o Options, std Streams) int {
	picked, err := pick(suites, o)
	if err != nil {
		return unusable(std, err)
	}
	code := ExitPassed
	var entries []exchange.Entry
	for _, p := range picked {
		r, ok, err := newest(ctx, p.suite.Task, p.target)
		what := ""
		switch {
		case err != nil:
			return unusable(std, err)
		case !ok:
			what = "there is no result for what is configured here"
		case !r.Result.Passed:
			what = "the result is no pass"
		}
		if what != "" {
			code = ExitFailed
			_, _ = fmt.Fprintf(std.Err, "%s at %s: %s\n", p.suite.Task.Name, p.target, what)
		}
		if ok {
			entries = append(entries, exchange.Entry{ID: r.ID, Result: r.Result})
		}
	}
	raw, err := exchange.Seal(ctx, key, entries, now)
	if err != nil {
		return unusable(std, err)
	}
	if o.Output == "" {
		_, err = std.Out.Write(raw)
	} else {
		err = os.WriteFile(o.Output, raw, 0o644)
	}
	if err != nil {
		return unusable(std, fmt.Errorf("write the signed results: %w", err))
	}
	return code
}

// Importer stores all results or none, and says of each whether it was stored now.
type Importer interface {
	Import(ctx context.Context, list []gate.Import) (stored []bool, err error)
}

// Importing is what Import needs.
type Importing struct {
	Suites  []contracts.Suite
	Trusted []exchange.PublicKey
	Into    Importer
	Check   CheckFunc
	By      string // who imports
	Now     time.Time
}

// Import stores the results of a signed file, all or none, and says what the gate makes of each. ExitFailed means that the file is
// refused: it is not signed by a trusted key, or something in it does not hold.
func Import(ctx context.Context, file string, in Importing, std Streams) int {
	raw, err := exchange.ReadFile(file, exchange.MaxBytes)
	if err != nil {
		return unusable(std, err)
	}
	entries, signer, err := exchange.Open(ctx, raw, in.Trusted, in.Now.Add(gate.ClockSkew))
	if errors.Is(err, exchange.ErrRefused) {
		return refused(std, err)
	}
	if err != nil {
		return unusable(std, err)
	}
	list := make([]gate.Import, len(entries))
	for i, e := range entries {
		list[i] = gate.Import{ID: e.ID, Result: e.Result, SignedBy: signer, By: in.By}
	}
	stored, err := in.Into.Import(ctx, list)
	if errors.Is(err, gate.ErrOtherResult) {
		return refused(std, err)
	}
	if err != nil {
		return unusable(std, err)
	}
	for i, e := range entries {
		how := "imported"
		if !stored[i] {
			how = "stored before"
		}
		r := e.Result
		verdict := report.Passed
		if !r.Passed {
			verdict = report.Failed
		}
		_, err := fmt.Fprintf(std.Out, "%s at %s: %s; %s in mode %s by %s %s, signed by %s; %s\n", r.Task, r.Target, how, verdict, r.Mode, r.RanBy,
			humanize.RelTime(r.FinishedAt, in.Now, "ago", "from now"), signer, in.standing(ctx, r))
		if err != nil {
			return unusable(std, err)
		}
	}
	return ExitPassed
}

// standing is what the gate makes of an imported result.
func (in Importing) standing(ctx context.Context, r report.Result) string {
	for _, s := range in.Suites {
		if s.Task.Digest != r.Basis.TaskVersion {
			continue
		}
		d, err := in.Check(ctx, s.Task, r.Target)
		switch {
		case err != nil:
			return "the gate cannot be asked: " + err.Error()
		case d.Allowed:
			return "the gate is open"
		}
		return fmt.Sprintf("the gate is closed (%s): %s", d.State, d.Reasons[0])
	}
	return "this version of the task is not configured here"
}

func refused(std Streams, err error) int {
	_, _ = fmt.Fprintf(std.Err, "docket contracts: %v\n", err)
	return ExitFailed
}
