package modelserver

import (
	"context"
	"os"
	"path/filepath"
	"time"
)

// TB is what Start needs of a test.
type TB interface {
	Helper()
	Context() context.Context
	TempDir() string
	Cleanup(func())
	Failed() bool
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// startTimeout bounds installing and starting; the first time of all, npm fetches about 50 MB.
const startTimeout = 10 * time.Minute

// Start runs a server with the noise model until the test ends. A machine without Node.js or npm fails the test, which then
// says what to install. Options.Model is not looked at.
func Start(t TB, o Options) *Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	installed, err := Install(ctx)
	if err != nil {
		t.Fatalf("%v", err)
	}
	o.Model = filepath.Join(t.TempDir(), "noise.gguf")
	if err := os.WriteFile(o.Model, NoiseModel(1), 0o600); err != nil {
		t.Fatalf("write the model: %v", err)
	}
	s, err := installed.Start(ctx, o)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the model server's log:\n%s", s.Log())
		}
		if err := s.Stop(); err != nil {
			t.Logf("%v", err)
		}
	})
	return s
}
