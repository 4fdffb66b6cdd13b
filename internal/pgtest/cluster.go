package pgtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	superuser      = "postgres"
	stopTimeout    = 20 * time.Second
	pollInterval   = 20 * time.Millisecond
	portTries      = 5
	logTail        = 4 << 10 // bytes of the server's log in an error
	firstPort      = 20000   // below the ports that systems hand out for outgoing connections,
	portsToChoose  = 12000   // so that nobody takes ours while the server is down
	maxConnections = 300
)

// Cluster is one throw-away PostgreSQL server on a loopback port, with its data in a temporary folder. Everybody on this
// machine may connect to it. Its methods may be called from several goroutines.
type Cluster struct {
	programs string
	place    *place
	settings []string
	port     int

	mu      sync.Mutex
	server  *process // nil while the server is down
	stopped bool
}

type process struct {
	cmd    *exec.Cmd
	exited chan struct{}
}

// Start makes a cluster and returns when it takes connections. Settings are PostgreSQL's, as "name=value", and count more
// than the cluster's own: fsync is off (a killed server loses nothing, a crashed machine does), 300 connections. It also
// stops and removes the clusters that crashed tests of this user left behind.
//
// If PostgreSQL is not installed the error wraps ErrNotInstalled and says what to install.
func Start(ctx context.Context, settings ...string) (*Cluster, error) {
	return StartIn(ctx, "", settings...)
}

// StartIn is Start with its data below a folder, which every account can get to; empty is the folder for temporary files.
func StartIn(ctx context.Context, base string, settings ...string) (*Cluster, error) {
	programs, err := FindBinaries()
	if err != nil {
		return nil, err
	}
	account, err := serverAccount()
	if err != nil {
		return nil, err
	}
	if base == "" {
		base = baseFolder(account)
	}
	removeAbandoned(ctx, base)
	place, err := newPlace(base, account)
	if err != nil {
		return nil, err
	}
	c := &Cluster{programs: programs, place: place, settings: settings}
	if err := c.create(ctx); err != nil {
		return nil, errors.Join(err, place.remove())
	}
	return c, nil
}

func (c *Cluster) create(ctx context.Context) error {
	// Trust: the data is nobody's. The C locale orders by bytes, as SQLite does.
	initdb := c.command(ctx, "initdb", "-D", c.place.data(), "-U", superuser,
		"--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, strings.TrimSpace(string(out)))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var failed error
	for range portTries { // somebody may take the port between the look and the start
		port, err := freePort(ctx)
		if err != nil {
			return err
		}
		c.port = port
		if failed = c.start(ctx); failed == nil || ctx.Err() != nil {
			return failed
		}
	}
	return failed
}

// AdminDSN is the address of the postgres database as the superuser.
func (c *Cluster) AdminDSN() string { return c.DSN("postgres") }

// DSN is the address of a database as the superuser. It stays the same over a restart.
func (c *Cluster) DSN(database string) string {
	return fmt.Sprintf("postgres://%s@127.0.0.1:%d/%s?sslmode=disable", superuser, c.port, database)
}

// CreateDatabase makes an empty database and returns its address.
func (c *Cluster) CreateDatabase(ctx context.Context, name string) (dsn string, err error) {
	if err := createDatabase(ctx, c.AdminDSN(), name, ""); err != nil {
		return "", err
	}
	return c.DSN(name), nil
}

// Kill ends the server's first process by SIGKILL, as a crash would; its other processes end when they notice. The
// server stays down until Restart.
func (c *Cluster) Kill() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.signal(os.Kill)
}

// Restart starts the server again on the same port and data, after a fast shutdown if it runs, and returns when it takes
// connections.
func (c *Cluster) Restart(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return errors.New("restart PostgreSQL: the cluster was stopped and its data removed")
	}
	if err := c.signal(syscall.SIGINT); err != nil {
		return err
	}
	for { // after a kill, old processes hold the shared memory for a moment
		err := c.start(ctx)
		if err == nil || !strings.Contains(err.Error(), "shared memory block") {
			return err
		}
		if err := pause(ctx); err != nil {
			return fmt.Errorf("restart PostgreSQL: %w", err)
		}
	}
}

// Stop ends the server at once and removes its data. Further calls do nothing.
func (c *Cluster) Stop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return nil
	}
	c.stopped = true
	return errors.Join(c.signal(syscall.SIGQUIT), c.place.remove())
}

// signal ends the server, if it runs, and waits for its end.
func (c *Cluster) signal(sig os.Signal) error {
	if c.server == nil {
		return nil
	}
	server := c.server
	c.server = nil
	if err := server.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop PostgreSQL: %w", err)
	}
	timeout := time.NewTimer(stopTimeout)
	defer timeout.Stop()
	select {
	case <-server.exited:
		return nil
	case <-timeout.C:
	}
	if err := server.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill PostgreSQL: %w", err)
	}
	<-server.exited
	return nil
}

func (c *Cluster) start(ctx context.Context) error {
	log, err := os.Create(c.place.log())
	if err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	defer func() { _ = log.Close() }() // the server has its own copy
	args := []string{
		"-D", c.place.data(),
		"-c", "listen_addresses=127.0.0.1",
		"-c", "port=" + strconv.Itoa(c.port),
		"-c", "unix_socket_directories=", // paths of temporary folders are too long for sockets on macOS
		"-c", "max_connections=" + strconv.Itoa(maxConnections),
		"-c", "fsync=off",
		"-c", "full_page_writes=off",
		"-c", "logging_collector=off",
	}
	for _, setting := range c.settings {
		args = append(args, "-c", setting)
	}
	// Not bound to ctx: the server outlives the call.
	cmd := c.command(context.WithoutCancel(ctx), "postgres", args...)
	cmd.Stdout, cmd.Stderr = log, log // a pipe of the test's would keep go test waiting
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	server := &process{cmd: cmd, exited: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(server.exited)
	}()
	c.server = server
	if err := c.waitReady(ctx, server); err != nil {
		// The log is read before the folder may be removed.
		err = fmt.Errorf("start PostgreSQL: %w\n%s", err, c.place.logTail())
		return errors.Join(err, c.signal(syscall.SIGQUIT))
	}
	return nil
}

func (c *Cluster) waitReady(ctx context.Context, server *process) error {
	for {
		conn, err := pgx.Connect(ctx, c.AdminDSN())
		if err == nil {
			select {
			case <-server.exited: // it is another server that answers on the port
				err = errors.New("the server ended")
			default:
			}
			return errors.Join(err, conn.Close(ctx))
		}
		select {
		case <-server.exited:
			return errors.New("the server ended")
		default:
		}
		if err := pause(ctx); err != nil {
			return fmt.Errorf("not ready in time: %w", err)
		}
	}
}

// command runs a program as the server's account, with nothing of our environment that PostgreSQL would obey.
func (c *Cluster) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(c.programs, program), args...)
	cmd.Dir = c.place.folder // ours may be closed to the account
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.place.folder, "LC_ALL=C", "TZ=UTC"}
	if libraries, ok := os.LookupEnv("LD_LIBRARY_PATH"); ok {
		cmd.Env = append(cmd.Env, "LD_LIBRARY_PATH="+libraries)
	}
	runAs(cmd, c.place.account)
	return cmd
}

func freePort(ctx context.Context) (int, error) {
	var last error
	for range 100 {
		port := firstPort + rand.IntN(portsToChoose) //nolint:gosec // nobody has to guess it
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			last = err
			continue
		}
		return port, listener.Close()
	}
	return 0, fmt.Errorf("find a free port: %w", last)
}

func pause(ctx context.Context) error {
	timer := time.NewTimer(pollInterval)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
