package balancer

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/config"
	"github.com/docket-gateway/docket/internal/logtest"
)

// kind is one of the two programs, with the configuration that is shipped for it.
type kind struct {
	file  string // in deploy
	find  func() (string, error)
	paths map[string]string // what is replaced beside addresses; DIR is a folder of the test's
	check func(file, dir string) []string
	run   func(file, dir string) []string
}

var kinds = map[string]kind{
	"nginx": {
		file: "nginx.conf", find: FindNginx,
		paths: map[string]string{
			"user www-data;":  asOneself(),
			"/var/log/nginx/": "DIR/",
			"http {\n": "http { client_body_temp_path DIR/b; proxy_temp_path DIR/p; fastcgi_temp_path DIR/f; " +
				"uwsgi_temp_path DIR/u; scgi_temp_path DIR/s;\n",
		},
		check: func(file, dir string) []string { return []string{"-t", "-q", "-c", file, "-g", "pid " + dir + "/pid;"} },
		run:   func(file, dir string) []string { return []string{"-c", file, "-g", "daemon off; pid " + dir + "/pid;"} },
	},
	"HAProxy": {
		file: "haproxy.cfg", find: FindHAProxy,
		paths: map[string]string{"    user haproxy": "", "    group haproxy": "", "    chroot /var/lib/haproxy": ""},
		check: func(file, _ string) []string { return []string{"-c", "-q", "-f", file} },
		run:   func(file, _ string) []string { return []string{"-db", "-f", file} },
	},
}

// asOneself lets root's nginx read a folder that is root's.
func asOneself() string {
	if os.Geteuid() == 0 {
		return "user root;"
	}
	return ""
}

func shipped(t *testing.T, file string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "deploy", file))
	require.NoError(t, err)
	return string(raw)
}

// fill puts addresses and paths into the shipped file, as its lines marked CHANGE and docs/load-balancing.md say, and changes
// nothing else but what the pairs say.
func (k kind) fill(t *testing.T, dir, listen string, replicas []*replica, pairs ...string) (path string) {
	t.Helper()
	text := shipped(t, k.file)
	changes := map[string]string{
		"listen 80;": "listen " + listen + ";", "bind :80 ": "bind " + listen + " ",
		"10.0.0.11:8080": replicas[0].addr, "10.0.0.12:8080": replicas[1].addr,
	}
	for from, to := range k.paths {
		require.Contains(t, text, from)
		changes[from] = strings.ReplaceAll(to, "DIR", dir)
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		require.Contains(t, text, pairs[i])
		changes[pairs[i]] = pairs[i+1]
	}
	for from, to := range changes {
		text = strings.ReplaceAll(text, from, to)
	}
	path = filepath.Join(dir, k.file)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// running is a balancer's process.
type running struct {
	client

	kind   kind
	cmd    *exec.Cmd
	dir    string
	file   string
	output *logtest.Buffer
}

func (k kind) start(t *testing.T, replicas []*replica, pairs ...string) *running {
	t.Helper()
	path, err := k.find()
	require.NoError(t, err)
	listen, dir := freeAddress(t), t.TempDir()
	b := &running{client: client{"http://" + listen}, kind: k, dir: dir, file: k.fill(t, dir, listen, replicas, pairs...), output: &logtest.Buffer{}}
	b.cmd = exec.CommandContext(context.WithoutCancel(t.Context()), path, k.run(b.file, dir)...)
	b.cmd.Stdout, b.cmd.Stderr = b.output, b.output
	require.NoError(t, b.cmd.Start())
	exited := make(chan struct{})
	go func() {
		_ = b.cmd.Wait() // it is told to end
		close(exited)
	}()
	t.Cleanup(func() {
		_ = b.cmd.Process.Signal(syscall.SIGTERM)
		<-exited
		if t.Failed() {
			t.Logf("what %s says:\n%s", k.file, b.log(t))
		}
	})
	await.Until(t, "the balancer listens", func() bool {
		select {
		case <-exited:
			t.Fatalf("the balancer ended:\n%s", b.log(t))
		default:
		}
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", listen)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	return b
}

// log is all that it has written.
func (b *running) log(t *testing.T) string {
	t.Helper()
	all := b.output.String()
	for _, name := range []string{"error.log", "docket.log"} {
		if raw, err := os.ReadFile(filepath.Join(b.dir, name)); err == nil {
			all += string(raw)
		}
	}
	return all
}

func TestProgramsAcceptTheShippedFilesAndTheirCheckMeansSomething(t *testing.T) {
	t.Parallel()
	replicas := []*replica{{wire: &wire{addr: "127.0.0.1:1"}}, {wire: &wire{addr: "127.0.0.1:2"}}}
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, err := k.find()
			require.NoError(t, err)
			dir := t.TempDir()
			file := k.fill(t, dir, freeAddress(t), replicas)
			out, err := exec.CommandContext(t.Context(), path, k.check(file, dir)...).CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Empty(t, out, "not even a warning")

			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(file, bytes.Replace(text, []byte(" 2s"), []byte(" two seconds"), 1), 0o600))
			require.Error(t, exec.CommandContext(t.Context(), path, k.check(file, dir)...).Run())
		})
	}
}

// Every request that Docket takes can be sent again, or a balancer's limits would be noticed only on the worst day.
func TestBuffersHoldTheLargestRequest(t *testing.T) {
	t.Parallel()
	body := int(config.Default().Limits.Body)
	const headers = 64 << 10 // MaxHeaderBytes of the gateway
	number := func(file, pattern string) int {
		t.Helper()
		found := regexp.MustCompile(`(?m)^\s*` + pattern).FindStringSubmatch(shipped(t, file))
		require.Len(t, found, 2, pattern)
		n, err := strconv.Atoi(found[1])
		require.NoError(t, err)
		return n
	}
	require.GreaterOrEqual(t, number("haproxy.cfg", `tune\.bufsize (\d+)$`), body+headers+number("haproxy.cfg", `tune\.maxrewrite (\d+)$`))
	require.Equal(t, body, number("nginx.conf", `client_max_body_size (\d+)m;`)<<20)
	require.NotContains(t, shipped(t, "nginx.conf"), "proxy_request_buffering off")
	require.Contains(t, shipped(t, "haproxy.cfg"), "\n    option http-buffer-request\n", "or what comes in pieces is not kept")
}
