// Package chromium finds an installed Chromium for the tests that need a browser.
//
// It imports nothing of this module and is imported by tests and by internal/check only.
package chromium

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// EnvPath names the environment variable that holds the path of the browser's program and counts more than any other
// place.
const EnvPath = "DOCKET_TEST_CHROMIUM"

// ErrNotInstalled is returned, wrapped with what to install, if no browser is found.
var ErrNotInstalled = errors.New("Chromium is not installed")

const installHint = `install it:
  Debian:          apt-get install chromium
  Ubuntu:          snap install chromium, or Google Chrome's own package
  Fedora:          dnf install chromium
  Alpine:          apk add chromium
  Arch:            pacman -S chromium
  macOS:           brew install --cask chromium, or Google Chrome
or set ` + EnvPath + ` to the path of a Chromium or Google Chrome`

// Find returns the path of a Chromium or Google Chrome. The error wraps ErrNotInstalled and says what to install.
func Find() (string, error) {
	return find(os.Getenv(EnvPath), exec.LookPath)
}

func find(chosen string, lookPath func(string) (string, error)) (string, error) {
	if chosen != "" {
		path, err := lookPath(chosen)
		if err != nil {
			return "", fmt.Errorf("%s: %w", EnvPath, err)
		}
		return path, nil
	}
	for _, program := range []string{
		"chromium",
		"chromium-browser",
		"google-chrome",
		"google-chrome-stable",
		"/Applications/Chromium.app/Contents/MacOS/Chromium",
		"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
	} {
		if path, err := lookPath(program); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w; %s", ErrNotInstalled, installHint)
}
