// Package webtest drives Docket's page in a real Chromium that can reach no host but 127.0.0.1. It is for tests: of the page
// alone, and of the page before the whole server.
package webtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// envChromium names a browser that is not in the usual places.
const envChromium = "DOCKET_TEST_CHROMIUM"

// ErrNoChromium says what to install.
var ErrNoChromium = errors.New("no Chromium found: apt-get install chromium (Debian), dnf install chromium (Fedora), " +
	"brew install --cask chromium (macOS), or set " + envChromium + " to a Chrome or Chromium")

// FindChromium returns the path of an installed Chromium or Chrome: DOCKET_TEST_CHROMIUM, else the first one found.
func FindChromium() (string, error) { return findChromium(os.Getenv(envChromium), exec.LookPath) }

func findChromium(named string, look func(string) (string, error)) (string, error) {
	if named != "" {
		path, err := look(named)
		if err != nil {
			return "", fmt.Errorf("%s: %w", envChromium, err)
		}
		return path, nil
	}
	for _, name := range []string{
		"chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome",
		"/Applications/Chromium.app/Contents/MacOS/Chromium",
		"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
	} {
		if path, err := look(name); err == nil {
			return path, nil
		}
	}
	return "", ErrNoChromium
}
