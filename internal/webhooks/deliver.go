package webhooks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/riverqueue/river"

	"github.com/docket-gateway/docket/internal/retryafter"
)

// Tries of a delivery: the first at once, then after 5s, 20s, 1m20s, 5m20s, 21m20s, 1h25m, and every 5h after that, a
// good day in all.
const (
	maxTries     = 12
	firstBackoff = 5 * time.Second
	longest      = 5 * time.Hour
)

// backoff is how long to wait after a try, counted from 1. Up to a tenth is added, so that deliveries that failed
// together do not come back together.
func backoff(try int) time.Duration {
	d := firstBackoff
	for range try - 1 {
		if d >= longest {
			break
		}
		d *= 4
	}
	return scatter(min(d, longest))
}

func scatter(d time.Duration) time.Duration {
	return d + rand.N(d/10+1) //nolint:gosec // nobody gains by guessing it
}

// entryArgs is a delivery.
type entryArgs struct {
	URL            string    `json:"url"`
	JobID          string    `json:"job_id"`
	IdempotencyKey string    `json:"idempotency_key"`
	State          string    `json:"state"`
	Version        int       `json:"version"`
	Event          int       `json:"event"`
	At             time.Time `json:"at"`

	// retryAfter is what the receiver said in the try that is under way. It is no part of the entry: River gives what it
	// has decoded for a try to both Work and NextRetry.
	retryAfter time.Duration
}

// Kind names the entries in River's tables.
func (entryArgs) Kind() string { return "webhook" }

// id is the same at every try, so that a receiver can leave out what it has seen.
func (e entryArgs) id() string { return e.JobID + "_" + strconv.Itoa(e.Event) }

// message is the body. It holds neither input nor result: whoever receives it reads them with its own rights.
type message struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      data      `json:"data"`
}

type data struct {
	JobID          string `json:"jobId"`
	IdempotencyKey string `json:"idempotencyKey"`
	State          string `json:"state"`
	Version        int    `json:"version"`
	EventNumber    int    `json:"eventNumber"`
}

func (e entryArgs) body() ([]byte, error) {
	return json.Marshal(message{
		Type: "job." + strings.ToLower(e.State), Timestamp: e.At,
		Data: data{JobID: e.JobID, IdempotencyKey: e.IdempotencyKey, State: e.State, Version: e.Version, EventNumber: e.Event},
	})
}

// Why a try did not deliver.
var errGone = errors.New("the receiver wants no more of it (410)")

// statusError is an answer other than 2xx and 410.
type statusError struct {
	status     int
	retryAfter time.Duration // of 429 and 503
}

func (e *statusError) Error() string {
	return "the receiver answered with status " + strconv.Itoa(e.status)
}

// worker is River's view of the deliveries.
type worker struct {
	river.WorkerDefaults[entryArgs]
	service *Service
}

// Timeout ends a try that does not end by itself; an entry that runs longer is a dead process's.
func (w *worker) Timeout(*river.Job[entryArgs]) time.Duration { return 2 * requestTimeout }

// NextRetry replaces River's own schedule. A receiver can make the wait longer with Retry-After, up to the longest one, but
// not shorter; the try counts all the same, so that a receiver that always asks for patience is given up in the end.
func (w *worker) NextRetry(entry *river.Job[entryArgs]) time.Time {
	wait := w.service.backoff(max(entry.Attempt, 1))
	if after := entry.Args.retryAfter; after > wait {
		wait = scatter(min(after, longest))
	}
	return w.service.now().Add(wait)
}

// Work makes one try. Its errors are kept in the queue's table and hold neither the URL nor a secret.
func (w *worker) Work(ctx context.Context, entry *river.Job[entryArgs]) error {
	s, e := w.service, entry.Args
	log := s.log.With("job", e.JobID, "event", e.Event, "try", entry.Attempt)
	err := s.try(ctx, e)
	if status := (*statusError)(nil); errors.As(err, &status) {
		entry.Args.retryAfter = status.retryAfter
	}
	switch {
	case err == nil:
		s.metrics.WebhookTried(ResultDelivered)
		log.DebugContext(ctx, "webhook delivered")
		return nil
	case errors.Is(err, errGone):
		s.metrics.WebhookTried(ResultGone)
		log.InfoContext(ctx, "webhook refused for good", "error", err)
		return river.JobCancel(err) //nolint:wrapcheck // a signal to River
	case entry.Attempt >= entry.MaxAttempts:
		s.metrics.WebhookTried(ResultAbandoned)
		log.WarnContext(ctx, "webhook given up", "error", err)
	default:
		s.metrics.WebhookTried(ResultRetried)
		log.LogAttrs(ctx, slog.LevelInfo, "webhook not delivered, will be tried again", slog.Any("error", err))
	}
	return err
}

// try calls the receiver once. Only a nil error means that it has the message; another may mean so too.
func (s *Service) try(ctx context.Context, e entryArgs) error {
	u, err := s.policy.check(e.URL)
	if err != nil {
		return fmt.Errorf("the callback URL %w", err)
	}
	body, err := e.body()
	if err != nil {
		return fmt.Errorf("write the message: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(body))
	if err != nil {
		return withoutURL(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "docket-webhooks")
	if err := s.signer.sign(req.Header, e.id(), s.now(), body); err != nil {
		return err
	}
	res, err := s.http.Do(req)
	if err != nil {
		return withoutURL(err)
	}
	defer func() { _ = res.Body.Close() }()
	// A polite end for receivers that write an answer; how it ends changes nothing.
	_, _ = io.CopyN(io.Discard, res.Body, maxAnswer)
	switch {
	case res.StatusCode >= 200 && res.StatusCode <= 299:
		return nil
	case res.StatusCode == http.StatusGone:
		return errGone
	case res.StatusCode == http.StatusTooManyRequests, res.StatusCode == http.StatusServiceUnavailable:
		return &statusError{res.StatusCode, retryafter.Parse(res.Header, s.now())}
	default:
		return &statusError{status: res.StatusCode}
	}
}

// withoutURL drops the URL from net/http's errors: it may hold a token of the receiver's.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
