// Package loopback tells whether a host is this machine.
//
// It imports nothing of this module, and providers may import it.
package loopback

import (
	"net"
	"net/netip"
	"strings"
)

// Host reports whether a host, with a port or without, as in a URL's Host, surely is this machine: localhost or a loopback address.
// Other names are not resolved, since what they resolve to may change.
func Host(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	} else {
		host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}
