package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/gofrs/flock"

	"github.com/docket-gateway/docket/contracts"
)

// Journal keeps the answers of a run that is not over in a file of JSON lines, which only its owner may read: it holds what models
// answered. It implements contracts.Journal.
type Journal struct {
	file string
	lock *flock.Flock

	mu      sync.Mutex
	out     *os.File
	answers map[string]contracts.Answer
}

var _ contracts.Journal = (*Journal)(nil)

// ErrJournalInUse says that another run keeps its answers in the file.
var ErrJournalInUse = errors.New("another run uses the journal")

// entry is one line.
type entry struct {
	Step   string           `json:"step"`
	Answer contracts.Answer `json:"answer"`
}

// OpenJournal opens the file for this process alone and takes up the answers in it, or drops them. A last line that was not written
// to its end is cut off; any other damage is an error.
func OpenJournal(file string, resume bool) (_ *Journal, err error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, fmt.Errorf("the journal's folder: %w", err)
	}
	lock := flock.New(file+".lock", flock.SetPermissions(0o600))
	switch locked, err := lock.TryLock(); {
	case err != nil:
		return nil, fmt.Errorf("lock the journal: %w", err)
	case !locked:
		return nil, fmt.Errorf("%w %s; name another one with --journal", ErrJournalInUse, file)
	}
	out, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the journal: %w", err), lock.Unlock())
	}
	j := &Journal{file: file, lock: lock, out: out, answers: map[string]contracts.Answer{}}
	if err := j.begin(resume); err != nil {
		return nil, errors.Join(err, out.Close(), lock.Unlock())
	}
	return j, nil
}

func (j *Journal) begin(resume bool) (err error) {
	// One that was there before may be open to others.
	if err := j.out.Chmod(0o600); err != nil {
		return fmt.Errorf("the journal: %w", err)
	}
	good := int64(0)
	if resume {
		if good, err = j.read(); err != nil {
			return err
		}
	}
	if err := j.out.Truncate(good); err != nil {
		return fmt.Errorf("the journal: %w", err)
	}
	if _, err := j.out.Seek(good, io.SeekStart); err != nil {
		return fmt.Errorf("the journal: %w", err)
	}
	return nil
}

// read returns how many bytes are whole lines.
func (j *Journal) read() (good int64, err error) {
	raw, err := io.ReadAll(j.out)
	if err != nil {
		return 0, fmt.Errorf("read the journal: %w", err)
	}
	for number := 1; len(raw) > 0; number++ {
		line, rest, whole := bytes.Cut(raw, []byte("\n"))
		if !whole {
			break // torn: the process ended while it wrote
		}
		var e entry
		if err := json.Unmarshal(line, &e); err != nil || e.Step == "" {
			return 0, fmt.Errorf("the journal %s is damaged in line %d; without --resume it is begun anew", j.file, number)
		}
		j.answers[e.Step] = e.Answer
		good += int64(len(line)) + 1
		raw = rest
	}
	return good, nil
}

// Len is how many answers there are.
func (j *Journal) Len() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.answers)
}

// Load implements contracts.Journal.
func (j *Journal) Load(step string) (contracts.Answer, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	a, ok := j.answers[step]
	return a, ok
}

// Save implements contracts.Journal.
func (j *Journal) Save(step string, a contracts.Answer) error {
	line, err := json.Marshal(entry{step, a})
	if err != nil {
		return fmt.Errorf("the journal: %w", err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.answers[step] = a
	if _, err := j.out.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	return nil
}

// Close deletes the file if the run is finished or there is nothing in it. It returns how many answers are kept.
func (j *Journal) Close(finished bool) (kept int, err error) {
	kept = j.Len()
	errs := []error{j.out.Sync(), j.out.Close()}
	if finished || kept == 0 {
		kept = 0
		errs = append(errs, remove(j.file))
	}
	_ = os.Remove(j.file + ".lock") // where an open file cannot be removed it stays, empty
	errs = append(errs, j.lock.Unlock())
	if err := errors.Join(errs...); err != nil {
		return kept, fmt.Errorf("close the journal: %w", err)
	}
	return kept, nil
}

func remove(file string) error {
	if err := os.Remove(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
