// Package webhooks tells a client's server that its job is over: at least once, signed as the Standard Webhooks
// specification says, and only at addresses on the public internet.
//
// A delivery is an entry of the queue that is added in the transaction that ended the job, so that a crash loses none.
// Retries are the queue's. What is delivered stands in the entry: the job may have been re-opened or removed since.
//
// It imports internal/jobs, internal/queue, internal/retryafter and internal/store, never graph or dispatch.
package webhooks

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/riverqueue/river"

	"github.com/docket-gateway/docket/internal/jobs"
	"github.com/docket-gateway/docket/internal/queue"
	"github.com/docket-gateway/docket/internal/store"
)

const (
	queueName = "webhooks"
	// workers is how many deliveries a process makes at once. Each is over within requestTimeout.
	workers = 16
)

// Metrics counts tries.
type Metrics interface {
	// WebhookTried counts one try by what came of it: one of the Result constants.
	WebhookTried(result string)
}

// What came of a try.
const (
	ResultDelivered = "delivered" // the receiver said 2xx
	ResultRetried   = "retried"   // it did not, and is asked again later
	ResultGone      = "gone"      // it said 410: it wants no more of this delivery
	ResultAbandoned = "abandoned" // it did not, and that was the last try
)

// Options of the webhooks. Zero values mean the defaults in brackets.
type Options struct {
	Secrets      []string     // whsec_…; every delivery is signed with each. None: no callback URL is taken, nothing is delivered.
	AllowPrivate bool         // take http URLs and any port, and call addresses that are not on the public internet
	Logger       *slog.Logger // [slog.Default()]
	Metrics      Metrics      // [nobody counts]
}

// Service keeps and makes deliveries. It is safe for concurrent use.
type Service struct {
	signer  signer
	policy  policy
	http    *http.Client
	log     *slog.Logger
	metrics Metrics
	client  *queue.Client

	backoff func(try int) time.Duration
	poll    time.Duration
	now     func() time.Time
}

// seams are what tests put in the place of the outer world.
type seams struct {
	resolver *net.Resolver
	roots    *x509.CertPool
}

// New returns the webhooks; it fails if a secret is malformed, without repeating it.
func New(o Options) (*Service, error) { return newService(o, seams{}) }

func newService(o Options, in seams) (*Service, error) {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Metrics == nil {
		o.Metrics = nobody{}
	}
	signer, err := newSigner(o.Secrets)
	if err != nil {
		return nil, err
	}
	return &Service{
		signer: signer, policy: policy{private: o.AllowPrivate}, http: newHTTPClient(o.AllowPrivate, in), log: o.Logger, metrics: o.Metrics,
		// A lost notice costs a delivery a second; a queue without notices would be asked far too often by River's default.
		backoff: backoff, poll: time.Second, now: time.Now,
	}, nil
}

// Register adds the worker of deliveries. Without a secret this process leaves deliveries to others, but keeps those
// that follow from what it does.
func (s *Service) Register(w *river.Workers) (map[string]river.QueueConfig, error) {
	if err := river.AddWorkerSafely(w, &worker{service: s}); err != nil {
		return nil, fmt.Errorf("webhooks: %w", err)
	}
	c := river.QueueConfig{FetchPollInterval: s.poll}
	if s.signer.ready() {
		c.MaxWorkers = workers
	}
	return map[string]river.QueueConfig{queueName: c}, nil
}

// Use takes the client that entries are added through.
func (s *Service) Use(c *queue.Client) { s.client = c }

// CheckURL says why a callback URL is not taken here, nil if it is. What a name resolves to is not looked at: that is
// checked at every connection, since it may change.
func (s *Service) CheckURL(raw string) error {
	if !s.signer.ready() {
		return errNotConfigured
	}
	_, err := s.policy.check(raw)
	return err
}

// Enqueue keeps a delivery inside the transaction.
func (s *Service) Enqueue(ctx context.Context, tx *store.Tx, c jobs.Completion) error {
	_, err := s.client.InsertTx(ctx, tx.SQL, entryArgs{
		URL: c.CallbackURL, JobID: c.JobID, IdempotencyKey: c.IdempotencyKey, State: string(c.State), Version: c.Version,
		Event: c.Event, At: c.At.UTC(),
	}, &river.InsertOpts{Queue: queueName, MaxAttempts: maxTries})
	if err != nil {
		return fmt.Errorf("webhooks: enqueue: %w", err)
	}
	return nil
}

type nobody struct{}

func (nobody) WebhookTried(string) {}
