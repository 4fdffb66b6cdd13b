package jobs

import (
	"context"
	"fmt"
	"sync"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/job"
	"github.com/docket-gateway/docket/ent/owner"
	"github.com/docket-gateway/docket/ent/taskversion"
	"github.com/docket-gateway/docket/internal/tasks"
	"github.com/docket-gateway/docket/internal/viewer"
)

// maxKnown bounds what is remembered of rows that never change; when full, it is forgotten.
const maxKnown = 10_000

// known remembers rows that were seen in the database and are never deleted. Forgetting one costs a statement, no more.
type known struct {
	mu  sync.Mutex
	ids map[string]struct{}
}

func newKnown() *known { return &known{ids: map[string]struct{}{}} }

func (k *known) has(id string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, ok := k.ids[id]
	return ok
}

func (k *known) add(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.ids) >= maxKnown {
		clear(k.ids)
	}
	k.ids[id] = struct{}{}
}

// parsed keeps definitions by digest: what the digest names cannot change.
type parsed struct {
	mu   sync.Mutex
	defs map[string]*tasks.Definition
}

func newParsed() *parsed { return &parsed{defs: map[string]*tasks.Definition{}} }

func (p *parsed) get(digest string) *tasks.Definition {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.defs[digest]
}

func (p *parsed) put(d *tasks.Definition) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.defs) >= maxKnown/10 {
		clear(p.defs)
	}
	p.defs[d.Digest] = d
}

// version returns the definition that a job was created with, from q, which may be a transaction's client.
func (s *Service) version(ctx context.Context, q *ent.Client, digest string) (*tasks.Definition, error) {
	if d := s.versions.get(digest); d != nil {
		return d, nil
	}
	row, err := q.TaskVersion.Get(viewer.NewSystemContext(ctx), digest)
	if err != nil {
		return nil, fmt.Errorf("read task version %s: %w", digest, err)
	}
	d, err := tasks.Parse(row.Content)
	if err != nil {
		return nil, fmt.Errorf("task version %s: %w", digest, err)
	}
	s.versions.put(d)
	return d, nil
}

// HeldVersions returns every task version that a job which is not final holds, and those of the catalog: the versions
// whose fallbacks the gate may be asked about.
func (s *Service) HeldVersions(ctx context.Context) ([]*tasks.Definition, error) {
	sys := viewer.NewSystemContext(ctx)
	defs := s.catalog.All()
	have := make(map[string]bool, len(defs))
	for _, d := range defs {
		have[d.Digest] = true
	}
	held, err := s.store.Client().TaskVersion.Query().
		Where(taskversion.HasJobsWith(job.StateNotIn(job.StateSUCCEEDED, job.StateCANCELLED, job.StateFAILED))).
		Order(ent.Asc(taskversion.FieldName, taskversion.FieldID)).IDs(sys)
	if err != nil {
		return nil, fmt.Errorf("list the task versions of open jobs: %w", err)
	}
	for _, digest := range held {
		if have[digest] {
			continue
		}
		d, err := s.version(ctx, s.store.Client(), digest)
		if err != nil {
			return nil, err
		}
		defs = append(defs, d)
	}
	return defs, nil
}

// ensureVersion stores a definition under its digest. If it is stored already, maybe with its schemas' keys in another
// order, what is stored is followed, as on every replica.
func (s *Service) ensureVersion(sys context.Context, d *tasks.Definition) error {
	if s.versions.get(d.Digest) != nil {
		return nil
	}
	err := s.store.Client().TaskVersion.Create().SetID(d.Digest).SetName(d.Name).SetVersion(d.Version).SetContent(d.Stored).
		OnConflictColumns(taskversion.FieldID).DoNothing().Exec(sys)
	if err := ignoreNoRows(err); err != nil {
		return fmt.Errorf("store task version %s: %w", d.Digest, err)
	}
	_, err = s.version(sys, s.store.Client(), d.Digest)
	return err
}

// ensureOwner stores the owner's row.
func (s *Service) ensureOwner(sys context.Context, v viewer.Viewer) error {
	id := v.OwnerID()
	if s.owners.has(id) {
		return nil
	}
	err := s.store.Client().Owner.Create().SetID(id).SetIssuer(v.Issuer).SetSubject(v.Subject).
		OnConflictColumns(owner.FieldID).DoNothing().Exec(sys)
	if err := ignoreNoRows(err); err != nil {
		return fmt.Errorf("store owner %s: %w", id, err)
	}
	s.owners.add(id)
	return nil
}
