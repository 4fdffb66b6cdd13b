package webclients

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	typescript "github.com/docket-gateway/docket/clients/typescript"
	"github.com/docket-gateway/docket/internal/app"
	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/config"
	"github.com/docket-gateway/docket/internal/logtest"
	"github.com/docket-gateway/docket/internal/store/storetest"
)

// installing bounds npm, which fetches about 60 MB the first time.
const installing = 15 * time.Minute

var databases = storetest.New()

// folders is where programs are put together, gone when the tests are over.
var folders string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "docket-webclients-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	folders = dir
	databases.Main(m)
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// workshop has the programs and their packages in two folders.
type workshop struct {
	node    string
	clients string // the programs of node
	own     string // the TypeScript client, compiled into dist and build
}

// built puts the workshop together, once.
var built = sync.OnceValues(func() (*workshop, error) {
	ctx, cancel := context.WithTimeout(context.Background(), installing)
	defer cancel()
	in, err := Install(ctx)
	if err != nil {
		return nil, err
	}
	w := &workshop{node: in.own.Node, clients: filepath.Join(folders, "clients"), own: filepath.Join(folders, "own")}
	files, err := fs.Sub(programs, "node")
	if err != nil {
		return nil, err
	}
	// Packages are found by the folders above a file, and seen as if they lay here.
	modules := filepath.Join(w.clients, "node_modules")
	for _, step := range []func() error{
		func() error { return os.CopyFS(w.clients, files) },
		func() error { return os.CopyFS(w.own, typescript.Sources) },
		func() error {
			return os.Symlink(filepath.Join(in.own.Folder, "node_modules"), filepath.Join(w.own, "node_modules"))
		},
		func() error { return w.compile(ctx) },
		func() error { return os.MkdirAll(filepath.Join(modules, "@docket-gateway"), 0o750) },
		func() error { return os.Symlink(w.own, filepath.Join(modules, "@docket-gateway", "client")) },
		func() error { return link(filepath.Join(in.clients.Folder, "node_modules"), modules) },
	} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("put the clients together: %w", err)
		}
	}
	return w, nil
})

// link makes a link to every package.
func link(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.Symlink(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// compile checks the types of the client and of its tests, makes JavaScript of both, and the manifest of the client's documents.
func (w *workshop) compile(ctx context.Context) error {
	const tsc = "node_modules/typescript/bin/tsc"
	for _, args := range [][]string{{tsc, "-p", "tsconfig.json"}, {"manifest.mjs"}, {tsc, "-p", "tsconfig.test.json"}} {
		cmd := exec.CommandContext(ctx, w.node, args...)
		cmd.Dir = w.own
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("node %s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	return nil
}

func open(t *testing.T) *workshop {
	t.Helper()
	w, err := built()
	require.NoError(t, err)
	return w
}

// run runs a program to its good end and returns what it printed.
func (w *workshop) run(t *testing.T, folder string, env []string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*await.Patience) // the programs have one of their own
	defer cancel()
	cmd := exec.CommandContext(ctx, w.node, args...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	require.NoError(t, err, "node %s\n%s\n%s", strings.Join(args, " "), out.String(), errs.String())
	return out.String()
}

// gateways runs n on one database until the test ends, and returns their endpoints.
func gateways(t *testing.T, n int, change func(*config.Config)) (urls []string) {
	t.Helper()
	dsn := databases.DSN(t)
	for range n {
		cfg := config.Default()
		change(cfg)
		cfg.Listen, cfg.Database = "127.0.0.1:0", config.NewDSN(dsn)
		cfg.Tasks = []string{filepath.Join("..", "..", "contracts", "tasks")}
		log := &logtest.Buffer{}
		g, err := app.Start(t.Context(), cfg, slog.New(slog.NewJSONHandler(log, nil)))
		require.NoError(t, err, "%s", log)
		t.Cleanup(func() {
			// What is still under way is cut off.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 50*time.Millisecond)
			defer cancel()
			require.NoError(t, g.Stop(ctx))
			if t.Failed() {
				t.Logf("the gateway's log:\n%s", log)
			}
		})
		urls = append(urls, "http://"+g.Addr()+"/graphql")
	}
	return urls
}
