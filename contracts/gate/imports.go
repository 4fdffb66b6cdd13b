package gate

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/contractresult"
	"github.com/docket-gateway/docket/internal/tasks"
	"github.com/docket-gateway/docket/internal/viewer"
)

// ErrOtherResult says that a result of the same id, but with another content, is stored.
var ErrOtherResult = errors.New("another result is stored under this id")

// Import is a result that was made elsewhere, and whose signature was verified.
type Import struct {
	ID       string // of the result, where it was stored first
	Result   report.Result
	SignedBy string // the id of the trusted key
	By       string // who imports it
}

// Import stores all of the results or, with an error, none. A result keeps its id, so that importing it again stores nothing, and
// the time at which its run was over, so that importing does not make it younger. It says of each whether it was stored now.
func (r *Recorder) Import(ctx context.Context, list []Import) (stored []bool, err error) {
	for _, in := range list {
		judged := in.Result
		if judged.Judge(); judged.Passed != in.Result.Passed || judged.Digest != in.Result.Digest {
			return nil, fmt.Errorf("import the contract result %s: it does not judge to what it says", in.ID)
		}
		if in.Result.FinishedAt.After(r.now().Add(ClockSkew)) {
			return nil, fmt.Errorf("import the contract result %s: its run ended in the future", in.ID)
		}
	}
	tx, err := r.client.Tx(ctx)
	if err != nil {
		return nil, fmt.Errorf("import contract results: %w", err)
	}
	for _, in := range list {
		fresh, err := r.importOne(ctx, tx.Client(), in)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("import the contract result %s: %w", in.ID, err), tx.Rollback())
		}
		stored = append(stored, fresh)
	}
	if err := tx.Commit(); err != nil {
		return nil, fmt.Errorf("import contract results: %w", err)
	}
	return stored, nil
}

func (r *Recorder) importOne(ctx context.Context, q *ent.Client, in Import) (fresh bool, err error) {
	sys := viewer.NewSystemContext(ctx)
	there, err := q.ContractResult.Query().Where(contractresult.ID(in.ID)).Exist(sys)
	if err != nil {
		return false, err
	}
	create, err := r.row(q, in.Result)
	if err != nil {
		return false, err
	}
	// Another process may import the same: the constraint decides, and what it kept is looked at.
	err = create.SetID(in.ID).SetSignedBy(in.SignedBy).SetImportedBy(in.By).SetImportedAt(stamp(r.now())).SetCreatedAt(stamp(in.Result.FinishedAt)).
		OnConflictColumns(contractresult.FieldID).DoNothing().Exec(sys)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return false, err
	}
	kept, err := q.ContractResult.Get(sys, in.ID)
	if err != nil {
		return false, err
	}
	same, err := sameReport(kept.Report, in.Result)
	if err != nil || !same {
		return false, errors.Join(ErrOtherResult, err)
	}
	return !there, nil
}

func sameReport(kept json.RawMessage, in report.Result) (bool, error) {
	var r report.Result
	if err := json.Unmarshal(kept, &r); err != nil {
		return false, err
	}
	a, err := json.Marshal(r)
	if err != nil {
		return false, err
	}
	b, err := json.Marshal(in)
	return bytes.Equal(a, b), err
}

// Stored is a result as it can be carried elsewhere.
type Stored struct {
	ID     string
	Result report.Result
}

// Newest returns the result that decides on the gate of the task version and target, as this process is configured; ok is false if
// there is none for exactly that.
func (g *Gate) Newest(ctx context.Context, q *ent.Client, task *tasks.Definition, target string) (s Stored, ok bool, err error) {
	w := g.want(task, target)
	if !w.configured || !w.suite {
		return Stored{}, false, nil
	}
	latest, err := deciding(ctx, q, w.runs, exactly(w)...)
	if err != nil || latest == nil {
		return Stored{}, false, err
	}
	if latest.report == nil {
		return Stored{}, false, fmt.Errorf("the report of the contract result %s cannot be read", latest.id)
	}
	return Stored{ID: latest.id, Result: *latest.report}, true, nil
}

// stamp is a time as both databases keep it.
func stamp(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }
