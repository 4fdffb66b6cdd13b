package graph

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/graph/generated"
	"github.com/docket-gateway/docket/internal/documents"
	"github.com/docket-gateway/docket/internal/operation"
	"github.com/docket-gateway/docket/internal/transport"
)

// Guard authenticates: *auth.Guard. Its Handler must stand before the handler that NewHandler returns.
type Guard interface {
	CheckOrigin(r *http.Request) bool
	Init(ctx context.Context, payload map[string]any) (context.Context, error)
	Bound(ctx context.Context) (context.Context, context.CancelFunc)
}

// Options of the endpoint. Zero values mean the defaults of their types.
type Options struct {
	Limits          operation.Limits
	Transport       transport.Options // Init, Bound and CheckOrigin are the guard's
	NoIntrospection bool
	// Documents that clients may name by an id; nil: none. With DocumentsRequired there are no others.
	Documents         *documents.Set
	DocumentsRequired bool
	Logger            *slog.Logger // [slog.Default()]
}

// NewHandler returns the GraphQL endpoint: POST, GET, server-sent events and WebSocket.
func NewHandler(r *Resolver, guard Guard, o Options) *transport.Handler {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	exec := newExecutor(r, o)
	t := o.Transport
	if t.Logger == nil {
		t.Logger = o.Logger
	}
	t.CheckOrigin = guard.CheckOrigin
	t.Init = func(ctx context.Context, payload map[string]any) (context.Context, error) {
		ctx, err := guard.Init(ctx, payload)
		if err != nil {
			return nil, fmt.Errorf("connection_init: %w", err)
		}
		return ctx, nil
	}
	t.Bound = guard.Bound
	return transport.New(exec, t)
}

func newExecutor(r *Resolver, o Options) *operation.Executor {
	config := generated.Config{Resolvers: r}
	setComplexity(&config.Complexity)
	e := operation.Options{
		Limits: o.Limits, NoIntrospection: o.NoIntrospection, DocumentsRequired: o.DocumentsRequired,
		ErrorPresenter: ErrorPresenter(o.Logger), Recover: Recover(o.Logger), ResolverMiddleware: MarkResolverErrors,
	}
	if o.Documents != nil {
		e.Documents = o.Documents
	}
	return operation.New(generated.NewExecutableSchema(config), e)
}

// CheckDocuments returns an error that names every document of o.Documents that would be refused, and why.
func CheckDocuments(ctx context.Context, o Options) error {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	exec := newExecutor(nil, o)
	var all []error
	for _, id := range o.Documents.IDs() {
		document, _ := o.Documents.Lookup(id)
		if err := exec.Check(ctx, document); err != nil {
			all = append(all, fmt.Errorf("trusted document %s: %w", id, err))
		}
	}
	return errors.Join(all...)
}

// guessedAttempts stands for the length of a list whose size is not asked for.
const guessedAttempts = 5

func setComplexity(c *generated.ComplexityRoot) {
	c.Query.Jobs = func(child int, _ *ent.Cursor, first *int, _ *ent.Cursor, last *int, _ *ent.JobOrder, _ *ent.JobWhereInput) int {
		return times(child, first, last, defaultPage)
	}
	c.Query.Attempts = func(child int, _ *ent.Cursor, first *int, _ *ent.Cursor, last *int, _ *ent.AttemptOrder, _ *ent.AttemptWhereInput) int {
		return times(child, first, last, defaultPage)
	}
	c.Query.Nodes = func(child int, ids []string) int { return times(child, nil, nil, len(ids)) }
	c.Job.Events = func(child int, _ *int, first *int) int { return times(child, first, nil, defaultEvents) }
	c.Job.Attempts = func(child int) int { return times(child, nil, nil, guessedAttempts) }
}

// times is the complexity of a list, also of one whose size the resolver will refuse.
func times(child int, first, last *int, size int) int {
	if first != nil {
		size = *first
	} else if last != nil {
		size = *last
	}
	// Bounded, since lists in lists in lists would overflow.
	return 1 + min(child, 1<<30)*min(max(size, 1), maxEvents)
}
