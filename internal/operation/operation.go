// Package operation turns a raw GraphQL request into an operation that is safe to execute: bounded in size before
// anything expensive is done with it, validated, and with every number of its values exact.
//
// It stands where gqlgen's executor creates operations; that executor still runs them. It imports nothing of this module.
package operation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/99designs/gqlgen/complexity"
	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/executor"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
)

// Codes of requests that are not executed, in extensions.code.
const (
	CodeParseFailed      = "GRAPHQL_PARSE_FAILED"
	CodeValidationFailed = "GRAPHQL_VALIDATION_FAILED"
	CodeInvalidJSON      = "INVALID_JSON"     // a lone surrogate in a literal
	CodeTooManyTokens    = "TOO_MANY_TOKENS"  //
	CodeTooDeep          = "QUERY_TOO_DEEP"   //
	CodeTooManyFields    = "TOO_MANY_FIELDS"  //
	CodeTooManyAliases   = "TOO_MANY_ALIASES" //
	CodeFilterTooDeep    = "FILTER_TOO_DEEP"  //
	CodeFilterTooLarge   = "FILTER_TOO_LARGE" //
	CodeTooComplex       = "QUERY_TOO_COMPLEX"

	CodeDocumentMismatch      = "DOCUMENT_MISMATCH"         // the id is another document's
	CodeDocumentNotTrusted    = "DOCUMENT_NOT_TRUSTED"      // only the manifest's are
	CodePersistedNotFound     = "PERSISTED_QUERY_NOT_FOUND" // no document of that id
	CodeIntrospectionDisabled = "INTROSPECTION_DISABLED"
)

// Limits of one request. Zero values mean the defaults in brackets.
type Limits struct {
	Tokens     int // of the document [15000]
	Depth      int // of its selections, fragments expanded [32]
	Fields     int // fragments expanded [2000]
	Aliases    int // fields under another name, fragments expanded [100]
	Filter     int // levels of filters inside of each other [8]
	FilterSize int // objects in one filter [100]
	Complexity int // fields, times the sizes of their lists [50000]
}

func (l Limits) withDefaults() Limits {
	for _, d := range []struct {
		value    *int
		standard int
	}{
		{&l.Tokens, 15_000}, {&l.Depth, 32}, {&l.Fields, 2000}, {&l.Aliases, 100}, {&l.Filter, 8}, {&l.FilterSize, 100},
		{&l.Complexity, 50_000},
	} {
		if *d.value == 0 {
			*d.value = d.standard
		}
	}
	return l
}

// Options of an Executor.
type Options struct {
	Limits             Limits
	NoIntrospection    bool                       // __typename is none
	Documents          Documents                  // [none]
	DocumentsRequired  bool                       // other documents are refused
	ErrorPresenter     graphql.ErrorPresenterFunc // required
	Recover            graphql.RecoverFunc        // required
	ResolverMiddleware graphql.FieldMiddleware    // [calls the resolver]
}

// Executor creates and runs operations. It is safe for concurrent use.
type Executor struct {
	*executor.Executor
	schema  graphql.ExecutableSchema
	enums   map[string]bool
	options Options
}

var _ graphql.GraphExecutor = (*Executor)(nil)

// New returns an executor of the schema.
func New(schema graphql.ExecutableSchema, o Options) *Executor {
	o.Limits = o.Limits.withDefaults()
	if o.ResolverMiddleware == nil {
		o.ResolverMiddleware = func(ctx context.Context, next graphql.Resolver) (any, error) { return next(ctx) }
	}
	e := executor.New(schema)
	e.SetErrorPresenter(o.ErrorPresenter)
	e.SetRecoverFunc(o.Recover)
	return &Executor{Executor: e, schema: schema, enums: enumValues(schema.Schema()), options: o}
}

// CreateOperationContext implements graphql.GraphExecutor. The document is parsed anew for each request, because exact
// values are written into it.
func (e *Executor) CreateOperationContext(ctx context.Context, params *graphql.RawParams) (op *graphql.OperationContext, errs gqlerror.List) {
	op = &graphql.OperationContext{
		RawQuery:             params.Query,
		OperationName:        params.OperationName,
		Extensions:           params.Extensions,
		Headers:              params.Headers,
		DisableIntrospection: e.options.NoIntrospection,
		RecoverFunc:          e.options.Recover,
		ResolverMiddleware:   e.options.ResolverMiddleware,
		RootResolverMiddleware: func(ctx context.Context, next graphql.RootResolver) graphql.Marshaler {
			return next(ctx)
		},
		Stats: graphql.Stats{Read: params.ReadTime, OperationStart: graphql.GetStartTime(ctx)},
	}
	ctx = graphql.WithOperationContext(ctx, op)
	defer func() {
		if value := recover(); value != nil {
			errs = gqlerror.List{gqlerror.Wrap(e.options.Recover(ctx, value))}
		}
	}()
	query, err := e.document(params)
	if err != nil {
		return op, gqlerror.List{err}
	}
	op.RawQuery = query
	doc, errs := e.parse(query)
	if errs != nil {
		return op, errs
	}
	op.Doc = doc
	if op.Operation = doc.Operations.ForName(params.OperationName); op.Operation == nil {
		return op, refuse(CodeValidationFailed, "the document has no operation of that name, or several and none is named")
	}
	if err := e.variables(op, params.Variables); err != nil {
		return op, gqlerror.List{err}
	}
	makeExact(doc, op.Variables)
	if err := e.checkFilters(op); err != nil {
		return op, gqlerror.List{err}
	}
	if c := complexity.Calculate(ctx, e.schema, op.Operation, op.Variables); c > e.options.Limits.Complexity {
		return op, refuse(CodeTooComplex, "the operation's complexity is %d, of at most %d", c, e.options.Limits.Complexity)
	}
	return op, nil
}

func (e *Executor) parse(query string) (*ast.QueryDocument, gqlerror.List) {
	if !utf8.ValidString(query) {
		return nil, refuse(CodeParseFailed, "the document is not valid UTF-8")
	}
	if err := checkSurrogates(query); err != nil {
		return nil, gqlerror.List{err}
	}
	doc, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: query}, e.options.Limits.Tokens)
	if err != nil {
		parseError := gqlerror.Wrap(err)
		errors.As(err, &parseError)
		code := CodeParseFailed
		if strings.HasPrefix(parseError.Message, "exceeded maximum nesting depth") { // the parser's own bound
			code = CodeTooDeep
		}
		if strings.HasPrefix(parseError.Message, "exceeded token limit") {
			code = CodeTooManyTokens
		}
		if code == CodeParseFailed {
			parseError.Message = syntax(parseError.Message)
		}
		return nil, gqlerror.List{with(parseError, code)}
	}
	if len(doc.Operations) == 0 {
		return nil, refuse(CodeValidationFailed, "the document has no operation")
	}
	// Before validation, which may be quadratic in what is counted here.
	if err := checkShape(doc, e.options.Limits); err != nil {
		return nil, gqlerror.List{err}
	}
	masked := e.mask(doc)
	errs := masked.tell(validator.ValidateWithRules(e.schema.Schema(), doc, e.rules()))
	masked.restore()
	if e.options.NoIntrospection && len(errs) == 0 && introspects(doc) {
		return nil, refuse(CodeIntrospectionDisabled, "this server does not tell its schema")
	}
	for _, err := range errs {
		_ = with(err, CodeValidationFailed)
	}
	if len(errs) == 0 {
		errs = checkLiterals(doc)
		errs = errs[:min(len(errs), maxErrors)]
	}
	if len(errs) > 0 {
		return nil, errs
	}
	return doc, nil
}

func (e *Executor) variables(op *graphql.OperationContext, given map[string]any) *gqlerror.Error {
	all := make(map[string]any, len(op.Operation.VariableDefinitions))
	for _, v := range op.Operation.VariableDefinitions {
		value, ok := given[v.Variable]
		switch {
		case ok:
			if err := strict(e.schema.Schema(), v.Type, value, ast.Path{ast.PathName("variable"), ast.PathName(v.Variable)}); err != nil {
				err.Path = place(err.Path)
				return err
			}
			all[v.Variable] = value
		case v.DefaultValue != nil:
			all[v.Variable] = exact(v.DefaultValue, nil)
		}
	}
	coerced, err := validator.VariableValues(e.schema.Schema(), op.Operation, all)
	if err != nil {
		variableError := gqlerror.Wrap(err)
		errors.As(err, &variableError)
		variableError.Message, variableError.Path = misfit(variableError.Message), place(variableError.Path)
		return with(variableError, CodeValidationFailed)
	}
	op.Variables = coerced
	return nil
}

func refuse(code, format string, args ...any) gqlerror.List {
	return gqlerror.List{fail(code, format, args...)}
}

func fail(code, format string, args ...any) *gqlerror.Error {
	return &gqlerror.Error{Message: fmt.Sprintf(format, args...), Extensions: map[string]any{"code": code}}
}

func with(err *gqlerror.Error, code string) *gqlerror.Error {
	if err.Extensions == nil {
		err.Extensions = map[string]any{}
	}
	err.Extensions["code"] = code
	return err
}
