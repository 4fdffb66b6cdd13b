package schema

import (
	"errors"
	"reflect"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

const extensionName = "docket"

// Steps of one validation: one for each schema that is applied to a value and one for each of the value's members, more
// where the value lies deep. A schema needs a few per byte of text; one that needs many more needs exponentially many.
const (
	stepsAtLeast = 1_000_000
	stepsPerByte = 16
)

func stepsFor(length int) int { return stepsAtLeast + stepsPerByte*length }

var errSteps = errors.New("schema: too many steps")

// steps counts the steps of a validation. The library calls it, as an extension, for each schema object that it
// applies. Its extensions cannot tell one validation from another, so a compilation serves one at a time.
type steps struct {
	left  int
	price map[uintptr]int // of a step at a deep array or object
}

// start gives a validation its steps.
func (s *steps) start(length int, instance any) {
	s.left, s.price = stepsFor(length), nil
	s.measure(instance, 0)
}

// shallow is the depth down to which a step costs one. Beyond it the library's own cost for one error, which writes the
// way to it, grows with the square of the depth.
const shallow = 32

func (s *steps) measure(v any, depth int) {
	if depth > shallow && size(v) > 0 {
		if s.price == nil {
			s.price = map[uintptr]int{}
		}
		s.price[reflect.ValueOf(v).Pointer()] = 1 + depth*depth/(shallow*shallow)
	}
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			s.measure(member, depth+1)
		}
	case []any:
		for _, item := range v {
			s.measure(item, depth+1)
		}
	}
}

// take counts the application of one schema to v. It panics with errSteps: the library has no other way out.
func (s *steps) take(v any) {
	n := 1 + size(v)
	if n > 1 && s.price != nil {
		n *= max(1, s.price[reflect.ValueOf(v).Pointer()])
	}
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
	e.steps.take(v)
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
	return compile(s.name, s.raw, s.load, !s.annotate)
}

func (p *pool) put(c *compiled) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.free = append(p.free, c)
}
