//go:build unix && !solaris && !illumos && !aix

package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// serverAccount is the unprivileged account that the server runs as if we are root, which PostgreSQL refuses to be.
func serverAccount() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // nil is "as we are"
	}
	return unprivileged(user.Lookup, "postgres", "nobody")
}

func unprivileged(lookup func(string) (*user.User, error), names ...string) (*account, error) {
	for _, name := range names {
		found, err := lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(found.Uid, 10, 32)
		if err != nil || uid == 0 {
			continue
		}
		gid, err := strconv.ParseUint(found.Gid, 10, 32)
		if err != nil {
			continue
		}
		return &account{name: name, uid: uint32(uid), gid: uint32(gid)}, nil
	}
	return nil, fmt.Errorf("PostgreSQL refuses to run as root, and there is no other account for it: add one of %s",
		strings.Join(names, ", "))
}

// runAs also takes the command out of our process group: an interrupt at the terminal is for the tests, which then stop
// their server themselves.
func runAs(cmd *exec.Cmd, account *account) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if account != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: account.uid, Gid: account.gid}
	}
}

func tryLock(file *os.File) (bool, error) {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// isOurs keeps us from acting on what another user put into the common folder.
func isOurs(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// worksIn reports whether a process was started on a data folder: the id may be another program's by now.
func worksIn(ctx context.Context, pid int, data string) bool {
	if commandLine, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil {
		return strings.Contains(string(commandLine), data)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	commandLine, err := exec.CommandContext(ctx, "ps", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && strings.Contains(string(commandLine), data)
}
