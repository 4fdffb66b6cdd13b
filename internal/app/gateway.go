package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/docket-gateway/docket/graph"
	"github.com/docket-gateway/docket/internal/auth"
	"github.com/docket-gateway/docket/internal/callbacks"
	"github.com/docket-gateway/docket/internal/config"
	"github.com/docket-gateway/docket/internal/dispatch"
	"github.com/docket-gateway/docket/internal/events"
	"github.com/docket-gateway/docket/internal/jobs"
	"github.com/docket-gateway/docket/internal/recheck"
	"github.com/docket-gateway/docket/internal/retention"
	"github.com/docket-gateway/docket/internal/tasks"
	"github.com/docket-gateway/docket/internal/telemetry"
	"github.com/docket-gateway/docket/internal/viewer"
	"github.com/docket-gateway/docket/internal/web"
)

type clock = func() time.Time

// Gateway is a running docket: one listener, its workers and its database.
type Gateway struct {
	*parts
	listener   net.Listener
	server     *http.Server
	sockets    func(context.Context) error // waits for the end of all WebSockets
	dispatcher *dispatch.Dispatcher
	prover     prover
	rechecks   *recheck.Service
	versions   []*tasks.Definition
	ready      atomic.Bool
	failed     chan error // holds why the listener ended by itself

	background sync.WaitGroup
	cancel     context.CancelFunc // of everything in the background and of every stream
}

// Start opens the database, brings its schema up to date, proves the demo fallbacks, takes up work and listens. The
// gateway serves until Stop. Providers that lack a key are left out, and said so; without any there is nothing to serve.
func Start(ctx context.Context, cfg *config.Config, log *slog.Logger) (_ *Gateway, err error) {
	if cfg, err = usable(ctx, cfg, log); err != nil {
		return nil, err
	}
	if err := reachable(ctx, cfg); err != nil {
		return nil, err
	}
	p, err := build(ctx, cfg, log, time.Now)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.store.Close())
		}
	}()
	if err := p.store.Migrate(ctx); err != nil {
		return nil, err
	}
	g := &Gateway{parts: p, prover: newProver(p, time.Now), failed: make(chan error, 1)}
	metrics := telemetry.NewMetrics()
	hub := events.NewHub()
	var held holder
	g.rechecks = p.newRechecks(&held, time.Now)
	service, attempts, err := p.service(hub, metrics, g.rechecks)
	if err != nil {
		return nil, err
	}
	held.versions = service.HeldVersions
	metrics.WatchGates(p.gates, log)
	watchBacklog(cfg, metrics, service, log)
	g.dispatcher = dispatch.New(attempts, service, p.registry, metrics, log) //nolint:contextcheck // a circuit changes in no request of its own
	metrics.WatchCircuits(g.dispatcher.Circuits)

	// Versions that open jobs hold are proved too: their fallbacks may come up after a deployment.
	if g.versions, err = service.HeldVersions(ctx); err != nil {
		return nil, err
	}
	if err := g.prover.fallbacks(ctx, g.versions); err != nil {
		return nil, err
	}
	who, err := newIdentity(cfg.Auth, p.store, log)
	if err != nil {
		return nil, err
	}
	handler, err := g.handler(ctx, who.guard, service, hub, metrics)
	if err != nil {
		return nil, err
	}
	if g.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Listen); err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if believesClients(cfg.Auth) {
		if err := auth.RequireLoopbackListener(g.listener); err != nil {
			return nil, errors.Join(err, g.listener.Close())
		}
	}
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	g.cancel = cancel
	if err := g.dispatcher.Start(ctx); err != nil {
		cancel()
		return nil, errors.Join(err, g.listener.Close())
	}
	g.run(life, hub, service.HeldVersions)
	g.background.Go(func() { g.retention().Run(life, service, log) })
	who.run(life, &g.background)
	g.serve(life, handler)
	g.ready.Store(true)
	return g, nil
}

// usable leaves the providers out that lack something, and names all of them with their models.
func usable(ctx context.Context, cfg *config.Config, log *slog.Logger) (*config.Config, error) {
	left, missing := cfg.Usable()
	var problems []error
	for _, p := range cfg.Providers {
		models := make([]string, len(p.Models))
		for i, m := range p.Models {
			models[i] = m.Name
		}
		attrs := []any{"provider", p.Name, "kind", p.Kind, "models", models}
		if i := slices.IndexFunc(missing, func(m config.Missing) bool { return m.Provider == p.Name }); i >= 0 {
			log.WarnContext(ctx, "provider left out", append(attrs, "missing", missing[i].Problem)...)
			problems = append(problems, errors.New(missing[i].Problem))
			continue
		}
		log.InfoContext(ctx, "provider", attrs...)
	}
	for i, p := range left.Providers { // what is said of them later names the place in the file
		at := slices.IndexFunc(cfg.Providers, func(q config.Provider) bool { return q.Name == p.Name })
		left.Providers[i].Place = fmt.Sprintf("providers[%d]", at)
	}
	if len(left.Providers) == 0 {
		return nil, fmt.Errorf("no provider can be used: %w", errors.Join(problems...))
	}
	return left, nil
}

// handler routes the endpoints.
func (g *Gateway) handler(ctx context.Context, guard *auth.Guard, service *jobs.Service, hub *events.Hub, metrics *telemetry.Metrics) (http.Handler, error) {
	resolver := graph.NewResolver(graph.Deps{
		Client: g.store.Client(), Jobs: service, Catalog: g.catalog, Targets: known{g.registry},
		Follower: &events.Follower{Client: g.store.Client(), Hub: hub},
		Gate:     g.check, Retention: g.retention(),
	})
	console, err := web.Handler(web.Options{Token: !believesClients(g.cfg.Auth)})
	if err != nil {
		return nil, err
	}
	callback, err := newCallbacks(g.cfg, service, g.log)
	if err != nil {
		return nil, err
	}
	options, err := g.endpointOptions(ctx)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	if err := guard.Allow(g.cfg.AllowedOrigins...); err != nil {
		return nil, err
	}
	endpoint := graph.NewHandler(resolver, guard, options)
	g.sockets = endpoint.Wait
	mux.Handle("/graphql", auth.CORS(g.cfg.AllowedOrigins, guard.Handler(endpoint)))
	mux.Handle("GET /metrics", guard.Operators(metrics.Handler()))
	// Nothing here is anybody's, and neither a probe nor a browser that asks for a page has credentials.
	mux.Handle("GET /healthz", guard.Open(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok") })))
	mux.Handle("GET /readyz", guard.Open(http.HandlerFunc(g.readyz)))
	mux.Handle("/", guard.Open(console))
	// Callbacks prove themselves by their signature, and a provider is no browser.
	mux.Handle(callbacks.Pattern, callback)
	return mux, nil
}

func watchBacklog(cfg *config.Config, metrics *telemetry.Metrics, service *jobs.Service, log *slog.Logger) {
	var names []string
	for _, p := range cfg.Providers {
		names = append(names, p.Name)
	}
	metrics.WatchBacklog(names, func(ctx context.Context) (telemetry.Backlog, error) {
		b, err := service.Backlog(ctx)
		return telemetry.Backlog(b), err
	}, log)
}

func (g *Gateway) retention() retention.Policy {
	r := g.cfg.Retention
	return retention.Policy{Age: r.Age, Interval: r.Interval, Batch: r.Batch}
}

// readyz is true while requests can be worked on: the schema is in place, workers run, and the database answers.
func (g *Gateway) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	switch {
	case !g.ready.Load():
		answer(w, http.StatusServiceUnavailable, "stopping")
	case g.store.Ping(ctx) != nil:
		answer(w, http.StatusServiceUnavailable, "the database does not answer")
	default:
		answer(w, http.StatusOK, "ready")
	}
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, text)
}

// run starts what goes on beside requests.
func (g *Gateway) run(life context.Context, hub *events.Hub, held func(context.Context) ([]*tasks.Definition, error)) {
	g.background.Go(func() {
		hub.Poll(viewer.NewSystemContext(life), events.HeadsOf(g.store.Client()), events.PollInterval, g.log)
	})
	if pool := g.store.Pool(); pool != nil {
		connect := func(ctx context.Context) (*pgx.Conn, error) {
			return pgx.ConnectConfig(ctx, g.store.Direct().Config().ConnConfig.Copy())
		}
		bus := events.NewBus(hub, pool, connect, g.log)
		g.background.Go(func() { bus.Run(life) })
	}
	g.background.Go(func() { g.prover.keep(life, g.versions, held) })
}

func (g *Gateway) serve(life context.Context, handler http.Handler) {
	g.server = &http.Server{
		Handler:           handler,
		BaseContext:       func(net.Listener) context.Context { return life },
		ReadHeaderTimeout: 10 * time.Second,
		// Also of what no handler reads: the server reads the rest of a body before it answers. A stream that follows a body is
		// not ended by it.
		ReadTimeout: g.cfg.Limits.BodyTimeout,
		IdleTimeout: 2 * time.Minute,
		// No WriteTimeout: it would cut every stream off.
		MaxHeaderBytes: 64 << 10,
		ErrorLog:       slog.NewLogLogger(g.log.Handler(), slog.LevelWarn),
	}
	g.background.Go(func() {
		if err := g.server.Serve(g.listener); !errors.Is(err, http.ErrServerClosed) {
			g.ready.Store(false)
			g.failed <- fmt.Errorf("serve: %w", err)
		}
	})
}

// Failed brings an error should the gateway stop listening by itself. It is of no use then and wants to be stopped.
func (g *Gateway) Failed() <-chan error { return g.failed }

// Addr is the address that the gateway listens on.
func (g *Gateway) Addr() string { return g.listener.Addr().String() }

// closeGrace is how long connections may take to end once the streams on them have ended.
const closeGrace = 5 * time.Second

// Stop takes up no new work and says so at /readyz, drains what is under way until ctx is done, cuts off the rest, closes
// the listener (not before shutdown_delay is over) and the database. Until then requests are answered; a job that comes in is stored for another process, as
// is whatever Stop could not finish.
func (g *Gateway) Stop(ctx context.Context) error {
	g.ready.Store(false)
	noticed := time.NewTimer(g.cfg.ShutdownDelay)
	defer noticed.Stop()
	g.rechecks.Stop()
	// Watchers see what the drain brings, so streams end after it.
	stopped := g.dispatcher.Stop(ctx)
	// A load balancer asks /readyz only now and then.
	select {
	case <-noticed.C:
	case <-ctx.Done():
	}
	g.cancel()
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeGrace)
	defer cancel()
	err := g.server.Shutdown(closing)
	if err == nil {
		err = g.sockets(closing) // the server does not know them any more
	}
	if errors.Is(err, context.DeadlineExceeded) {
		// A client that sends nothing, or half a request, is no failure of ours: what it asked for it can ask for again.
		g.log.WarnContext(ctx, "connections are cut that did not end by themselves", "within", closeGrace)
		err = g.server.Close()
	}
	g.background.Wait()
	return errors.Join(stopped, err, g.store.Close())
}
