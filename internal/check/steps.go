package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/docket-gateway/docket/internal/modelserver"
	"github.com/docket-gateway/docket/internal/npm"
	"github.com/docket-gateway/docket/internal/pgtest"
	"github.com/docket-gateway/docket/internal/program"
	"github.com/docket-gateway/docket/internal/webclients"
)

const (
	toolsModule    = "internal/tools/go.mod" // apart, so that the tools' dependencies are not the gateway's
	graphiqlFolder = "internal/web/graphiql"
	testTimeout    = "18m" // per package
	packagesAtOnce = "4"   // most of a test's time is waiting, also on two cores
	interruptGrace = 30 * time.Second
	startTimeout   = 2 * time.Minute
	installTimeout = 15 * time.Minute
)

type checker struct {
	race     bool
	ci       bool
	suite    string // folder of the official JSON-Schema-Test-Suite
	testArgs []string
	stdout   io.Writer
	stderr   io.Writer
}

func (c *checker) steps() []step {
	steps := []step{
		{name: "preflight", fast: true, run: c.preflight},
		{name: "gofmt", fast: true, run: c.gofmt},
		{name: "vet", fast: true, run: c.command("go", "vet", "-tags", "jsonschemasuite", "./...")},
		{name: "lint", run: c.command("go", tool("golangci-lint", "run", "--allow-parallel-runners")...)},
		{name: "generate", run: c.generate},
		{name: "tidy", run: c.tidy},
		{name: "build", fast: true, run: c.command("go", "build", "./...")},
		{name: "govulncheck", run: c.govulncheck},
	}
	if _, err := os.Stat(graphiqlFolder); c.ci && err == nil {
		steps = append(steps, step{name: "graphiql", run: c.graphiql})
	}
	steps = append(steps, step{name: "schema-suite", fast: true, run: c.schemaSuite})
	steps = append(steps, step{name: "npm", fast: true, run: c.npm})
	return append(steps, step{name: "test", fast: true, run: c.test})
}

func tool(args ...string) []string {
	return append([]string{"tool", "-modfile=" + toolsModule}, args...)
}

// command is a step that streams a program's output.
func (c *checker) command(name string, args ...string) func(context.Context) error {
	return func(ctx context.Context) error { return c.exec(ctx, nil, name, args...) }
}

func (c *checker) exec(ctx context.Context, env []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = c.stdout, c.stderr
	// git refuses a checkout that belongs to another user, and with it a build that wants its state.
	cmd.Env = append(os.Environ(), "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -buildvcs=false"))
	cmd.Env = append(cmd.Env, env...)
	// Tests that are interrupted clean up; those that are killed cannot.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = interruptGrace
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(append([]string{name}, args...), " "), err)
	}
	return nil
}

func (c *checker) gofmt(context.Context) error {
	wrong, err := unformatted(".")
	if err != nil {
		return err
	}
	if len(wrong) > 0 {
		return fmt.Errorf("not formatted; run\n  gofmt -w %s", strings.Join(wrong, " "))
	}
	return nil
}

// generate compares the files themselves rather than asking git, so that it works on uncommitted changes and never
// touches them.
func (c *checker) generate(ctx context.Context) error {
	before, err := snapshot(".")
	if err != nil {
		return err
	}
	if err := c.exec(ctx, nil, "go", "generate", "./..."); err != nil {
		return err
	}
	after, err := snapshot(".")
	if err != nil {
		return err
	}
	changes := before.changes(after)
	if len(changes) > 0 {
		return fmt.Errorf("generated code was out of date; go generate has changed these files, commit them:\n  %s",
			strings.Join(changes, "\n  "))
	}
	return nil
}

func (c *checker) tidy(ctx context.Context) error {
	if err := c.exec(ctx, nil, "go", "mod", "tidy", "-diff"); err != nil {
		return fmt.Errorf("go.mod or go.sum is not tidy; run go mod tidy: %w", err)
	}
	return c.exec(ctx, nil, "go", "mod", "verify")
}

func (c *checker) graphiql(ctx context.Context) error {
	if _, err := exec.LookPath("npm"); err != nil {
		return fmt.Errorf("%w: npm is needed to compare %s with a fresh build", errUnable, graphiqlFolder)
	}
	return c.exec(ctx, nil, "bash", filepath.Join(graphiqlFolder, "verify.sh"))
}

// schemaSuite runs the official tests of JSON Schema, whose files are not part of the repository.
func (c *checker) schemaSuite(ctx context.Context) error {
	if c.suite == "" {
		return fmt.Errorf("%w (give a checkout of https://github.com/json-schema-org/JSON-Schema-Test-Suite by -schema-suite)", errNotRun)
	}
	folder, err := filepath.Abs(c.suite) // the test runs in its package's folder
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(folder, "tests", "draft2020-12")); err != nil {
		return fmt.Errorf("%w: -schema-suite %s: %w", errUnable, c.suite, err)
	}
	return c.exec(ctx, nil, "go", "test", "-tags", "jsonschemasuite", "./internal/schema", "-run", "TestOfficialSuite", "-schema.suite", folder)
}

// npm fetches the packages of the tests' model server and of the web clients, so that no test waits for npm or fails for its
// registry.
func (c *checker) npm(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, installTimeout)
	defer cancel()
	_, err := modelserver.Install(ctx)
	if err == nil {
		_, err = webclients.Install(ctx)
	}
	if errors.Is(err, npm.ErrNotInstalled) {
		return fmt.Errorf("%w: %w", errUnable, err)
	}
	return err
}

// test gives all packages one server, unless the environment names one.
func (c *checker) test(ctx context.Context) (err error) {
	folder, remove, err := memory()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	var env []string
	args := []string{"test", "-timeout", testTimeout, "-p", packagesAtOnce}
	if folder != "" {
		// What Go builds is larger than what the tests write, and stays on the disk; testing would look at GOTMPDIR first.
		env = append(env, "TMPDIR="+folder, "GOTMPDIR="+cmp.Or(os.Getenv("GOTMPDIR"), os.TempDir()))
		args = append(args, "-exec", "env -u GOTMPDIR")
	}
	if os.Getenv(pgtest.EnvAdminDSN) == "" {
		startCtx, cancel := context.WithTimeout(ctx, startTimeout)
		defer cancel()
		cluster, err := pgtest.StartIn(startCtx, folder)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, cluster.Stop()) }()
		env = append(env, pgtest.EnvAdminDSN+"="+cluster.AdminDSN())
	}
	if c.race {
		args = append(args, program.Race()...)
	}
	err = c.exec(ctx, env, "go", append(args, withPackages(c.testArgs)...)...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return errSaid
	}
	return err
}

// longest is the package whose tests wait most: begun first, they wait while the others are compiled.
const longest = "./internal/acceptance"

// withPackages adds all packages to arguments of go test that name none.
func withPackages(args []string) []string {
	for _, arg := range args {
		if strings.HasPrefix(arg, ".") || strings.Contains(arg, "docket-gateway/docket") {
			return args
		}
	}
	return append(append([]string{}, args...), longest, "./...")
}
