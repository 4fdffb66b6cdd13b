package gate

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/contractresult"
	"github.com/docket-gateway/docket/ent/predicate"
	"github.com/docket-gateway/docket/internal/tasks"
	"github.com/docket-gateway/docket/internal/viewer"
)

// Current tells the digests of what this process would use now. A result for anything else does not open the gate.
type Current interface {
	// ConfigDigest is the digest of the target's provider configuration, adapter version included; ok is false if no
	// provider of this process serves the target.
	ConfigDigest(target string) (digest string, ok bool)
	// CasesDigest is the digest of the task's cases and of what is recorded for them at the target; ok is false if this process does
	// not know them.
	CasesDigest(task, target string) (digest string, ok bool)
	// Parts are what these and the task version's digest are made of. They are asked for when a refusal is put in words.
	Parts(task *tasks.Definition, target string) report.Parts
}

// Gate decides whether targets may be used as fallbacks. It is safe for concurrent use.
type Gate struct {
	current Current
	now     func() time.Time
}

// New returns a gate. now is the clock, time.Now if nil.
func New(current Current, now func() time.Time) *Gate {
	if now == nil {
		now = time.Now
	}
	return &Gate{current: current, now: now}
}

// Check says whether the target may stand in for the primary of this very task version, and if not, why. It reads through
// q, so that it can be asked inside a transaction, and needs no viewer: results belong to no owner. An error means that
// the database could not say; the caller must treat it as a refusal.
func (g *Gate) Check(ctx context.Context, q *ent.Client, task *tasks.Definition, target string) (Decision, error) {
	w := g.want(task, target)
	if !w.configured || !w.suite {
		return decide(nil, nil, w, g.now()), nil
	}
	// The newest result for exactly what is configured here decides, so that replicas in the middle of a rolling change of
	// configuration do not close each other's gates. Without one, the newest for this version says what changed.
	here := []predicate.ContractResult{contractresult.TaskVersion(task.Digest), contractresult.Target(target)}
	latest, err := deciding(ctx, q, w.runs, exactly(w)...)
	if err == nil && latest == nil {
		latest, err = newest(ctx, q, here...)
	}
	if err != nil {
		return Decision{}, fmt.Errorf("read the newest contract result of %s at %s: %w", task.Name, target, err)
	}
	var other *stored
	if latest == nil {
		other, err = newest(ctx, q, contractresult.Task(task.Name), contractresult.Target(target), contractresult.TaskVersionNEQ(task.Digest))
		if err != nil {
			return Decision{}, fmt.Errorf("read the contract results of other versions of %s at %s: %w", task.Name, target, err)
		}
	}
	return decide(latest, other, w, g.now()), nil
}

func (g *Gate) want(task *tasks.Definition, target string) want {
	w := want{task: task.Name, target: target, runs: task.Contract.Runs, maxAge: task.Contract.MaxAge}
	w.basis.TaskVersion, w.basis.ChecksVersion = task.Digest, report.ChecksVersion
	w.basis.ConfigDigest, w.configured = g.current.ConfigDigest(target)
	w.basis.CasesDigest, w.suite = g.current.CasesDigest(task.Name, target)
	w.parts = func() report.Parts { return g.current.Parts(task, target) }
	return w
}

// exactly is for results of what this process would use now.
func exactly(w want) []predicate.ContractResult {
	return []predicate.ContractResult{contractresult.TaskVersion(w.basis.TaskVersion), contractresult.Target(w.target),
		contractresult.Digest(w.basis.Digest(w.target))}
}

// maxFewer bounds how many passes with too few runs are looked past.
const maxFewer = 50

// deciding returns the newest result, but for passes with fewer runs than the task asks for while there is another behind them: a
// short run shows less than a whole one, and takes nothing back of it. A failure decides whatever its runs.
func deciding(ctx context.Context, q *ent.Client, runs int, where ...predicate.ContractResult) (*stored, error) {
	var first *stored
	for skip := range maxFewer {
		s, err := behind(ctx, q, skip, where...)
		if err != nil {
			return nil, err
		}
		if s == nil {
			break
		}
		if !s.passed || s.report == nil || s.report.Runs >= runs {
			return s, nil
		}
		if first == nil {
			first = s
		}
	}
	return first, nil
}

// newest returns the newest result that says something about an endpoint, nil if there is none. Replays are left out here
// and refused in decide.
func newest(ctx context.Context, q *ent.Client, where ...predicate.ContractResult) (*stored, error) {
	return behind(ctx, q, 0, where...)
}

// behind is newest without the newest ones.
func behind(ctx context.Context, q *ent.Client, skip int, where ...predicate.ContractResult) (*stored, error) {
	row, err := q.ContractResult.Query().
		Where(where...).
		Where(contractresult.ModeIn(contractresult.ModeLive, contractresult.ModeRecord)).
		// Two results of one microsecond: the id is time-ordered too.
		Order(ent.Desc(contractresult.FieldCreatedAt, contractresult.FieldID)).
		Offset(skip).
		First(viewer.NewSystemContext(ctx))
	if ent.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s := &stored{
		id: row.ID, mode: report.Mode(row.Mode), passed: row.Passed, digest: row.Digest, createdAt: row.CreatedAt, ranBy: row.RanBy,
		basis: report.Basis{
			TaskVersion: row.TaskVersion, CasesDigest: row.CasesDigest, ConfigDigest: row.ConfigDigest, ChecksVersion: row.ChecksVersion,
		},
	}
	if row.SignedBy != nil {
		s.signedBy = *row.SignedBy
	}
	var r report.Result
	if json.Unmarshal(row.Report, &r) == nil {
		s.report = &r
	}
	return s, nil
}
