package verify_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/campaign/verify"
)

func TestAnEmptyHistoryIsRight(t *testing.T) {
	t.Parallel()
	require.Empty(t, verify.Check(&verify.History{}))
	require.Equal(t, "no violations\n", verify.Report(nil))
}

// What the rules take for granted is looked at too.
func TestAHistoryThatCannotBe(t *testing.T) {
	t.Parallel()
	judged(t, "history", []example{
		{name: "two jobs of one id", of: one(), do: func(s *story) { s.Jobs = append(s.Jobs, s.Jobs[0]) }, says: "two rows have this id"},
		{name: "two attempts of one id", of: one(), do: func(s *story) { s.Attempts = append(s.Attempts, s.Attempts[0]) }, says: "attempt id att_1.1"},
		{name: "an attempt without a job", of: one(), do: func(s *story) { s.Attempts[0].Job = "job_9" }, says: "of a job that has no row"},
		{name: "an event without a job", of: one(), do: func(s *story) { s.Events[5].Job = "job_9" }, says: "event 6 is of a job that has no row"},
		{name: "a detail that is no JSON", of: one(), do: func(s *story) { s.Events[2].Detail = json.RawMessage(`{`) }, says: "cannot be read"},
		{name: "a call that ends before it starts", of: one(), do: func(s *story) { s.Calls[1].End = s.Calls[1].Start - 1 }, says: "ends before it starts"},
		{name: "an answer that never came", of: one(), do: func(s *story) { s.Calls[1].End = verify.Never }, says: "has no answer and a Job"},
	})
}

func TestViolationsOfOneRuleAreCounted(t *testing.T) {
	t.Parallel()
	s := tell()
	for n := range verify.Most + 7 {
		s.then(creates(n + 1))
	}
	got := verify.Check(&s.History)
	require.Len(t, got, verify.Most+1)
	require.Equal(t, verify.Violation{Rule: "I8", Job: "job_1", Text: "all rests, and it is still QUEUED"}, got[0])
	// Each of them has an attempt that is STARTING too.
	require.Equal(t, fmt.Sprintf("I8: and %d more", 2*(verify.Most+7)-verify.Most), got[verify.Most].String())
	report := verify.Report(got)
	require.Contains(t, report, fmt.Sprintf("%d violations", 2*(verify.Most+7)))
	require.Contains(t, report, "  I8 at job_1: all rests, and it is still QUEUED\n")
}

// The same history in another order of calls, and checked again, says the same.
func TestCheckDependsOnTheHistoryAlone(t *testing.T) {
	t.Parallel()
	tell := func() *story {
		s := big(200, 5)
		for i := range s.Jobs {
			switch i % 4 {
			case 0:
				s.Jobs[i].Version++
			case 1:
				s.Jobs[i].Owner = "bob"
			case 2:
				s.Jobs[i].Result = json.RawMessage(byHand)
			}
		}
		return s
	}
	a, b := tell(), tell()
	first := verify.Report(verify.Check(&a.History))
	require.Equal(t, first, verify.Report(verify.Check(&a.History)), "it changed the history")
	require.Equal(t, first, verify.Report(verify.Check(&b.History)))
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(b.Calls), func(i, k int) { b.Calls[i], b.Calls[k] = b.Calls[k], b.Calls[i] })
	require.Len(t, verify.Check(&b.History), len(verify.Check(&a.History)))
}

// big is many jobs of all sorts, with several looks at each.
func big(jobs, looks int) *story {
	s := tell()
	s.Conforms = func(string, json.RawMessage) error { return nil }
	var parts []*story
	for n := range jobs {
		first, next := fmt.Sprintf("att_%d.1", n), fmt.Sprintf("att_%d.2", n)
		job := fmt.Sprintf("job_%d", n)
		p := tell(creates(n), sends(first, verify.Ambiguous), acknowledges(first))
		for range looks / 2 {
			p.then(reads(job))
		}
		switch n % 4 {
		case 0:
			p.then(starts(job, next, fallback, "alice", false), sends(next, verify.Answered), wins(next))
		case 1:
			p.then(loses(first, "IDLE_TIMEOUT"), resolves(first, "SUCCEEDED", byHand))
		case 2:
			p.then(loses(first, "IDLE_TIMEOUT"), ends(job, "alice", false))
		case 3:
			p.then(loses(first, "IDLE_TIMEOUT"), resolves(first, "FAILED", ""), starts(job, next, fallback, "alice", false),
				sends(next, verify.Answered), wins(next))
		}
		for range looks - looks/2 {
			p.then(reads(job))
		}
		p.then(watches(job, 0, 20, true))
		for i := range p.Requests {
			r := &p.Requests[i]
			if r.Mark != "" {
				mark := fmt.Sprintf("mark-%dx", 1000+n)
				old := r.Mark
				rename := func(raw json.RawMessage) json.RawMessage {
					if raw == nil {
						return nil
					}
					return json.RawMessage(strings.ReplaceAll(string(raw), old, mark))
				}
				r.Mark, r.Output, p.Jobs[0].Result = mark, rename(r.Output), rename(p.Jobs[0].Result)
				for _, c := range p.Calls {
					c.Found.Result = rename(c.Found.Result)
				}
				p.Everything = strings.ReplaceAll(p.Everything, old, mark)
			}
		}
		parts = append(parts, p)
	}
	var dump strings.Builder
	for _, p := range parts {
		s.Calls, s.Streams, s.Requests = append(s.Calls, p.Calls...), append(s.Streams, p.Streams...), append(s.Requests, p.Requests...)
		s.Jobs, s.Attempts, s.Events = append(s.Jobs, p.Jobs...), append(s.Attempts, p.Attempts...), append(s.Events, p.Events...)
		dump.WriteString(p.Everything)
	}
	s.Everything = dump.String()
	return s
}

func TestABigHistoryIsRight(t *testing.T) {
	t.Parallel()
	s := big(1000, 8)
	got := verify.Check(&s.History)
	require.Empty(t, got, verify.Report(got))
}

// Ten thousand jobs, a hundred thousand calls and a hundred megabytes of rows.
func BenchmarkCheck(b *testing.B) {
	s := big(10_000, 8)
	s.Everything += strings.Repeat("mark-1 mark-x and other text of rows without any mark in it\n", 1_600_000)
	require.GreaterOrEqual(b, len(s.Calls), 100_000)
	for b.Loop() {
		require.Empty(b, verify.Check(&s.History))
	}
}
