// Package tasks loads task definitions: folders of task.yaml, schemas and prompt templates. A definition's digest names
// its task version.
//
// It imports internal/canonical and internal/schema and nothing else of this module.
package tasks

import (
	"encoding/json"
	"text/template"
	"time"

	"github.com/docket-gateway/docket/internal/schema"
)

// Definition is one version of a task. It is immutable and safe for concurrent use.
type Definition struct {
	Name    string
	Version string // as written in task.yaml, for people
	Digest  string // "sha256:" and 64 hex digits over Content: the task version
	Content []byte // canonical JSON document of the folder, without cases, goldens and cassettes
	Stored  []byte // Content, but with the schemas' keys in their own order and numbers in their own digits; what the database keeps

	Temperature     float64
	MaxOutputTokens int
	MaxInputBytes   int // of a job's input as JSON; 0: the server's own limit alone
	Target          string
	Fallbacks       []string
	RaceAllowed     bool
	HedgeAfter      time.Duration // 0: never by itself
	Retry           RetryPolicy
	Contract        ContractPolicy

	InputSchemaJSON  json.RawMessage // compact, in its own order and digits
	OutputSchemaJSON json.RawMessage // as InputSchemaJSON; models write in this order
	InputSchema      *schema.Schema
	OutputSchema     *schema.Schema

	system *template.Template
	prompt *template.Template
}

// RetryPolicy bounds the retries at one target of one job.
type RetryPolicy struct {
	Max  int           // retries, not tries; default 2, 0 is none
	Base time.Duration // first back-off; default 500ms
	Cap  time.Duration // longest back-off, and the longest Retry-After that is waited for; default 30s
}

// ContractPolicy holds the task's thresholds for its contract suite.
type ContractPolicy struct {
	Runs             int           // per case; default 5
	MaxAge           time.Duration // a pass older than this closes the gate; default 168h
	RequireRoundtrip bool          // a provider that cannot show how its tokenizer treats the prompt does not pass
	Stability        float64       // share of a case's runs that must have the golden's structure, above 0; default 1
	Budget           Budget
}

// Budget bounds what a target may take for the task's cases. A zero value is no bound.
type Budget struct {
	P50, P95 time.Duration // latency, over all runs of all cases
	Cost     string        // of a single run of any case, exact decimal, in the currency of the target's prices
}

// Route returns the targets in the order in which they are tried: the primary, then the fallbacks.
func (d *Definition) Route() []string {
	return append([]string{d.Target}, d.Fallbacks...)
}
