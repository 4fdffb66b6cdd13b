package operation

import (
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/lexer"
)

// Bounds of what is said about a document that is refused. A client may send a megabyte of mistakes.
const (
	maxErrors    = 20
	maxLocations = 10  // of one error
	maxMessage   = 500 // bytes
	maxName      = 64  // bytes of a name that the schema does not have
)

// syntax is the message of a document that cannot be parsed: what kind of token stands where it should not. The library
// repeats the token, so only what is known to be its own passes.
func syntax(message string) string {
	if expected, found, ok := strings.Cut(message, ", found "); ok {
		expected = strings.TrimPrefix(expected, "Expected ")
		if tokens[expected] || expected == `"on"` {
			return "Expected " + expected + ", found " + token(found)
		}
		return "Unexpected " + token(found)
	}
	if found, ok := strings.CutPrefix(message, "Unexpected "); ok {
		return "Unexpected " + token(found)
	}
	return "the document is malformed"
}

// tokens are the library's words for kinds of tokens.
var tokens = func() map[string]bool {
	all := map[string]bool{}
	for kind := lexer.Invalid; kind <= lexer.Comment; kind++ {
		all[kind.String()], all[kind.Name()] = true, true
	}
	return all
}()

func token(found string) string {
	if kind, _, _ := strings.Cut(found, " "); tokens[kind] {
		return kind
	}
	return "something else"
}

// mask hides the values of a document while it is validated, so that no message can repeat one. Equal ones stay equal,
// different ones different. Numbers stay numbers that int64 and float64 can hold, because validation would refuse others
// where a JSON value may have them; where a number is to be an Int, checkLiterals looks at it later.
type mask struct {
	enums  map[string]bool // values that the schema has, which are no secret
	stand  map[string]string
	kinds  []string // of stand-ins, by their numbers
	values []*ast.Value
	raws   []string
	parts  map[gqlerror.Location]*ast.Value // lists and objects
}

func (e *Executor) mask(doc *ast.QueryDocument) *mask {
	m := &mask{enums: e.enums, stand: map[string]string{}, parts: map[gqlerror.Location]*ast.Value{}}
	eachValue(doc, m.hide)
	return m
}

func (m *mask) hide(v *ast.Value) {
	switch v.Kind {
	case ast.StringValue, ast.BlockValue:
		m.put(v, "<string>", "⟨", "⟩")
	case ast.EnumValue:
		if !m.enums[v.Raw] {
			m.put(v, "<enum value>", "⟨", "⟩")
		}
	case ast.IntValue:
		m.put(v, "<number>", "1900", "") // below 32 bits
	case ast.FloatValue:
		m.put(v, "<number>", "1900", ".5")
	case ast.ListValue, ast.ObjectValue:
		if v.Position != nil {
			m.parts[gqlerror.Location{Line: v.Position.Line, Column: v.Position.Column}] = v
		}
	default: // true, false, null and names of variables
	}
}

var standIns = regexp.MustCompile(`"?⟨(\d{6,})⟩"?|1900(\d{6,})(\.5)?`)

func (m *mask) put(v *ast.Value, kind, before, after string) {
	key := kind + v.Raw
	stand, ok := m.stand[key]
	if !ok {
		stand = before + fmt.Sprintf("%06d", len(m.kinds)) + after
		m.stand[key] = stand
		m.kinds = append(m.kinds, kind)
	}
	m.values, m.raws = append(m.values, v), append(m.raws, v.Raw)
	v.Raw = stand
}

func (m *mask) restore() {
	for i, v := range m.values {
		v.Raw = m.raws[i]
	}
}

// tell is for errors of the document as it is masked.
func (m *mask) tell(errs gqlerror.List) gqlerror.List {
	errs = errs[:min(len(errs), maxErrors)]
	for _, err := range errs {
		for _, at := range err.Locations {
			if v, ok := m.parts[at]; ok {
				kind := "<list>"
				if v.Kind == ast.ObjectValue {
					kind = "<object>"
				}
				err.Message = strings.ReplaceAll(err.Message, v.String(), kind)
			}
		}
		err.Message = standIns.ReplaceAllStringFunc(err.Message, func(stand string) string {
			found := standIns.FindStringSubmatch(stand)
			n, _ := strconv.Atoi(found[1] + found[2])
			if n >= len(m.kinds) { // digits of a name
				return stand
			}
			return m.kinds[n]
		})
		bound(err)
	}
	return errs
}

var longName = regexp.MustCompile(`\w{` + strconv.Itoa(maxName+1) + `,}`)

func bound(err *gqlerror.Error) {
	err.Locations = err.Locations[:min(len(err.Locations), maxLocations)]
	err.Message = longName.ReplaceAllStringFunc(err.Message, shortened)
	if len(err.Message) > maxMessage {
		cut := maxMessage
		for !utf8.RuneStart(err.Message[cut]) {
			cut--
		}
		err.Message = err.Message[:cut] + "…"
	}
}

func shortened(name string) string {
	if len(name) <= maxName {
		return name
	}
	return name[:maxName] + "…"
}

var isName = regexp.MustCompile(`^[_A-Za-z]\w*$`)

// place is the path to what is wrong in variables. Keys of JSON objects may be anything.
func place(path ast.Path) ast.Path {
	out := make(ast.Path, len(path))
	for i, element := range path {
		out[i] = element
		if name, ok := element.(ast.PathName); ok {
			if !isName.MatchString(string(name)) {
				name = "?"
			}
			out[i] = ast.PathName(shortened(string(name)))
		}
	}
	return out
}

// misfit is the message of a variable that the library refuses. Some of its messages repeat the value.
func misfit(message string) string {
	switch message {
	case "must be defined", "cannot be null", "unknown field":
		return message
	}
	return "the value does not fit its type"
}

func enumValues(schema *ast.Schema) map[string]bool {
	all := map[string]bool{}
	for def := range maps.Values(schema.Types) {
		for _, v := range def.EnumValues {
			all[v.Name] = true
		}
	}
	return all
}

// eachValue visits every value of a document, those inside of others and the arguments of directives too.
func eachValue(doc *ast.QueryDocument, visit func(*ast.Value)) {
	var value func(v *ast.Value)
	value = func(v *ast.Value) {
		if v == nil {
			return
		}
		visit(v)
		for _, child := range v.Children {
			value(child.Value)
		}
	}
	arguments := func(args ast.ArgumentList) {
		for _, arg := range args {
			value(arg.Value)
		}
	}
	directives := func(all ast.DirectiveList) {
		for _, d := range all {
			arguments(d.Arguments)
		}
	}
	var selections func(set ast.SelectionSet)
	selections = func(set ast.SelectionSet) {
		for _, s := range set {
			switch s := s.(type) {
			case *ast.Field:
				arguments(s.Arguments)
				directives(s.Directives)
				selections(s.SelectionSet)
			case *ast.InlineFragment:
				directives(s.Directives)
				selections(s.SelectionSet)
			case *ast.FragmentSpread:
				directives(s.Directives)
			}
		}
	}
	definitions := func(all ast.VariableDefinitionList) {
		for _, v := range all {
			value(v.DefaultValue)
			directives(v.Directives)
		}
	}
	for _, op := range doc.Operations {
		definitions(op.VariableDefinitions)
		directives(op.Directives)
		selections(op.SelectionSet)
	}
	for _, f := range doc.Fragments {
		definitions(f.VariableDefinition)
		directives(f.Directives)
		selections(f.SelectionSet)
	}
}
