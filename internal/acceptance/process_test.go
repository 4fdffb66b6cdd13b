package acceptance

import (
	"context"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/program"
)

// process is a gateway as a program of its own, and a client of it.
type process struct {
	*client
	*program.Process
}

// serve starts `docket serve` and returns when it says that it is ready.
func (s settings) serve(t *testing.T) *process {
	t.Helper()
	return run(t, t.TempDir(), nil, "serve", "--config", s.write(t))
}

// run starts the program in a folder, with nothing of Docket in its environment but what is given.
func run(t *testing.T, dir string, environ []string, args ...string) *process {
	t.Helper()
	path, err := built()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), await.Patience)
	defer cancel()
	started, err := program.Start(ctx, program.Command{Path: path, Dir: dir, Env: environ, Args: args})
	require.NoError(t, err)
	p := &process{Process: started, client: newClient(t, strings.TrimPrefix(started.URL, "http://"))}
	t.Cleanup(func() {
		p.kill(t)
		if t.Failed() {
			t.Logf("the log of process %d:\n%s", p.PID(), p.Log())
		}
		require.NotContains(t, p.Log(), "DATA RACE")
	})
	return p
}

// kill is kill -9. A process that has ended is left alone.
func (p *process) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, p.Kill())
}

// terminate asks the process to end.
func (p *process) terminate(t *testing.T) {
	t.Helper()
	require.NoError(t, p.Signal(syscall.SIGTERM))
}

// exits waits for the end and requires it to be a good one.
func (p *process) exits(t *testing.T) {
	t.Helper()
	await.Receive(t, "the end of the process", p.Exited())
	require.Zero(t, p.ExitCode())
}
