package auth

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func resolvesTo(ips ...string) lookup {
	return func(context.Context, string, string) ([]netip.Addr, error) {
		addrs := make([]netip.Addr, 0, len(ips))
		for _, ip := range ips {
			addrs = append(addrs, netip.MustParseAddr(ip))
		}
		return addrs, nil
	}
}

func TestRequireLoopbackAccepts(t *testing.T) {
	t.Parallel()
	for _, listen := range []string{"127.0.0.1:8080", "127.0.0.1:0", "127.8.9.1:1", "[::1]:8080", "[::ffff:127.0.0.1]:1", "localhost:8080", "LOCALHOST:1"} {
		require.NoError(t, requireLoopback(t.Context(), listen, resolvesTo("127.0.0.1", "::1")), listen)
	}
}

func TestRequireLoopbackRefuses(t *testing.T) {
	t.Parallel()
	for _, listen := range []string{
		"", ":8080", "0.0.0.0:8080", "[::]:8080", "[::ffff:0.0.0.0]:1", "192.168.1.5:8080", "10.0.0.1:1", "[fe80::1]:1", "128.0.0.1:1",
		"localhost", "127.0.0.1", "docket.example:8080", "localhost.example:8080", "localhost.:8080", "127.1:80", "2130706433:80", "127.0.0.1.nip.io:80",
	} {
		// Even if the name resolves to loopback now.
		require.ErrorIs(t, requireLoopback(t.Context(), listen, resolvesTo("127.0.0.1")), ErrNotLoopback, listen)
	}
}

func TestRequireLoopbackRefusesLocalhostThatPointsElsewhere(t *testing.T) {
	t.Parallel()
	require.ErrorIs(t, requireLoopback(t.Context(), "localhost:1", resolvesTo("127.0.0.1", "203.0.113.5")), ErrNotLoopback)
	require.ErrorIs(t, requireLoopback(t.Context(), "localhost:1", resolvesTo()), ErrNotLoopback)
	failing := func(context.Context, string, string) ([]netip.Addr, error) { return nil, errors.New("no resolver") }
	require.ErrorIs(t, requireLoopback(t.Context(), "localhost:1", failing), ErrNotLoopback)
}

func TestRequireLoopbackListenerLooksAtWhatWasOpened(t *testing.T) {
	t.Parallel()
	for address, ok := range map[string]bool{"127.0.0.1:0": true, "0.0.0.0:0": false} {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, l.Close()) })
		if ok {
			require.NoError(t, RequireLoopbackListener(l))
		} else {
			require.ErrorIs(t, RequireLoopbackListener(l), ErrNotLoopback)
		}
	}
}
