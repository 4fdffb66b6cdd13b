// Package cassette records what targets answer to the cases of a contract, and says it again. The cassettes are
// go-vcr's (gopkg.in/dnaeon/go-vcr.v4), one file for each task, target and case, in the task's folder:
//
//	cassettes/<provider>@<model>/<case>.yaml
//
// Of a kind that speaks HTTP, what goes over the wire is recorded: the adapter sends to a server on loopback, whose transport is
// go-vcr's recorder, which passes the request on or finds its answer on the cassette. So a replay takes the recorded bytes
// through the adapter of today. Of a kind that makes no HTTP requests, the calls of its adapter are recorded in the same format.
//
// An answer is served once, to the step of the run that it was recorded in. A request without a recording is an error, never an
// answer. No key is written: of headers only a few are kept, and a file that still holds the key's text is not written at all.
//
// It imports contracts, contracts/golden, contracts/report and providers.
package cassette

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"gopkg.in/dnaeon/go-vcr.v4/pkg/recorder"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/providers"
)

var (
	// ErrMissing says that there is no cassette to replay.
	ErrMissing = errors.New("there is no cassette")
	// ErrBroken says that a file is no cassette of ours, or not the whole of one.
	ErrBroken = errors.New("the cassette cannot be read")
	// ErrStale says that a cassette was recorded for something else than what is to be replayed.
	ErrStale = errors.New("the cassette is stale")
	// ErrNotOnIt says that a request has no recording that was not served already.
	ErrNotOnIt = errors.New("the cassette does not hold the request")
	// ErrNotRecorded says that no file was written; an older one is as it was.
	ErrNotRecorded = errors.New("nothing was recorded")
)

// folder is where a task's cassettes lie.
const folder = "cassettes"

// Options are what recording and replaying needs.
type Options struct {
	Registry *providers.Registry // of the targets that are recorded and replayed
	Now      func() time.Time    // nil: time.Now
}

// Wires records and replays. It is safe for concurrent use.
type Wires struct{ o Options }

var _ contracts.Wires = (*Wires)(nil)

// New returns one for the targets of a registry.
func New(o Options) *Wires {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Wires{o}
}

// File is the path of a cassette inside of its task's folder.
func File(target, name string) string {
	return path.Join(folder, contracts.FileTarget(target), name+".yaml")
}

// clockSkew is how far ahead the clock of the machine that recorded may have been.
const clockSkew = 24 * time.Hour

// Open implements contracts.Wires. In the mode record nothing is written before the wire is closed.
func (ws *Wires) Open(ctx context.Context, s contracts.Suite, c contracts.Case, ep contracts.Endpoint, mode report.Mode) (contracts.Wire, error) {
	now, err := describe(s, c, ep)
	if err != nil {
		return nil, err
	}
	w := &wire{
		registry: ws.o.Registry, task: s.Task.Name, target: ep.Target.ID, taskRuns: s.Task.Contract.Runs, endpoint: ep,
		ended: func() bool { return ctx.Err() != nil },
		name:  path.Join(s.Task.Name, File(ep.Target.ID, c.Name)), took: map[string]time.Duration{},
	}
	if s.Dir != "" {
		w.name = filepath.Join(s.Dir, filepath.FromSlash(File(ep.Target.ID, c.Name)))
	}
	options := []recorder.Option{
		recorder.WithMatcher(matches), recorder.WithSkipRequestLatency(true),
		recorder.WithHook(tellDuration, recorder.BeforeResponseReplayHook), recorder.WithDebugWriter(silence{}),
	}
	switch mode {
	case report.Record:
		if s.Dir == "" {
			return nil, fmt.Errorf("%w: the task %s is built into the program; name a folder that holds it on disk under tasks: in docket.yaml", ErrNotRecorded, s.Task.Name)
		}
		if err := probe(w.name); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNotRecorded, err)
		}
		options = append(options, recorder.WithMode(recorder.ModeRecordOnly),
			recorder.WithHook(w.scrub, recorder.BeforeSaveHook), recorder.WithMarshalFunc(func(v any) ([]byte, error) {
				now.RecordedAt = ws.o.Now().UTC().Truncate(time.Second)
				return w.encode(now, v)
			}), recorder.WithFS(disk{file: w.name}))
	case report.Replay:
		raw, err := fs.ReadFile(s.Files(), File(ep.Target.ID, c.Name))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w %s; %s", ErrMissing, w.name, w.again())
		}
		if err == nil {
			w.tape, err = parse(raw)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w; %s", ErrBroken, w.name, err, w.again())
		}
		if at := w.tape.Docket.RecordedAt; at.After(ws.o.Now().Add(clockSkew)) {
			return nil, fmt.Errorf("%w: %s: it says that it was recorded in the future, at %s; %s", ErrBroken, w.name, at.Format(time.RFC3339), w.again())
		}
		if list := w.tape.Docket.differs(now); len(list) > 0 {
			return nil, fmt.Errorf("%w: %s: %s; %s", ErrStale, w.name, strings.Join(list, "; "), w.again())
		}
		options = append(options, recorder.WithMode(recorder.ModeReplayOnly), recorder.WithFS(disk{raw: raw}))
	default:
		return nil, fmt.Errorf("%w: %q", contracts.ErrMode, mode)
	}
	if now.Level == levelSend {
		err = w.overCalls(options)
	} else {
		err = w.overHTTP(ctx, options)
	}
	if err != nil {
		return nil, err
	}
	return w, nil
}

// silence is a writer that is not io.Discard: with that one go-vcr would write requests with their keys to standard error if VCR_DEBUG
// is set.
type silence struct{}

// Write implements io.Writer.
func (silence) Write(p []byte) (int, error) { return len(p), nil }

// wire is one case's.
type wire struct {
	registry *providers.Registry
	task     string
	target   string
	taskRuns int // of the task's contract
	name     string
	endpoint contracts.Endpoint
	ended    func() bool // the run was interrupted
	recorder *recorder.Recorder
	tape     *tape // nil: it is being recorded
	stop     func() error
	once     sync.Once
	closed   error

	mu       sync.Mutex
	took     map[string]time.Duration // by attempt
	requests map[string]*asked        // under way, by the trace context that stands in for theirs
	problems []error
	runs     int // the highest number of a run that was asked for
}

// Endpoint implements contracts.Wire.
func (w *wire) Endpoint() contracts.Endpoint { return w.endpoint }

// Took implements contracts.Wire: the time of the first answer that was served to the attempt, from the request's beginning to the
// answer's last byte at the recorded endpoint. ok is false for an attempt that sent nothing.
func (w *wire) Took(attemptID string) (time.Duration, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d, ok := w.took[attemptID]
	return d, ok
}

// Close implements contracts.Wire. When the case was recorded whole it writes the file, in one step.
func (w *wire) Close() error {
	w.once.Do(func() { w.closed = w.close() })
	return w.closed
}

func (w *wire) close() error {
	err := w.stop()
	w.mu.Lock()
	problems := w.problems
	w.mu.Unlock()
	switch {
	case w.ended():
		return fmt.Errorf("%w: %s: the run was interrupted", ErrNotRecorded, w.name)
	case err != nil:
		return err
	case len(problems) > 0:
		return errors.Join(problems...)
	}
	if err := w.recorder.Stop(); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrNotRecorded, w.name, err)
	}
	return nil
}

// fail keeps what Close will return.
func (w *wire) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.problems = append(w.problems, err)
}

// failed says whether Close will return an error.
func (w *wire) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.problems) > 0
}

// again says how the cassette is recorded anew.
func (w *wire) again() string {
	s := "record it with: docket contracts run --mode record --task " + w.task + " --target " + w.target
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.runs > w.taskRuns {
		s += fmt.Sprintf(" --runs %d", w.runs)
	}
	return s
}
