package pgtest

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// ErrNotInstalled is returned, wrapped with what to install, if PostgreSQL's server programs are not found.
var ErrNotInstalled = errors.New("PostgreSQL's server programs (initdb, postgres) are not installed")

const installHint = `install version 13 or newer:
  Debian, Ubuntu:  apt-get install postgresql
  Fedora, RHEL:    dnf install postgresql-server
  Alpine:          apk add postgresql
  Arch:            pacman -S postgresql
  macOS:           brew install postgresql, or Postgres.app
or set ` + EnvAdminDSN + ` to the address of a running server whose user may create databases`

// places are where packages put the programs when they are not in PATH. Of those that match, the newest version is used.
func places() []string {
	return []string{
		"/usr/lib/postgresql/*/bin",                          // Debian, Ubuntu
		"/usr/pgsql-*/bin",                                   // PostgreSQL's own packages for RHEL
		"/usr/libexec/postgresql*",                           // Alpine
		"/opt/homebrew/opt/postgresql*/bin",                  // Homebrew on Apple silicon
		"/usr/local/opt/postgresql*/bin",                     // Homebrew on Intel
		"/home/linuxbrew/.linuxbrew/opt/postgresql*/bin",     // Homebrew on Linux
		"/Applications/Postgres.app/Contents/Versions/*/bin", // Postgres.app
		"/usr/local/pgsql/bin",                               // built from source
		"/opt/local/lib/postgresql*/bin",                     // MacPorts
	}
}

// FindBinaries returns the folder of PostgreSQL's server programs. The error wraps ErrNotInstalled and says what to
// install.
func FindBinaries() (string, error) {
	return findBinaries(exec.LookPath, places())
}

func findBinaries(lookPath func(string) (string, error), places []string) (string, error) {
	if initdb, err := lookPath("initdb"); err == nil {
		// A link in PATH may stand alone; the programs find each other from the real folder.
		if program, err := filepath.EvalSymlinks(initdb); err == nil && complete(filepath.Dir(program)) {
			return filepath.Dir(program), nil
		}
	}
	best, bestVersion := "", -1
	for _, place := range places {
		folders, err := filepath.Glob(place)
		if err != nil {
			return "", fmt.Errorf("look for PostgreSQL in %s: %w", place, err)
		}
		for _, folder := range folders {
			if version := versionIn(folder); version > bestVersion && complete(folder) {
				best, bestVersion = folder, version
			}
		}
	}
	if best == "" {
		return "", fmt.Errorf("%w; %s", ErrNotInstalled, installHint)
	}
	return best, nil
}

func complete(folder string) bool {
	return !slices.ContainsFunc([]string{"initdb", "postgres"}, func(program string) bool {
		_, err := exec.LookPath(filepath.Join(folder, program))
		return err != nil
	})
}

var digits = regexp.MustCompile(`\d+`)

// versionIn is the last number in a folder's path, 0 if there is none.
func versionIn(folder string) int {
	numbers := digits.FindAllString(folder, -1)
	if len(numbers) == 0 {
		return 0
	}
	version, err := strconv.Atoi(numbers[len(numbers)-1])
	if err != nil {
		return 0
	}
	return version
}
