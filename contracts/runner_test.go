package contracts_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/meaning"
	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/providers"
)

func TestRunner(t *testing.T) {
	t.Parallel()

	t.Run("PassesAndSaysForWhat", func(t *testing.T) {
		t.Parallel()
		s := recorded(t, nil)
		res := rig{}.run(t, s)
		require.True(t, res.Passed)
		require.Empty(t, res.Failures())
		require.Equal(t, s.Task.Digest, res.Basis.TaskVersion)
		require.Equal(t, digestOf(t, s, "a/b"), res.Basis.CasesDigest)
		require.Equal(t, "sha256:config", res.Basis.ConfigDigest)
		require.Equal(t, report.ChecksVersion, res.Basis.ChecksVersion)
		require.Equal(t, res.Basis.Digest("a/b"), res.Digest)
		require.NotEqual(t, res.Basis.Digest("c/d"), res.Digest)
		require.Equal(t, report.Live, res.Mode)
		require.Equal(t, 1, res.Runs)
		require.Equal(t, "tester", res.RanBy)
		require.Len(t, res.Cases, 2)
		for _, name := range report.Checks() {
			require.Contains(t, []report.Status{report.Passed, report.NotApplicable}, res.Summary(name), name)
		}
	})

	t.Run("SendsWhatAJobWouldAndOneCanaryPerCase", func(t *testing.T) {
		t.Parallel()
		sender := always(good)
		s := recorded(t, nil)
		res := rig{sender: sender, options: contracts.Options{Runs: 3}}.run(t, s)
		require.Len(t, sender.requests, 8)
		require.Len(t, res.Cases[0].Runs, 3)
		ids, prompts, canaries := map[string]bool{}, map[string]int{}, map[string]bool{}
		for _, r := range sender.requests {
			ids[r.AttemptID] = true
			require.Equal(t, "echo", r.Task)
			require.Equal(t, "model-of-a/b", r.Model)
			require.InDelta(t, 0.5, r.Temperature, 0)
			require.Equal(t, 9, r.MaxOutputTokens)
			require.True(t, strings.HasPrefix(r.System, "Obey."))
			if isCanary(r) {
				canaries[obeys(r)] = true
				continue
			}
			prompts[r.Prompt]++
			require.Equal(t, "Obey.", r.System)
			require.JSONEq(t, string(s.Task.OutputSchemaJSON), string(r.Schema))
		}
		require.Len(t, ids, 8)
		require.Equal(t, map[string]int{"Echo eins": 3, "Echo zwei": 3}, prompts)
		require.Len(t, canaries, 2, "each case has a word of its own")
	})

	t.Run("AsksForNoMoreThanTheModelCanGive", func(t *testing.T) {
		t.Parallel()
		sender := always(good)
		rig{sender: sender, limits: providers.Model{MaxOutputTokens: 4}}.run(t, recorded(t, nil))
		for _, r := range sender.requests {
			require.Equal(t, 4, r.MaxOutputTokens)
		}
	})

	t.Run("SendsNothingThatDoesNotFitOrRender", func(t *testing.T) {
		t.Parallel()
		sender := always(good)
		res := rig{sender: sender, limits: providers.Model{ContextWindow: 9}}.run(t, recorded(t, nil))
		require.Equal(t, []string{"prompt/window"}, failedChecks(res))
		res = rig{sender: sender}.run(t, recorded(t, map[string]string{"echo/prompt.tmpl": "{{.Input.missing}}"}))
		require.Equal(t, []string{"prompt/rendering"}, failedChecks(res))
		require.Equal(t, contracts.CodePromptNotRendered, res.Failures()[0].Check.Code)
		require.Empty(t, sender.requests)
	})

	t.Run("OneBadRunOfManyFails", func(t *testing.T) {
		t.Parallel()
		sender := model(func(number int) providers.Outcome {
			if number == 7 {
				return completed(`{}`)
			}
			return completed(good)
		})
		res := rig{sender: sender, options: contracts.Options{Runs: 5}}.run(t, recorded(t, nil))
		require.False(t, res.Passed)
		require.ElementsMatch(t, []string{"schema", "structure/stability"}, failedChecks(res))
		stability := res.Failures()[slices.IndexFunc(res.Failures(), func(p report.Place) bool { return p.Check.Name == report.CheckStructure })]
		require.Equal(t, "4 of 5 runs have the golden's structure, a ratio of 0.80; the task asks for 1.00: the others kept no schema", stability.Check.Message)
	})

	t.Run("ReportsAFailedRequestByItsCode", func(t *testing.T) {
		t.Parallel()
		res := rig{sender: failing(providers.CodeJammed, "paper jam")}.run(t, recorded(t, nil))
		require.Equal(t, `case "one", run 1, check schema: JAMMED: expected: a complete answer; came: paper jam`, res.Failures()[0].String())
	})

	t.Run("DoesNotWaitForLateAnswersAndDoesNotCountThem", func(t *testing.T) {
		t.Parallel()
		sender := &fakeSender{answer: func(ctx context.Context, _ providers.Request, r providers.Reporter) providers.Outcome {
			r.Acknowledged(providers.Acknowledgement{})
			r.Unknown(providers.Failure{Code: providers.CodeIdleTimeout, Message: "silence"})
			<-ctx.Done() // lingers for ever, unless told to stop
			return completed(good)
		}}
		res := rig{sender: sender}.run(t, recorded(t, nil))
		require.ElementsMatch(t, []string{"schema", "system/canary"}, failedChecks(res))
		for _, f := range res.Failures() {
			require.Equal(t, providers.CodeIdleTimeout, f.Check.Code)
		}
		require.Nil(t, res.Latency)
	})

	t.Run("FailsAnOutcomeWithoutAReason", func(t *testing.T) {
		t.Parallel()
		res := rig{sender: model(func(int) providers.Outcome { return providers.Outcome{} })}.run(t, recorded(t, nil))
		require.Equal(t, "UNCLASSIFIED", res.Failures()[0].Check.Code)
	})

	t.Run("KeepsReportsReadable", func(t *testing.T) {
		t.Parallel()
		var keys []string
		for i := range 500 {
			keys = append(keys, `"`+strings.Repeat("k", 3000)+strings.Repeat("x", i)+`": 1`)
		}
		check := rig{sender: always(`{"echo": "x", "kind": "plain", ` + strings.Join(keys, ",") + `}`)}.run(t, recorded(t, nil)).Failures()[0].Check
		require.Len(t, check.Problems, 20)
		require.Contains(t, check.Message, "and 30 more")
		require.Less(t, len(check.Message), 20_000)
	})

	t.Run("DoesNotPassWithoutRoundTripsAndFaults", func(t *testing.T) {
		t.Parallel()
		runner := contracts.NewRunner(contracts.Deps{Targets: fakeTargets{sender: always(good)}})
		res, _, err := runner.Run(t.Context(), recorded(t, nil), "a/b", contracts.Options{})
		require.NoError(t, err)
		require.Empty(t, failedChecks(res))
		require.ElementsMatch(t, []string{"round_trip", "faults"}, names(res, report.NotRun))
		require.False(t, res.Passed)
	})

	t.Run("MeasuresTimeAndCost", func(t *testing.T) {
		t.Parallel()
		res := rig{clock: ticking(time.Second), limits: providers.Model{PricePerMillion: providers.Price{Input: "8", Output: "20"}},
			options: contracts.Options{Runs: 2, Concurrency: 1}}.run(t, recorded(t, nil))
		require.Equal(t, &report.Latency{P50MS: 1000, P95MS: 1000, MaxMS: 1000}, res.Latency)
		// Eight requests: of each case two runs, a canary and a round trip.
		require.Equal(t, &report.Cost{Amount: "0.008", Currency: "USD"}, res.Cost)
		run := res.Cases[1].Runs[1]
		require.Equal(t, int64(1000), run.DurationMS)
		require.Equal(t, "0.001", run.Cost)
		require.Equal(t, 100, *run.InputTokens)
	})

	t.Run("JudgesOtherVersionsOfTheTaskWithoutTheirPrompts", func(t *testing.T) {
		t.Parallel()
		older := suite(t, map[string]string{"echo/system.tmpl": "Older."}).Task
		s, err := recorded(t, nil).For(older)
		require.NoError(t, err)
		res := rig{}.run(t, s)
		require.True(t, res.Passed)
		require.Contains(t, names(res, report.NotApplicable), "prompt/golden")
	})
}

func TestCannotRun(t *testing.T) {
	t.Parallel()
	run := func(ctx context.Context, t *testing.T, r rig, target string, changes map[string]string) error {
		t.Helper()
		res, ev, err := r.runner().Run(ctx, recorded(t, changes), target, r.options)
		require.Error(t, err)
		require.Nil(t, ev)
		require.Empty(t, res)
		return err
	}

	t.Run("SendsNothing", func(t *testing.T) {
		t.Parallel()
		sender := always(good)
		require.ErrorIs(t, run(t.Context(), t, rig{sender: sender}, "nobody/there", nil), contracts.ErrUnknownTarget)
		for _, mode := range []report.Mode{report.Replay, report.Record, "dream"} {
			require.ErrorIs(t, run(t.Context(), t, rig{sender: sender, options: contracts.Options{Mode: mode}}, "a/b", nil), contracts.ErrMode)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, run(ctx, t, rig{sender: sender}, "a/b", nil), contracts.ErrInterrupted)
		require.Empty(t, sender.requests)
	})

	t.Run("EndsWhatIsUnderWay", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		sender := &fakeSender{answer: func(ctx context.Context, _ providers.Request, _ providers.Reporter) providers.Outcome {
			cancel()
			<-ctx.Done()
			return completed(good)
		}}
		require.ErrorIs(t, run(ctx, t, rig{sender: sender}, "a/b", nil), contracts.ErrInterrupted)
	})

	t.Run("EndsWhatIsJudged", func(t *testing.T) {
		t.Parallel()
		_, ev, err := rig{}.runner().Run(t.Context(), recorded(t, map[string]string{"echo/cases/one.json": `{"input": {"text": "a"}, "assert": ["true"]}`}), "a/b", contracts.Options{})
		require.NoError(t, err)
		cause := errors.New("the process is asked to stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		_, err = contracts.Judge(ctx, ev)
		require.ErrorIs(t, err, contracts.ErrInterrupted)
		require.ErrorIs(t, err, cause)
	})

	t.Run("AnAssertionThatIsNeitherTrueNorFalse", func(t *testing.T) {
		t.Parallel()
		err := run(t.Context(), t, rig{}, "a/b", map[string]string{"echo/cases/one.json": `{"input": {"text": "a"}, "assert": ["true", "output.echo"]}`})
		require.ErrorIs(t, err, meaning.ErrNotBool)
		require.ErrorContains(t, err, `case "one": run 1: assert[1]: `)
	})

	t.Run("WhatItNeedsIsNotThere", func(t *testing.T) {
		t.Parallel()
		broken := errors.New("no database")
		err := run(t.Context(), t, rig{trips: fakeTrips{err: broken}, options: contracts.Options{Concurrency: 1}}, "a/b", nil)
		require.ErrorIs(t, err, broken)
		require.ErrorContains(t, err, "round trip: ")
		err = run(t.Context(), t, rig{faults: fakeFaults{err: broken}}, "a/b", nil)
		require.ErrorIs(t, err, broken)
		require.ErrorContains(t, err, "faults: ")
	})

	t.Run("TheNextRequestMayCostTooMuch", func(t *testing.T) {
		t.Parallel()
		sender := always(good)
		priced := providers.Model{PricePerMillion: providers.Price{Input: "8", Output: "20"}}
		spending, err := contracts.NewSpending("0.01")
		require.NoError(t, err)
		o := contracts.Options{Spending: spending, Concurrency: 1, Runs: 100}
		require.ErrorIs(t, run(t.Context(), t, rig{sender: sender, limits: priced, options: o}, "a/b", nil), contracts.ErrMaxCost)
		require.Equal(t, "0.00", spending.Spent()[:4], "the cap holds")
		require.NotEmpty(t, sender.requests)
		require.Less(t, len(sender.requests), 10)

		sender = always(good)
		spending, err = contracts.NewSpending("1")
		require.NoError(t, err)
		require.ErrorIs(t, run(t.Context(), t, rig{sender: sender, options: contracts.Options{Spending: spending}}, "a/b", nil), contracts.ErrPriceUnknown)
		require.Empty(t, sender.requests)
		for _, bad := range []string{"", "-1", "much"} {
			_, err := contracts.NewSpending(bad)
			require.ErrorContains(t, err, "not a decimal number")
		}
	})
}

// notebook is a journal in memory, by way of JSON as a file would be.
type notebook struct {
	mu    sync.Mutex
	pages map[string][]byte
}

func (n *notebook) Load(step string) (a contracts.Answer, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	raw, ok := n.pages[step]
	return a, ok && json.Unmarshal(raw, &a) == nil
}

func (n *notebook) Save(step string, a contracts.Answer) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	raw, err := json.Marshal(a)
	n.pages[step] = raw
	return err
}

// steps counts what a progress hears of.
type steps struct {
	mu          sync.Mutex
	begun, done int
}

func (s *steps) Begins(_, _ string, n int) { s.begun += n }
func (s *steps) Done(_, _ string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done++
}

func TestTakesUpARunAgain(t *testing.T) {
	t.Parallel()
	journal := &notebook{pages: map[string][]byte{}}
	ctx, cancel := context.WithCancel(t.Context())
	first := model(func(number int) providers.Outcome {
		if number == 4 {
			cancel()
		}
		return completed(good)
	})
	s := recorded(t, nil)
	o := contracts.Options{Runs: 5, Concurrency: 1, Journal: journal}
	_, _, err := rig{sender: first}.runner().Run(ctx, s, "a/b", o)
	require.ErrorIs(t, err, contracts.ErrInterrupted)
	had := len(first.runs()) - 1 // what was interrupted is no answer

	second := always(good)
	o.Progress = &steps{}
	res := rig{sender: second, options: o}.run(t, s)
	require.True(t, res.Passed)
	require.Len(t, second.runs(), 10-had)
	p, ok := o.Progress.(*steps)
	require.True(t, ok)
	require.Equal(t, p.begun, p.done)
	require.Equal(t, 2*(5+2)+1, p.begun)

	third := always(good)
	res = rig{sender: third, options: o}.run(t, s)
	require.True(t, res.Passed)
	require.Empty(t, third.requests, "everything was there")
}

func TestTakesUpNoAnswerOfLongAgo(t *testing.T) {
	t.Parallel()
	s := recorded(t, nil)
	for name, passes := range map[string]struct {
		maxAge, later time.Duration
		again         bool
	}{
		"in time":                    {168 * time.Hour, 24 * time.Hour, false},
		"after more than a day":      {168 * time.Hour, 24*time.Hour + time.Second, true},
		"half of a pass's time over": {time.Hour, 31 * time.Minute, true},
		"dated in the future":        {168 * time.Hour, -time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			task := *s.Task
			task.Contract.MaxAge = passes.maxAge
			s := s
			s.Task = &task
			o := contracts.Options{Journal: &notebook{pages: map[string][]byte{}}}
			rig{options: o}.run(t, s)
			now, second := frozen(), always(good)
			now.now = now.now.Add(passes.later)
			rig{sender: second, options: o, clock: now}.run(t, s)
			require.Equal(t, passes.again, len(second.requests) > 0)
		})
	}
}
