package npm

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// ErrNotInstalled is returned, wrapped with what to install, if Node.js or npm is missing.
var ErrNotInstalled = errors.New("Node.js and npm are needed")

// minNode is the oldest major version that the tests' programs run on.
const minNode = 20

var installHint = fmt.Sprintf(`install Node.js %d or newer with npm:
  Debian 13, Ubuntu 25.04:  apt-get install nodejs npm
  Fedora:                   dnf install nodejs npm
  Alpine:                   not possible, llama.cpp of the model server is built for glibc
  Arch:                     pacman -S nodejs npm
  macOS:                    brew install node
  elsewhere:                nodejs.org has packages`, minNode)

// Find looks for Node.js and npm. The error wraps ErrNotInstalled and says what to install.
func Find(ctx context.Context) (node, npm string, err error) {
	return findNode(exec.LookPath, func(path string) (string, error) {
		out, err := exec.CommandContext(ctx, path, "--version").Output()
		return string(out), err
	})
}

func findNode(lookPath func(string) (string, error), version func(path string) (string, error)) (node, npm string, err error) {
	missing := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s; %s", ErrNotInstalled, fmt.Sprintf(format, args...), installHint)
	}
	if node, err = lookPath("node"); err != nil {
		return "", "", missing("there is no node")
	}
	told, err := version(node)
	if err != nil {
		return "", "", missing("%s --version: %v", node, err)
	}
	told = strings.TrimSpace(told)
	if major, ok := majorVersion(told); !ok || major < minNode {
		return "", "", missing("%s is %s", node, told)
	}
	if npm, err = lookPath("npm"); err != nil {
		return "", "", missing("there is no npm")
	}
	return node, npm, nil
}

var nodeVersion = regexp.MustCompile(`^v([0-9]+)\.`)

func majorVersion(told string) (int, bool) {
	m := nodeVersion.FindStringSubmatch(told)
	if m == nil {
		return 0, false
	}
	n, err := strconv.Atoi(m[1])
	return n, err == nil
}
