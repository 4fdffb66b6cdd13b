// Package tasks loads task definitions: folders of task.yaml, schemas and prompt templates. A definition's digest names
// its task version.
//
// It imports internal/canonical and internal/schema and nothing else of this module.
package tasks

import (
	"encoding/json"
	"errors"
	"io/fs"
	"time"

	"github.com/docket-gateway/docket/internal/schema"
)

// Definition is one version of a task. It is immutable.
type Definition struct {
	Name    string
	Version string // as written in task.yaml, for people
	Digest  string // "sha256:" and 64 hex digits over Content: the task version
	Content []byte // canonical JSON document of the folder, without cases, goldens and cassettes; what the database keeps

	Temperature     float64
	MaxOutputTokens int
	Target          string
	Fallbacks       []string
	RaceAllowed     bool
	HedgeAfter      time.Duration // 0: never by itself
	Retry           RetryPolicy
	Contract        ContractPolicy

	InputSchemaJSON  json.RawMessage
	OutputSchemaJSON json.RawMessage
	InputSchema      *schema.Schema
	OutputSchema     *schema.Schema
}

// RetryPolicy bounds the retries at one target of one job.
type RetryPolicy struct {
	Max  int           // retries, not tries; default 2, 0 is none
	Base time.Duration // first back-off; default 500ms
	Cap  time.Duration // longest back-off, and the longest Retry-After that is waited for; default 30s
}

// ContractPolicy holds the task's thresholds for its contract suite.
type ContractPolicy struct {
	Runs             int           // per case; default 1
	MaxAge           time.Duration // a pass older than this closes the gate; default 168h
	RequireRoundtrip bool
}

// Prompt is what a provider is asked.
type Prompt struct {
	System string
	User   string
}

// Load reads one task folder.
func Load(fsys fs.FS, dir string) (*Definition, error) {
	return nil, errors.New("tasks: not built yet")
}

// Parse rebuilds a definition from its stored Content, and fails if the digest would differ.
func Parse(content []byte) (*Definition, error) { return nil, errors.New("tasks: not built yet") }

// Render fills the templates with a job's input.
func (d *Definition) Render(input json.RawMessage) (Prompt, error) {
	return Prompt{}, errors.New("tasks: not built yet")
}

// Catalog is the set of definitions that new jobs are created with.
type Catalog struct{}

// NewCatalog refuses two definitions of one name.
func NewCatalog(defs ...*Definition) (*Catalog, error) {
	return nil, errors.New("tasks: not built yet")
}

// Get returns the definition of that name.
func (c *Catalog) Get(name string) (*Definition, bool) { return nil, false }

// All returns the definitions in order of name.
func (c *Catalog) All() []*Definition { return nil }
