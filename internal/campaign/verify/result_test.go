package verify_test

import (
	"encoding/json"
	"testing"

	"github.com/docket-gateway/docket/internal/campaign/verify"
)

const byHand = `{"answer":"by hand"}`

// second is a job that is won by its second attempt, after the first one's complete answer was cancelled by hand.
func second() *story {
	return tell(creates(1), sends("att_1.1", verify.Answered), loses("att_1.1", "IDLE_TIMEOUT"), cancels("att_1.1", "alice", false),
		starts("job_1", "att_1.2", fallback, "alice", false), sends("att_1.2", verify.Answered), wins("att_1.2"))
}

func TestI5(t *testing.T) {
	t.Parallel()
	reopened := func() *story {
		return none().then(starts("job_1", "att_1.2", fallback, "alice", false), sends("att_1.2", verify.Answered), wins("att_1.2"))
	}
	unheard := func(s *story) {
		c := &s.Calls[len(s.Calls)-1]
		c.End, c.Type, c.Found, c.Settled = verify.Never, "", nil, nil
	}
	judged(t, "I5", []example{
		{name: "three moves", of: reopened()},
		{name: "the result is written otherwise", of: one(), do: func(s *story) {
			s.job("job_1").Result = json.RawMessage(`{ "answer": "mark-100x" }`)
		}},
		{name: "an operator's result", of: lost().then(resolves("att_1.1", "SUCCEEDED", byHand))},
		{name: "an operator's result, and nobody heard", of: lost().then(resolves("att_1.1", "SUCCEEDED", byHand), unheard)},
		{name: "a version that is too great", of: one(), do: func(s *story) { s.job("job_1").Version = 3 }, says: "by its events it is 2"},
		{name: "a version that forgot the re-opening", of: reopened(), do: func(s *story) { s.job("job_1").Version = 3 }, says: "by its events it is 4"},
		{name: "an attempt of the job's former life", of: reopened(), do: func(s *story) { s.attempt("att_1.2").JobVersion = 1 }, says: "its row says 1"},
		{name: "superseded by nobody", of: lost().then(moves("att_1.1", "SUPERSEDED", "")), says: "before any other has won"},
		{name: "a result that nobody brought", of: one(), do: func(s *story) { s.job("job_1").Result = json.RawMessage(byHand) }, says: "not what the provider answered"},
		{name: "the loser's result", of: second(), do: func(s *story) { s.job("job_1").Result = s.request("att_1.1").Output }, says: "not what the provider answered"},
		{name: "a merged result", of: one(), do: func(s *story) {
			s.job("job_1").Result = json.RawMessage(`{"answer":"mark-100x","more":1}`)
		}, says: "not what the provider answered"},
		{name: "the result of a refused operator", of: lost().then(resolves("att_1.1", "SUCCEEDED", byHand)), do: func(s *story) {
			s.Calls[len(s.Calls)-1].Type = "InvalidInput"
		}, says: "nor an operator's"},
		{name: "another result than the operator's", of: lost().then(resolves("att_1.1", "SUCCEEDED", byHand)), do: func(s *story) {
			s.Calls[len(s.Calls)-1].Result = json.RawMessage(`{"answer":"by foot"}`)
		}, says: "nor an operator's"},
		{name: "an operator's result for another attempt", of: lost().then(resolves("att_1.1", "SUCCEEDED", byHand)), do: func(s *story) {
			s.Calls[len(s.Calls)-1].Attempt = "att_9"
		}, says: "nor an operator's"},
	})
}

func TestI5Dropped(t *testing.T) {
	t.Parallel()
	judged(t, "I5", []example{
		{name: "the loser's payload is nowhere", of: second()},
		{name: "an input's mark", of: second(), do: func(s *story) { s.Everything += `{"text":"mark-7x"}` }},
		{name: "what looks like a mark", of: second(), do: func(s *story) { s.Everything += "mark-100 mark-x mark-1000x mark-" }},
		{name: "the loser's payload is kept", of: second(), do: func(s *story) { s.Everything += "note: mark-100x." }, says: "mark-100x, which attempt att_1.1 brought"},
		{name: "it follows another mark at once", of: second(), do: func(s *story) { s.Everything += "mark-mark-7xmark-100x" }, says: "mark-100x, which"},
		{name: "the broken output is kept", of: tell(creates(1), sends("att_1.1", verify.Broken), fails("att_1.1", "OUTPUT_INVALID")),
			do: func(s *story) { s.Everything = "OUTPUT_INVALID: mark-100x" }, says: "mark-100x, which"},
		{name: "the provider's payload beside an operator's result", of: tell(creates(1), sends("att_1.1", verify.Answered),
			loses("att_1.1", "IDLE_TIMEOUT"), resolves("att_1.1", "SUCCEEDED", byHand)), do: func(s *story) { s.Everything += "mark-100x" }, says: "mark-100x, which"},
		{name: "an operator's payload that was too late", of: one(), do: func(s *story) {
			s.call(verify.Call{
				Subject: "olga", Operator: true, Op: verify.OpResolve, Attempt: "att_1.1", Outcome: "SUCCEEDED", Result: json.RawMessage(`{"answer":"mark-5x"}`),
				Type: "AttemptFinished", Found: s.seen("job_1"), Settled: &verify.SeenAttempt{ID: "att_1.1", State: "SUCCEEDED"},
			})
			s.Everything += "mark-5x"
		}, says: "mark-5x, which"},
		{name: "an operator's result that repeats the provider's", of: tell(creates(1), sends("att_1.1", verify.Answered),
			loses("att_1.1", "IDLE_TIMEOUT"), resolves("att_1.1", "SUCCEEDED", `{"answer":"mark-100x"}`))},
		{name: "an operator's result that repeats what another attempt brought", of: tell(creates(1), sends("att_1.1", verify.Answered),
			loses("att_1.1", "IDLE_TIMEOUT"), cancels("att_1.1", "alice", false), starts("job_1", "att_1.2", primary, "alice", false),
			sends("att_1.2", verify.Ambiguous), loses("att_1.2", "IDLE_TIMEOUT"), resolves("att_1.2", "SUCCEEDED", `{"answer":"mark-100x"}`))},
		{name: "an operator who repeats the winner's result too late", of: second(), do: func(s *story) {
			s.call(verify.Call{
				Subject: "olga", Operator: true, Op: verify.OpResolve, Attempt: "att_1.1", Outcome: "SUCCEEDED", Result: s.job("job_1").Result,
				Type: "AttemptFinished", Found: s.seen("job_1"), Settled: &verify.SeenAttempt{ID: "att_1.1", State: "CANCELLED"},
			})
		}},
		{name: "the loser's payload is the result", of: second(), do: func(s *story) {
			s.job("job_1").Result = s.request("att_1.1").Output
			s.Everything += "mark-100x"
		}, says: "mark-100x, which attempt att_1.1 brought"},
		{name: "a dump that is not whole", of: one(), do: func(s *story) { s.Everything = "" }, says: "cannot be looked for there"},
		{name: "an answer without a mark", of: one(), do: func(s *story) { s.Requests[0].Mark = "" }, says: "has no mark"},
		{name: "a mark of another form", of: one(), do: func(s *story) { s.Requests[0].Mark = "mark-1" }, says: "it is not mark-<digits>x"},
		{name: "a mark that is not in the output", of: one(), do: func(s *story) { s.Requests[0].Mark = "mark-1x" }, says: "or not in the output"},
	})
}

func TestI6(t *testing.T) {
	t.Parallel()
	judged(t, "I6", []example{
		{name: "the second wins", of: second()},
		{name: "two winners", of: second(), do: func(s *story) { s.attempt("att_1.1").State = "SUCCEEDED" }, says: "SUCCEEDED are [att_1.1 att_1.2]"},
		{name: "no winner", of: one(), do: func(s *story) { s.attempt("att_1.1").State = "FAILED" }, says: "SUCCEEDED are []"},
		{name: "another one than said", of: second(), do: func(s *story) { s.job("job_1").CompletedBy = "att_1.1" }, says: `completed by "att_1.1"`},
		{name: "another job's attempt", of: one().then(creates(2), sends("att_2.1", verify.Answered), wins("att_2.1")), do: func(s *story) {
			s.job("job_1").CompletedBy = "att_2.1"
		}, says: "which is no attempt of it"},
		{name: "completed by nobody", of: one(), do: func(s *story) { s.job("job_1").CompletedBy = "" }, says: "which is no attempt of it"},
		{name: "no result", of: one(), do: func(s *story) { s.job("job_1").Result = nil }, says: "without a result"},
		{name: "the version moved after the claim", of: one(), do: func(s *story) { s.job("job_1").Version = 3 }, says: "has won under version 1"},
		{name: "a result of a job that FAILED", of: none(), do: func(s *story) { s.job("job_1").Result = json.RawMessage(byHand) }, says: "it is FAILED, with"},
		{name: "a winner of a job that is open", of: lost(), do: func(s *story) { s.job("job_1").CompletedBy = "att_1.1" }, says: "it is UNKNOWN, with"},
		{name: "an attempt that SUCCEEDED of a job that did not", of: lost(), do: func(s *story) { s.attempt("att_1.1").State = "SUCCEEDED" }, says: "it is UNKNOWN, with"},
	})
}
