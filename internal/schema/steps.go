package schema

import (
	"errors"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

const extensionName = "docket"

// Steps of one validation: one for each schema that is applied to a value, and one for each of the value's members. A
// schema needs a few per byte of text; one that needs many more needs exponentially many.
const (
	stepsAtLeast = 200_000
	stepsPerByte = 32
)

func stepsFor(length int) int { return stepsAtLeast + stepsPerByte*length }

var errSteps = errors.New("schema: too many steps")

// steps counts the steps of a validation. The library calls it, as an extension, for each schema object that it
// applies. Its extensions cannot tell one validation from another, so a compilation serves one at a time.
type steps struct{ left int }

// take panics with errSteps: the library has no other way out.
func (s *steps) take(n int) {
	if s.left -= n; s.left < 0 {
		panic(errSteps)
	}
}

// Compile implements jsonschema.ExtCompiler.
func (s *steps) Compile(_ jsonschema.CompilerContext, m map[string]any) (jsonschema.ExtSchema, error) {
	e := &extension{steps: s, empty: len(m) == 0}
	if ref, ok := m["$dynamicRef"].(string); ok {
		if _, fragment, _ := strings.Cut(ref, "#"); !strings.HasPrefix(fragment, "/") {
			e.dynamicAnchor = fragment
		}
	}
	return e, nil
}

// extension is what the library does not keep of a schema object.
type extension struct {
	steps         *steps
	empty         bool   // {}
	dynamicAnchor string // that $dynamicRef names, if it names one
}

// Validate implements jsonschema.ExtSchema.
func (e *extension) Validate(_ jsonschema.ValidationContext, v any) error {
	e.steps.take(1 + size(v))
	return nil
}

func size(v any) int {
	switch v := v.(type) {
	case map[string]any:
		return len(v)
	case []any:
		return len(v)
	}
	return 0
}

// pool keeps as many compilations of a schema as were in use at once.
type pool struct {
	mutex sync.Mutex
	free  []*compiled
}

func (p *pool) get(s *Schema) (*compiled, error) {
	p.mutex.Lock()
	if n := len(p.free); n > 0 {
		c := p.free[n-1]
		p.free = p.free[:n-1]
		p.mutex.Unlock()
		return c, nil
	}
	p.mutex.Unlock()
	return compile(s.name, s.raw, s.load)
}

func (p *pool) put(c *compiled) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.free = append(p.free, c)
}
