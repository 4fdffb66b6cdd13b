package command

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/report"
)

// How often progress is told.
const (
	everyOnTerminal = 100 * time.Millisecond
	everyElsewhere  = 30 * time.Second
)

// progress tells how far a run is: on a terminal in one line that is written over, elsewhere in a line now and then.
type progress struct {
	out      io.Writer
	terminal bool
	quiet    bool
	now      func() time.Time

	mu             sync.Mutex
	begun, told    time.Time
	steps, done    int
	targets, ended int
	line           bool // one is on the screen that is to be written over
}

var _ contracts.Progress = (*progress)(nil)

func newProgress(std Streams, quiet bool) *progress {
	now := time.Now()
	return &progress{out: std.Err, terminal: std.Terminal, quiet: quiet, now: time.Now, begun: now, told: now}
}

// Begins implements contracts.Progress.
func (p *progress) Begins(_, _ string, steps int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.steps += steps
	p.targets++
}

// Done implements contracts.Progress.
func (p *progress) Done(string, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	every := everyElsewhere
	if p.terminal {
		every = everyOnTerminal
	}
	if now := p.now(); !p.quiet && now.Sub(p.told) >= every {
		p.told = now
		p.tell()
	}
}

// tell is called with the lock held.
func (p *progress) tell() {
	text := fmt.Sprintf("%d of %d steps, %d of %d contracts, %s", p.done, p.steps, p.ended, p.targets, p.left())
	if !p.terminal {
		_, _ = fmt.Fprintln(p.out, text)
		return
	}
	_, _ = fmt.Fprint(p.out, "\r\x1b[K"+text)
	p.line = true
}

// left is the time that the rest takes if it goes on as it did.
func (p *progress) left() string {
	if p.done == 0 || p.done >= p.steps {
		return "about to end"
	}
	each := p.now().Sub(p.begun) / time.Duration(p.done)
	return fmt.Sprintf("about %s left", (each * time.Duration(p.steps-p.done)).Round(time.Second))
}

// finished tells of one contract.
func (p *progress) finished(r report.Result) {
	p.mu.Lock()
	p.ended++
	p.mu.Unlock()
	if p.quiet {
		return
	}
	word := "passed"
	if !r.Passed {
		word = "FAILED"
	}
	p.say("%s at %s: %s in %s", r.Task, r.Target, word, r.FinishedAt.Sub(r.StartedAt).Round(time.Millisecond))
}

// say writes a line, also if it is to be quiet: it is no progress.
func (p *progress) say(format string, args ...any) { p.text(fmt.Sprintf(format, args...) + "\n") }

func (p *progress) text(s string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	_, _ = io.WriteString(p.out, s)
}

func (p *progress) clear() {
	if p.line {
		_, _ = io.WriteString(p.out, "\r\x1b[K")
		p.line = false
	}
}

// end takes the line away.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}
