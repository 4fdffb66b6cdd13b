package loopback_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/loopback"
)

func TestHost(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"127.0.0.1": true, "127.0.0.1:8080": true, "127.9.9.9": true, "localhost": true, "LocalHost:8080": true, "localhost:": true,
		"[::1]": true, "[::1]:8080": true, "::1": true, "[::ffff:127.0.0.1]:8080": true,
		"": false, ":8080": false, "evil.example": false, "evil.example:8080": false, "localhost.evil.example": false,
		"127.0.0.1.evil.example": false, "192.168.0.1": false, "0.0.0.0:8080": false, "[::]": false, "127.0.0.1@evil.example": false,
		"localhost:8080:9": false, "127.0.0.1:8080:9": false, "[localhost:8080]": false, "[127.0.0.1:8080]:9": false, "127.1": false,
		"printer.localhost": false,
	} {
		require.Equal(t, want, loopback.Host(host), host)
	}
}
