package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// govulncheck fails on findings. Without its database it says that it did not run, which is not a pass: the next run
// that reaches it tells.
func (c *checker) govulncheck(ctx context.Context) error {
	var said strings.Builder
	both := &checker{stdout: io.MultiWriter(c.stdout, &said), stderr: &said}
	err := both.exec(ctx, nil, "go", tool("govulncheck", "./...")...)
	if databaseNotReached(err, said.String()) {
		return fmt.Errorf("%w (database not reached)", errNotRun)
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, said.String())
	}
	return nil
}

// databaseNotReached tells a missing network from findings and from every other failure.
func databaseNotReached(err error, said string) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && strings.Contains(said, "govulncheck: fetching vulnerabilities: ")
}
