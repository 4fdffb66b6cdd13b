package balancer

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFind(t *testing.T) {
	t.Parallel()
	having := func(path string) func(string) (string, error) {
		return func(name string) (string, error) {
			if name == path {
				return path, nil
			}
			return "", exec.ErrNotFound
		}
	}
	got, err := find("nginx", having("/usr/sbin/nginx"))
	require.NoError(t, err, "a user's PATH seldom has sbin")
	require.Equal(t, "/usr/sbin/nginx", got)
	_, err = find("haproxy", having(""))
	require.ErrorIs(t, err, ErrNotInstalled)
	require.ErrorContains(t, err, "apt-get install haproxy")
}
