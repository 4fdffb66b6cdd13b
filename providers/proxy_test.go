package providers_test

import (
	"context"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/tokenizer"
)

// proxied counts the connections to the proxy that the environment names. net/http reads it once in a process.
var proxied = make(chan struct{}, 100)

func TestMain(m *testing.M) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			proxied <- struct{}{}
			_ = c.Close()
		}
	}()
	for _, name := range []string{"HTTPS_PROXY", "https_proxy"} {
		if err := os.Setenv(name, "http://"+l.Addr().String()); err != nil {
			panic(err)
		}
	}
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		if err := os.Unsetenv(name); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// TestCountsThroughAProxyOnlyIfItIsToldTo: a provider's counting endpoint gets its key, as its other endpoints do, so the
// same setting says which way it goes.
func TestCountsThroughAProxyOnlyIfItIsToldTo(t *testing.T) {
	t.Parallel()
	count := func(follow bool) {
		c := valid()
		c.BaseURL, c.ProxyFromEnvironment = "https://192.0.2.1/v1", follow // an address that is nobody's
		c.TotalTimeout, c.AckTimeout, c.IdleTimeout = 200*time.Millisecond, 200*time.Millisecond, 200*time.Millisecond
		if follow {
			c.TotalTimeout = time.Minute
		}
		c.Models = c.Models[1:]
		c.Models[0].Tokenizer = "anthropic"
		r, err := providers.NewRegistry([]providers.Config{c}, factories("1"))
		require.NoError(t, err)
		target, ok := r.Lookup("openrouter/small")
		require.True(t, ok)
		_, err = target.Tokenizer.Count(t.Context(), tokenizer.Prompt{User: "a"})
		require.Error(t, err)
	}
	count(false)
	require.Empty(t, proxied, "HTTPS_PROXY is ignored otherwise")
	count(true)
	require.NotEmpty(t, proxied)
}
