package tokenizer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// maxAnswer bounds an answer in bytes: the tokens of a prompt of 2 MiB, written out.
const maxAnswer = 32 << 20

// Options are what a tokenizer that asks the provider needs.
type Options struct {
	BaseURL string        // the provider's
	APIKey  string        // secret; may be empty
	Model   string        // as the provider calls it
	Timeout time.Duration // of one request

	ProxyFromEnvironment bool // HTTPS_PROXY and NO_PROXY are followed, else ignored: the provider's key travels along
}

// remote posts JSON to a provider, without following redirects or trying again. Its errors hold no text that was sent or
// received.
type remote struct {
	name   string
	base   string
	header http.Header
	opts   Options
	http   *http.Client
}

func newRemote(name, base string, o Options, header http.Header) remote {
	transport := &http.Transport{DisableKeepAlives: true}
	if o.ProxyFromEnvironment {
		transport.Proxy = http.ProxyFromEnvironment
	}
	return remote{name: name, base: base, header: header, opts: o, http: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// bearer is the header of servers that take OpenAI's.
func bearer(o Options) http.Header {
	h := http.Header{}
	if o.APIKey != "" {
		h.Set("Authorization", "Bearer "+o.APIKey)
	}
	return h
}

// root is the address without /v1, which the paths of chat completions need and those here are not under.
func root(base string) string { return strings.TrimSuffix(strings.TrimRight(base, "/"), "/v1") }

func (r remote) post(ctx context.Context, path string, in, out any) error {
	if err := r.exchange(ctx, path, in, out); err != nil {
		return fmt.Errorf("tokenizer %s: %w", r.name, err)
	}
	return nil
}

func (r remote) exchange(ctx context.Context, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, r.opts.Timeout)
	defer cancel()
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.base+path, bytes.NewReader(body))
	if err != nil {
		return errors.New("the request could not be built")
	}
	req.Header = r.header.Clone()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "docket")
	res, err := r.http.Do(req)
	if err != nil {
		var where *url.Error
		if errors.As(err, &where) {
			err = where.Err
		}
		return fmt.Errorf("no answer: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("the provider answered %d", res.StatusCode)
	}
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return errors.New("the answer was cut off")
	}
	if len(raw) > maxAnswer || json.Unmarshal(raw, out) != nil {
		return errors.New("the answer cannot be read")
	}
	return nil
}

// counted is a count that must be there.
func (r remote) counted(n *int) (int, error) {
	if n == nil || *n < 0 {
		return 0, fmt.Errorf("tokenizer %s: the answer has no count", r.name)
	}
	return *n, nil
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// messages are those of the chat request.
func (p Prompt) messages() []message {
	list := []message{{"user", p.User}}
	if p.System != "" {
		list = append([]message{{"system", p.System}}, list...)
	}
	return list
}
