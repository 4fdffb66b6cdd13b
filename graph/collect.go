package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
)

// usageAttempts names the attempts that Job.usage sums up, loaded for a whole page at once.
const usageAttempts = "docket_usage"

// merged are the fields that ent's eager loading keeps one query for: were one selected twice under two aliases, the
// second selection would replace the first, or be missed altogether.
var merged = map[string]bool{
	"edges": true, "node": true, "totalCount": true, "pageInfo": true, "job": true, "completedBy": true,
}

// collecting returns a context for ent's CollectFields and Paginate in which aliases of merged fields are gone, and with
// the fields that our own resolvers need. It must not reach a resolver.
func collecting(ctx context.Context) context.Context {
	fc := graphql.GetFieldContext(ctx)
	if fc == nil {
		return ctx
	}
	c := &collector{fragments: graphql.GetOperationContext(ctx).Doc.Fragments}
	cp := *fc
	cp.Field.Selections = c.selections(fc.Field.Selections)
	return graphql.WithFieldContext(ctx, &cp)
}

type collector struct{ fragments ast.FragmentDefinitionList }

func (c *collector) selections(in ast.SelectionSet) ast.SelectionSet {
	out := make(ast.SelectionSet, 0, len(in))
	for _, s := range in {
		switch s := s.(type) {
		case *ast.Field:
			cp := *s
			if merged[s.Name] {
				cp.Alias = s.Name
			}
			cp.SelectionSet = c.selections(s.SelectionSet)
			switch s.Name {
			case "attempts": // of a job: sorted by it
				cp.SelectionSet = append(cp.SelectionSet, field("number", "number"))
			case "usage":
				if s.ObjectDefinition != nil && s.ObjectDefinition.Name == "Job" {
					// A field that is no column makes ent load all of them.
					sum := field("attempts", usageAttempts)
					sum.Directives = s.Directives
					sum.SelectionSet = ast.SelectionSet{field("usage", "usage")}
					out = append(out, sum)
				}
			}
			out = append(out, &cp)
		case *ast.InlineFragment:
			cp := *s
			cp.SelectionSet = c.selections(s.SelectionSet)
			out = append(out, &cp)
		case *ast.FragmentSpread:
			if f := c.fragments.ForName(s.Name); f != nil {
				out = append(out, &ast.InlineFragment{
					TypeCondition: f.TypeCondition, Directives: s.Directives, SelectionSet: c.selections(f.SelectionSet),
					ObjectDefinition: s.ObjectDefinition,
				})
			}
		}
	}
	return out
}

func field(name, alias string) *ast.Field { return &ast.Field{Name: name, Alias: alias} }
