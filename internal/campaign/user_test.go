package campaign

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/docket-gateway/docket/internal/campaign/verify"
)

// A user looks at a job again after this long, and less often the longer it takes.
const (
	look     = 30 * time.Millisecond
	lookLate = 300 * time.Millisecond
)

// user pursues one intent until it is settled or the user gives up.
type user struct {
	*api
	intent

	of    plan
	r     *rand.Rand
	job   string
	waits time.Duration   // for something to happen
	end   context.Context //nolint:containedctx // of those who watch
	wg    *sync.WaitGroup
}

func (u *user) run(ctx context.Context) {
	if !u.create(ctx) {
		return
	}
	if u.watched {
		u.recorder.watching(u.job, 1)
		u.wg.Go(func() { u.watch(u.end, u.luck("watch"), u.owner, u.job) })
	}
	if u.probed {
		u.probe(ctx, "")
	}
	for started, wait := time.Now(), look; ctx.Err() == nil && time.Since(started) < u.waits; wait = min(wait*5/4, lookLate) {
		a := u.read(ctx, u.owner, false)
		if a != nil && a.Typename == "Job" {
			if done := u.react(ctx, a); done {
				return
			}
		}
		rest(ctx, wait)
	}
}

// create clicks, perhaps several times at once, and goes on clicking until somebody answers.
func (u *user) create(ctx context.Context) bool {
	for ctx.Err() == nil {
		ids := make([]string, u.clicks+1)
		var wg sync.WaitGroup
		for i := range u.clicks {
			r := u.luck("click", i)
			wg.Go(func() { ids[i] = u.click(ctx, r, false) })
		}
		if u.twin != nil {
			r := u.luck("twin")
			wg.Go(func() { ids[u.clicks] = u.click(ctx, r, true) })
		}
		wg.Wait()
		for _, id := range ids {
			if id != "" {
				u.job = id
				return true
			}
		}
		rest(ctx, look)
	}
	return false
}

// click is one createJob. It returns the id of the job of this key, whoever's input made it.
func (u *user) click(ctx context.Context, r *rand.Rand, twin bool) string {
	c := verify.Call{Subject: u.owner, Op: verify.OpCreate, Key: u.key, Task: u.task, Input: u.input, Target: u.target}
	if twin {
		c.Input = u.twin
	}
	input := map[string]any{"task": u.task, "input": c.Input}
	if u.target != "" {
		input["target"] = u.target
	}
	if u.fallbacks != nil {
		input["fallbacks"] = u.fallbacks
	}
	if u.hedge > 0 {
		input["hedgeAfterMs"] = u.hedge
	}
	var headers []string
	if chance(r, 0.3) {
		headers = []string{"Idempotency-Key", u.key}
	} else {
		input["idempotencyKey"] = u.key
	}
	a := u.mutate(ctx, r, c, input, headers...)
	if a == nil || a.Job == nil {
		return ""
	}
	return a.Job.ID
}

func (u *user) read(ctx context.Context, subject string, operator bool) *answer {
	c := verify.Call{Subject: subject, Operator: operator, Op: verify.OpRead, Job: u.job}
	if chance(u.r, 0.1) {
		u.call(ctx, u.r, verify.Call{Subject: subject, Operator: operator, Op: verify.OpByKey, Key: u.key})
	}
	return u.call(ctx, u.r, c)
}

// react does what this user does about a job in this state. It returns true when the user is content, or has given up.
func (u *user) react(ctx context.Context, a *answer) (done bool) {
	if u.actions <= 0 { // looks on, and helps nobody whom Docket has forgotten
		return a.State != "QUEUED" && a.State != "RUNNING"
	}
	switch a.State {
	case "SUCCEEDED", "CANCELLED":
		if u.probed {
			u.probe(ctx, a.Attempts[0].ID)
		}
		if chance(u.r, 0.1) { // too late
			u.one(ctx, u.cancelJob, func(ctx context.Context, r *rand.Rand) { u.start(ctx, r, "") })
		}
		return true
	case "FAILED":
		if chance(u.r, 0.5) {
			return true
		}
		u.one(ctx, func(ctx context.Context, r *rand.Rand) { u.start(ctx, r, pick(r, append(allTargets, "")...)) })
	case "WAITING":
		u.one(ctx, func(ctx context.Context, r *rand.Rand) { u.start(ctx, r, pick(r, append(allTargets, "", "")...)) })
	case "UNKNOWN":
		u.settle(ctx, a)
	default:
		switch x := u.r.Float64(); {
		case x < 0.03:
			u.one(ctx, u.cancelJob)
		case x < 0.06:
			u.one(ctx, u.cancelOf(a, "RUNNING"))
		case x < 0.12:
			u.one(ctx, func(ctx context.Context, r *rand.Rand) { u.start(ctx, r, pick(r, second, third, "")) })
		}
	}
	return false
}

// settle deals with an UNKNOWN attempt: most of the time several people do, at once and against each other.
func (u *user) settle(ctx context.Context, a *answer) {
	ways := []act{
		u.cancelOf(a, "UNKNOWN"),
		u.resolve(a, "SUCCEEDED"), u.resolve(a, "FAILED"), u.resolve(a, "CANCELLED"),
		func(ctx context.Context, r *rand.Rand) { u.start(ctx, r, "") }, // is blocked
		func(context.Context, *rand.Rand) {},                            // waits for a late answer
		func(context.Context, *rand.Rand) {},
	}
	if chance(u.r, 0.05) {
		ways = append(ways, u.cancelJob)
	}
	u.r.Shuffle(len(ways), func(i, j int) { ways[i], ways[j] = ways[j], ways[i] })
	u.one(ctx, ways[:1+u.r.IntN(3)]...)
}

type act func(ctx context.Context, r *rand.Rand)

// one does things at the same time.
func (u *user) one(ctx context.Context, acts ...act) {
	u.actions--
	var wg sync.WaitGroup
	for i, f := range acts {
		r := u.luck("act", u.actions, i)
		wg.Go(func() { f(ctx, r) })
	}
	wg.Wait()
}

func (u *user) start(ctx context.Context, r *rand.Rand, target string) {
	input := map[string]any{"jobId": u.job}
	if target != "" {
		input["target"] = target
	}
	u.mutate(ctx, r, verify.Call{Subject: u.owner, Op: verify.OpStart, Job: u.job, Target: target}, input)
}

func (u *user) cancelJob(ctx context.Context, r *rand.Rand) {
	u.mutate(ctx, r, verify.Call{Subject: u.owner, Op: verify.OpEnd, Job: u.job}, map[string]any{"jobId": u.job, "note": "enough"})
}

// cancelOf cancels an attempt that was in the state when the user looked.
func (u *user) cancelOf(a *answer, state string) act {
	return func(ctx context.Context, r *rand.Rand) {
		for _, at := range a.Attempts {
			if at.State == state {
				u.mutate(ctx, r, verify.Call{Subject: u.owner, Op: verify.OpCancel, Job: u.job, Attempt: at.ID}, map[string]any{"attemptId": at.ID})
				return
			}
		}
	}
}

// resolve is the operator's.
func (u *user) resolve(a *answer, outcome string) act {
	return func(ctx context.Context, r *rand.Rand) {
		for _, at := range a.Attempts {
			if at.State != "UNKNOWN" {
				continue
			}
			c := verify.Call{Subject: operator, Operator: true, Op: verify.OpResolve, Job: u.job, Attempt: at.ID, Outcome: outcome}
			input := map[string]any{"attemptId": at.ID, "outcome": outcome, "note": "asked the provider"}
			if outcome == "SUCCEEDED" {
				c.Result = object(fmt.Sprintf("by hand %d", r.Uint32()))
				input["result"] = c.Result
			}
			u.mutate(ctx, r, c, input)
			return
		}
	}
}

// probe is what a stranger tries who has got hold of the ids.
func (u *user) probe(ctx context.Context, attempt string) {
	base := verify.Call{Subject: stranger, Job: u.job}
	with := func(op string) verify.Call { c := base; c.Op = op; return c }
	r := u.luck("probe", len(attempt))
	u.call(ctx, r, with(verify.OpRead))
	u.call(ctx, r, with(verify.OpNode))
	u.call(ctx, r, verify.Call{Subject: stranger, Op: verify.OpByKey, Key: u.key})
	u.mutate(ctx, r, with(verify.OpStart), map[string]any{"jobId": u.job})
	u.mutate(ctx, r, with(verify.OpEnd), map[string]any{"jobId": u.job})
	if attempt != "" {
		of := func(op string) verify.Call { return verify.Call{Subject: stranger, Op: op, Attempt: attempt} }
		u.call(ctx, r, of(verify.OpNode))
		u.mutate(ctx, r, of(verify.OpCancel), map[string]any{"attemptId": attempt})
	}
}

// luck is chance for a part of this intent.
func (u *user) luck(name string, n ...int) *rand.Rand {
	return u.of.rng(name, append([]int{u.number}, n...)...)
}

// rest waits, or until ctx is done.
func rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
