package webhooks

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckURL(t *testing.T) {
	t.Parallel()
	public, err := New(Options{Secrets: []string{oldSecret}})
	require.NoError(t, err)
	private, err := New(Options{Secrets: []string{oldSecret}, AllowPrivate: true})
	require.NoError(t, err)
	for _, tc := range []struct {
		url         string
		refused     error // by default
		privateToo  error // with allow_private
		explanation string
	}{
		{url: "https://hooks.example.com/a?b=c"},
		{url: "https://hooks.example.com:443"},
		{url: "https://hooks.example.com:8443/"},
		{url: "https://93.184.216.34/"},
		{url: "https://[2606:2800:220:1::1]/"},
		{url: "https://" + strings.Repeat("a", maxURL-len("https://")), explanation: "the longest"},
		{url: "https://" + strings.Repeat("a", maxURL), refused: errTooLong, privateToo: errTooLong},
		{url: "", refused: errNoURL, privateToo: errNoURL},
		{url: "/hook", refused: errNoURL, privateToo: errNoURL},
		{url: "hooks.example.com", refused: errNoURL, privateToo: errNoURL},
		{url: "https:hooks.example.com", refused: errNoURL, privateToo: errNoURL},
		{url: "https://", refused: errNoURL, privateToo: errNoURL},
		{url: "https://:443/", refused: errNoURL, privateToo: errNoURL},
		{url: "https://exa mple.com/", refused: errNoURL, privateToo: errNoURL},
		{url: "https://example.com/\r\nX: y", refused: errNoURL, privateToo: errNoURL},
		{url: "javascript:alert(1)", refused: errNoURL, privateToo: errNoURL},
		{url: "file:///etc/passwd", refused: errNoURL, privateToo: errNoURL},
		{url: "gopher://example.com/", refused: errNoURL, privateToo: errNoURL},
		{url: "http://hooks.example.com/", refused: errNoURL},
		{url: "https://user@example.com/", refused: errUserInfo, privateToo: errUserInfo},
		{url: "https://user:password@example.com/", refused: errUserInfo, privateToo: errUserInfo},
		{url: "https://example.com@10.0.0.1/", refused: errUserInfo, privateToo: errUserInfo},
		{url: "https://example.com/#a", refused: errFragment, privateToo: errFragment},
		{url: "https://example.com/#", refused: errFragment, privateToo: errFragment},
		{url: "https://example.com:22/", refused: errPort},
		{url: "https://example.com:25/", refused: errPort},
		{url: "https://example.com:0/", refused: errPort, privateToo: errPort},
		{url: "https://example.com:65536/", refused: errPort, privateToo: errPort},
		{url: "https://localhost/", refused: errPrivate},
		{url: "https://LOCALHOST./", refused: errPrivate},
		{url: "https://a.localhost/", refused: errPrivate},
		{url: "https://127.0.0.1/", refused: errPrivate},
		{url: "https://127.0.0.1.:8443/", refused: errPrivate},
		{url: "https://0.0.0.0/", refused: errPrivate},
		{url: "https://10.1.2.3/", refused: errPrivate},
		{url: "https://172.16.0.1/", refused: errPrivate},
		{url: "https://192.168.1.1/", refused: errPrivate},
		{url: "https://100.64.0.1/", refused: errPrivate, explanation: "carrier-grade NAT"},
		{url: "https://169.254.169.254/latest/meta-data/", refused: errPrivate},
		{url: "https://224.0.0.1/", refused: errPrivate},
		{url: "https://255.255.255.255/", refused: errPrivate},
		{url: "https://[::1]/", refused: errPrivate},
		{url: "https://[::]/", refused: errPrivate},
		{url: "https://[fc00::1]/", refused: errPrivate},
		{url: "https://[fe80::1%25eth0]/", refused: errPrivate},
		{url: "https://[ff02::1]/", refused: errPrivate},
		{url: "https://[::ffff:127.0.0.1]/", refused: errPrivate},
		{url: "https://[::127.0.0.1]/", refused: errPrivate},
		{url: "https://[64:ff9b::7f00:1]/", refused: errPrivate, explanation: "NAT64"},
		{url: "https://[64:ff9b:1::7f00:1]/", refused: errPrivate, explanation: "local NAT64"},
		{url: "https://[2002:7f00:1::]/", refused: errPrivate, explanation: "6to4"},
		{url: "https://[2001:0:7f00:1::]/", refused: errPrivate, explanation: "Teredo"},
	} {
		require.Equal(t, tc.refused, public.CheckURL(tc.url), "%s %s", tc.url, tc.explanation)
		require.Equal(t, tc.privateToo, private.CheckURL(tc.url), "%s %s", tc.url, tc.explanation)
	}
}

func TestCheckURLWithoutSecret(t *testing.T) {
	t.Parallel()
	s, err := New(Options{AllowPrivate: true})
	require.NoError(t, err)
	require.Equal(t, errNotConfigured, s.CheckURL("https://hooks.example.com/"))
}

func TestRefusesMalformedSecretsWithoutRepeatingThem(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{
		"", "hunter2", strings.TrimPrefix(oldSecret, secretPrefix), "whsec_hunter2!", "whsec_c2hvcnQ=",
		"whsec_" + strings.Repeat("QUFB", 22),
	} {
		_, err := New(Options{Secrets: []string{secret}})
		require.Error(t, err)
		require.NotContains(t, err.Error(), "hunter2")
		require.NotContains(t, err.Error(), "QUFB")
	}
}
