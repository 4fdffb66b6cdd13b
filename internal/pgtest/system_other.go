//go:build !unix || solaris || illumos || aix

package pgtest

import (
	"context"
	"errors"
	"os"
	"os/exec"
)

func serverAccount() (*account, error) {
	return nil, errors.New("throw-away servers need Linux, macOS or a BSD; set " + EnvAdminDSN +
		" to the address of a running server whose user may create databases")
}

func runAs(*exec.Cmd, *account) {}

func tryLock(*os.File) (bool, error) { return false, errors.ErrUnsupported }

func isOurs(os.FileInfo) bool { return false }

func worksIn(context.Context, int, string) bool { return false }
