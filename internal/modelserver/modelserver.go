// Package modelserver runs a real model server for the tests: llama.cpp in Node.js (node-llama-cpp) behind OpenAI's Chat
// Completions, with a tiny model of random weights that NoiseModel writes. Tokenizer, sampling, grammar and streaming are
// real; only the words mean nothing. The server itself is server/server.mjs and serves any GGUF model.
//
// It imports internal/npm and nothing else of this module, and is imported by tests and by internal/check only.
package modelserver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Options are a server's. Only Model must be given.
type Options struct {
	Model    string // file
	Context  int    // tokens of a prompt and its completion together, for each request [8192]
	Parallel int    // completions at a time [2]
}

// Server is a running one. Its methods may be called from several goroutines.
type Server struct {
	// URL is where it listens, without /v1: http://127.0.0.1:port.
	URL string

	cmd    *exec.Cmd
	stdin  io.Closer
	errors lines
	done   lines
	exited chan struct{}
}

// Completion is one that the server is done with, as it logs it.
type Completion struct {
	Request          string // X-Client-Request-Id
	Finish           string // stop, length, or abandoned: the client went before the end
	Texts            int    // pieces of text that came
	PromptTokens     int    `json:"prompt_tokens"`
	CompletionTokens int    `json:"completion_tokens"`
}

// Start runs the server and returns when it is ready. It ends with Stop, or with this process.
func (in Installed) Start(ctx context.Context, o Options) (*Server, error) {
	if o.Context == 0 {
		o.Context = 8192
	}
	if o.Parallel == 0 {
		o.Parallel = 2
	}
	s := &Server{exited: make(chan struct{})}
	// One thread: llama.cpp's threads wait for each other by spinning, which on a busy machine takes a hundred times as long.
	s.cmd = exec.CommandContext(context.WithoutCancel(ctx), in.node, filepath.Join(in.folder, "server.mjs"),
		"--model", o.Model, "--name", "noise", "--port", "0", "--threads", "1", "--until-stdin-ends",
		"--context", strconv.Itoa(o.Context), "--parallel", strconv.Itoa(o.Parallel))
	stdin, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("model server: %w", err)
	}
	s.stdin = stdin
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("model server: %w", err)
	}
	s.cmd.Stderr = &s.errors
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("model server: %w", err)
	}
	ready := make(chan string, 1)
	go s.follow(stdout, ready)
	select {
	case s.URL = <-ready:
		return s, nil
	case <-s.exited:
		return nil, fmt.Errorf("model server: it ended: %s\n%s", s.cmd.ProcessState, s.Log())
	case <-ctx.Done():
		return nil, errors.Join(fmt.Errorf("model server: it is not ready: %w\n%s", ctx.Err(), s.Log()), s.Stop())
	}
}

// follow reads what the server prints until it ends.
func (s *Server) follow(stdout io.Reader, ready chan<- string) {
	defer close(s.exited)
	for in := bufio.NewScanner(stdout); in.Scan(); {
		var first struct{ Listening string }
		if json.Unmarshal(in.Bytes(), &first) == nil && first.Listening != "" {
			ready <- first.Listening
			continue
		}
		_, _ = s.done.Write(append(slices.Clone(in.Bytes()), '\n'))
	}
	_ = s.cmd.Wait() // how it ended is in ProcessState
}

// Completions are those that the server is done with, in order.
func (s *Server) Completions() ([]Completion, error) {
	var out []Completion
	for line := range strings.Lines(s.done.String()) {
		var c Completion
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			return nil, fmt.Errorf("model server: it logged %q: %w", line, err)
		}
		out = append(out, c)
	}
	return out, nil
}

// Running tells how many pieces of text each completion has that is being generated now.
func (s *Server) Running(ctx context.Context) ([]int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/running", nil)
	if err != nil {
		return nil, fmt.Errorf("model server: %w", err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("model server: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	var told []struct{ Texts int }
	if err := json.NewDecoder(res.Body).Decode(&told); err != nil {
		return nil, fmt.Errorf("model server: %w", err)
	}
	texts := make([]int, len(told))
	for i, c := range told {
		texts[i] = c.Texts
	}
	return texts, nil
}

// Log is what went wrong in the server, in its own words.
func (s *Server) Log() string { return s.errors.String() }

// Stop ends the server at once.
func (s *Server) Stop() error {
	_ = s.stdin.Close()
	if err := s.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("model server: %w", err)
	}
	<-s.exited
	return nil
}

// lines is text that one side writes and another one reads.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
