package auth

import (
	"fmt"
	"net/http"

	"github.com/rs/cors"
)

// preflightAge is how long a browser may remember an answer, in seconds: two hours are the most that Chromium does.
const preflightAge = 2 * 60 * 60

// Allow lets pages of these origins, such as https://app.example.com, past the guard. Call it before the guard serves.
func (g *Guard) Allow(origins ...string) error {
	for _, o := range origins {
		if err := g.origin.AddTrustedOrigin(o); err != nil {
			return fmt.Errorf("allow an origin: %w", err)
		}
	}
	return nil
}

// CORS tells browsers that pages of these exact origins may read what next answers. It stands before the guard, so that they
// can read its refusals too, and because a preflight has no credentials. Cookies are no part of it: who a client is stands in
// its Authorization header. Without origins it is next.
func CORS(origins []string, next http.Handler) http.Handler {
	if len(origins) == 0 {
		return next
	}
	return cors.New(cors.Options{
		AllowedOrigins: origins,
		AllowedMethods: []string{http.MethodGet, http.MethodPost},
		AllowedHeaders: []string{"Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID", "traceparent"},
		ExposedHeaders: []string{"Retry-After", "WWW-Authenticate"},
		MaxAge:         preflightAge,
	}).Handler(next)
}
