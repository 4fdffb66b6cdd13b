// Package web serves GraphiQL at /. The page is built from the sources in graphiql/ into dist/, which is committed: running
// Docket needs no Node.js, and the page loads nothing from anywhere else. After a change in graphiql/ run `npm ci && npm run
// build` there and commit dist/; verify.sh compares the two.
//
// It imports nothing of this module.
package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"
)

//go:embed dist
var dist embed.FS

// policy is the page's Content-Security-Policy. Monaco, the editor, writes style elements, so inline styles are let in; its
// fonts are data in the style sheet. Scripts and workers come from here alone, and nothing is evaluated.
const policy = "default-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self' data:; img-src 'self' data:; " +
	"object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Options are what the page has to know of its gateway.
type Options struct {
	Token bool // clients need an API key or a JWT [they are believed, see docs/authentication.md]
}

// told is where the page reads how clients say who they are.
const told = `<meta name="docket-auth" content="token">`

// Handler serves the page at / and its files under /assets/; everything else is 404.
func Handler(o Options) (http.Handler, error) {
	pages := map[string]*page{}
	err := fs.WalkDir(dist, "dist", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		plain, err := dist.ReadFile(name)
		if err != nil {
			return err
		}
		if path.Ext(name) == ".html" && !o.Token {
			plain = bytes.Replace(plain, []byte(told), []byte(strings.Replace(told, "token", "dev", 1)), 1)
		}
		p, err := newPage(name, plain)
		if err != nil {
			return err
		}
		pages[strings.TrimPrefix(name, "dist")] = p
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the embedded page: %w", err)
	}
	pages["/"] = pages["/index.html"]
	delete(pages, "/index.html")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, ok := pages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
			return
		}
		p.serve(w, r)
	}), nil
}

// page is one file, compressed when it is first asked for.
type page struct {
	contentType string
	etag        string
	plain       []byte
	compressed  func() []byte
}

func newPage(name string, plain []byte) (*page, error) {
	contentType := contentTypes[path.Ext(name)]
	if contentType == "" {
		return nil, fmt.Errorf("%s: no content type for it", name)
	}
	sum := sha256.Sum256(plain)
	return &page{
		contentType: contentType,
		etag:        hex.EncodeToString(sum[:16]),
		plain:       plain,
		compressed:  sync.OnceValue(func() []byte { return compress(plain) }),
	}, nil
}

// contentTypes are fixed here: the machine's own table, which package mime reads, may say something else.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".svg":  "image/svg+xml",
	".txt":  "text/plain; charset=utf-8",
}

func (p *page) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", p.contentType)
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	// Kept, but asked about each time: names stay the same over an upgrade.
	h.Set("Cache-Control", "no-cache")
	h.Set("Vary", "Accept-Encoding")
	body, tag := p.plain, `"`+p.etag+`"`
	if acceptsGzip(r) {
		h.Set("Content-Encoding", "gzip")
		body, tag = p.compressed(), `"`+p.etag+`-gzip"`
	}
	h.Set("ETag", tag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

// acceptsGzip reads Accept-Encoding as far as it matters here: gzip named, and not with a quality of zero.
func acceptsGzip(r *http.Request) bool {
	for coding := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, params, err := mime.ParseMediaType(strings.TrimSpace(coding))
		if err != nil || name != "gzip" {
			continue
		}
		q, given := params["q"]
		quality, err := strconv.ParseFloat(q, 64)
		return !given || (err == nil && quality > 0)
	}
	return false
}

func compress(plain []byte) []byte {
	var out bytes.Buffer
	// The fastest level: a first visit should not wait. Nothing here fails: the level is valid, a buffer takes everything.
	zw, _ := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	_, _ = zw.Write(plain)
	_ = zw.Close()
	return out.Bytes()
}
