// Package logtest keeps what is logged for tests that look at it.
//
// It imports nothing of this module and is imported by tests, and by what runs programs for them.
package logtest

import (
	"bytes"
	"strings"
	"sync"
)

// Buffer keeps what is written to it. Its zero value is empty, and it may be written to and read from several goroutines.
type Buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer. It never fails.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String is what was written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// Lines are the whole lines that were written so far, without their ends.
func (b *Buffer) Lines() []string {
	lines := strings.Split(b.String(), "\n")
	return lines[:len(lines)-1]
}
