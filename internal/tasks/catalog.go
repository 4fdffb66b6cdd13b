package tasks

import (
	"fmt"
	"slices"
	"strings"
)

// Catalog is the set of definitions that new jobs are created with. It is immutable.
type Catalog struct {
	byName map[string]*Definition
	sorted []*Definition
}

// NewCatalog refuses two definitions of one name.
func NewCatalog(defs ...*Definition) (*Catalog, error) {
	c := &Catalog{byName: make(map[string]*Definition, len(defs))}
	for _, d := range defs {
		if _, ok := c.byName[d.Name]; ok {
			return nil, fmt.Errorf("the task %q is defined twice", d.Name)
		}
		c.byName[d.Name] = d
		c.sorted = append(c.sorted, d)
	}
	slices.SortFunc(c.sorted, func(a, b *Definition) int { return strings.Compare(a.Name, b.Name) })
	return c, nil
}

// Get returns the definition of that name.
func (c *Catalog) Get(name string) (*Definition, bool) {
	d, ok := c.byName[name]
	return d, ok
}

// All returns the definitions in order of name.
func (c *Catalog) All() []*Definition { return slices.Clone(c.sorted) }
