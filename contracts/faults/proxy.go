package faults

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/providers"
)

// proxy listens on loopback. The first part of a request's path says which fault it is for.
type proxy struct {
	listener net.Listener
	server   *http.Server
	served   sync.WaitGroup

	mu    sync.Mutex
	count map[string]int    // requests by aspect
	odd   map[string]string // what came instead of an answer to cut off
}

// maxRequest bounds what is read of a request.
const maxRequest = 1 << 20

type proxyKey struct{}

func listen(ctx context.Context, list []fault) (*proxy, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the faults: %w", err)
	}
	p := &proxy{listener: l, count: map[string]int{}, odd: map[string]string{}}
	mux := http.NewServeMux()
	for _, f := range list {
		mux.HandleFunc("/"+f.aspect+"/", func(w http.ResponseWriter, r *http.Request) {
			// The request is read to its end before anything goes wrong, since that is what makes the difference.
			body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
			if err != nil {
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			p.mu.Lock()
			p.count[f.aspect]++
			p.mu.Unlock()
			f.handler(w, r.WithContext(context.WithValue(r.Context(), proxyKey{}, p)))
		})
	}
	p.server = &http.Server{Handler: mux, ReadHeaderTimeout: long, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) }}
	p.served.Go(func() { _ = p.server.Serve(l) })
	return p, nil
}

func (p *proxy) close() {
	_ = p.server.Close()
	p.served.Wait()
}

// address is the base URL that stands for the provider's in the fault. What the provider's path ends with is kept, since adapters
// look at it.
func (p *proxy) address(aspect, baseURL string) (string, error) {
	u, err := url.Parse(baseURL)
	if err != nil {
		return "", fmt.Errorf("the base URL: %w", err)
	}
	return "http://" + p.listener.Addr().String() + "/" + aspect + u.EscapedPath(), nil
}

// reached says whether a request came. One that is under way when its sender gives up may be a little late.
func (p *proxy) reached(ctx context.Context, aspect string) bool {
	bound, cancel := context.WithTimeout(ctx, short)
	defer cancel()
	ticker := time.NewTicker(short / 50)
	defer ticker.Stop()
	for p.requests(aspect) == 0 {
		select {
		case <-bound.Done():
			return false
		case <-ticker.C:
		}
	}
	return true
}

func (p *proxy) requests(aspect string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count[aspect]
}

// unfit says what came instead of an answer that could be cut off, if anything.
func (p *proxy) unfit(aspect string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.odd[aspect]
}

func (p *proxy) setUnfit(aspect, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.odd[aspect] = what
}

// cutOff is an answer whose connection is lost in its middle: the provider's own, or where a run replays the beginning of one that
// its adapter knows.
func cutOff(w providers.WireFaults, c providers.Config, mode report.Mode) fault {
	f := fault{aspect: contracts.FaultCutOff, what: "a connection that is lost in the middle of the answer",
		want: verdict{kind: providers.Unknown, code: providers.CodeConnectionLost}}
	f.handler = beginsThen(w.Begun, breaksOff)
	if upstream, err := url.Parse(c.BaseURL); err == nil && mode != report.Replay {
		f.handler = passesHalf(upstream, c.ProxyFromEnvironment)
	}
	return f
}

// passesHalf passes the request on, and half of the first bytes of the answer.
func passesHalf(upstream *url.URL, proxied bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p, _ := r.Context().Value(proxyKey{}).(*proxy)
		transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true, ResponseHeaderTimeout: long, TLSHandshakeTimeout: long}
		if proxied {
			transport.Proxy = http.ProxyFromEnvironment
		}
		passing := &httputil.ReverseProxy{
			Transport: transport, FlushInterval: -1, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
			Rewrite: func(pr *httputil.ProxyRequest) {
				pr.Out.URL.Scheme, pr.Out.URL.Host, pr.Out.Host = upstream.Scheme, upstream.Host, upstream.Host
				pr.Out.URL.Path = strings.TrimPrefix(pr.In.URL.Path, "/"+contracts.FaultCutOff)
				pr.Out.URL.RawPath = strings.TrimPrefix(pr.In.URL.RawPath, "/"+contracts.FaultCutOff)
			},
			ModifyResponse: func(resp *http.Response) error {
				if resp.StatusCode != http.StatusOK {
					p.setUnfit(contracts.FaultCutOff, fmt.Sprintf("the provider's status %d", resp.StatusCode))
				}
				resp.Body = &half{ReadCloser: resp.Body}
				return nil
			},
			ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
				p.setUnfit(contracts.FaultCutOff, "no answer from the provider")
				w.WriteHeader(http.StatusBadGateway)
			},
		}
		passing.ServeHTTP(w, r)
	}
}

// half lets half of what it reads first through, and breaks off.
type half struct {
	io.ReadCloser

	cut bool
}

func (h *half) Read(b []byte) (int, error) {
	if h.cut {
		return 0, io.ErrUnexpectedEOF
	}
	h.cut = true
	n, err := h.ReadCloser.Read(b)
	if n == 0 && err != nil {
		return 0, io.ErrUnexpectedEOF
	}
	return (n + 1) / 2, nil
}
