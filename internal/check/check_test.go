package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestChoose(t *testing.T) {
	t.Parallel()
	all := func() []step {
		return []step{{name: "gofmt", fast: true}, {name: "lint"}, {name: "test", fast: true}}
	}
	for _, row := range []struct {
		name string
		fast bool
		only string
		want []string
	}{
		{name: "TakesAll", want: []string{"gofmt", "lint", "test"}},
		{name: "LeavesTheSlowStepsOut", fast: true, want: []string{"gofmt", "test"}},
		{name: "KeepsTheOrderOfTheSteps", only: "test,lint", want: []string{"lint", "test"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got, err := choose(all(), row.fast, row.only)
			require.NoError(t, err)
			names := []string{}
			for _, s := range got {
				names = append(names, s.name)
			}
			require.Equal(t, row.want, names)
		})
	}
	t.Run("NamesTheStepsIfOneIsUnknown", func(t *testing.T) {
		t.Parallel()
		_, err := choose(all(), false, "lint,nothing")
		require.ErrorContains(t, err, "the steps are gofmt, lint, test")
	})
}

func TestRunSteps(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name     string
		err      error
		wantCode int
		wantErr  string
	}{
		{name: "StopsAtAFailure", err: errors.New("broken"), wantCode: exitFailed, wantErr: "check: second failed after 0s: broken\n"},
		{name: "TellsWhatIsMissing", err: errUnable, wantCode: exitUnable, wantErr: "check: second: cannot run\n"},
		{name: "AddsNothingToWhatTheTestsSaid", err: errSaid, wantCode: exitFailed},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			code := runSteps(t.Context(), []step{
				{name: "first", run: func(context.Context) error { return nil }},
				{name: "second", run: func(context.Context) error { return row.err }},
				{name: "third", run: func(context.Context) error { panic("it goes on") }},
			}, &stdout, &stderr)
			require.Equal(t, row.wantCode, code)
			require.Equal(t, row.wantErr, stderr.String())
			require.Contains(t, stdout.String(), "first ok in 0s")
		})
	}

	t.Run("GoesOnAfterAStepThatCouldNotRunButDoesNotCallItOK", func(t *testing.T) {
		t.Parallel()
		var stdout, stderr bytes.Buffer
		ran := false
		code := runSteps(t.Context(), []step{
			{name: "govulncheck", run: func(context.Context) error { return fmt.Errorf("%w (database not reached)", errNotRun) }},
			{name: "test", run: func(context.Context) error { ran = true; return nil }},
		}, &stdout, &stderr)
		require.Equal(t, exitOK, code)
		require.True(t, ran)
		require.Equal(t, "== govulncheck\ngovulncheck: not run (database not reached)\n== test\n", stdout.String())
	})

	t.Run("PrintsNothingAfterTheLastStep", func(t *testing.T) {
		t.Parallel()
		var stdout, stderr bytes.Buffer
		last := step{name: "test", run: func(context.Context) error {
			stdout.WriteString("ok  \tsome/package\n")
			return nil
		}}
		require.Equal(t, exitOK, runSteps(t.Context(), []step{last}, &stdout, &stderr))
		require.True(t, strings.HasSuffix(stdout.String(), "ok  \tsome/package\n"))
		require.Empty(t, stderr.String())
	})
}

func TestStepsEndWithTheTests(t *testing.T) {
	t.Parallel()
	steps := (&checker{}).steps()
	require.Equal(t, "preflight", steps[0].name)
	require.Equal(t, "test", steps[len(steps)-1].name)
}

func TestWithPackages(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ args, want string }{
		{"", "./internal/acceptance ./..."},
		{"-run Claim", "-run Claim ./internal/acceptance ./..."},
		{"-run Claim ./internal/jobs", "-run Claim ./internal/jobs"},
		{"github.com/docket-gateway/docket/graph", "github.com/docket-gateway/docket/graph"},
	} {
		t.Run(row.args, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, strings.Fields(row.want), withPackages(strings.Fields(row.args)))
		})
	}
}

func TestFindCompiler(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, installed, cc, cgo, wantErr string }{
		{name: "TakesAnyKnownOne", installed: "clang"},
		{name: "TakesTheChosenOneWithItsFlags", installed: "mycc", cc: "mycc -m64"},
		{name: "DoesNotReplaceTheChosenOne", installed: "gcc", cc: "mycc", wantErr: "needs a C compiler (mycc)"},
		{name: "SaysWhatToInstall", wantErr: "apt-get install gcc"},
		{name: "NeedsCgo", installed: "gcc", cgo: "0", wantErr: "unset CGO_ENABLED"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			env := map[string]string{"CC": row.cc, "CGO_ENABLED": row.cgo}
			err := findCompiler(func(key string) string { return env[key] }, func(program string) (string, error) {
				if program == row.installed {
					return "/usr/bin/" + program, nil
				}
				return "", exec.ErrNotFound
			})
			if row.wantErr == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, row.wantErr)
		})
	}
}

func TestUnmet(t *testing.T) {
	t.Parallel()
	there := requirement{check: func() error { return nil }, packages: []string{"there"}}
	first := requirement{check: func() error { return errors.New("no browser") }, packages: []string{"chromium"}}
	second := requirement{check: func() error { return errors.New("no compiler") }, packages: []string{"gcc", "libc6-dev"}}

	t.Run("TellsAllThatIsMissingAtOnce", func(t *testing.T) {
		t.Parallel()
		missing, err := unmet([]requirement{first, there, second})
		require.ErrorIs(t, err, errUnable)
		require.ErrorContains(t, err, "no browser")
		require.ErrorContains(t, err, "no compiler")
		require.Equal(t, []string{"chromium", "gcc", "libc6-dev"}, packagesOf(missing))
	})
	t.Run("IsContentIfAllIsThere", func(t *testing.T) {
		t.Parallel()
		missing, err := unmet([]requirement{there})
		require.NoError(t, err)
		require.Empty(t, missing)
	})
}

func TestRequirements(t *testing.T) {
	t.Parallel()
	env := map[string]string{}
	getenv := func(key string) string { return env[key] }
	require.Equal(t, []string{"postgresql", "chromium", "nodejs", "npm", "nginx", "haproxy", "gcc", "libc6-dev"}, packagesOf(requirements(t.Context(), true, getenv)))
	require.Equal(t, []string{"postgresql", "chromium", "nodejs", "npm", "nginx", "haproxy"}, packagesOf(requirements(t.Context(), false, getenv)), "only the race detector needs a compiler")
	env["DOCKET_TEST_CHROMIUM"] = "/some/where"
	require.Equal(t, []string{"postgresql", "nodejs", "npm", "nginx", "haproxy"}, packagesOf(requirements(t.Context(), false, getenv)), "no package mends a wrong path")
}

func TestDenyServices(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policy-rc.d")
	undo, err := denyServices(path)
	require.NoError(t, err)
	var exit *exec.ExitError
	require.ErrorAs(t, exec.CommandContext(t.Context(), path, "nginx", "start").Run(), &exit)
	require.Equal(t, 101, exit.ExitCode())

	again, err := denyServices(path)
	require.NoError(t, err)
	require.NoError(t, again())
	require.FileExists(t, path, "it was there before")
	require.NoError(t, undo())
	require.NoFileExists(t, path)
}

func TestDatabaseNotReached(t *testing.T) {
	t.Parallel()
	const unreachable = `govulncheck: fetching vulnerabilities: Get "https://vuln.go.dev/index/modules.json.gz": no such host`
	failed := &exec.ExitError{ProcessState: &os.ProcessState{}}
	require.True(t, databaseNotReached(failed, unreachable))
	require.False(t, databaseNotReached(failed, "govulncheck: loading packages: there are errors"))
	require.False(t, databaseNotReached(failed, "Vulnerability #1: GO-2026-0001"))
	require.False(t, databaseNotReached(nil, unreachable))
}
