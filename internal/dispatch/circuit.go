package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/docket-gateway/docket/internal/jobs"
	"github.com/docket-gateway/docket/providers"
)

// codeCircuitOpen is the code of an attempt that was not sent because its target had failed too often.
const codeCircuitOpen = "CIRCUIT_OPEN"

// Metrics counts what operators watch.
type Metrics interface {
	// CircuitRefused: an attempt was not sent because its target's circuit was open.
	CircuitRefused(target string)
	// Cancelled: a provider was told to end an attempt's request that is of no use any more. ok is false if it did not take
	// that, or was not reached.
	Cancelled(target string, ok bool)
}

// circuits are the circuit breakers of this process, by target. A target whose breaker is off has none. Nothing is shared
// between processes: each finds out by itself, at the cost of its own few failures, and none has to trust another's.
//
// A breaker opens after so many failures in a row, whatever their age. There is no window on purpose: gobreaker forgets a
// request that began before its window did, and a time-out takes longer than any window that is of use.
type circuits map[string]*circuit

// circuit is one target's breaker. Half-open, it lets one request through; what comes of it closes or opens it.
type circuit struct {
	breaker  *gobreaker.TwoStepCircuitBreaker[struct{}]
	failures int

	mu         sync.Mutex
	halfOpenAt time.Time // after it opened last
}

// What an outcome says of its target, as the errors that gobreaker takes. No error is a target that works.
var (
	errUnhealthy = errors.New("dispatch: the target does not work")
	errNoWord    = errors.New("dispatch: nothing is said about the target")
)

func newCircuits(r *providers.Registry, log *slog.Logger) circuits {
	all := circuits{}
	for _, t := range r.Targets() {
		if c := t.Config.CircuitBreaker; c.Failures > 0 {
			all[t.ID] = newCircuit(t.ID, c, log)
		}
	}
	return all
}

func newCircuit(target string, config providers.CircuitBreaker, log *slog.Logger) *circuit {
	c := &circuit{failures: config.Failures}
	c.breaker = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Name:        target,
		MaxRequests: 1,
		Timeout:     config.OpenFor,
		ReadyToTrip: func(n gobreaker.Counts) bool { return n.ConsecutiveFailures >= uint32(config.Failures) },
		IsExcluded:  func(err error) bool { return errors.Is(err, errNoWord) },
		OnStateChange: func(target string, from, to gobreaker.State) { // holds gobreaker's lock
			level := slog.LevelInfo
			if to == gobreaker.StateOpen {
				level = slog.LevelWarn
				c.mu.Lock()
				c.halfOpenAt = time.Now().Add(config.OpenFor) // not before gobreaker's own
				c.mu.Unlock()
			}
			log.LogAttrs(context.Background(), level, "circuit breaker", slog.String("target", target),
				slog.String("from", from.String()), slog.String("to", to.String()))
		},
	})
	return c
}

// enter asks for leave to send one request. Who gets it settles the permit, however the attempt ends; who does not is told
// why, and sends nothing.
func (cs circuits) enter(target string) (*permit, *jobs.Failure) {
	c := cs[target]
	if c == nil {
		return &permit{done: func(error) {}}, nil
	}
	done, err := c.breaker.Allow()
	if err == nil {
		return &permit{done: done}, nil
	}
	f := &jobs.Failure{Code: codeCircuitOpen, Retryable: true}
	if errors.Is(err, gobreaker.ErrTooManyRequests) {
		// How long the trial takes is not known, so the task's own back-off has to do.
		f.Message = fmt.Sprintf("No request was sent: %s has failed %d times in a row or more, and one request tries now whether it works again.",
			target, c.failures)
		return nil, f
	}
	c.mu.Lock()
	f.RetryAfter = max(0, time.Until(c.halfOpenAt))
	c.mu.Unlock()
	f.Message = fmt.Sprintf("No request was sent: %s has failed %d times in a row or more, and is tried again in %s.",
		target, c.failures, max(time.Second, f.RetryAfter.Round(time.Second)))
	return nil, f
}

// open says whether a target gets no request now.
func (cs circuits) open(target string) bool {
	c := cs[target]
	return c != nil && c.breaker.State() == gobreaker.StateOpen
}

// permit is the leave to send one request. It is settled once; only the first time counts.
type permit struct {
	once sync.Once
	done func(error)
}

// giveBack settles it without a word about the target: nothing was sent, or the request was ended by us.
func (p *permit) giveBack() { p.settle(errNoWord) }

// outcome settles it by what came, unless the request was ended by us, which ctx tells.
func (p *permit) outcome(ctx context.Context, o providers.Outcome) {
	if ctx.Err() != nil && o.Kind != providers.Completed {
		p.giveBack()
		return
	}
	p.settle(health(o))
}

func (p *permit) settle(verdict error) { p.once.Do(func() { p.done(verdict) }) }

// health is what an outcome says of its target: it does not work (errUnhealthy), it works (nil), or neither (errNoWord).
//
// Whoever answers the request, be it by a refusal or a 401, works. Too many requests (429) is neither: the target is there,
// and waits are between it and each job by its Retry-After; opening would stop those that are within the limit, and closing
// a half-open circuit needs an answer.
func health(o providers.Outcome) error {
	if o.Kind == providers.Completed {
		return nil
	}
	f := failure(o.Failure)
	switch f.Code {
	case providers.CodeUnreachable, providers.CodeTLS, providers.CodeAckTimeout, providers.CodeIdleTimeout, providers.CodeTotalTimeout,
		providers.CodeConnectionLost, providers.CodeTruncatedStream, providers.CodeGateway, providers.CodeOverloaded:
		return errUnhealthy
	case providers.CodeNotSent, providers.CodeProviderError:
		if f.Retryable { // else it is about this request: one that could not be built, an error that nobody knows
			return errUnhealthy
		}
		return errNoWord
	case providers.CodeRefused, providers.CodeContentFilter, providers.CodeTruncated, providers.CodeNotJSON,
		providers.CodeBadRequest, providers.CodeUnauthorized:
		return nil
	default: // 429, quotas, 3xx, what could not be read, ended by us, broken by us
		return errNoWord
	}
}

// Circuits returns the state of each target's circuit breaker: 0 is closed, 1 half-open, 2 open.
func (d *Dispatcher) Circuits() map[string]int {
	states := make(map[string]int, len(d.circuits))
	for target, c := range d.circuits {
		switch c.breaker.State() {
		case gobreaker.StateHalfOpen:
			states[target] = 1
		case gobreaker.StateOpen:
			states[target] = 2
		case gobreaker.StateClosed:
			states[target] = 0
		}
	}
	return states
}
