package verify_test

import (
	"testing"

	"github.com/docket-gateway/docket/internal/campaign/verify"
)

func TestI12(t *testing.T) {
	t.Parallel()
	last := func(s *story) *verify.Call { return &s.Calls[len(s.Calls)-1] }
	finished := func(op, attempt, state string) func(*story) {
		return func(s *story) {
			s.call(verify.Call{
				Subject: "olga", Operator: true, Op: op, Attempt: attempt, Type: "AttemptFinished", Found: s.seen("job_1"),
				Settled: &verify.SeenAttempt{ID: attempt, State: state},
			})
		}
	}
	over := func(op string) func(*story) {
		return func(s *story) {
			s.call(verify.Call{Subject: "alice", Op: op, Job: "job_1", Type: "JobFinished", Found: s.seen("job_1")})
		}
	}
	byAlice := func() *story { return lost().then(cancels("att_1.1", "alice", false)) }
	judged(t, "I12", []example{
		{name: "all the way", of: lost().then(resolves("att_1.1", "SUCCEEDED", byHand))},
		{name: "one runs again while another is UNKNOWN", of: races().then(loses("att_1.1", "IDLE_TIMEOUT"), acknowledges("att_1.2"), wins("att_1.2"))},
		{name: "given up, and started again", of: byAlice().then(starts("job_1", "att_1.2", primary, "alice", false), sends("att_1.2", verify.Answered), wins("att_1.2"))},
		{name: "leaves CANCELLED", of: byAlice().then(moves("att_1.1", "SUCCEEDED", "")), says: `from "CANCELLED" to "SUCCEEDED"`},
		{name: "leaves FAILED", of: none().then(moves("att_1.1", "UNKNOWN", "")), says: `from "FAILED" to "UNKNOWN"`},
		{name: "leaves SUPERSEDED", of: races().then(wins("att_1.2"), moves("att_1.1", "FAILED", "")), says: `from "SUPERSEDED" to "FAILED"`},
		{name: "runs again after UNKNOWN", of: lost().then(moves("att_1.1", "RUNNING", "")), says: `from "UNKNOWN" to "RUNNING"`},
		{name: "starts again", of: lost().then(moves("att_1.1", "STARTING", "")), says: `from "UNKNOWN" to "STARTING"`},
		{name: "begins by a move", of: lost(), do: func(s *story) { s.event("job_1", "ATTEMPT_STATE", "att_1.1", "", "STARTING", "") }, says: `from "" to "STARTING"`},
		{name: "a job that begins by a move", of: lost(), do: func(s *story) { s.event("job_1", "JOB_STATE", "", "", "QUEUED", "") }, says: `from "" to "QUEUED"`},
		{name: "waits and runs", of: byAlice().then(becomes("job_1", "RUNNING", "")), says: `from "WAITING" to "RUNNING"`},
		{name: "FAILED and ended", of: none().then(becomes("job_1", "CANCELLED", "")), says: `from "FAILED" to "CANCELLED"`},
		{name: "something after the end", of: one().then(func(s *story) {
			s.event("job_1", "FALLBACK_SKIPPED", "", "", "", `{"target":"demo/fax"}`)
		}), says: "comes after the job was SUCCEEDED"},
		{name: "an attempt of a job that was ended", of: lost().then(ends("job_1", "alice", false), starts("job_1", "att_1.2", primary, "alice", false)),
			says: "comes after the job was CANCELLED"},
		{name: "goes on by itself after FAILED", of: none().then(func(s *story) { s.adds("job_1", "att_1.2", primary, "RETRY", "", false) }, becomes("job_1", "QUEUED", "")),
			says: "only a person may"},
		{name: "goes on by itself after it waited", of: byAlice().then(func(s *story) { s.adds("job_1", "att_1.2", primary, "RETRY", "", false) }, becomes("job_1", "QUEUED", "")),
			says: "only a person may"},

		{name: "told who was first", of: one().then(finished(verify.OpCancel, "att_1.1", "SUCCEEDED"), over(verify.OpEnd), over(verify.OpStart))},
		{name: "told that it FAILED, and re-opened later", of: none().then(over(verify.OpEnd), starts("job_1", "att_1.2", primary, "alice", false),
			sends("att_1.2", verify.Answered), wins("att_1.2"))},
		{name: "told that the job is ended", of: lost().then(ends("job_1", "alice", false), over(verify.OpEnd), over(verify.OpStart))},
		{name: "may not end a job that is open", of: lost().then(over(verify.OpEnd)), says: "was answered JobFinished"},
		{name: "told that one is over, and not which", of: one().then(finished(verify.OpCancel, "att_1.1", "SUCCEEDED")), do: func(s *story) {
			last(s).Settled = nil
		}, says: "was answered AttemptFinished"},
		{name: "told that another state was final", of: one().then(finished(verify.OpResolve, "att_1.1", "CANCELLED")), says: "is CANCELLED; it is SUCCEEDED"},
		{name: "told that one is over which is open", of: lost().then(finished(verify.OpResolve, "att_1.1", "UNKNOWN")), says: "was answered AttemptFinished"},
		{name: "told of another attempt", of: races().then(wins("att_1.2"), finished(verify.OpCancel, "att_1.2", "SUCCEEDED")), do: func(s *story) {
			last(s).Attempt = "att_1.1"
		}, says: "was answered AttemptFinished"},
		{name: "told of an attempt without a row", of: one().then(finished(verify.OpCancel, "att_9", "FAILED")), says: "which has no row"},
		{name: "told that the job is ended, and it is not", of: lost().then(over(verify.OpStart)), do: func(s *story) { last(s).Found.State = "CANCELLED" }, says: "is CANCELLED; it is UNKNOWN"},
		{name: "told that the job SUCCEEDED, and it did not", of: lost().then(over(verify.OpStart)), do: func(s *story) { last(s).Found.State = "SUCCEEDED" }, says: "is SUCCEEDED; it is UNKNOWN"},
		{name: "cancelled another one than asked", of: byAlice(), do: func(s *story) { last(s).Attempt = "att_9" }, says: "was answered CancelAttemptSuccess"},
		{name: "resolved another one than asked", of: lost().then(resolves("att_1.1", "CANCELLED", "")), do: func(s *story) { last(s).Attempt = "att_9" }, says: "was answered ResolveAttemptSuccess"},
		{name: "resolved nothing", of: lost().then(resolves("att_1.1", "CANCELLED", "")), do: func(s *story) {
			last(s).Settled, last(s).Outcome = nil, ""
		}, says: "was answered ResolveAttemptSuccess"},
		{name: "started nothing", of: races(), do: func(s *story) { last(s).Settled = nil }, says: "was answered StartAttemptSuccess"},
		{name: "told that the job is over while it is open", of: lost().then(over(verify.OpStart)), says: "was answered JobFinished"},
		{name: "may not start a job that FAILED", of: none().then(over(verify.OpStart)), says: "was answered JobFinished"},
		{name: "ended, says an answer that does not show it", of: lost().then(ends("job_1", "alice", false)), do: func(s *story) { last(s).Found.State = "UNKNOWN" }, says: "was answered CancelJobSuccess"},
		{name: "cancelled twice", of: byAlice(), do: func(s *story) { s.Calls = append(s.Calls, *last(s)) }, says: "after a cancelAttempt that did"},
		{name: "cancelled and resolved", of: byAlice(), do: func(s *story) {
			c := *last(s)
			c.Subject, c.Operator, c.Op, c.Type, c.Outcome = "olga", true, verify.OpResolve, "ResolveAttemptSuccess", "CANCELLED"
			s.Calls = append(s.Calls, c)
		}, says: "after a cancelAttempt that did"},
		{name: "cancelled, says an answer that does not show it", of: byAlice(), do: func(s *story) { last(s).Settled.State = "UNKNOWN" }, says: "was answered CancelAttemptSuccess"},
		{name: "cancelled, and the answer has no attempt", of: byAlice(), do: func(s *story) { last(s).Settled = nil }, says: "was answered CancelAttemptSuccess"},
		{name: "resolved otherwise than asked", of: lost().then(resolves("att_1.1", "CANCELLED", "")), do: func(s *story) { last(s).Outcome = "FAILED" }, says: "was answered ResolveAttemptSuccess"},
		{name: "started as RUNNING", of: races(), do: func(s *story) { last(s).Settled.State = "RUNNING" }, says: "was answered StartAttemptSuccess"},
		{name: "two started the same", of: races(), do: func(s *story) { s.Calls = append(s.Calls, *last(s)) }, says: "two startAttempt"},
	})
}
