// Command check is the project's test command: it looks whether everything that the tests need is there, then formats,
// vets, lints, generates, builds and tests. It stops at the first failure.
//
//	go run ./internal/check                          everything
//	go run ./internal/check -fast                    gofmt, vet, build, tests without the race detector
//	go run ./internal/check -only lint               one step (or several: -only gofmt,lint)
//	go run ./internal/check -schema-suite FOLDER     the official JSON-Schema-Test-Suite in FOLDER too
//	go run ./internal/check -- -run Claim ./internal/jobs/...   everything, but only these tests
//
// It exits 0 if all is well, 1 if a step failed and 2 if something has to be installed first.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

const (
	exitOK     = 0
	exitFailed = 1
	exitUnable = 2 // something is missing, or the command line is wrong
)

// errUnable is wrapped by what a person has to change on the machine.
var errUnable = errors.New("cannot run")

// errSaid is a failure that the step has told itself; nothing more is printed, so that go test's lines stay the last.
var errSaid = errors.New("failed")

// errNotRun is a step that could not run through nobody's fault. The next step follows, but it is not called ok.
var errNotRun = errors.New("not run")

type step struct {
	name string
	fast bool // part of -fast
	run  func(context.Context) error
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("check", flag.ContinueOnError)
	flags.SetOutput(stderr)
	fast := flags.Bool("fast", false, "only gofmt, vet, build and the tests without the race detector")
	suite := flags.String("schema-suite", "", "a checkout of the official JSON-Schema-Test-Suite")
	only := flags.String("only", "", "run only these steps: names with commas between them")
	flags.Usage = func() {
		_, _ = fmt.Fprintln(stderr, "usage: go run ./internal/check [-fast] [-only steps] [-schema-suite folder] [-- arguments and packages for go test]")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return exitUnable
	}
	if _, err := os.Stat("go.mod"); err != nil {
		_, _ = fmt.Fprintln(stderr, "check: run it in the folder of go.mod")
		return exitUnable
	}
	c := &checker{race: !*fast, ci: os.Getenv("CI") == "true", suite: *suite, testArgs: flags.Args(), stdout: stdout, stderr: stderr}
	steps, err := choose(c.steps(), *fast, *only)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "check:", err)
		return exitUnable
	}
	return runSteps(ctx, steps, stdout, stderr)
}

// choose returns the steps of -fast or -only, in their own order.
func choose(all []step, fast bool, only string) ([]step, error) {
	if only == "" {
		return slices.DeleteFunc(all, func(s step) bool { return fast && !s.fast }), nil
	}
	wanted := strings.Split(only, ",")
	chosen := slices.DeleteFunc(slices.Clone(all), func(s step) bool { return !slices.Contains(wanted, s.name) })
	if len(chosen) != len(wanted) {
		names := make([]string, len(all))
		for i, s := range all {
			names[i] = s.name
		}
		return nil, fmt.Errorf("-only %s: the steps are %s", only, strings.Join(names, ", "))
	}
	return chosen, nil
}

// runSteps prints nothing after the last step, which is the tests.
func runSteps(ctx context.Context, steps []step, stdout, stderr io.Writer) int {
	begin := time.Now()
	for i, s := range steps {
		_, _ = fmt.Fprintf(stdout, "== %s\n", s.name)
		stepBegin := time.Now()
		err := s.run(ctx)
		took := time.Since(stepBegin).Round(100 * time.Millisecond)
		switch {
		case ctx.Err() != nil:
			_, _ = fmt.Fprintf(stderr, "check: interrupted in %s\n", s.name)
			return exitFailed
		case errors.Is(err, errSaid):
			return exitFailed
		case errors.Is(err, errUnable):
			_, _ = fmt.Fprintf(stderr, "check: %s: %v\n", s.name, err)
			return exitUnable
		case errors.Is(err, errNotRun):
			_, _ = fmt.Fprintf(stdout, "%s: %v\n", s.name, err)
			continue
		case err != nil:
			_, _ = fmt.Fprintf(stderr, "check: %s failed after %s: %v\n", s.name, took, err)
			return exitFailed
		}
		if i < len(steps)-1 {
			_, _ = fmt.Fprintf(stdout, "   %s ok in %s (%s since the start)\n", s.name, took, time.Since(begin).Round(time.Second))
		}
	}
	return exitOK
}
