package campaign

import (
	"context"
	"net"
	"net/http/httptest"
	"testing"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	toxic "github.com/Shopify/toxiproxy/v2/client"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

// wires are the proxies that connections go through.
type wires struct {
	client *toxic.Client
}

func startWires(t *testing.T) *wires {
	t.Helper()
	s := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop())
	api := httptest.NewServer(s.Routes())
	t.Cleanup(api.Close)
	w := &wires{client: toxic.NewClient(api.URL)}
	t.Cleanup(func() {
		proxies, err := w.client.Proxies()
		require.NoError(t, err)
		for _, p := range proxies {
			require.NoError(t, p.Delete())
		}
	})
	return w
}

// wire is one proxy. Its address stays the same while it is cut.
type wire struct{ proxy *toxic.Proxy }

func (w *wires) lay(t *testing.T, name, to string) *wire {
	t.Helper()
	// A port of its own from the start: a proxy that is enabled again listens where it did.
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close())
	p, err := w.client.CreateProxy(name, addr, to)
	require.NoError(t, err)
	return &wire{proxy: p}
}

func (w *wire) addr() string { return w.proxy.Listen }

// afflict puts a toxic on, waits for the signal and takes it off.
func (w *wire) afflict(ctx context.Context, kind, stream string, attributes toxic.Attributes) error {
	added, err := w.proxy.AddToxic("", kind, stream, 1, attributes)
	if err != nil {
		return err
	}
	<-ctx.Done()
	return w.proxy.RemoveToxic(added.Name)
}

// cut drops all connections and refuses new ones until the signal.
func (w *wire) cut(ctx context.Context) error {
	if err := w.proxy.Disable(); err != nil {
		return err
	}
	<-ctx.Done()
	return w.proxy.Enable()
}
