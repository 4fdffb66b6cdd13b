package campaign

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/campaign/verify"
	"github.com/docket-gateway/docket/internal/program"
)

// guard is one thing in the code that keeps an invariant, and how it is put out of work: only in a program that is built
// for this test, by texts that stand in for those of the source files (`go build -overlay`). The source has no switch
// for it, so no other program can have one.
type guard struct {
	invariant string
	what      string
	edits     []edit
	statement string // for the database, after its schema is made
}

// edit replaces a text that stands exactly once in the file.
type edit struct{ file, old, new string }

// switchText is added to each package with an edit. One program serves all guards.
const switchText = `package %s

import "os"

var guardOut = os.Getenv("CAMPAIGN_GUARD_OUT")

// out reports whether the guard of an invariant is out of work.
func out(invariant string) bool { return guardOut == invariant }
`

var guards = []guard{
	{
		invariant: "I1", what: "the unique constraint on owner and key: looked up before the insert instead",
		edits: []edit{
			{"internal/jobs/create.go", "	now := s.now()\n	id, err := tx.Job.Create()", `	if out("I1") {
		if existing, err := s.byKey(sys, tx.Client, v.OwnerID(), *in.IdempotencyKey); err != nil || existing != nil {
			if err != nil {
				return Created{}, err
			}
			return replay(existing, fingerprint)
		}
	}
	now := s.now()
	conflict := []entsql.ConflictOption{entsql.ConflictColumns(job.FieldOwnerID, job.FieldIdempotencyKey)}
	if out("I1") {
		conflict = nil
	}
	id, err := tx.Job.Create()`},
			{"internal/jobs/create.go", "OnConflictColumns(job.FieldOwnerID, job.FieldIdempotencyKey).DoNothing()", "OnConflict(conflict...).DoNothing()"},
			{"internal/jobs/create.go", `	"strconv"
`, `	"strconv"

	entsql "entgo.io/ent/dialect/sql"
`},
		},
		statement: `DROP INDEX job_owner_id_idempotency_key`,
	},
	{
		invariant: "I2", what: "the comparison of fingerprints",
		edits: []edit{{"internal/jobs/create.go", "if !bytes.Equal(existing.Fingerprint, fingerprint) {", `if !bytes.Equal(existing.Fingerprint, fingerprint) && !out("I2") {`}},
	},
	{
		invariant: "I3", what: "UNKNOWN attempts block new ones",
		edits: []edit{{"internal/jobs/start.go", "if blocks(a, task.RaceAllowed) {", `if blocks(a, task.RaceAllowed) && !out("I3") {`}},
	},
	{
		invariant: "I4", what: "a time-out is UNKNOWN",
		edits: []edit{
			{"internal/dispatch/run.go", "out.Unknown = o.Kind == providers.Unknown", `out.Unknown = o.Kind == providers.Unknown && guardOut != "I4"`},
			{"internal/dispatch/reporter.go", "jobs.Outcome{Unknown: true,", `jobs.Outcome{Unknown: guardOut != "I4",`},
		},
	},
	{
		invariant: "I5", what: "a claim needs its attempt's own move",
		edits: []edit{{"internal/jobs/settle.go", "		u.ClearErrorCode().ClearErrorMessage().ClearErrorRetryable().ClearErrorRetryAfterMs()\n	}))\n	if err != nil {",
			"		u.ClearErrorCode().ClearErrorMessage().ClearErrorRetryable().ClearErrorRetryAfterMs()\n	}))\n	if err != nil && !(out(\"I5\") && errors.Is(err, errLost)) {"}},
	},
	{
		invariant: "I6", what: "the claim's version and empty slot, and the end of the other attempts",
		edits: []edit{
			{"internal/jobs/settle.go", "Where(job.ID(a.JobID), job.Version(a.JobVersion), job.CompletedByIDIsNil()).",
				`Where(job.ID(a.JobID)).Where(func() []predicate.Job {
				if out("I6") {
					return nil
				}
				return []predicate.Job{job.Version(a.JobVersion), job.CompletedByIDIsNil()}
			}()...).`},
			{"internal/jobs/settle.go", "		if !open(a) {\n			continue\n		}\n		f := &Failure{Code: CodeSuperseded, Message: \"Another",
				"		if !open(a) || out(\"I6\") {\n			continue\n		}\n		f := &Failure{Code: CodeSuperseded, Message: \"Another"},
		},
	},
	{
		invariant: "I7", what: "events in the transaction of what they tell of: written after it instead",
		edits: []edit{{"internal/jobs/change.go", "	if err := c.tx.JobEvent.CreateBulk(c.pending...).Exec(c.ctx); err != nil {", `	if out("I7") {
		c.tx.AfterCommit(func() { _ = c.tx.JobEvent.CreateBulk(c.pending...).Exec(c.ctx) })
	} else if err := c.tx.JobEvent.CreateBulk(c.pending...).Exec(c.ctx); err != nil {`}},
	},
	{
		invariant: "I8", what: "the sweeps for orphans",
		edits: []edit{
			{"internal/jobs/sweep.go", "func (s *Service) SweepLeases(ctx context.Context) (Swept, error) {\n", "func (s *Service) SweepLeases(ctx context.Context) (Swept, error) {\n	if out(\"I8\") {\n		return Swept{}, nil\n	}\n"},
			{"internal/jobs/sweep.go", "func (s *Service) SweepQueue(ctx context.Context) (Swept, error) {\n", "func (s *Service) SweepQueue(ctx context.Context) (Swept, error) {\n	if out(\"I8\") {\n		return Swept{}, nil\n	}\n"},
		},
	},
	{
		invariant: "I9", what: "sent_at: an attempt of a dead worker is sent again like any stuck entry",
		edits: []edit{
			{"internal/jobs/sweep.go", "		if now.SentAt == nil {\n", "		if now.SentAt == nil || out(\"I9\") && now.State == attempt.StateSTARTING {\n"},
			{"internal/jobs/sweep.go", "Where(attempt.ID(a.ID), attempt.StateEQ(attempt.StateSTARTING), attempt.SentAtIsNil()).Where(guards...).\n", "Where(attempt.ID(a.ID), attempt.StateEQ(attempt.StateSTARTING), unsent()).Where(guards...).\n"},
			{"internal/jobs/lease.go", "Where(attempt.ID(attemptID), attempt.StateEQ(attempt.StateSTARTING), attempt.SentAtIsNil(), attempt.QueueEntry(entry),", "Where(attempt.ID(attemptID), attempt.StateEQ(attempt.StateSTARTING), unsent(), attempt.QueueEntry(entry),"},
			{"internal/jobs/lease.go", "Where(attempt.ID(l.Attempt.ID), attempt.StateEQ(attempt.StateSTARTING), attempt.SentAtIsNil(), attempt.LeaseToken(l.Token)).", "Where(attempt.ID(l.Attempt.ID), attempt.StateEQ(attempt.StateSTARTING), unsent(), attempt.LeaseToken(l.Token))."},
			{"internal/jobs/lease.go", "// Lease is a worker's hold", `func unsent() predicate.Attempt {
	if out("I9") {
		return attempt.IDNEQ("")
	}
	return attempt.SentAtIsNil()
}

// Lease is a worker's hold`},
		},
	},
	{
		invariant: "I10", what: "the gate",
		edits: []edit{{"internal/jobs/next.go", "	d, err := s.gate.Check(ctx, q, task, target)\n", "	if out(\"I10\") {\n		return gate.Decision{Allowed: true}, nil\n	}\n	d, err := s.gate.Check(ctx, q, task, target)\n"}},
	},
	{
		invariant: "I11", what: "the privacy policy's narrowing to the viewer's own rows",
		edits: []edit{{"ent/schema/policy.go", "	if v.SeesAll() {\n", "	if v.SeesAll() || out(\"I11\") {\n"}},
	},
	{
		invariant: "I12", what: "the state in the guarded move",
		edits: []edit{{"internal/jobs/change.go", "Where(attempt.ID(a.ID), attempt.JobID(c.job.ID), attempt.StateIn(sources(to)...)).Where(guards...)",
			`Where(attempt.ID(a.ID), attempt.JobID(c.job.ID)).Where(func() []predicate.Attempt {
			if out("I12") {
				return nil
			}
			return []predicate.Attempt{attempt.StateIn(sources(to)...)}
		}()...).Where(guards...)`}},
	},
	{
		invariant: "I13", what: "the validation of answers",
		edits: []edit{{"internal/jobs/outcome.go", "	issues := task.OutputSchema.ValidateOutput(output)\n	if len(issues) == 0 {", "	issues := task.OutputSchema.ValidateOutput(output)\n	if len(issues) == 0 || out(\"I13\") {"}},
	},
}

// unguarded builds the program in which each guard can be put out of work.
var unguarded = sync.OnceValues(func() (string, error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return "", err
	}
	texts := map[string]string{}
	for _, g := range guards {
		for _, e := range g.edits {
			path := filepath.Join(root, filepath.FromSlash(e.file))
			if _, ok := texts[path]; !ok {
				raw, err := os.ReadFile(path)
				if err != nil {
					return "", err
				}
				texts[path] = string(raw)
			}
			if n := strings.Count(texts[path], e.old); n != 1 {
				return "", fmt.Errorf("the guard of %s was to be found once in %s, and is there %d times: %q", g.invariant, e.file, n, e.old)
			}
			texts[path] = strings.Replace(texts[path], e.old, e.new, 1)
			dir := filepath.Dir(path)
			texts[filepath.Join(dir, "guard_out.go")] = fmt.Sprintf(switchText, filepath.Base(dir))
		}
	}
	dir := filepath.Join(folder, "overlay")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	flag, err := program.Overlay(dir, texts)
	if err != nil {
		return "", err
	}
	return build("unguarded", flag)
})

// TestGuards: whatever guard is out of work, the campaign notices.
func TestGuards(t *testing.T) { //nolint:paralleltest // each run has the machine to itself
	names := strings.Split(*guardsFlag, ",")
	if *guardsFlag == "all" {
		names = nil
		for _, g := range guards {
			names = append(names, g.invariant)
		}
	}
	path, err := unguarded()
	require.NoError(t, err)
	seed := chooseSeed()
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "guard\tout of work\tseed\tintents\tnoticed by")
	for _, name := range names {
		i := slices.IndexFunc(guards, func(g guard) bool { return g.invariant == name })
		require.GreaterOrEqual(t, i, 0, "there is no guard %q", name)
		t.Run(name, func(t *testing.T) {
			intents, by := untilNoticed(t, guards[i], path, seed)
			_, _ = fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\n", name, guards[i].what, seed, intents, by)
			require.NotEmpty(t, by, "not noticed in %d intents", intents)
		})
	}
	require.NoError(t, w.Flush())
	t.Log("\n" + table.String())
}

// untilNoticed runs intents in rounds until a violation shows, and names the rules that were broken.
func untilNoticed(t *testing.T, g guard, path string, seed uint64) (intents int, by string) {
	t.Helper()
	const round, most = 25, 1000
	p := newPlan(seed, most, slices.Concat(processFaults, databaseFaults))
	c := newCampaign(t, p, path, []string{"CAMPAIGN_GUARD_OUT=" + g.invariant}, true)
	c.sabotaged = true
	if g.statement != "" {
		require.NoError(t, execute(t.Context(), c.fleet.database, g.statement))
	}
	for intents < most {
		v := c.run(t, intents, intents+round)
		intents += round
		if len(v) > 0 {
			t.Logf("%s", tail(verify.Report(v), 3000))
			var rules []string
			for _, x := range v {
				if !slices.Contains(rules, x.Rule) {
					rules = append(rules, x.Rule)
				}
			}
			return intents, strings.Join(rules, ", ")
		}
	}
	return intents, ""
}
