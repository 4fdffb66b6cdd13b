//go:build unix && !solaris && !illumos && !aix

package pgtest

import (
	"os/user"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUnprivileged(t *testing.T) {
	t.Parallel()
	users := map[string]*user.User{
		"postgres": {Uid: "101", Gid: "104"},
		"nobody":   {Uid: "65534", Gid: "65533"},
		"root":     {Uid: "0", Gid: "0"},
	}
	lookup := func(name string) (*user.User, error) {
		if found, ok := users[name]; ok {
			return found, nil
		}
		return nil, user.UnknownUserError(name)
	}
	for _, row := range []struct{ names, want string }{
		{"postgres nobody", "postgres"},
		{"absent nobody", "nobody"},
		{"root nobody", "nobody"},
	} {
		t.Run(row.names, func(t *testing.T) {
			t.Parallel()
			got, err := unprivileged(lookup, strings.Fields(row.names)...)
			require.NoError(t, err)
			require.Equal(t, row.want, got.name)
		})
	}
	t.Run("nobody at all", func(t *testing.T) {
		t.Parallel()
		_, err := unprivileged(lookup, "absent", "root")
		require.ErrorContains(t, err, "add one of absent, root")
	})
}
