package campaign

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docket-gateway/docket/internal/campaign/verify"
	"github.com/docket-gateway/docket/providers/providertest"
)

// The time-outs that the gateways have for the provider. A late answer comes after ackTimeout and within linger.
const (
	ackTimeout   = 400 * time.Millisecond
	idleTimeout  = 400 * time.Millisecond
	totalTimeout = 1500 * time.Millisecond
	linger       = 800 * time.Millisecond
)

// provider decides by the plan what becomes of each request, and keeps its own log of it.
type provider struct {
	plan  plan
	name  string
	url   string
	since func() time.Duration
	book  *book
}

// book is the log of all providers.
type book struct {
	mu       sync.Mutex
	requests []verify.Request
	tries    map[string]int // by intent and target
	open     int
}

func startProvider(t *testing.T, p plan, name string, b *book, since func() time.Duration) *provider {
	t.Helper()
	s, url := providertest.Start(t)
	pr := &provider{plan: p, name: name, url: url, since: since, book: b}
	for _, target := range allTargets {
		if of, model, _ := strings.Cut(target, "/"); of == name {
			s.OnModel(model, pr.answer)
		}
	}
	return pr
}

var ofIntent = regexp.MustCompile(`"intent ([0-9]+)`)

// answer plays what the plan has for the request. Those of contract runs are answered well, but by the unproved model.
func (p *provider) answer(x *providertest.Exchange) {
	target := p.name + "/" + x.Request.Model
	if !strings.HasPrefix(x.Entry.Key, "att_") {
		if target == unproved {
			providertest.Says(`{"text": 1}`, "stop")(x)
			return
		}
		providertest.OK()(x)
		return
	}
	number := -1
	for _, m := range x.Request.Messages {
		if found := ofIntent.FindStringSubmatch(m.Content); found != nil {
			number, _ = strconv.Atoi(found[1])
		}
	}
	p.book.mu.Lock()
	at := fmt.Sprint(number, " ", target)
	p.book.tries[at]++
	try := p.book.tries[at]
	index := len(p.book.requests)
	p.book.requests = append(p.book.requests, verify.Request{
		At: p.since(), End: verify.Never, Attempt: x.Entry.Key, Target: target, Whole: true, Fate: verify.Ambiguous,
	})
	p.book.open++
	p.book.mu.Unlock()
	defer func() {
		p.book.mu.Lock()
		defer p.book.mu.Unlock()
		p.book.open--
		p.book.requests[index].End = p.since()
	}()
	e := &encounter{Exchange: x, r: p.plan.rng("provider "+target, number, try), mark: fmt.Sprintf("mark-%dx", index), say: func(f verify.Fate, output, mark string) {
		p.book.mu.Lock()
		defer p.book.mu.Unlock()
		r := &p.book.requests[index]
		r.Fate, r.Mark, r.Output = f, mark, json.RawMessage(output)
	}}
	e.play()
}

// encounter is one request of an attempt and what chance has for it.
type encounter struct {
	*providertest.Exchange

	r    *rand.Rand
	mark string
	// say logs the fate, before anything is sent from which the gateway could know it.
	say func(f verify.Fate, output, mark string)
}

func (e *encounter) play() {
	switch x := e.r.Float64(); {
	case x < 0.50:
		e.good(e.upTo(30*time.Millisecond), e.upTo(30*time.Millisecond))
	case x < 0.58: // late: the gateway has given up waiting
		e.good(ackTimeout+e.upTo(linger+300*time.Millisecond), 0)
	case x < 0.70: // acknowledged, then slow: time to race
		e.good(e.upTo(50*time.Millisecond), e.upTo(2*idleTimeout))
	case x < 0.82:
		e.refuse()
	case x < 0.87:
		e.spoil()
	default:
		e.vanish()
	}
}

func (e *encounter) upTo(d time.Duration) time.Duration {
	return time.Duration(e.r.Int64N(int64(d) + 1))
}

func (e *encounter) output() string { return fmt.Sprintf(`{"text": "%s of %s"}`, e.mark, e.Entry.Key) }

// good acknowledges after one time and answers after another.
func (e *encounter) good(ack, answer time.Duration) {
	if !e.Pause(ack) {
		return
	}
	e.Headers()
	if !e.Pause(answer) {
		return
	}
	output := e.output()
	e.say(verify.Answered, output, e.mark)
	e.Content(output[:4])
	e.Content(output[4:])
	e.Finish("stop", 5)
}

// refuse says no, so that nobody can doubt it.
func (e *encounter) refuse() {
	e.say(verify.Refused, "", "")
	switch e.r.IntN(7) {
	case 0:
		providertest.Error(http.StatusBadRequest, "bad_request")(e.Exchange)
	case 1:
		providertest.Error(http.StatusTooManyRequests, "rate_limit", "Retry-After", "0")(e.Exchange)
	case 2:
		providertest.Error(http.StatusInternalServerError, "server_error")(e.Exchange)
	case 3:
		providertest.Error(529, "overloaded")(e.Exchange)
	case 4:
		providertest.ErrorEvent("server_error")(e.Exchange)
	case 5:
		providertest.Says(`{"text": "`, "length")(e.Exchange)
	case 6:
		providertest.Says("", "content_filter")(e.Exchange)
	}
}

// spoil answers completely, with what must never become a result.
func (e *encounter) spoil() {
	output, mark := e.output(), e.mark
	switch e.r.IntN(4) {
	case 0:
		output = fmt.Sprintf(`{"text": "%s", "extra": 1}`, e.mark)
	case 1:
		output = fmt.Sprintf(`{"texts": "%s"}`, e.mark)
	case 2:
		output = "```json\n" + output + "\n```"
	case 3:
		output, mark = `{"text": 5}`, ""
	}
	e.say(verify.Broken, output, mark)
	providertest.Says(output, "stop")(e.Exchange)
}

// vanish leaves open what became of the request. Some of these have begun to answer.
func (e *encounter) vanish() {
	pieces := []string{e.output()[:12], "…"}
	switch e.r.IntN(8) {
	case 0:
		providertest.Hang()(e.Exchange)
	case 1:
		e.Headers()
		e.Content(pieces[0])
		e.Until(nil)
	case 2:
		providertest.Reset()(e.Exchange)
	case 3:
		providertest.Drop()(e.Exchange)
	case 4: // a clean end, without the end marker
		e.Headers()
		e.Content(e.output())
	case 5:
		e.Headers()
		e.Content(pieces[0])
		e.Break(true)
	case 6:
		providertest.HTML(pick(e.r, http.StatusBadGateway, http.StatusGatewayTimeout, http.StatusServiceUnavailable))(e.Exchange)
	case 7:
		providertest.WrongContentLength()(e.Exchange)
	}
}
