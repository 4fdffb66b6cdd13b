package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const placePrefix = "docket-pgtest-"

// account is whom the server runs as; nil is the user of this process.
type account struct {
	name     string
	uid, gid uint32
}

// place is a cluster's folder. Its owner holds a lock on a file beside it, which the system releases when the owner dies
// in whatever way: a folder without a held lock is abandoned.
type place struct {
	folder  string
	account *account
	lock    *os.File
}

// baseFolder is the folder for temporary files, or /tmp if the account cannot get there.
func baseFolder(account *account) string {
	base := os.TempDir()
	if account == nil {
		return base
	}
	for folder := base; ; folder = filepath.Dir(folder) {
		info, err := os.Stat(folder)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return "/tmp"
		}
		if folder == filepath.Dir(folder) {
			return base
		}
	}
}

func newPlace(base string, account *account) (*place, error) {
	// The lock is held before the folder exists, so that no folder of a living owner is ever seen without.
	lock, err := os.CreateTemp(base, placePrefix+strconv.Itoa(os.Getpid())+"-*.lock")
	if err != nil {
		return nil, fmt.Errorf("make a folder for PostgreSQL: %w", err)
	}
	p := &place{folder: strings.TrimSuffix(lock.Name(), ".lock"), account: account, lock: lock}
	if err := p.make(); err != nil {
		return nil, errors.Join(fmt.Errorf("make a folder for PostgreSQL: %w", err), p.remove())
	}
	return p, nil
}

func (p *place) make() error {
	if locked, err := tryLock(p.lock); err != nil || !locked {
		return errors.Join(errors.New("lock "+p.lock.Name()), err)
	}
	if p.account == nil {
		return errors.Join(os.Mkdir(p.folder, 0o700), os.Mkdir(p.data(), 0o700))
	}
	if err := os.Mkdir(p.folder, 0o700); err != nil {
		return err
	}
	// The account must get through to its data, and no further.
	if err := os.Chmod(p.folder, 0o711); err != nil { //nolint:gosec // see above
		return err
	}
	if err := os.Mkdir(p.data(), 0o700); err != nil {
		return err
	}
	return os.Chown(p.data(), int(p.account.uid), int(p.account.gid))
}

func (p *place) data() string { return filepath.Join(p.folder, "data") }

func (p *place) log() string { return filepath.Join(p.folder, "server.log") }

func (p *place) logTail() string {
	content, err := os.ReadFile(p.log())
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(content[max(0, len(content)-logTail):]))
}

// remove gives the lock up last.
func (p *place) remove() error {
	return errors.Join(os.RemoveAll(p.folder), os.Remove(p.lock.Name()), p.lock.Close())
}

// removeAbandoned stops and removes the clusters whose owners died. What it cannot remove it leaves for the next run: it
// must never be the reason that a test fails.
func removeAbandoned(ctx context.Context, base string) {
	folders, err := filepath.Glob(filepath.Join(base, placePrefix+"*"))
	if err != nil {
		return
	}
	for _, folder := range folders {
		info, err := os.Lstat(folder)
		if err != nil || !info.IsDir() || !isOurs(info) {
			continue
		}
		lock, err := os.OpenFile(folder+".lock", os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			continue
		}
		if locked, err := tryLock(lock); err != nil || !locked {
			_ = lock.Close()
			continue
		}
		abandoned := &place{folder: folder, lock: lock}
		killServer(ctx, abandoned.data())
		_ = abandoned.remove()
	}
}

// killServer ends the server that works in a data folder, if one does.
func killServer(ctx context.Context, data string) {
	content, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return
	}
	line, _, _ := strings.Cut(string(content), "\n")
	pid, err := strconv.Atoi(line)
	if err != nil || pid <= 1 || !worksIn(ctx, pid, data) {
		return
	}
	if process, err := os.FindProcess(pid); err == nil {
		_ = process.Kill()
	}
}
