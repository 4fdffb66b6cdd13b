package dispatch

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/jobs"
	"github.com/docket-gateway/docket/internal/tracecontext"
	"github.com/docket-gateway/docket/providers"
)

// retriever is a script that can be asked by handle too.
type retriever struct {
	*script

	retrieve func(ctx context.Context, n int) (providers.Outcome, error)

	mu    sync.Mutex
	asked []providers.Query
}

func (r *retriever) Retrieve(ctx context.Context, q providers.Query) (providers.Outcome, error) {
	r.mu.Lock()
	r.asked = append(r.asked, q)
	n := len(r.asked)
	r.mu.Unlock()
	return r.retrieve(ctx, n)
}

func (r *retriever) queries() []providers.Query {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]providers.Query{}, r.asked...)
}

// configured is a registry with one provider of that configuration.
func configured(t *testing.T, sender providers.Provider, set func(c *providers.Config)) *providers.Registry {
	t.Helper()
	c := providers.Config{Name: "fake", Kind: "scripted", BaseURL: "http://127.0.0.1:1",
		Models: []providers.Model{{Name: "a"}, {Name: "b"}, {Name: "c"}}}
	set(&c)
	r, err := providers.NewRegistry([]providers.Config{c},
		map[string]providers.Factory{"scripted": func(providers.Config) (providers.Provider, error) { return sender, nil }})
	require.NoError(t, err)
	return r
}

func idempotent(c *providers.Config) { c.Idempotent = true }

// lost makes a job whose attempt was sent by a worker that died. Its lease is over.
func (p *process) lost(t *testing.T, task, handle string) (*ent.Job, *ent.Attempt) {
	t.Helper()
	j, a := p.create(t, task)
	l, err := p.Take(t.Context(), a.ID, *a.QueueEntry)
	require.NoError(t, err)
	target, ok := p.d.registry.Lookup(a.Target)
	require.True(t, ok)
	l.SentTo = target.Config.Endpoint()
	require.NoError(t, p.MarkSent(t.Context(), l))
	require.NoError(t, p.Acknowledge(t.Context(), l, "", handle))
	p.exec(t, "UPDATE attempts SET lease_expires_at = "+p.store.Now(-time.Minute)+" WHERE id = '"+a.ID+"'")
	_, err = p.SweepLeases(t.Context())
	require.NoError(t, err)
	require.Equal(t, attempt.StateUNKNOWN, p.attempt(t, a.ID).State)
	return j, a
}

// later lets an hour pass for the attempt.
func (p *process) later(t *testing.T, a *ent.Attempt) {
	t.Helper()
	for _, column := range []string{"sent_at", "ask_at", "resent_at"} {
		p.exec(t, "UPDATE attempts SET "+column+" = "+p.store.Now(-time.Hour)+" WHERE "+column+" IS NOT NULL AND id = '"+a.ID+"'")
	}
}

// reconciled makes one pass and waits for what it began.
func (p *process) reconciled(t *testing.T) {
	t.Helper()
	p.d.reconcile(t.Context())
	p.d.requests.Wait()
}

func TestAsksByHandleUntilTheProviderKnows(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		r := &retriever{script: newScript(nil), retrieve: func(_ context.Context, n int) (providers.Outcome, error) {
			switch n {
			case 1:
				return providers.Outcome{}, errors.New("not reached")
			case 2:
				panic("an adapter's mistake")
			case 3:
				return providers.Outcome{Kind: providers.Unknown, Failure: &providers.Failure{Code: "PENDING"}}, nil
			default:
				return ok(), nil
			}
		}}
		p := start(t, address, options{idle: true, script: r.script, registry: configured(t, r, func(*providers.Config) {})})
		j, a := p.lost(t, "single", "handle-1")
		for i := range 3 {
			p.reconciled(t)
			p.reconciled(t) // back-off: nothing is asked
			require.Len(t, r.queries(), i+1)
			require.Equal(t, attempt.StateUNKNOWN, p.attempt(t, a.ID).State)
			p.later(t, a)
		}
		p.reconciled(t)
		require.Equal(t, attempt.StateSUCCEEDED, p.attempt(t, a.ID).State)
		require.JSONEq(t, good, string(p.job(t, j.ID).Result))
		schema := r.queries()[0].Schema
		require.JSONEq(t, `{"type": "object", "required": ["answer"], "properties": {"answer": {"type": "string"}}}`, string(schema))
		require.Equal(t, providers.Query{AttemptID: a.ID, Handle: "handle-1", Model: "a", Schema: schema, MaxOutputTokens: r.queries()[0].MaxOutputTokens,
			Traceparent: tracecontext.OfAttempt(j.ID, "", a.ID)}, r.queries()[0])
		p.script.once(t) // the fake worker sent nothing, and nobody else did

		_, without := p.lost(t, "single", "")
		p.later(t, without)
		p.reconciled(t)
		require.Len(t, r.queries(), 4, "there is no handle to ask by")
	})
}

func TestADefiniteNoByHandleLetsTheRouteGoOn(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		r := &retriever{script: newScript(nil), retrieve: func(context.Context, int) (providers.Outcome, error) { return no(false), nil }}
		p := start(t, address, options{lease: shortLease, idle: true, script: r.script, registry: configured(t, r, idempotent)})
		j, a := p.lost(t, "route", "handle-1")
		p.work(t) // the loop itself asks
		p.becomes(t, a.ID, attempt.StateFAILED)
		await.Until(t, "the route goes on", func() bool { return p.job(t, j.ID).State == job.StateSUCCEEDED })
		require.Equal(t, "fake/b", p.attempts(t, j.ID)[1].Target)
		p.script.once(t, p.attempts(t, j.ID)[1].ID)
	})
}

func TestResendsTheSameRequestUnderTheSameKey(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		var p *process
		s := newScript(func(c *call) providers.Outcome {
			if c.number == 1 {
				c.ack()
				return providers.Outcome{Kind: providers.Unknown, Failure: &providers.Failure{Code: providers.CodeConnectionLost}}
			}
			c.ack()
			c.r.Progress()
			c.r.Unknown(timedOut()) // changes nothing: it is UNKNOWN
			return ok()
		})
		p = start(t, address, options{lease: shortLease, script: s, registry: configured(t, s, idempotent)})
		j, a := p.create(t, "single")
		first, second := s.next(t), s.next(t) // nobody listens to a lost connection: the loop need not wait
		require.Equal(t, first.Request, second.Request)
		require.Equal(t, tracecontext.OfAttempt(j.ID, "", a.ID), first.Traceparent)
		require.Equal(t, a.ID, second.AttemptID)
		p.becomes(t, a.ID, attempt.StateSUCCEEDED)
		require.JSONEq(t, good, string(p.job(t, j.ID).Result))
		require.Len(t, p.attempts(t, j.ID), 1)
		p.script.once(t, a.ID, a.ID)
	})
}

// TestNeverResendsWithoutTheDeclaration: not after any time, nor after a crash, nor to one that can be asked.
func TestNeverResendsWithoutTheDeclaration(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		r := &retriever{script: newScript(nil), retrieve: func(context.Context, int) (providers.Outcome, error) {
			return providers.Outcome{}, errors.New("not reached")
		}}
		for _, sender := range []providers.Provider{r, r.script} {
			p := start(t, address, options{idle: true, script: r.script, registry: configured(t, sender, func(*providers.Config) {})})
			_, a := p.lost(t, "single", "handle-1")
			for range 3 {
				p.later(t, a)
				p.reconciled(t)
			}
			require.Equal(t, attempt.StateUNKNOWN, p.attempt(t, a.ID).State)
			require.Nil(t, p.attempt(t, a.ID).ResentAt)
		}
		r.once(t)
	})
}

// TestNeverResendsToAnotherEndpoint: it would not know the key.
func TestNeverResendsToAnotherEndpoint(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		s := newScript(nil)
		moved := start(t, address, options{idle: true, script: s,
			registry: configured(t, s, func(c *providers.Config) { c.Idempotent, c.BaseURL = true, "http://127.0.0.1:2" })})
		p := start(t, address, options{idle: true, script: s, registry: configured(t, s, idempotent)})
		_, a := p.lost(t, "single", "")
		p.later(t, a)
		moved.reconciled(t)
		s.once(t)
		p.reconciled(t)
		s.once(t, a.ID)
	})
}

func TestWhatCanBeAskedIsNotResent(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		sender providers.Provider
		set    func(*providers.Config)
		want   []bool // re-sends, and then only without a handle
	}{
		"Neither":    {newScript(nil), func(*providers.Config) {}, nil},
		"Asked":      {&retriever{script: newScript(nil)}, func(*providers.Config) {}, []bool{false}},
		"Idempotent": {newScript(nil), idempotent, []bool{true}},
		"Both":       {&retriever{script: newScript(nil)}, idempotent, []bool{false, true}},
	} {
		in := inquiries(configured(t, tc.sender, tc.set))
		require.Len(t, in, 1, name)
		require.Len(t, in[0].questions, len(tc.want), name)
		for i, q := range in[0].questions {
			require.Equal(t, tc.want[i], q.Resend, name)
			require.Equal(t, q.Resend && len(tc.want) == 2, q.SkipHandles, name)
			require.Equal(t, []string{"fake/a", "fake/b", "fake/c"}, q.Targets, name)
		}
	}
}

func TestDoesNotResendWhileTheWorkerLingers(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		late := make(chan struct{})
		s := newScript(lingering(late))
		p := start(t, address, options{script: s, registry: configured(t, s, func(c *providers.Config) { c.Idempotent, c.Linger = true, time.Hour })})
		other := start(t, address, options{idle: true, script: s,
			registry: configured(t, s, func(c *providers.Config) { c.Idempotent, c.Linger = true, time.Hour })})
		_, a := p.create(t, "single")
		p.becomes(t, a.ID, attempt.StateUNKNOWN)
		p.d.reconcile(t.Context())
		other.reconciled(t)
		s.once(t, a.ID)
		close(late)
		p.becomes(t, a.ID, attempt.StateSUCCEEDED)
		s.once(t, a.ID)
	})
}

// TestARefusedResendSaysNothingOfTheFirstRequest: FAILED would start a second run beside the first.
func TestARefusedResendSaysNothingOfTheFirstRequest(t *testing.T) {
	t.Parallel()
	fails := func(code, finish string) providers.Outcome {
		return providers.Outcome{Kind: providers.Failed, FinishReason: finish, Failure: &providers.Failure{Code: code, Retryable: true}}
	}
	for name, tc := range map[string]struct {
		out  providers.Outcome
		want attempt.State
	}{
		"Unreachable":    {fails(providers.CodeUnreachable, ""), attempt.StateUNKNOWN},
		"TooMany":        {fails(providers.CodeRateLimited, ""), attempt.StateUNKNOWN},
		"Conflict":       {fails(providers.CodeBadRequest, ""), attempt.StateUNKNOWN},
		"WrongKey":       {fails(providers.CodeUnauthorized, ""), attempt.StateUNKNOWN},
		"Overloaded":     {fails(providers.CodeOverloaded, ""), attempt.StateUNKNOWN},
		"NoReason":       {providers.Outcome{Kind: providers.Failed, FinishReason: "stop"}, attempt.StateUNKNOWN},
		"Damaged":        {fails(providers.CodeMalformedAnswer, "stop"), attempt.StateUNKNOWN},
		"TimedOut":       {aborted(), attempt.StateUNKNOWN},
		"CutAtTheLimit":  {fails(providers.CodeTruncated, "length"), attempt.StateFAILED},
		"BreaksItsShape": {providers.Outcome{Kind: providers.Completed, Output: []byte(`{}`)}, attempt.StateFAILED},
		"Answers":        {ok(), attempt.StateSUCCEEDED},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScript(func(*call) providers.Outcome { return tc.out })
			p := start(t, databases.SQLite(t), options{idle: true, script: s, registry: configured(t, s, idempotent)})
			j, a := p.lost(t, "single", "")
			p.reconciled(t)
			s.once(t) // its worker may still listen
			p.later(t, a)
			p.reconciled(t)
			s.once(t, a.ID)
			require.Equal(t, tc.want, p.attempt(t, a.ID).State)
			require.Len(t, p.attempts(t, j.ID), 1)
		})
	}
}

func TestResendsOnlyAFewTimes(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		s := newScript(func(c *call) providers.Outcome {
			if c.number == 2 {
				panic("an adapter's mistake")
			}
			return aborted()
		})
		p := start(t, address, options{idle: true, script: s, registry: configured(t, s, idempotent)})
		_, a := p.lost(t, "single", "")
		for range 10 {
			p.later(t, a)
			p.reconciled(t)
			p.reconciled(t)
		}
		s.once(t, a.ID, a.ID, a.ID, a.ID, a.ID)
		require.Equal(t, attempt.StateUNKNOWN, p.attempt(t, a.ID).State)
		require.Equal(t, 5, p.number(t, "SELECT count(*) FROM job_events WHERE type = 'ATTEMPT_RESENT'"))
	})
}

func TestOneOfManyProcessesResends(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		s := newScript(func(*call) providers.Outcome { return aborted() })
		var ps []*process
		for range 4 {
			ps = append(ps, start(t, address, options{idle: true, script: s, registry: configured(t, s, idempotent)}))
		}
		_, a := ps[0].lost(t, "single", "")
		ps[0].later(t, a)
		var all sync.WaitGroup
		for _, p := range ps {
			all.Go(func() { p.d.reconcile(t.Context()); p.d.requests.Wait() })
		}
		all.Wait()
		s.once(t, a.ID)
	})
}

// TestSendsNothingUnlessTheQuestionIsCommitted: the count of re-sends holds even if the database fails.
func TestSendsNothingUnlessTheQuestionIsCommitted(t *testing.T) {
	t.Parallel()
	s := newScript(nil)
	p := start(t, databases.SQLite(t), options{idle: true, script: s, registry: configured(t, s, idempotent),
		wrap: func(j Jobs) Jobs { return unasked{j} }})
	_, a := p.lost(t, "single", "")
	p.later(t, a)
	p.reconciled(t)
	s.once(t)
}

// unasked loses the answer of every commit.
type unasked struct{ Jobs }

func (u unasked) Ask(ctx context.Context, q jobs.Question, id string) (*jobs.Asked, error) {
	if _, err := u.Jobs.Ask(ctx, q, id); err != nil {
		return nil, err
	}
	return nil, errAway
}

func TestAResendStopsWhenItsAttemptIsSettled(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		ended := make(chan struct{})
		s := newScript(func(c *call) providers.Outcome {
			defer close(ended)
			c.until(nil)
			return ok() // the answer came all the same
		})
		p := start(t, address, options{lease: shortLease, idle: true, script: s, registry: configured(t, s, idempotent)})
		j, a := p.lost(t, "single", "")
		p.later(t, a)
		p.d.reconcile(t.Context())
		s.next(t)
		_, err := p.CancelAttempt(p.ann, a.ID, nil)
		require.NoError(t, err)
		await.Receive(t, "end of the re-send", ended)
		p.d.requests.Wait()
		require.Equal(t, attempt.StateCANCELLED, p.attempt(t, a.ID).State)
		require.Empty(t, p.job(t, j.ID).Result)
	})
}

func TestStoppingCutsAResendOffAndAnotherProcessGoesOn(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		s := newScript(func(c *call) providers.Outcome {
			if c.number == 1 {
				c.until(nil)
				return aborted()
			}
			return ok()
		})
		p := start(t, address, options{lease: shortLease, idle: true, script: s, registry: configured(t, s, idempotent)})
		_, a := p.lost(t, "single", "")
		p.later(t, a)
		p.work(t)
		s.next(t)
		require.NoError(t, p.stop(0))
		require.Equal(t, attempt.StateUNKNOWN, p.attempt(t, a.ID).State)
		other := start(t, address, options{idle: true, script: s, registry: configured(t, s, idempotent)})
		other.later(t, a)
		other.reconciled(t)
		require.Equal(t, attempt.StateSUCCEEDED, other.attempt(t, a.ID).State)
	})
}

func TestAnOutageIsNotFollowedByAFlood(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	s := newScript(func(c *call) providers.Outcome { c.until(release); return ok() })
	p := start(t, databases.SQLite(t), options{idle: true, script: s, registry: configured(t, s, idempotent)})
	for range questionsAtOnce + 3 {
		_, a := p.lost(t, "single", "")
		p.later(t, a)
	}
	p.d.reconcile(t.Context())
	p.d.reconcile(t.Context())
	for range questionsAtOnce {
		s.next(t)
	}
	require.Len(t, s.requests(), questionsAtOnce)
	close(release)
	p.d.requests.Wait()
	p.reconciled(t)
	require.Len(t, s.requests(), questionsAtOnce+3)
}
