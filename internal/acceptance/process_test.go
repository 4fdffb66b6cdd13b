package acceptance

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// process is a gateway as a program of its own, and a client of it.
type process struct {
	*client

	cmd    *exec.Cmd
	log    *processLog
	exited chan struct{}
}

// serve starts `docket serve` and returns when it says that it is ready.
func (s settings) serve(t *testing.T) *process {
	t.Helper()
	return run(t, t.TempDir(), nil, "serve", "--config", s.write(t))
}

// run starts the program in a folder, with nothing of Docket in its environment but what is given.
func run(t *testing.T, dir string, environ []string, args ...string) *process {
	t.Helper()
	path, err := program()
	require.NoError(t, err)
	p := &process{log: &processLog{ready: make(chan string, 1)}, exited: make(chan struct{})}
	p.cmd = exec.CommandContext(context.WithoutCancel(t.Context()), path, args...)
	p.cmd.Dir = dir
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "DOCKET_") {
			p.cmd.Env = append(p.cmd.Env, e)
		}
	}
	p.cmd.Env = append(p.cmd.Env, environ...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	require.NoError(t, p.cmd.Start())
	go func() {
		_ = p.cmd.Wait() // how it ended is in ProcessState
		close(p.exited)
	}()
	t.Cleanup(func() {
		p.kill(t)
		if t.Failed() {
			t.Logf("the log of process %d:\n%s", p.cmd.Process.Pid, p.log)
		}
		require.NotContains(t, p.log.String(), "DATA RACE")
	})
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case url := <-p.log.ready:
		p.client = newClient(t, strings.Trim(strings.TrimPrefix(url, "http://"), "/"))
	case <-p.exited:
		t.Fatalf("the program ended: %s", p.cmd.ProcessState)
	case <-late.C:
		t.Fatalf("the program is not ready after %s", patience)
	}
	return p
}

// kill is kill -9. A process that has ended is left alone.
func (p *process) kill(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		require.ErrorIs(t, err, os.ErrProcessDone)
	}
	<-p.exited
}

// terminate asks the process to end.
func (p *process) terminate(t *testing.T) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
}

// exits waits for the end and requires it to be a good one.
func (p *process) exits(t *testing.T) {
	t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-p.exited:
		require.Zero(t, p.cmd.ProcessState.ExitCode())
	case <-late.C:
		t.Fatalf("the process does not end in %s", patience)
	}
}

// processLog finds the address in the log's lines.
type processLog struct {
	logBuffer

	once  sync.Once
	ready chan string
}

func (l *processLog) Write(p []byte) (int, error) {
	n, err := l.logBuffer.Write(p)
	text := l.String()
	for line := range strings.Lines(text) {
		var entry struct{ Msg, URL string }
		if strings.HasSuffix(line, "\n") && json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "docket is ready" {
			l.once.Do(func() { l.ready <- entry.URL })
		}
	}
	return n, errors.Join(err)
}
