package app

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/docket-gateway/docket/graph"
	"github.com/docket-gateway/docket/internal/config"
	"github.com/docket-gateway/docket/internal/documents"
	"github.com/docket-gateway/docket/internal/quota"
	"github.com/docket-gateway/docket/internal/tasks"
)

// endpointOptions are those that only clients meet: contracts take their own requests, with none of these limits.
func (g *Gateway) endpointOptions(ctx context.Context) (graph.Options, error) {
	o := g.graphOptions()
	l := g.cfg.Limits
	var shared *sql.DB
	if g.store.Postgres() {
		shared = g.store.DB()
	}
	limiter, err := quota.New(quota.Limits{PerMinute: l.RequestsPerMinute, Burst: l.Burst, Sockets: l.SocketsPerOwner}, shared, g.log)
	if err != nil {
		return o, err
	}
	o.Transport.Limiter, o.Transport.Lifetime, o.Transport.MaxOperations = limiter, l.SocketLifetime, l.OperationsPerSocket
	o.NoIntrospection = !g.cfg.Introspection
	if t := g.cfg.TrustedDocuments; t.Manifest != "" {
		if o.Documents, err = documents.Load(t.Manifest); err != nil {
			return o, err
		}
		o.DocumentsRequired = t.Required
		if err := graph.CheckDocuments(ctx, o); err != nil {
			return o, fmt.Errorf("%w: trusted_documents.manifest: %w", config.ErrInvalid, err)
		}
	}
	return o, nil
}

// checkTaskInputs refuses tasks that promise to take more than any input may have.
func checkTaskInputs(limit config.Bytes, defs []*tasks.Definition) error {
	for _, d := range defs {
		if int64(d.MaxInputBytes) > int64(limit) {
			return fmt.Errorf("%w: task %s: max_input_bytes is %d, but limits.input is %s", config.ErrInvalid, d.Name, d.MaxInputBytes, limit)
		}
	}
	return nil
}
