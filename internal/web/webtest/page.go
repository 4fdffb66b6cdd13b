// Package webtest drives Docket's page in a real Chromium that can reach no host but 127.0.0.1. It is for tests: of the page
// alone, and of the page before the whole server.
package webtest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/chromium"
)

// Deadline bounds a whole visit; one wait may take half of it. A cold Chromium takes seconds, on a busy machine many.
const Deadline = 3 * time.Minute

// Page is one visit in a browser of its own, closed when the test ends.
type Page struct {
	t    *testing.T
	ctx  context.Context // chromedp keeps the browser in it
	host string

	mu       sync.Mutex
	problems []string
	requests []string
}

// Open visits address, which must be on 127.0.0.1, in a fresh Chromium. It fails the test if there is no Chromium.
func Open(t *testing.T, address string) *Page {
	t.Helper()
	path, err := chromium.Find()
	require.NoError(t, err)
	u, err := url.Parse(address)
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1", u.Hostname(), "the browser reaches no other host")

	p := &Page{t: t, host: u.Host}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), Deadline) // cleanups still use the browser
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.Flag("headless", "new"),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"),
		chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.WindowSize(1400, 900),
	)...)
	t.Cleanup(cancel)
	p.ctx, cancel = chromedp.NewContext(ctx, chromedp.WithListener(p.observe))
	// Before the browser goes: what it showed last.
	t.Cleanup(func() { p.screenshot(); cancel() })

	_, err = chromedp.Call(p.ctx, network.Enable, network.EnableParams{})
	require.NoError(t, err, "start %s", path)
	p.Do(chromedp.Navigate(address))
	return p
}

// Do runs actions and fails the test if one does not succeed before the deadline.
func (p *Page) Do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	p.require(chromedp.Do(p.ctx, actions...))
}

func (p *Page) require(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatalf("in the browser: %v\nit shows: %q\nproblems: %q\nrequests: %q", err, p.text("body"), p.Problems(), p.Requests())
	}
}

// Until evaluates a JavaScript expression until it is true, and fails the test at the deadline.
func (p *Page) Until(expression string) {
	p.t.Helper()
	_, err := chromedp.Run(p.ctx, chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(Deadline/2)))
	p.require(err)
}

// Text returns the visible text of the first element that the selector finds, empty if there is none.
func (p *Page) Text(selector string) string {
	p.t.Helper()
	return p.text(selector)
}

func (p *Page) text(selector string) string {
	text, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](fmt.Sprintf("document.querySelector(%s)?.innerText ?? ''", quote(selector))))
	if err != nil {
		return fmt.Sprintf("(not readable: %v)", err)
	}
	// The editor shows spaces as no-break spaces.
	return strings.ReplaceAll(text, "\u00a0", " ")
}

// Requests returns every URL that the page asked for so far.
func (p *Page) Requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.requests...)
}

// Problems returns what went wrong so far: requests to other hosts, failed requests, violations of the page's policy, errors on the
// console and exceptions.
func (p *Page) Problems() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.problems...)
}

func (p *Page) observe(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		p.request(e.Request.URL)
	case *network.EventWebSocketCreated:
		p.request(e.URL)
	case *network.EventLoadingFailed:
		// Cancelled ones are the page's own decision.
		if !e.Canceled {
			p.problems = append(p.problems, "request failed: "+e.ErrorText+" "+string(e.BlockedReason))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Source == log.EntrySourceSecurity {
			p.problems = append(p.problems, fmt.Sprintf("log: %s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeAssert {
			p.problems = append(p.problems, "console: "+consoleText(e.Args))
		}
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		p.problems = append(p.problems, "exception: "+text)
	}
}

func (p *Page) request(address string) {
	u, err := url.Parse(address)
	if err == nil && (u.Scheme == "data" || u.Scheme == "blob") {
		return
	}
	p.requests = append(p.requests, address)
	if err != nil || u.Host != p.host {
		p.problems = append(p.problems, "request to another host: "+address)
	}
}

func consoleText(args []*runtime.RemoteObject) string {
	parts := make([]string, 0, len(args))
	for _, a := range args {
		if a.Description != "" {
			parts = append(parts, a.Description)
		} else {
			parts = append(parts, string(a.Value))
		}
	}
	return strings.Join(parts, " ")
}

// screenshot leaves what was last seen among the test's artifacts (go test -artifacts keeps them).
func (p *Page) screenshot() {
	png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Logf("no screenshot: %v", err)
		return
	}
	path := filepath.Join(p.t.ArtifactDir(), "page.png")
	if err := os.WriteFile(path, png, 0o600); err != nil {
		p.t.Logf("no screenshot: %v", err)
	}
}
