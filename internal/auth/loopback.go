package auth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"
)

// ErrNotLoopback is wrapped when dev mode is asked to listen where others could reach it.
var ErrNotLoopback = errors.New("auth.mode dev listens on loopback addresses only")

// RequireLoopback refuses every listen address that is not surely loopback: an empty host and unspecified addresses mean
// all interfaces, and names other than localhost may resolve to anything, later even if not now. localhost is resolved,
// within 5 seconds, because a hosts file may point it elsewhere.
func RequireLoopback(ctx context.Context, listen string) error {
	return requireLoopback(ctx, listen, net.DefaultResolver.LookupNetIP)
}

// RequireLoopbackListener is the same check on what was really opened, against a name that changed in between.
func RequireLoopbackListener(l net.Listener) error {
	tcp, ok := l.Addr().(*net.TCPAddr)
	if !ok || !tcp.AddrPort().Addr().Unmap().IsLoopback() {
		return fmt.Errorf("%w, not on %s", ErrNotLoopback, l.Addr())
	}
	return nil
}

type lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)

func requireLoopback(ctx context.Context, listen string, resolve lookup) error {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotLoopback, err)
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		if !ip.Unmap().IsLoopback() {
			return fmt.Errorf("%w, not on %s", ErrNotLoopback, listen)
		}
		return nil
	}
	if !strings.EqualFold(host, "localhost") {
		return fmt.Errorf("%w: use 127.0.0.1, [::1] or localhost, not %q", ErrNotLoopback, listen)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	ips, err := resolve(ctx, "ip", host)
	if err != nil {
		return fmt.Errorf("%w: resolve localhost: %w", ErrNotLoopback, err)
	}
	for _, ip := range ips {
		if !ip.Unmap().IsLoopback() {
			return fmt.Errorf("%w: localhost resolves to %s here", ErrNotLoopback, ip)
		}
	}
	if len(ips) == 0 {
		return fmt.Errorf("%w: localhost resolves to nothing", ErrNotLoopback)
	}
	return nil
}
