package npm

import (
	"errors"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFindNode(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name      string
		installed []string
		version   string
		wantErr   string
	}{
		{name: "TakesTheOldestThatWillDo", installed: []string{"node", "npm"}, version: "v20.0.0\n"},
		{name: "TakesNewerOnes", installed: []string{"node", "npm"}, version: "v100.1.2\n"},
		{name: "NeedsNode", installed: []string{"npm"}, wantErr: "there is no node"},
		{name: "NeedsNpm", installed: []string{"node"}, version: "v20.0.0\n", wantErr: "there is no npm"},
		{name: "RefusesAnOlderNode", installed: []string{"node", "npm"}, version: "v18.20.4\n", wantErr: "/bin/node is v18.20.4"},
		{name: "RefusesWhatIsNotNode", installed: []string{"node", "npm"}, version: "axsh 1.0\n", wantErr: "/bin/node is axsh 1.0"},
		{name: "RefusesWhatDoesNotRun", installed: []string{"node", "npm"}, wantErr: "/bin/node --version: broken"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			node, npm, err := findNode(func(program string) (string, error) {
				for _, p := range row.installed {
					if p == program {
						return "/bin/" + program, nil
					}
				}
				return "", exec.ErrNotFound
			}, func(string) (string, error) {
				if row.version == "" {
					return "", errors.New("broken")
				}
				return row.version, nil
			})
			if row.wantErr == "" {
				require.NoError(t, err)
				require.Equal(t, []string{"/bin/node", "/bin/npm"}, []string{node, npm})
				return
			}
			require.ErrorIs(t, err, ErrNotInstalled)
			require.ErrorContains(t, err, row.wantErr)
			require.ErrorContains(t, err, "apt-get install nodejs npm")
		})
	}
}
