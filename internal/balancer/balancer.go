// Package balancer finds an installed nginx and HAProxy, behind which its tests put replicas of Docket with the
// configurations that are in deploy.
//
// It imports nothing of this module and is imported by tests and by internal/check only.
package balancer

import (
	"errors"
	"fmt"
	"os/exec"
)

// ErrNotInstalled is returned, wrapped with what to install, if a program is not found.
var ErrNotInstalled = errors.New("is not installed")

const installHint = `install it:
  Debian, Ubuntu:  apt-get install %[1]s
  Fedora, RHEL:    dnf install %[1]s
  Alpine:          apk add %[1]s
  Arch:            pacman -S %[1]s
  macOS:           brew install %[1]s`

// FindNginx returns the path of nginx.
func FindNginx() (string, error) { return find("nginx", exec.LookPath) }

// FindHAProxy returns the path of HAProxy.
func FindHAProxy() (string, error) { return find("haproxy", exec.LookPath) }

func find(name string, lookPath func(string) (string, error)) (string, error) {
	for _, place := range []string{name, "/usr/sbin/" + name, "/usr/local/sbin/" + name} { // often not in a user's PATH
		if path, err := lookPath(place); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s %w; %s", name, ErrNotInstalled, fmt.Sprintf(installHint, name))
}
