package graph

import (
	"context"
	"fmt"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
	"github.com/docket-gateway/docket/ent/predicate"
	"github.com/docket-gateway/docket/graph/model"
)

// oneJob is nil without an error if there is none that the viewer may see.
func (r *Resolver) oneJob(ctx context.Context, where ...predicate.Job) (*ent.Job, error) {
	q, err := r.Client.Job.Query().Where(where...).CollectFields(collecting(ctx), "Job", "Node")
	if err != nil {
		return nil, err
	}
	j, err := q.Only(ctx)
	if err != nil {
		return nil, ent.MaskNotFound(err)
	}
	return j, r.owners.prime(ctx, j)
}

// nodes holds, in order, nil for each id that is malformed, unknown or another owner's.
func (r *Resolver) nodes(ctx context.Context, ids []string) ([]ent.Noder, error) {
	if len(ids) > maxNodes {
		return nil, coded(CodePageTooLarge, "at most %d nodes at a time", maxNodes)
	}
	byKind := map[string][]string{}
	for _, id := range ids {
		kind := kindOf(id)
		byKind[kind] = append(byKind[kind], id)
	}
	found := map[string]ent.Noder{}
	if ids := byKind[jobPrefix]; len(ids) > 0 {
		q, err := r.Client.Job.Query().Where(job.IDIn(ids...)).CollectFields(collecting(ctx), "Job", "Node")
		if err != nil {
			return nil, err
		}
		rows, err := q.All(ctx)
		if err != nil {
			return nil, err
		}
		if err := r.owners.prime(ctx, rows...); err != nil {
			return nil, err
		}
		for _, row := range rows {
			found[row.ID] = row
		}
	}
	if ids := byKind[attemptPrefix]; len(ids) > 0 {
		q, err := r.Client.Attempt.Query().Where(attempt.IDIn(ids...)).CollectFields(collecting(ctx), "Attempt", "Node")
		if err != nil {
			return nil, err
		}
		rows, err := q.All(ctx)
		if err != nil {
			return nil, err
		}
		if err := r.owners.prime(ctx, jobsOf(rows)...); err != nil {
			return nil, err
		}
		for _, row := range rows {
			found[row.ID] = row
		}
	}
	out := make([]ent.Noder, len(ids))
	for i, id := range ids {
		out[i] = found[id]
	}
	return out, nil
}

// targets asks the gate about each target only if a task is given.
func (r *Resolver) targets(ctx context.Context, task *string) ([]*model.Target, error) {
	out := []*model.Target{}
	for _, t := range r.Targets.Targets() {
		out = append(out, &model.Target{ID: t.ID, Provider: t.Provider, Model: t.Model, Available: t.Available})
	}
	if task == nil {
		return out, nil
	}
	definition, ok := r.Catalog.Get(*task)
	if !ok {
		return nil, coded(CodeBadUserInput, "there is no such task")
	}
	for _, t := range out {
		d, err := r.Gate(ctx, definition, t.ID)
		if err != nil {
			return nil, fmt.Errorf("ask the gate about %s: %w", t.ID, err)
		}
		t.Contract = &model.ContractStatus{
			Task: definition.Name, State: model.ContractState(d.State), Reasons: append([]string{}, d.Reasons...),
			CheckedAt: d.CheckedAt, ExpiresAt: d.ExpiresAt,
		}
	}
	return out, nil
}

// eventRange checks the arguments of a job's events and sets their defaults.
func eventRange(after, first *int) (number, size int, err error) {
	size = defaultEvents
	if after != nil {
		number = *after
	}
	if first != nil {
		size = *first
	}
	switch {
	case number < 0:
		return 0, 0, coded(CodeBadUserInput, "event numbers start at 1: after cannot be negative")
	case size < 0:
		return 0, 0, coded(CodeBadUserInput, "first cannot be negative")
	case size > maxEvents:
		return 0, 0, coded(CodePageTooLarge, "at most %d events at a time", maxEvents)
	}
	return number, size, nil
}

// validKey tells whether a job can have that key at all.
func validKey(key string) bool {
	for i := range len(key) {
		if key[i] < 0x20 || key[i] > 0x7e {
			return false
		}
	}
	return 1 <= len(key) && len(key) <= 255
}

// jobsOf are the jobs that were loaded with the attempts.
func jobsOf(attempts []*ent.Attempt) []*ent.Job {
	out := make([]*ent.Job, len(attempts))
	for i, a := range attempts {
		out[i] = a.Edges.Job
	}
	return out
}
