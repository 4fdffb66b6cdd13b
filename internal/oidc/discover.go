package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/docket-gateway/docket/internal/loopback"
)

// maxDocument bounds what is read of an answer, in bytes.
const maxDocument = 1 << 20

// ErrInsecure is that of an address that is neither https nor on loopback.
var ErrInsecure = errors.New("must be https except on loopback")

// discover reads where the issuer's keys are from its OpenID Connect discovery document.
func discover(ctx context.Context, client *http.Client, issuer string) (jwksURL string, err error) {
	address := strings.TrimSuffix(issuer, "/") + "/.well-known/openid-configuration"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", fmt.Errorf("discover %s: %w", issuer, err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", fmt.Errorf("discover %s: %w", issuer, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("discover %s: the status is %d", issuer, resp.StatusCode)
	}
	var document struct {
		Issuer  string `json:"issuer"`
		JWKSURI string `json:"jwks_uri"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&document); err != nil {
		return "", fmt.Errorf("discover %s: %w", issuer, err)
	}
	if document.Issuer != issuer {
		return "", fmt.Errorf("discover %s: the document is that of the issuer %q", issuer, document.Issuer)
	}
	if err := secure(document.JWKSURI); err != nil {
		return "", fmt.Errorf("discover %s: jwks_uri %w", issuer, err)
	}
	return document.JWKSURI, nil
}

// secure wants https, or http on this machine.
func secure(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return errors.New("is not a URL")
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !loopback.Host(u.Host)) {
		return ErrInsecure
	}
	return nil
}

// newClient asks directly, follows nothing and reads no more than a document can have.
func newClient(timeout time.Duration) *http.Client {
	return &http.Client{
		Timeout: timeout,
		// An answer from somewhere else would be somebody else's.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: bounded{&http.Transport{
			DialContext:         (&net.Dialer{Timeout: timeout}).DialContext,
			TLSHandshakeTimeout: timeout, ResponseHeaderTimeout: timeout,
			DisableKeepAlives: true, // minutes lie between two requests
			ForceAttemptHTTP2: true,
		}},
	}
}

// bounded cuts answers off that are too long.
type bounded struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(r)
	if err == nil {
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxDocument)
	}
	return resp, err
}
