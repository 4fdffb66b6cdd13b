package gate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/gateevent"
	"github.com/docket-gateway/docket/internal/tasks"
	"github.com/docket-gateway/docket/internal/viewer"
)

// Watcher notices when the gate's answer is another one than before and keeps that as an event.
type Watcher struct {
	gate   *Gate
	client *ent.Client
	log    *slog.Logger
}

// NewWatcher returns a watcher of the gate that reads and writes through the client.
func NewWatcher(g *Gate, client *ent.Client, log *slog.Logger) *Watcher {
	return &Watcher{gate: g, client: client, log: log}
}

// Look asks the gate about the task version and target and, if the state is not that of the last event, adds one. It says whether
// it did: of several processes that see one change, one does. A gate of which nothing was ever seen counts as MISSING. A target
// that is not configured here, or a task whose cases are not known, has its gate elsewhere.
//
// Replicas that are configured otherwise have gates of their own, told apart by the basis of a pass, so that they do not write
// their changes in turn while a configuration is rolled out.
func (w *Watcher) Look(ctx context.Context, task *tasks.Definition, target string) (changed bool, err error) {
	want := w.gate.want(task, target)
	if !want.configured || !want.suite {
		return false, nil
	}
	basis := want.basis.Digest(target)
	// The event first, then the gate: whoever decides on an older state than the last event's finds that its number is taken.
	number, from, err := w.last(ctx, task, target, basis)
	if err != nil {
		return false, fmt.Errorf("read the gate's events of %s at %s: %w", task.Name, target, err)
	}
	d, err := w.gate.Check(ctx, w.client, task, target)
	if err != nil {
		return false, err
	}
	if d.State == from {
		return false, nil
	}
	sys := viewer.NewSystemContext(ctx)
	id, err := w.insert(sys, task, target, basis, number+1, from, d)
	if err != nil {
		return false, fmt.Errorf("store a gate's event of %s at %s: %w", task.Name, target, err)
	}
	kept, err := w.client.GateEvent.Query().Where(gateevent.Basis(basis), gateevent.Number(number+1)).OnlyID(sys)
	if err != nil {
		return false, fmt.Errorf("read a gate's event of %s at %s: %w", task.Name, target, err)
	}
	if kept != id {
		return false, nil
	}
	level := slog.LevelInfo
	if from == Passed {
		level = slog.LevelWarn
	}
	w.log.Log(ctx, level, "the gate changed", "task", task.Name, "task_version", task.Digest, "target", target,
		"from", string(from), "to", string(d.State), "reasons", d.Reasons, "result", d.ResultID)
	return true, nil
}

// last returns the number of the basis' last event and the state that the gate had before.
func (w *Watcher) last(ctx context.Context, task *tasks.Definition, target, basis string) (number int, state State, err error) {
	sys := viewer.NewSystemContext(ctx)
	e, err := w.client.GateEvent.Query().Where(gateevent.Basis(basis)).Order(ent.Desc(gateevent.FieldNumber)).First(sys)
	if err == nil {
		return e.Number, State(e.To), nil
	}
	if !ent.IsNotFound(err) {
		return 0, "", err
	}
	e, err = w.client.GateEvent.Query().Where(gateevent.TaskVersion(task.Digest), gateevent.Target(target)).
		Order(ent.Desc(gateevent.FieldAt, gateevent.FieldID)).First(sys)
	if ent.IsNotFound(err) {
		return 0, Missing, nil
	}
	if err != nil {
		return 0, "", err
	}
	return 0, State(e.To), nil
}

func (w *Watcher) insert(sys context.Context, task *tasks.Definition, target, basis string, number int, from State, d Decision) (id string, err error) {
	reasons := d.Reasons
	if reasons == nil {
		reasons = []string{}
	}
	create := w.client.GateEvent.Create().SetTask(task.Name).SetTaskVersion(task.Digest).SetTarget(target).SetBasis(basis).SetNumber(number).
		SetFrom(string(from)).SetTo(string(d.State)).SetReasons(reasons).SetAt(stamp(w.gate.now()))
	if d.ResultID != "" {
		create.SetResultID(d.ResultID)
	}
	id = gateevent.DefaultID()
	err = create.SetID(id).OnConflictColumns(gateevent.FieldBasis, gateevent.FieldNumber).DoNothing().Exec(sys)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return id, err
}

// Event is a change of a gate.
type Event struct {
	ID          string    `json:"id"`
	At          time.Time `json:"at"`
	Task        string    `json:"task"`
	TaskVersion string    `json:"task_version"`
	Target      string    `json:"target"`
	From        State     `json:"from"`
	To          State     `json:"to"`
	Reasons     []string  `json:"reasons"`
	ResultID    string    `json:"result_id,omitempty"`
}

// Events returns the newest events, oldest first, at most limit of them. An empty task or target means all.
func Events(ctx context.Context, q *ent.Client, task, target string, limit int) ([]Event, error) {
	query := q.GateEvent.Query().Order(ent.Desc(gateevent.FieldAt, gateevent.FieldID)).Limit(limit)
	if task != "" {
		query.Where(gateevent.Task(task))
	}
	if target != "" {
		query.Where(gateevent.Target(target))
	}
	rows, err := query.All(viewer.NewSystemContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("list the gates' events: %w", err)
	}
	out := make([]Event, len(rows))
	for i, r := range rows {
		e := Event{ID: r.ID, At: r.At, Task: r.Task, TaskVersion: r.TaskVersion, Target: r.Target, From: State(r.From), To: State(r.To), Reasons: r.Reasons}
		if r.ResultID != nil {
			e.ResultID = *r.ResultID
		}
		out[len(rows)-1-i] = e
	}
	return out, nil
}

// Change is how often a gate came to a state.
type Change struct {
	Task   string `json:"task"`
	Target string `json:"target"`
	To     State  `json:"to_state"`
	Count  int    `json:"count"`
}

// Changes counts all events.
func Changes(ctx context.Context, q *ent.Client) ([]Change, error) {
	var out []Change
	err := q.GateEvent.Query().GroupBy(gateevent.FieldTask, gateevent.FieldTarget, gateevent.FieldTo).
		Aggregate(ent.Count()).Scan(viewer.NewSystemContext(ctx), &out)
	if err != nil {
		return nil, fmt.Errorf("count the gates' events: %w", err)
	}
	return out, nil
}
