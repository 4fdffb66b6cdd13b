// Package roundtrip takes the cases of a contract through a whole Docket: the GraphQL endpoint, internal/jobs, the queue, a worker and
// a database, all of them the real ones, with the target under test as the only provider. Only the listener is left out.
//
// The database is an SQLite file in a folder of its own, which is removed in the end: nothing of a contract run is ever written
// where jobs are.
//
// It imports contracts, graph and internal/dispatch, and what those need, and is imported by internal/app.
package roundtrip

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/graph"
	"github.com/docket-gateway/docket/providers"
)

// StateNotCreated stands for a job's state where createJob refused the case.
const StateNotCreated = "NOT_CREATED"

var errClosed = errors.New("roundtrip: closed")

// Options are those of the server that the contract is run for. Zero values mean the defaults of their types.
type Options struct {
	Lease    time.Duration // default 15s
	MaxInput int           // bytes
	Graph    graph.Options // its Logger is not used
	Logger   *slog.Logger  // hears of warnings only [slog.Default()]
}

// Tripper makes round trips. It starts a Docket for each task and target when it is needed first, and is safe for concurrent use.
type Tripper struct {
	o Options

	mu      sync.Mutex
	folder  string // with an empty database whose schema is in place, and one database for each Docket
	dockets map[string]*docket
	closed  bool
}

var _ contracts.RoundTripper = (*Tripper)(nil)

// New returns a tripper that has started nothing yet.
func New(o Options) *Tripper {
	if o.Lease == 0 {
		o.Lease = 15 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	o.Logger = slog.New(warnings{o.Logger.Handler()}).With("contract", "round trip")
	o.Graph.Logger = o.Logger
	return &Tripper{o: o, dockets: map[string]*docket{}}
}

// RoundTrip creates a job from the case and reads it back once it is finished: SUCCEEDED, FAILED or UNKNOWN, since there is nobody who
// would wait for a late answer. A job that is none of these after the provider's total time-out and a lease is given up, and the trip
// tells the state that it was in. An error means that no job could be made at all.
func (t *Tripper) RoundTrip(ctx context.Context, s contracts.Suite, c contracts.Case, ep contracts.Endpoint) (contracts.Trip, error) {
	d, err := t.docket(ctx, s, ep)
	if err != nil {
		return contracts.Trip{}, fmt.Errorf("start a Docket for the round trip: %w", err)
	}
	traceparent, trace := newTrace()
	call := d.provider.expect(trace, ep.Target.Sender, contracts.StepOf(ctx))
	defer d.provider.forget(trace)

	trip, err := d.run(ctx, traceparent, c.Input, ep.Target.Config.TotalTimeout+t.o.Lease)
	outcome := call.end()
	if err != nil {
		return contracts.Trip{}, err
	}
	if outcome != nil {
		trip.Outcome = outcome
		if outcome.Kind == providers.Completed {
			trip.Answered = outcome.Output
		}
	}
	return trip, nil
}

// docket returns the one for the task and the target, and starts it if there is none.
func (t *Tripper) docket(ctx context.Context, s contracts.Suite, ep contracts.Endpoint) (*docket, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, errClosed
	}
	key := s.Task.Digest + "\n" + ep.Target.ID + "\n" + ep.ConfigDigest
	if d := t.dockets[key]; d != nil {
		return d, nil
	}
	if t.folder == "" {
		folder, err := os.MkdirTemp("", "docket-contract-")
		if err != nil {
			return nil, err
		}
		if err := createTemplate(ctx, folder); err != nil {
			return nil, errors.Join(err, os.RemoveAll(folder))
		}
		t.folder = folder
	}
	d, err := start(ctx, t.folder, len(t.dockets), s.Task, ep.Target, t.o)
	if err != nil {
		return nil, err
	}
	t.dockets[key] = d
	return d, nil
}

// closeWithin bounds what is waited for at the end. Nothing is under way then unless a run was interrupted.
const closeWithin = time.Second

// Close ends every Docket, cuts off what is under way in them and removes their databases.
func (t *Tripper) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	var errs []error
	for _, d := range t.dockets {
		errs = append(errs, d.stop())
	}
	clear(t.dockets)
	if t.folder != "" {
		errs = append(errs, os.RemoveAll(t.folder))
		t.folder = ""
	}
	return errors.Join(errs...)
}

// newTrace makes up a trace. The worker's request carries it on, which is how the provider's side knows whose it is.
func newTrace() (traceparent, trace string) {
	var random [24]byte
	_, _ = rand.Read(random[:]) // never fails
	random[0], random[16] = random[0]|1, random[16]|1
	trace = hex.EncodeToString(random[:16])
	return "00-" + trace + "-" + hex.EncodeToString(random[16:]) + "-01", trace
}

// warnings lets only warnings and errors through.
type warnings struct{ slog.Handler }

func (w warnings) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && w.Handler.Enabled(ctx, l)
}

func (w warnings) WithAttrs(as []slog.Attr) slog.Handler { return warnings{w.Handler.WithAttrs(as)} }
func (w warnings) WithGroup(name string) slog.Handler    { return warnings{w.Handler.WithGroup(name)} }
