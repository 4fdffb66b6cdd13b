// Package program builds Docket and runs it as processes of its own, for tests in which processes die.
//
// It imports internal/logtest and is imported by tests and their command only.
package program

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// module is what is built.
const module = "github.com/docket-gateway/docket"

// Race are the flags that give a program the race detector. It is kept out of the one package that is C made Go by a program: it finds
// nothing in its memory, which is none of Go's, and triples its cost. No package with generics may be left out: the linker would take their
// code without the detector for everybody.
func Race() []string {
	return []string{
		"-race", "-gcflags=modernc.org/sqlite/lib=-race=false",
		// They count with addresses, as C does; the detector itself still watches them.
		"-gcflags=modernc.org/sqlite=-d=checkptr=0", "-gcflags=modernc.org/libc=-d=checkptr=0", "-gcflags=modernc.org/memory=-d=checkptr=0",
	}
}

// Build compiles Docket into the folder and returns the program's path.
func Build(ctx context.Context, folder string, flags ...string) (string, error) {
	path := filepath.Join(folder, "docket")
	args := append([]string{"build", "-o", path}, flags...)
	if out, err := exec.CommandContext(ctx, "go", append(args, module)...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the program: %w\n%s", err, out)
	}
	return path, nil
}

// Overlay writes what `go build -overlay` reads: the given texts stand in for the files of these absolute paths, which
// need not exist. It returns the flag.
func Overlay(folder string, texts map[string]string) (flag string, err error) {
	replace := map[string]string{}
	for i, file := range sorted(texts) {
		copied := filepath.Join(folder, fmt.Sprintf("overlay-%d%s", i, filepath.Ext(file)))
		if err := os.WriteFile(copied, []byte(texts[file]), 0o600); err != nil {
			return "", fmt.Errorf("write an overlay: %w", err)
		}
		replace[file] = copied
	}
	raw, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", fmt.Errorf("write an overlay: %w", err)
	}
	path := filepath.Join(folder, "overlay.json")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		return "", fmt.Errorf("write an overlay: %w", err)
	}
	return "-overlay=" + path, nil
}

func sorted(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
