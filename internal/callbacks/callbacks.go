// Package callbacks takes what providers report by themselves: POST /callbacks/{provider}, signed in the way of the
// Standard Webhooks specification. It is a way out of UNKNOWN, and may be faster than the attempt's own stream too.
//
// The signature covers the message's id, its time and every byte of its body, and a message that is older or newer than
// five minutes is refused. That is all that stops a replay in transit; one within the five minutes changes nothing,
// because an outcome is written by a guarded move that lands once.
//
// Not guaranteed: that a report is true. Whoever holds a provider's secret decides about every attempt at that provider,
// within the rule that a result keeps its task's output schema.
//
// It imports internal/canonical, internal/jobs and internal/schema. No cookie, session or principal is looked at.
package callbacks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/docket-gateway/docket/internal/jobs"
	"github.com/docket-gateway/docket/internal/schema"
)

// Pattern is where a ServeMux finds the handler.
const Pattern = "/callbacks/{provider}"

// readFor bounds how long a body may take: whoever sends it has shown no signature yet.
const readFor = 30 * time.Second

// Settler records outcomes: *jobs.Service.
type Settler interface {
	SettleReported(ctx context.Context, provider, attemptID string, o jobs.Outcome) (jobs.Verdict, error)
}

// Options of the handler.
type Options struct {
	Secrets   map[string][]string // by provider: whsec_ and base64; any of them may have signed. Others are not found.
	BodyLimit int64               // bytes of a body
	Logger    *slog.Logger
}

// Handler serves Pattern. It is safe for concurrent use.
type Handler struct {
	settler   Settler
	providers map[string][]*standardwebhooks.Webhook
	rules     *schema.Schema
	limit     int64
	log       *slog.Logger
}

// New returns a handler. It fails if a secret cannot be decoded or is empty.
func New(s Settler, o Options) (*Handler, error) {
	rules, err := schema.Compile("callback", messageSchema)
	if err != nil {
		return nil, fmt.Errorf("callbacks: %w", err)
	}
	h := &Handler{settler: s, providers: map[string][]*standardwebhooks.Webhook{}, rules: rules, limit: o.BodyLimit, log: o.Logger}
	for provider, secrets := range o.Secrets {
		for _, secret := range secrets {
			if len(secret) <= len("whsec_") {
				return nil, fmt.Errorf("callbacks: a secret of %s is empty", provider)
			}
			w, err := standardwebhooks.NewWebhook(secret)
			if err != nil {
				return nil, fmt.Errorf("callbacks: a secret of %s is not base64", provider) // the cause may quote it
			}
			h.providers[provider] = append(h.providers[provider], w)
		}
	}
	return h, nil
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	provider := r.PathValue("provider")
	keys := h.providers[provider]
	switch {
	case len(keys) == 0:
		refuse(w, http.StatusNotFound, "NOT_FOUND", "there are no callbacks here")
		return
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		refuse(w, http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED", "a callback is a POST")
		return
	}
	body, ok := h.read(w, r)
	if !ok {
		return
	}
	if err := verify(keys, body, r.Header); err != nil {
		h.log.LogAttrs(r.Context(), slog.LevelWarn, "callback refused", slog.String("provider", provider), slog.String("reason", reason(err)))
		refuse(w, http.StatusUnauthorized, "UNAUTHENTICATED", "the signature is not valid")
		return
	}
	m, problem := parse(h.rules, body)
	if problem != "" {
		refuse(w, http.StatusBadRequest, "INVALID_CALLBACK", problem)
		return
	}
	h.settle(w, r, provider, m)
}

func (h *Handler) read(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	// Not every writer of a test can; a server's can.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(readFor))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.limit))
	var tooLarge *http.MaxBytesError
	switch {
	case err == nil:
		return body, true
	case errors.As(err, &tooLarge):
		refuse(w, http.StatusRequestEntityTooLarge, "TOO_LARGE", fmt.Sprintf("a callback has at most %d bytes", h.limit))
	default:
		refuse(w, http.StatusBadRequest, "INVALID_CALLBACK", "the body could not be read")
	}
	return nil, false
}

// verify tries each of the provider's secrets: two are in use while one is changed.
func verify(keys []*standardwebhooks.Webhook, body []byte, headers http.Header) error {
	var errs []error
	for _, k := range keys {
		err := k.Verify(body, headers)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// reason is for the log and never holds what was sent.
func reason(err error) string {
	for _, known := range []error{
		standardwebhooks.ErrRequiredHeaders, standardwebhooks.ErrInvalidHeaders, standardwebhooks.ErrMessageTooOld,
		standardwebhooks.ErrMessageTooNew, standardwebhooks.ErrNoMatchingSignature,
	} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return "the signature is not valid"
}

// verdict is the answer to a callback that was understood.
type verdict struct {
	Landed       bool   `json:"landed"` // false: the attempt was settled before, and this changed nothing
	AttemptState string `json:"attemptState"`
	JobState     string `json:"jobState"`
}

func (h *Handler) settle(w http.ResponseWriter, r *http.Request, provider string, m message) {
	v, err := h.settler.SettleReported(r.Context(), provider, m.AttemptID, m.outcome())
	switch {
	case errors.Is(err, jobs.ErrNotFound):
		refuse(w, http.StatusNotFound, "NOT_FOUND", "no such attempt was sent to this provider")
	case err != nil:
		h.log.LogAttrs(r.Context(), slog.LevelError, "callback could not be recorded",
			slog.String("provider", provider), slog.String("attempt", m.AttemptID), slog.Any("error", err))
		refuse(w, http.StatusServiceUnavailable, "UNAVAILABLE", "the callback was not recorded; send it again")
	default:
		h.log.LogAttrs(r.Context(), slog.LevelInfo, "callback", slog.String("provider", provider), slog.String("attempt", m.AttemptID),
			slog.Bool("landed", v.Landed), slog.String("state", string(v.Attempt.State)))
		answer(w, http.StatusOK, verdict{v.Landed, string(v.Attempt.State), string(v.Job.State)})
	}
}

type refusal struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	answer(w, status, refusal{code, message})
}

func answer(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil { // two structs of text and a flag
		http.Error(w, "INTERNAL", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
