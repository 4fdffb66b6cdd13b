package roundtrip

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/gate"
	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/graph"
	"github.com/docket-gateway/docket/internal/auth"
	"github.com/docket-gateway/docket/internal/dispatch"
	"github.com/docket-gateway/docket/internal/events"
	"github.com/docket-gateway/docket/internal/jobs"
	"github.com/docket-gateway/docket/internal/queue"
	"github.com/docket-gateway/docket/internal/store"
	"github.com/docket-gateway/docket/internal/tasks"
	"github.com/docket-gateway/docket/providers"
)

// docket is a whole one for one task at one target.
type docket struct {
	task     *tasks.Definition
	provider *provider
	store    *store.Store
	hub      *events.Hub
	worker   *dispatch.Dispatcher
	handler  http.Handler
}

// template is a database whose schema is in place: copying it costs less than migrating each one.
const template = "template.db"

func createTemplate(ctx context.Context, folder string) error {
	s, err := store.Open(ctx, "sqlite://"+filepath.Join(folder, template))
	if err != nil {
		return err
	}
	return errors.Join(s.Migrate(ctx), s.Close())
}

func start(ctx context.Context, folder string, number int, task *tasks.Definition, target providers.Target, o Options) (_ *docket, err error) {
	raw, err := os.ReadFile(filepath.Join(folder, template))
	if err != nil {
		return nil, err
	}
	file := filepath.Join(folder, strconv.Itoa(number)+".db")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		return nil, err
	}
	once, err := task.Once(target.ID)
	if err != nil {
		return nil, err
	}
	catalog, err := tasks.NewCatalog(once)
	if err != nil {
		return nil, err
	}
	d := &docket{task: once, provider: &provider{version: target.Sender.AdapterVersion(), calls: map[string]*call{}}, hub: events.NewHub()}
	registry, err := d.registry(target)
	if err != nil {
		return nil, err
	}
	if d.store, err = store.Open(ctx, "sqlite://"+file); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.store.Close())
		}
	}()
	attempts := dispatch.NewQueue(dispatch.QueueOptions{Registry: registry, Logger: o.Logger})
	if _, err := queue.Open(d.store, queue.Options{Logger: o.Logger, PollInterval: pollInterval}, attempts); err != nil {
		return nil, err
	}
	service := jobs.New(jobs.Deps{
		Store: d.store, Catalog: catalog, Queue: attempts, Gate: closedGate{}, Targets: only(target.ID), Notifier: d.hub, Metrics: uncounted{}, Logger: o.Logger,
	}, jobs.Options{Lease: o.Lease, MaxInput: o.MaxInput})
	guard := auth.NewDevGuard()
	d.handler = guard.Handler(graph.NewHandler(graph.NewResolver(graph.Deps{
		Client: d.store.Client(), Jobs: service, Catalog: catalog, Targets: only(target.ID),
		Follower: &events.Follower{Client: d.store.Client(), Hub: d.hub},
		Gate: func(ctx context.Context, t *tasks.Definition, target string) (gate.Decision, error) {
			return closedGate{}.Check(ctx, d.store.Client(), t, target)
		},
	}), guard, o.Graph))
	d.worker = dispatch.New(attempts, service, registry, uncounted{}, o.Logger) //nolint:contextcheck // a circuit changes in no request of its own
	if err := d.worker.Start(ctx); err != nil {
		return nil, err
	}
	return d, nil
}

// registry has the target alone. What is about many requests of a provider is off: each trip is looked at by itself.
func (d *docket) registry(target providers.Target) (*providers.Registry, error) {
	c := target.Config
	c.Models = []providers.Model{target.Model}
	c.CircuitBreaker, c.Idempotent, c.PresumeDeadAfter = providers.CircuitBreaker{}, false, 0
	c.MaxConcurrency = contracts.MaxRuns // the run has a bound of its own
	return providers.NewRegistry([]providers.Config{c}, map[string]providers.Factory{
		c.Kind: func(providers.Config) (providers.Provider, error) { return d.provider, nil },
	})
}

func (d *docket) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	return errors.Join(d.worker.Stop(ctx), d.store.Close())
}

// pollInterval is how soon a worker finds an entry: SQLite has no notices, and looking costs more than a trip.
const pollInterval = 100 * time.Millisecond

// lookAgain is how long a lost notice can cost.
const lookAgain = 250 * time.Millisecond

// run creates the job and returns how it stands in the end, or once patience is over. An error means that nothing can be said of it.
func (d *docket) run(ctx context.Context, traceparent string, input json.RawMessage, patience time.Duration) (contracts.Trip, error) {
	id, refused, err := d.create(ctx, traceparent, input)
	if err != nil || refused != nil {
		if refused != nil {
			return contracts.Trip{State: StateNotCreated, Code: refused.Code}, nil
		}
		return contracts.Trip{}, err
	}
	ctx, end := context.WithTimeout(ctx, patience)
	defer end()
	watch := d.hub.Watch(id)
	defer watch.Stop()
	look := time.NewTicker(lookAgain)
	defer look.Stop()
	trip := contracts.Trip{State: "QUEUED"} // until it is read
	for {
		now, err := d.read(ctx, id)
		switch {
		case err == nil:
			trip = now
		case !errors.Is(context.Cause(ctx), context.DeadlineExceeded):
			return contracts.Trip{}, err
		}
		switch trip.State {
		case "SUCCEEDED", "FAILED", "CANCELLED", "UNKNOWN", "WAITING":
			return trip, nil
		}
		select {
		case <-watch.Changed:
		case <-look.C:
		case <-ctx.Done():
			if !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
				return contracts.Trip{}, context.Cause(ctx)
			}
			return trip, nil
		}
	}
}

const createDocument = `mutation($input: CreateJobInput!) { createJob(input: $input) {
	__typename
	... on CreateJobSuccess { job { id } }
	... on UserError { code }
} }`

type refusal struct{ Code string }

// create makes a job with a key of its own. refused is not nil if the case is none that a client could send.
func (d *docket) create(ctx context.Context, traceparent string, input json.RawMessage) (id string, refused *refusal, err error) {
	var out struct {
		CreateJob struct {
			Typename string `json:"__typename"`
			Job      struct{ ID string }
			Code     string
		}
	}
	err = d.ask(ctx, traceparent, createDocument, map[string]any{"input": map[string]any{
		"idempotencyKey": "contract-" + rand.Text(), "task": d.task.Name, "input": input,
	}}, &out)
	switch {
	case err != nil:
		return "", nil, err
	case out.CreateJob.Typename != "CreateJobSuccess":
		return "", &refusal{Code: out.CreateJob.Code}, nil
	}
	return out.CreateJob.Job.ID, nil, nil
}

const readDocument = `query($id: ID!) { job(id: $id) { state result attempts { error { code } } } }`

func (d *docket) read(ctx context.Context, id string) (contracts.Trip, error) {
	var out struct {
		Job *struct {
			State    string
			Result   json.RawMessage
			Attempts []struct{ Error *struct{ Code string } }
		}
	}
	if err := d.ask(ctx, "", readDocument, map[string]any{"id": id}, &out); err != nil {
		return contracts.Trip{}, err
	}
	if out.Job == nil {
		return contracts.Trip{}, fmt.Errorf("the job %s that was created is not there", id)
	}
	trip := contracts.Trip{State: out.Job.State}
	if out.Job.State == "SUCCEEDED" { // its result may be null
		trip.Read = out.Job.Result
	}
	for _, a := range out.Job.Attempts {
		if a.Error != nil {
			trip.Code = a.Error.Code
		}
	}
	return trip, nil
}

// ask sends a GraphQL request to the endpoint and decodes its data.
func (d *docket) ask(ctx context.Context, traceparent, document string, variables map[string]any, data any) error {
	body, err := json.Marshal(map[string]any{"query": document, "variables": variables})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1/graphql", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/graphql-response+json")
	req.Header.Set("Authorization", "Bearer dev:contract")
	if traceparent != "" {
		req.Header.Set("Traceparent", traceparent)
	}
	resp := &response{header: http.Header{}}
	d.handler.ServeHTTP(resp, req)
	var answer struct {
		Data   json.RawMessage
		Errors []struct {
			Message    string
			Extensions struct{ Code string }
		}
	}
	if err := json.Unmarshal(resp.body.Bytes(), &answer); err != nil {
		return fmt.Errorf("GraphQL answered %d with something that is not JSON: %w", resp.status, err)
	}
	if len(answer.Errors) > 0 && ctx.Err() != nil {
		return context.Cause(ctx) // which is why
	}
	if len(answer.Errors) > 0 {
		return fmt.Errorf("GraphQL answered with %s: %s", answer.Errors[0].Extensions.Code, answer.Errors[0].Message)
	}
	return json.Unmarshal(answer.Data, data)
}

// response takes an answer in one piece.
type response struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *response) Header() http.Header { return r.header }

func (r *response) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

func (r *response) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(p)
}

// only is the one target that there is.
type only string

func (o only) Known(target string) bool { return target == string(o) }

func (o only) Targets() []graph.Target {
	name := jobs.ProviderOf(string(o))
	return []graph.Target{{ID: string(o), Provider: name, Model: string(o)[len(name)+1:], Available: true}}
}

// closedGate is asked by nobody: there are no fallbacks.
type closedGate struct{}

func (closedGate) Check(context.Context, *ent.Client, *tasks.Definition, string) (gate.Decision, error) {
	return gate.Decision{State: gate.Missing}, nil
}

type uncounted struct{}

func (uncounted) RaceLost()                     {}
func (uncounted) AttemptSettled(string, string) {}
func (uncounted) CircuitRefused(string)         {}
func (uncounted) Cancelled(string, bool)        {}
