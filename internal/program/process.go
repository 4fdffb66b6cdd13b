package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"

	"github.com/docket-gateway/docket/internal/logtest"
)

// Process is a running program. Its methods may be called from several goroutines.
type Process struct {
	// URL is where it listens: http://127.0.0.1:port.
	URL string

	cmd    *exec.Cmd
	log    *log
	exited chan struct{}
}

// Command is what to run.
type Command struct {
	Path   string   // of the program
	Dir    string   // its working directory
	Env    []string // beside what is in our environment and is not Docket's
	Args   []string
	Output io.Writer // gets a copy of what the program prints, if not nil
}

// Start runs `docket serve`, say, and returns when the program says that it is ready. It does not outlive ctx if that ends
// before; afterwards it runs until it is killed.
func Start(ctx context.Context, c Command) (*Process, error) {
	p := &Process{log: &log{ready: make(chan string, 1), copy: c.Output}, exited: make(chan struct{})}
	p.cmd = exec.CommandContext(context.WithoutCancel(ctx), c.Path, c.Args...)
	p.cmd.Dir = c.Dir
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "DOCKET_") {
			p.cmd.Env = append(p.cmd.Env, e)
		}
	}
	p.cmd.Env = append(p.cmd.Env, c.Env...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the program: %w", err)
	}
	go func() {
		_ = p.cmd.Wait() // how it ended is in ProcessState
		close(p.exited)
	}()
	select {
	case url := <-p.log.ready:
		p.URL = strings.TrimRight(url, "/")
		return p, nil
	case <-p.exited:
		return nil, fmt.Errorf("the program ended: %s\n%s", p.cmd.ProcessState, p.Log())
	case <-ctx.Done():
		return nil, errors.Join(fmt.Errorf("the program is not ready: %w\n%s", ctx.Err(), p.Log()), p.Kill())
	}
}

// Kill is kill -9. A process that has ended is left alone.
func (p *Process) Kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill the program: %w", err)
	}
	<-p.exited
	return nil
}

// Signal sends a signal, such as SIGSTOP.
func (p *Process) Signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("signal the program: %w", err)
	}
	return nil
}

// Terminate asks the program to end and waits for it. It fails if the program does not end well.
func (p *Process) Terminate(ctx context.Context) error {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.exited:
	case <-ctx.Done():
		return fmt.Errorf("the program does not end: %w", ctx.Err())
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("the program ended with %s", p.cmd.ProcessState)
	}
	return nil
}

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// ExitCode is that of a process that has ended.
func (p *Process) ExitCode() int { return p.cmd.ProcessState.ExitCode() }

// PID is the process's number.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Log is what the program has printed.
func (p *Process) Log() string { return p.log.String() }

// log keeps what a program prints and finds the address in it.
type log struct {
	logtest.Buffer

	copy io.Writer

	mu    sync.Mutex
	part  []byte // of a line whose end has not come
	once  sync.Once
	ready chan string
}

// Write looks for the line that says where the program listens, in its JSON log.
func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.Buffer.Write(p) // never fails
	l.part = append(l.part, p...)
	for {
		line, rest, whole := bytes.Cut(l.part, []byte("\n"))
		if !whole {
			break
		}
		l.part = rest
		var entry struct{ Msg, URL string }
		if json.Unmarshal(line, &entry) == nil && entry.Msg == "docket is ready" {
			l.once.Do(func() { l.ready <- entry.URL })
		}
	}
	if l.copy != nil {
		_, _ = l.copy.Write(p) // a copy only
	}
	return len(p), nil
}
