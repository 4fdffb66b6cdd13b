package gate

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/contractresult"
	"github.com/docket-gateway/docket/internal/viewer"
)

// Recorder stores contract results where the gate looks for them.
type Recorder struct {
	client *ent.Client
	now    func() time.Time
}

// NewRecorder returns a recorder that writes through the client. now is the clock, time.Now if nil.
func NewRecorder(client *ent.Client, now func() time.Time) *Recorder {
	if now == nil {
		now = time.Now
	}
	return &Recorder{client: client, now: now}
}

// Record stores one result under the time at which it is stored. It judges the result itself, so that nobody can store a
// pass whose checks failed.
func (r *Recorder) Record(ctx context.Context, res report.Result) error {
	res.Judge()
	create, err := r.row(r.client, res)
	if err != nil {
		return err
	}
	if err := create.SetCreatedAt(stamp(r.now())).Exec(viewer.NewSystemContext(ctx)); err != nil {
		return fmt.Errorf("store the contract result of %s at %s: %w", res.Task, res.Target, err)
	}
	return nil
}

func (r *Recorder) row(q *ent.Client, res report.Result) (*ent.ContractResultCreate, error) {
	raw, err := json.Marshal(res)
	if err != nil {
		return nil, fmt.Errorf("encode the contract result: %w", err)
	}
	return q.ContractResult.Create().
		SetTask(res.Task).
		SetTaskVersion(res.Basis.TaskVersion).
		SetTarget(res.Target).
		SetConfigDigest(res.Basis.ConfigDigest).
		SetCasesDigest(res.Basis.CasesDigest).
		SetChecksVersion(res.Basis.ChecksVersion).
		SetDigest(res.Digest).
		SetMode(contractresult.Mode(res.Mode)).
		SetPassed(res.Passed).
		SetReport(raw).
		SetRanBy(res.RanBy), nil
}
