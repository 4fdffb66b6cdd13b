package config

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/docket-gateway/docket/internal/loopback"
)

func (l *loader) limits(c Limits) {
	l.size("limits.body", c.Body, 1<<10, 64<<20)
	l.duration("limits.body_timeout", c.BodyTimeout, time.Second, 10*time.Minute)
	l.number("limits.depth", c.Depth, 1, 1000)
	l.size("limits.input", c.Input, 1, c.Body)
	l.number("limits.parser_tokens", c.ParserTokens, 100, 1_000_000)
	l.number("limits.aliases", c.Aliases, 1, 10_000)
	l.number("limits.complexity", c.Complexity, 1, 1_000_000)
	l.number("limits.operations_per_socket", c.OperationsPerSocket, 1, 10_000)
	l.number("limits.sockets_per_owner", c.SocketsPerOwner, 0, 1_000_000)
	if c.SocketLifetime != 0 {
		l.duration("limits.socket_lifetime", c.SocketLifetime, time.Second, 30*day)
	}
	l.number("limits.requests_per_minute", c.RequestsPerMinute, 0, 1_000_000)
	l.number("limits.burst", c.Burst, 1, 1_000_000)
	l.number("limits.open_jobs_per_owner", c.OpenJobsPerOwner, 0, 1_000_000)
}

func (l *loader) allowedOrigins(list []string) {
	for i, o := range list {
		path := fmt.Sprintf("allowed_origins[%d]", i)
		if slices.Contains(list[:i], o) {
			l.problem(path, "is named twice")
			continue
		}
		if rule := badOrigin(o); rule != "" {
			l.problem(path, "%s", rule)
		}
	}
}

// badOrigin says what is wrong with an origin. Browsers send them in one form only, and they are compared byte for byte.
func badOrigin(o string) string {
	u, err := url.Parse(o)
	switch {
	case strings.Contains(o, "*"):
		return "must be one exact origin, without wildcards"
	case err != nil || u.Scheme == "" || u.Hostname() == "" || u.Opaque != "":
		return "must be an origin such as https://app.example.com"
	case u.User != nil || u.Path != "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.HasSuffix(o, "#"):
		return "must hold no user, path, query or fragment, nor a / at its end"
	case u.Scheme != "https" && (u.Scheme != "http" || !loopback.Host(u.Host)):
		return "must be https except on loopback"
	case o != strings.ToLower(o) || strings.ContainsFunc(o, func(r rune) bool { return r > '~' }):
		return "must be in lower case, and its host in ASCII (xn--...), as browsers send it"
	case strings.HasSuffix(u.Host, ":") || u.Scheme == "https" && u.Port() == "443" || u.Scheme == "http" && u.Port() == "80":
		return "must leave out the scheme's own port, as browsers do"
	}
	return ""
}
