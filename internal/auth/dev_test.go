package auth

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/viewer"
)

func TestDevAccepts(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 255)
	for header, want := range map[string]viewer.Viewer{
		"":                                 {Issuer: "dev", Subject: "local", Operator: true},
		"Bearer dev:alice":                 {Issuer: "dev", Subject: "alice"},
		"Bearer dev:alice:operator":        {Issuer: "dev", Subject: "alice", Operator: true},
		"bearer dev:alice":                 {Issuer: "dev", Subject: "alice"},
		"Bearer dev:local":                 {Issuer: "dev", Subject: "local"},
		"Bearer dev:operator":              {Issuer: "dev", Subject: "operator"},
		"Bearer dev:Zoë van der Berg":      {Issuer: "dev", Subject: "Zoë van der Berg"},
		"Bearer dev:" + long:               {Issuer: "dev", Subject: long},
		"Bearer dev:" + long + ":operator": {Issuer: "dev", Subject: long, Operator: true},
	} {
		got, err := Dev{}.Authenticate(t.Context(), header)
		require.NoError(t, err, header)
		require.Equal(t, want, got.Viewer, header)
		require.Zero(t, got.Expires, header)
		require.False(t, got.Viewer.System())
	}
}

func TestDevRefusesWhatItDoesNotUnderstand(t *testing.T) {
	t.Parallel()
	for _, header := range []string{
		" ", "Bearer", "Bearer ", "Bearer dev", "Bearer dev:", "Bearer dev::operator", "Bearer alice", "Bearer local",
		"dev:alice", "Basic dev:alice", "Bearer  dev:alice", "Bearer\tdev:alice", "Bearer Dev:alice", " Bearer dev:alice",
		"Bearer dev:alice:", "Bearer dev:alice:Operator", "Bearer dev:alice:operater", "Bearer dev:alice:operator:x", "Bearer dev:alice:admin",
		"Bearer dev:alice ", "Bearer dev: alice", "Bearer dev:al\x00ice", "Bearer dev:al\nice", "Bearer dev:al\x7fice",
		"Bearer dev:al\u202eice", "Bearer dev:al\u200bice", "Bearer dev:\xff", "Bearer dev:" + strings.Repeat("a", 256),
	} {
		got, err := Dev{}.Authenticate(t.Context(), header)
		require.ErrorIs(t, err, ErrUnauthenticated, "%.40q", header)
		require.Zero(t, got)
		require.NotContains(t, err.Error(), "alice", "an error never repeats credentials")
	}
}

func TestDevRefusesLongHeaderUnread(t *testing.T) {
	t.Parallel()
	_, err := Dev{}.Authenticate(t.Context(), "Bearer dev:"+strings.Repeat("a", 1<<20))
	require.ErrorIs(t, err, ErrUnauthenticated)
	require.ErrorContains(t, err, "too long")
}
