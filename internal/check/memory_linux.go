package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const (
	memoryFolder  = "/dev/shm"
	memoryPrefix  = "docket-check-"
	memoryNeeded  = 4 << 30 // bytes free; containers often have 64 MiB here
	memoryFSMagic = 0x01021994
)

// memory makes a folder in memory for the tests' files, and removes those of runs that were killed. It is empty where there is
// none with room: the ordinary folder for temporary files serves too. A database per test is hundreds of files made and removed,
// which costs a disk's file system more than all statements in them.
func memory() (folder string, remove func() error, err error) {
	return memoryIn(memoryFolder, memoryNeeded)
}

func memoryIn(base string, needed uint64) (folder string, remove func() error, err error) {
	none := func() error { return nil }
	if !hasRoom(base, needed) {
		return "", none, nil
	}
	removeAbandoned(base)
	folder = filepath.Join(base, memoryPrefix+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(folder, 0o700); err != nil {
		return "", none, fmt.Errorf("make a folder in memory: %w", err)
	}
	// PostgreSQL runs under another account if this is root, and must get through.
	if err := os.Chmod(folder, 0o711); err != nil { //nolint:gosec // see above
		return "", none, fmt.Errorf("make a folder in memory: %w", err)
	}
	return folder, func() error { return os.RemoveAll(folder) }, nil
}

func hasRoom(folder string, needed uint64) bool {
	var fs syscall.Statfs_t
	return syscall.Statfs(folder, &fs) == nil && fs.Type == memoryFSMagic && fs.Bavail*uint64(fs.Bsize) >= needed
}

func removeAbandoned(base string) {
	folders, err := filepath.Glob(filepath.Join(base, memoryPrefix+"*"))
	if err != nil {
		return
	}
	for _, folder := range folders {
		pid, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(folder), memoryPrefix))
		if err == nil && syscall.Kill(pid, 0) == syscall.ESRCH {
			_ = os.RemoveAll(folder)
		}
	}
}
