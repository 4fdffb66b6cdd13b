// Command fakeprovider runs the fake OpenAI-compatible server of package providertest as a process of its own, for tests
// that kill and restart what talks to it. It prints its base URL when it listens. The model's name says how it behaves;
// GET /log returns every request, POST /release lets held ones go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/docket-gateway/docket/providers/providertest"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "loopback address to listen on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *listen); err != nil {
		fmt.Fprintln(os.Stderr, "fakeprovider:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, listen string) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	defer l.Close()
	if a, ok := l.Addr().(*net.TCPAddr); !ok || !a.IP.IsLoopback() {
		return fmt.Errorf("%s is not a loopback address", listen)
	}
	s := providertest.NewServer()
	h := &http.Server{ReadHeaderTimeout: 10 * time.Second}
	s.Configure(h)
	served := make(chan error, 1)
	go func() { served <- h.Serve(l) }()
	fmt.Printf("http://%s/v1\n", l.Addr())
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	s.Close()
	if err := h.Close(); err != nil {
		return err
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
