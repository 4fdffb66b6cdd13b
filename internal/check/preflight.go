package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"

	"github.com/docket-gateway/docket/internal/balancer"
	"github.com/docket-gateway/docket/internal/chromium"
	"github.com/docket-gateway/docket/internal/npm"
	"github.com/docket-gateway/docket/internal/pgtest"
)

// requirement is something that must be installed on the machine.
type requirement struct {
	check    func() error // says what is missing and how to install it on each platform
	packages []string     // Debian's; none if no package helps
}

// preflight installs what is missing where it may: as root, with apt-get. Anywhere else it says what to install.
func (c *checker) preflight(ctx context.Context) error {
	needed := requirements(ctx, c.race, os.Getenv)
	missing, err := unmet(needed)
	if err == nil {
		return nil
	}
	if _, lookErr := exec.LookPath("apt-get"); lookErr != nil || os.Geteuid() != 0 {
		return err
	}
	packages := packagesOf(missing)
	if len(packages) == 0 {
		return err
	}
	_, _ = fmt.Fprintf(c.stdout, "   installing %s\n", strings.Join(packages, ", "))
	if installErr := c.install(ctx, packages); installErr != nil {
		return errors.Join(err, installErr)
	}
	_, err = unmet(needed)
	return err
}

func (c *checker) install(ctx context.Context, packages []string) (err error) {
	// Its many lines are of interest only if it fails.
	quiet := &strings.Builder{}
	apt := &checker{stdout: quiet, stderr: quiet}
	env := []string{"DEBIAN_FRONTEND=noninteractive"}
	undo, err := denyServices(servicePolicy)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, undo()) }()
	err = apt.exec(ctx, env, "apt-get", "update")
	if err == nil {
		args := append([]string{"install", "--yes", "--no-install-recommends"}, packages...)
		err = apt.exec(ctx, env, "apt-get", args...)
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, quiet)
	}
	return nil
}

// servicePolicy is the program that Debian's packages ask before they start the services that they bring.
const servicePolicy = "/usr/sbin/policy-rc.d"

// denyServices lets no package start a service until undo is called: the tests start what they need, and a port that was free
// stays free. A policy that the machine has already is its own affair.
func denyServices(path string) (undo func() error, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o700) //nolint:gosec // a program
	if errors.Is(err, fs.ErrExist) {
		return func() error { return nil }, nil
	}
	if err != nil {
		return nil, fmt.Errorf("keep services from starting: %w", err)
	}
	const forbidden = "exit 101" // by invoke-rc.d
	_, err = f.WriteString("#!/bin/sh\n" + forbidden + "\n")
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("keep services from starting: %w", err), os.Remove(path))
	}
	return func() error { return os.Remove(path) }, nil
}

func requirements(ctx context.Context, race bool, getenv func(string) string) []requirement {
	browser := requirement{
		check: func() error {
			_, err := chromium.Find()
			return err
		},
		packages: []string{"chromium"},
	}
	if getenv(chromium.EnvPath) != "" { // a wrong path, if anything
		browser.packages = nil
	}
	needed := []requirement{
		{
			check: func() error {
				if getenv(pgtest.EnvAdminDSN) != "" {
					return nil
				}
				_, err := pgtest.FindBinaries()
				return err
			},
			packages: []string{"postgresql"},
		},
		browser,
		{
			check: func() error {
				_, _, err := npm.Find(ctx)
				return err
			},
			packages: []string{"nodejs", "npm"}, // which say what they lack if Debian's are too old
		},
		installed(balancer.FindNginx, "nginx"),
		installed(balancer.FindHAProxy, "haproxy"),
	}
	if race {
		needed = append(needed, requirement{
			check:    func() error { return findCompiler(getenv, exec.LookPath) },
			packages: []string{"gcc", "libc6-dev"},
		})
	}
	return needed
}

func installed(find func() (string, error), packages ...string) requirement {
	return requirement{packages: packages, check: func() error {
		_, err := find()
		return err
	}}
}

const compilerHint = `install one:
  Debian, Ubuntu:  apt-get install gcc libc6-dev
  Fedora, RHEL:    dnf install gcc
  Alpine:          apk add gcc musl-dev
  Arch:            pacman -S gcc
  macOS:           xcode-select --install
or run with -fast, without the race detector`

// findCompiler looks for what go test -race needs.
func findCompiler(getenv func(string) string, lookPath func(string) (string, error)) error {
	if getenv("CGO_ENABLED") == "0" {
		return errors.New("the race detector needs cgo: unset CGO_ENABLED, or run with -fast")
	}
	compilers := []string{"gcc", "clang"}
	if chosen, _, _ := strings.Cut(getenv("CC"), " "); chosen != "" {
		compilers = []string{chosen}
	}
	for _, compiler := range compilers {
		if _, err := lookPath(compiler); err == nil {
			return nil
		}
	}
	return fmt.Errorf("the race detector needs a C compiler (%s); %s", strings.Join(compilers, " or "), compilerHint)
}

// unmet returns the requirements that are missing and, if there are any, one error that tells them all.
func unmet(needed []requirement) ([]requirement, error) {
	var missing []requirement
	var text strings.Builder
	for _, r := range needed {
		if err := r.check(); err != nil {
			missing = append(missing, r)
			text.WriteString("\n\n" + err.Error())
		}
	}
	if len(missing) == 0 {
		return nil, nil
	}
	return missing, fmt.Errorf("%w, something is missing:%s", errUnable, text.String())
}

func packagesOf(missing []requirement) []string {
	var packages []string
	for _, r := range missing {
		packages = append(packages, r.packages...)
	}
	return packages
}
