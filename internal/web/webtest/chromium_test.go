package webtest

import (
	"errors"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFindChromium(t *testing.T) {
	t.Parallel()
	only := func(installed string) func(string) (string, error) {
		return func(name string) (string, error) {
			if name == installed {
				return "/bin/" + name, nil
			}
			return "", exec.ErrNotFound
		}
	}
	path, err := findChromium("", only("google-chrome"))
	require.NoError(t, err)
	require.Equal(t, "/bin/google-chrome", path)
	path, err = findChromium("mine", only("mine"))
	require.NoError(t, err)
	require.Equal(t, "/bin/mine", path)
	_, err = findChromium("missing", only("chromium"))
	require.True(t, errors.Is(err, exec.ErrNotFound), "a browser that is named must be there")
	_, err = findChromium("", only(""))
	require.ErrorIs(t, err, ErrNoChromium)
	require.ErrorContains(t, err, "apt-get install chromium")
}
