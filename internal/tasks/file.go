package tasks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// taskFile is task.yaml with every default written out, so that a stored version keeps its behaviour when a later
// release changes a default. Its JSON form is part of the task version.
type taskFile struct {
	Name            text         `yaml:"name" json:"name"`
	Version         text         `yaml:"version" json:"version"`
	Temperature     number       `yaml:"temperature" json:"temperature"`
	MaxOutputTokens integer      `yaml:"max_output_tokens" json:"max_output_tokens"`
	MaxInputBytes   integer      `yaml:"max_input_bytes" json:"max_input_bytes,omitempty"` // as formats
	Target          text         `yaml:"target" json:"target"`
	Fallbacks       []text       `yaml:"fallbacks" json:"fallbacks"`
	Race            text         `yaml:"race" json:"race"`
	Formats         text         `yaml:"formats" json:"formats,omitempty"` // came later: left out, it leaves the digests of earlier versions alone
	HedgeAfter      duration     `yaml:"hedge_after" json:"hedge_after"`
	Retry           retryFile    `yaml:"retry" json:"retry"`
	Contract        contractFile `yaml:"contract" json:"contract"`
}

type retryFile struct {
	Max  integer  `yaml:"max" json:"max"`
	Base duration `yaml:"base" json:"base"`
	Cap  duration `yaml:"cap" json:"cap"`
}

type contractFile struct {
	Runs             integer  `yaml:"runs" json:"runs"`
	MaxAge           duration `yaml:"max_age" json:"max_age"`
	RequireRoundtrip flag     `yaml:"require_roundtrip" json:"require_roundtrip"`

	// These two came later. Left out, they leave the digests of earlier versions alone.
	Stability number      `yaml:"stability" json:"stability,omitempty"`
	Budget    *budgetFile `yaml:"budget" json:"budget,omitempty"`
}

type budgetFile struct {
	P50  duration `yaml:"p50" json:"p50,omitempty"`
	P95  duration `yaml:"p95" json:"p95,omitempty"`
	Cost number   `yaml:"cost" json:"cost,omitempty"`
}

func defaults() taskFile {
	return taskFile{
		Temperature:     "0",
		MaxOutputTokens: 1024,
		Fallbacks:       []text{},
		Race:            raceForbidden,
		Retry:           retryFile{Max: 2, Base: duration(500 * time.Millisecond), Cap: duration(30 * time.Second)},
		Contract:        contractFile{Runs: 5, MaxAge: duration(168 * time.Hour)},
	}
}

// parseFile reads task.yaml. Errors begin with [line:column].
func parseFile(raw []byte) (taskFile, error) {
	doc, err := parser.ParseBytes(raw, 0)
	if err != nil {
		return taskFile{}, err
	}
	if len(doc.Docs) != 1 || doc.Docs[0].Body == nil {
		return taskFile{}, errors.New("[1:1] task.yaml must be one YAML document with at least name, version and target")
	}
	plain := plainYAML{}
	ast.Walk(&plain, doc.Docs[0].Body)
	if plain.err != nil {
		return taskFile{}, plain.err
	}
	f := defaults()
	err = yaml.NewDecoder(bytes.NewReader(raw), yaml.Strict()).Decode(&f)
	if err != nil && !errors.Is(err, io.EOF) {
		return taskFile{}, err
	}
	return f, nil
}

// plainYAML refuses what makes one document readable in two ways: anchors, aliases, merges, tags, and null, which could
// mean "nothing" or "the default".
type plainYAML struct{ err error }

func (p *plainYAML) Visit(n ast.Node) ast.Visitor {
	if p.err != nil {
		return nil
	}
	switch n.(type) {
	case *ast.AnchorNode, *ast.AliasNode:
		p.err = at(n, "anchors and aliases are not allowed")
	case *ast.MergeKeyNode:
		p.err = at(n, "merge keys are not allowed")
	case *ast.TagNode:
		p.err = at(n, "tags are not allowed")
	case *ast.NullNode:
		p.err = at(n, "a value is missing here; leave the key out to get its default")
	}
	return p
}

func at(n ast.Node, format string, args ...any) error {
	place := ""
	if t := n.GetToken(); t != nil && t.Position != nil {
		place = fmt.Sprintf("[%d:%d] ", t.Position.Line, t.Position.Column)
	}
	return fmt.Errorf(place+format, args...)
}

// The scalar types below take exactly one kind of YAML scalar: the library alone would read 1.5 as the integer 1 and
// true as the text "true".

type text string

func (t *text) UnmarshalYAML(n ast.Node) error {
	switch s := n.(type) {
	case *ast.StringNode:
		*t = text(s.Value)
	case *ast.LiteralNode:
		*t = text(s.Value.Value)
	default:
		return at(n, "a text is expected; write it in quotes")
	}
	return nil
}

// number keeps the digits as written, since a double would change them.
type number string

func (v *number) UnmarshalYAML(n ast.Node) error {
	lit := n.GetToken().Value
	_, whole := n.(*ast.IntegerNode)
	_, fraction := n.(*ast.FloatNode)
	exponent := n.GetToken().Type == token.StringType // the library takes an unquoted 1e-1 for a text
	// JSON's grammar is the smaller one: no 0x10, no 1_000, no .5
	if (whole || fraction || exponent) && json.Valid([]byte(lit)) {
		*v = number(lit)
		return nil
	}
	return at(n, "a decimal number such as 0.2 is expected")
}

func (v number) MarshalJSON() ([]byte, error) { return []byte(v), nil }

func (v *number) UnmarshalJSON(b []byte) error {
	if _, err := strconv.ParseFloat(string(b), 64); err != nil {
		return fmt.Errorf("a number is expected, not %s", b)
	}
	*v = number(b)
	return nil
}

type integer int

func (v *integer) UnmarshalYAML(n ast.Node) error {
	if _, ok := n.(*ast.IntegerNode); ok {
		if i, err := strconv.Atoi(n.GetToken().Value); err == nil {
			*v = integer(i)
			return nil
		}
	}
	return at(n, "a whole number such as 3 is expected")
}

type flag bool

func (v *flag) UnmarshalYAML(n ast.Node) error {
	b, ok := n.(*ast.BoolNode)
	if !ok {
		return at(n, "true or false is expected")
	}
	*v = flag(b.Value)
	return nil
}

type duration time.Duration

func (v *duration) UnmarshalYAML(n ast.Node) error {
	lit := strings.TrimSpace(n.GetToken().Value)
	d, err := time.ParseDuration(lit)
	if err != nil {
		return at(n, "a duration such as 500ms, 30s or 168h is expected")
	}
	*v = duration(d)
	return nil
}

func (v duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(v).String()) }

func (v *duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return err
	}
	*v = duration(d)
	return nil
}
