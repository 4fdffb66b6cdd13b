package operation

import (
	"context"
	"errors"
	"fmt"

	"github.com/99designs/gqlgen/complexity"
	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// Documents are those that clients may name by an id: *documents.Set.
type Documents interface {
	Lookup(id string) (document string, ok bool)
	Trusts(document string) bool
}

// document is what a request means to execute. Every request comes here, by whatever transport.
func (e *Executor) document(params *graphql.RawParams) (string, *gqlerror.Error) {
	persisted, _ := params.Extensions["persistedQuery"].(map[string]any)
	if id, ok := persisted["sha256Hash"].(string); ok && id != "" {
		known, ok := "", false
		if e.options.Documents != nil {
			known, ok = e.options.Documents.Lookup(id)
		}
		switch {
		case ok && params.Query != "" && params.Query != known:
			return "", fail(CodeDocumentMismatch, "the id is that of another document than the one beside it")
		case ok:
			return known, nil
		case params.Query == "":
			return "", fail(CodePersistedNotFound, "PersistedQueryNotFound") // Apollo's clients look for this very text
		}
	}
	if e.options.DocumentsRequired && (e.options.Documents == nil || !e.options.Documents.Trusts(params.Query)) {
		return "", fail(CodeDocumentNotTrusted, "this server executes the documents of its manifest alone")
	}
	return params.Query, nil
}

// Check returns why a document would be refused whatever its variables are, nil if it would not: it is malformed, does not
// fit the schema, or is beyond a limit.
func (e *Executor) Check(ctx context.Context, query string) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = e.options.Recover(ctx, value)
		}
	}()
	doc, errs := e.parse(query)
	if errs != nil {
		return errs
	}
	for _, op := range doc.Operations {
		// The sizes of lists are variables as a rule: the smallest will do here.
		smallest := map[string]any{}
		for _, v := range op.VariableDefinitions {
			if v.Type.NamedType == "Int" {
				smallest[v.Variable] = 1
			}
		}
		if c := complexity.Calculate(ctx, e.schema, op, smallest); c > e.options.Limits.Complexity {
			err = errors.Join(err, fmt.Errorf("%s: the complexity is %d at least, of at most %d", nameOf(op), c, e.options.Limits.Complexity))
		}
	}
	return err
}

func nameOf(op *ast.OperationDefinition) string {
	if op.Name == "" {
		return "an operation without a name"
	}
	return "operation " + op.Name
}
