package verify_test

import (
	"encoding/json"
	"testing"

	"github.com/docket-gateway/docket/internal/campaign/verify"
)

// races is a job whose two attempts are RUNNING, the second started by hand.
func races() *story {
	return tell(creates(1), sends("att_1.1", verify.Ambiguous), acknowledges("att_1.1"),
		starts("job_1", "att_1.2", fallback, "alice", false), sends("att_1.2", verify.Answered))
}

func TestI3(t *testing.T) {
	t.Parallel()
	blocked := func(state string) func(*story) {
		return func(s *story) {
			s.call(verify.Call{
				Subject: "alice", Op: verify.OpStart, Job: "job_1", Type: "AttemptBlocked", Code: "ATTEMPT_BLOCKED",
				Settled: &verify.SeenAttempt{ID: "att_1.1", State: state},
			})
		}
	}
	forbidden := func(s *story) { s.MayRace = nil }
	judged(t, "I3", []example{
		{name: "a race", of: races().then(wins("att_1.2"))},
		{name: "both UNKNOWN in the end", of: races().then(loses("att_1.1", "IDLE_TIMEOUT"), loses("att_1.2", "IDLE_TIMEOUT"))},
		{name: "a race that the task forbids", of: races().then(wins("att_1.2")), do: forbidden, says: "while att_1.1 is RUNNING"},
		{name: "beside one that is UNKNOWN", of: lost().then(starts("job_1", "att_1.2", fallback, "alice", false)), says: "while att_1.1 is UNKNOWN"},
		{name: "beside one that is STARTING", of: tell(creates(1), starts("job_1", "att_1.2", fallback, "alice", false)), says: "while att_1.1 is STARTING"},
		{name: "after one that FAILED", of: tell(creates(1), sends("att_1.1", verify.Refused),
			goesOn("att_1.1", "RATE_LIMITED", "att_1.2", primary, "RETRY"), sends("att_1.2", verify.Answered), wins("att_1.2")), do: forbidden},
		{name: "a blocker", of: lost().then(blocked("UNKNOWN"))},
		{name: "one that runs blocks where racing is forbidden", of: one().then(blocked("RUNNING")), do: forbidden},
		{name: "one that runs blocks although racing is allowed", of: one().then(blocked("RUNNING")), says: "none of the job's blockers"},
		{name: "one that is over blocks", of: one().then(blocked("SUCCEEDED")), says: "none of the job's blockers"},
		{name: "a blocker of another job", of: lost().then(creates(2), sends("att_2.1", verify.Answered), wins("att_2.1"), blocked("UNKNOWN")), do: func(s *story) {
			s.Calls[len(s.Calls)-1].Job = "job_2"
		}, says: "none of the job's blockers"},
		{name: "a blocker that nobody knows", of: lost().then(blocked("UNKNOWN")), do: func(s *story) {
			s.Calls[len(s.Calls)-1].Settled.ID = "att_9"
		}, says: "none of the job's blockers"},
		{name: "a blocker of a job without a row", of: lost().then(blocked("UNKNOWN")), do: func(s *story) {
			s.Calls[len(s.Calls)-1].Job = "job_9"
		}, says: "the job has no row"},
		{name: "a blocker that is none", of: lost().then(blocked("UNKNOWN")), do: func(s *story) { s.Calls[len(s.Calls)-1].Settled = nil }, says: "the answer no attempt"},
	})
}

func TestI4(t *testing.T) {
	t.Parallel()
	fail := func(fate verify.Fate, code string) *story {
		return tell(creates(1), sends("att_1.1", fate), fails("att_1.1", code))
	}
	unsent := func(code string) *story { return tell(creates(1), fails("att_1.1", code)) }
	judged(t, "I4", []example{
		{name: "a definite no", of: none()},
		{name: "an output that breaks the schema", of: fail(verify.Broken, "OUTPUT_INVALID")},
		{name: "a late no", of: tell(creates(1), sends("att_1.1", verify.Refused), loses("att_1.1", "ACK_TIMEOUT"), fails("att_1.1", "PROVIDER_ERROR"))},
		{name: "nobody was reached", of: unsent("PROVIDER_UNREACHABLE")},
		{name: "a dial that timed out", of: unsent("ACK_TIMEOUT")},
		{name: "cut while it was sent", of: fail(verify.Cut, "REQUEST_NOT_SENT")},
		{name: "cut by the provider while it was sent", of: fail(verify.Ambiguous, "REQUEST_NOT_SENT"), do: func(s *story) { s.Requests[0].Whole = false }},
		{name: "an operator's word", of: lost().then(resolves("att_1.1", "FAILED", ""))},
		{name: "an answer, and yet FAILED", of: fail(verify.Answered, "OUTPUT_INVALID"), says: "its fate was answered"},
		{name: "silence, and yet FAILED", of: fail(verify.Ambiguous, "PROVIDER_ERROR"), says: "its fate was ambiguous"},
		{name: "a time-out", of: fail(verify.Refused, "TOTAL_TIMEOUT"), says: "had got its request"},
		{name: "a lost connection", of: fail(verify.Cut, "CONNECTION_LOST"), says: "had got its request"},
		{name: "what a middle box said", of: fail(verify.Refused, "GATEWAY_ERROR"), says: "had got its request"},
		{name: "a shutdown", of: fail(verify.Cut, "ABORTED"), says: "had got its request"},
		{name: "a dead worker", of: unsent("WORKER_LOST"), says: "not a no"},
		{name: "presumed dead", of: unsent("PRESUMED_DEAD"), says: "not a no"},
		{name: "said to be unsent, and there", of: fail(verify.Refused, "REQUEST_NOT_SENT"), says: "request whole"},
		{name: "said to be unreached, and there", of: fail(verify.Refused, "PROVIDER_UNREACHABLE"), says: "request whole"},
		{name: "stopped before it was sent, and there", of: fail(verify.Cut, "CONTRACT_NOT_PASSED"), says: "had got its request"},
		{name: "an operator's word without the operator", of: lost().then(fails("att_1.1", "RESOLVED_AS_FAILED")), says: "only an operator may"},
		{name: "the owner's word", of: lost().then(resolves("att_1.1", "FAILED", "")), do: func(s *story) {
			s.Events[6].Detail = json.RawMessage(by("alice", false, `"code":"RESOLVED_AS_FAILED"`))
		}, says: "only an operator may"},
		{name: "an operator's word without a name", of: lost().then(resolves("att_1.1", "FAILED", "")), do: func(s *story) {
			s.Events[6].Detail = json.RawMessage(`{"code":"RESOLVED_AS_FAILED","operator":true}`)
		}, says: "only an operator may"},
		{name: "an operator's word on one that runs", of: races(), do: func(s *story) {
			s.then(resolves("att_1.1", "FAILED", ""))
		}, says: "from RUNNING as"},
		{name: "a job that fails beside an UNKNOWN attempt", of: lost().then(becomes("job_1", "FAILED", "")), says: "makes the job FAILED while attempt att_1.1 is UNKNOWN"},
		{name: "a job that waits beside one that runs", of: races().then(acknowledges("att_1.2"), cancels("att_1.1", "alice", false)), says: "makes the job WAITING while attempt att_1.2 is RUNNING"},
	})
}
