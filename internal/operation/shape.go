package operation

import (
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// shape is the size of a selection set with its fragments expanded. Counts stop growing at a bound that is beyond any limit.
type shape struct{ depth, fields, aliases, unsized int }

// unsizedField is the one list that a client cannot ask a part of. Below itself, over the way back to the job, it
// multiplies with every level by however many attempts there are, which no complexity can know beforehand.
const (
	unsizedField = "attempts"
	maxUnsized   = 2 // levels; the first may be the connection of the same name
)

const countBound = 1 << 30

// checkShape measures every operation of a document that is parsed and not validated: fragments may be missing or go in
// circles, which validation refuses later.
func checkShape(doc *ast.QueryDocument, l Limits) *gqlerror.Error {
	m := &measure{fragments: doc.Fragments, known: map[string]shape{}, open: map[string]bool{}}
	for _, op := range doc.Operations {
		s := m.selections(op.SelectionSet)
		switch {
		case m.deferred:
			return fail(CodeValidationFailed, "@defer is not supported")
		case s.depth > l.Depth:
			return fail(CodeTooDeep, "the document is nested more than %d levels deep", l.Depth)
		case s.fields > l.Fields:
			return fail(CodeTooManyFields, "the document selects more than %d fields", l.Fields)
		case s.unsized > maxUnsized:
			return fail(CodeTooComplex, "%s is selected below itself more than %d levels deep", unsizedField, maxUnsized)
		case s.aliases > l.Aliases:
			return fail(CodeTooManyAliases, "the document has more than %d aliases", l.Aliases)
		}
	}
	return nil
}

type measure struct {
	fragments ast.FragmentDefinitionList
	known     map[string]shape
	open      map[string]bool
	deferred  bool
}

func (m *measure) selections(set ast.SelectionSet) (total shape) {
	for _, s := range set {
		var one shape
		switch s := s.(type) {
		case *ast.Field:
			one = m.selections(s.SelectionSet)
			one.depth++
			one.fields++
			if s.Name == unsizedField {
				one.unsized++
			}
			if s.Alias != "" && s.Alias != s.Name {
				one.aliases++
			}
		case *ast.InlineFragment:
			one = m.selections(s.SelectionSet)
			m.deferred = m.deferred || s.Directives.ForName("defer") != nil
		case *ast.FragmentSpread:
			one = m.fragment(s.Name)
			m.deferred = m.deferred || s.Directives.ForName("defer") != nil
		}
		total.depth = max(total.depth, one.depth)
		total.unsized = max(total.unsized, one.unsized)
		total.fields = min(total.fields+one.fields, countBound)
		total.aliases = min(total.aliases+one.aliases, countBound)
	}
	return total
}

// fragment measures each fragment once, since the number of its uses can be exponential.
func (m *measure) fragment(name string) shape {
	if s, ok := m.known[name]; ok {
		return s
	}
	f := m.fragments.ForName(name)
	if f == nil || m.open[name] {
		return shape{}
	}
	m.open[name] = true
	s := m.selections(f.SelectionSet)
	delete(m.open, name)
	m.known[name] = s
	return s
}
