package verify_test

import (
	"encoding/json"
	"testing"

	"github.com/docket-gateway/docket/internal/campaign/verify"
)

func TestI11(t *testing.T) {
	t.Parallel()
	call := func(c verify.Call) func(*story) { return func(s *story) { s.call(c) } }
	sees := func(subject string, operator bool) func(*story) {
		return func(s *story) {
			s.call(verify.Call{Subject: subject, Operator: operator, Op: verify.OpRead, Job: "job_1", Type: "Job", Found: s.seen("job_1")})
		}
	}
	judged(t, "I11", []example{
		{name: "operators see all", of: one().then(sees("olga", true))},
		{name: "strangers find nothing", of: one().then(
			call(verify.Call{Subject: "bob", Op: verify.OpRead, Job: "job_1", Type: "null"}),
			call(verify.Call{Subject: "bob", Op: verify.OpNode, Job: "att_1.1", Type: "null"}),
			call(verify.Call{Subject: "bob", Op: verify.OpResolve, Attempt: "att_1.1", Type: "NotFound", Code: "NOT_FOUND"}),
			call(verify.Call{Subject: "bob", Op: verify.OpStart, Job: "job_1", Code: "INTERNAL"}),
			call(verify.Call{Subject: "bob", Op: verify.OpByKey, Key: "key-1", Type: "null"}))},
		{name: "the owner may not resolve", of: lost().then(call(verify.Call{Subject: "alice", Op: verify.OpResolve, Attempt: "att_1.1", Code: "FORBIDDEN"}))},
		{name: "a stranger sees the job", of: one().then(sees("bob", false)), says: "was answered with a job of alice"},
		{name: "a stranger sees it under its own name", of: one().then(sees("bob", false)), do: func(s *story) {
			s.Calls[len(s.Calls)-1].Found.Owner = "bob"
		}, says: "was answered with a job of bob"},
		{name: "the owner sees it under another one's name", of: one().then(sees("alice", false)), do: func(s *story) {
			s.Calls[len(s.Calls)-1].Found.Owner = "bob"
		}, says: "of alice was answered with a job of bob"},
		{name: "the owner may not resolve what never was", of: one().then(call(verify.Call{Subject: "alice", Op: verify.OpResolve, Attempt: "att_9", Type: "NotFound"}))},
		{name: "a stranger sees an attempt", of: one().then(call(verify.Call{Subject: "bob", Op: verify.OpRead, Type: "Job",
			Settled: &verify.SeenAttempt{ID: "att_1.1", State: "SUCCEEDED"}})), says: "with attempt att_1.1"},
		{name: "a stranger learns that there is a job", of: one().then(call(verify.Call{Subject: "bob", Op: verify.OpEnd, Job: "job_1", Type: "JobFinished"})), says: "a stranger"},
		{name: "a stranger learns that there is an attempt", of: lost().then(call(verify.Call{Subject: "bob", Op: verify.OpResolve, Attempt: "att_1.1", Code: "FORBIDDEN"})), says: "a stranger"},
		{name: "a stranger learns it from node", of: lost().then(call(verify.Call{Subject: "bob", Op: verify.OpNode, Job: "att_1.1", Type: "Attempt"})), says: "a stranger"},
		{name: "the owner resolves", of: lost().then(call(verify.Call{Subject: "alice", Op: verify.OpResolve, Attempt: "att_1.1", Type: "InvalidInput"})), says: "is no operator"},
	})
}

// reopenedByOwner is a job that FAILED, was re-opened by its owner and won.
func reopenedByOwner() *story {
	return none().then(starts("job_1", "att_1.2", fallback, "alice", false), sends("att_1.2", verify.Answered), wins("att_1.2"))
}

func TestI11Signatures(t *testing.T) {
	t.Parallel()
	detail := func(n int, d string) func(*story) {
		return func(s *story) { s.Events[n-1].Detail = json.RawMessage(d) }
	}
	byOlga := func() *story { return lost().then(cancels("att_1.1", "olga", true)) }
	judged(t, "I11", []example{
		{name: "an operator cancels", of: byOlga()},
		{name: "an operator ends a job", of: lost().then(ends("job_1", "olga", true))},
		{name: "an operator starts", of: none().then(starts("job_1", "att_1.2", fallback, "olga", true), sends("att_1.2", verify.Answered), wins("att_1.2"))},
		{name: "an operator who was not answered", of: byOlga().then(unheard)},
		{name: "an operator who was too late supersedes", of: races().then(loses("att_1.1", "IDLE_TIMEOUT"), wins("att_1.2")), do: func(s *story) {
			s.Events[len(s.Events)-2].Detail = json.RawMessage(by("olga", true, `"code":"SUPERSEDED"`))
			s.call(verify.Call{Subject: "olga", Operator: true, Op: verify.OpResolve, Attempt: "att_1.1", Outcome: "SUCCEEDED", Result: json.RawMessage(byHand),
				Type: "AttemptFinished", Found: s.seen("job_1"), Settled: &verify.SeenAttempt{ID: "att_1.1", State: "SUPERSEDED"}})
		}},
		{name: "presumed dead", of: lost().then(moves("att_1.1", "CANCELLED", `{"code":"PRESUMED_DEAD"}`), becomes("job_1", "FAILED", ""))},
		{name: "an operator meets the own job again", of: one().then(again), do: func(s *story) { s.Calls[len(s.Calls)-1].Operator = true }},
		{name: "the next one, whichever it is", of: reopenedByOwner(), do: func(s *story) { s.Calls[2].Target = "" }},
		{name: "re-opened by nobody", of: reopenedByOwner(), do: detail(6, `{}`), says: "does not say who"},
		{name: "waited, and goes on by nobody's hand", of: lost().then(cancels("att_1.1", "alice", false), starts("job_1", "att_1.2", primary, "alice", false)),
			do: detail(10, `{}`), says: "event 10 (JOB_STATE to \"QUEUED\", ) is what a person does"},
		{name: "ended by nobody", of: lost().then(ends("job_1", "olga", true)), do: detail(8, `{}`), says: "event 8 (JOB_STATE to \"CANCELLED\", ) is what a person does"},
		{name: "begun by nobody", of: one(), do: detail(2, `{"target":"demo/inkjet","reason":"PRIMARY"}`), says: "event 2 (ATTEMPT_CREATED"},
		{name: "what follows has another one's name", of: byOlga(), do: detail(8, by("alice", false, "")), says: "who asked for nothing of the kind"},
		{name: "an owner who is said to be an operator", of: lost().then(cancels("att_1.1", "alice", false)), do: detail(8, by("alice", true, "")),
			says: "by alice (operator: true), who asked for nothing of the kind"},
		{name: "by an operator whose call broke down", of: byOlga(), do: func(s *story) {
			c := &s.Calls[2]
			c.Type, c.Code, c.Found, c.Settled = "", "FORBIDDEN", nil, nil
		}, says: "who asked for nothing of the kind"},
		{name: "by an operator who asked for another job", of: byOlga().then(creates(2)), do: func(s *story) { s.Calls[2].Attempt = "att_2.1" }, says: "who asked for nothing of the kind"},
		{name: "a start that names another attempt", of: reopenedByOwner(), do: func(s *story) { s.Calls[2].Settled.ID = "att_1.1" }, says: "no event with that name"},
		{name: "a start that was none", of: reopenedByOwner(), do: detail(5, by("alice", false, `"target":"demo/laser","reason":"RETRY"`)), says: "no event with that name"},
		{name: "a cancellation that was none", of: byOlga(), do: func(s *story) { s.Events[6].To = "FAILED" }, says: "no event with that name"},
		{name: "a cancellation of another attempt", of: byOlga(), do: func(s *story) { s.Calls[2].Attempt, s.Calls[2].Job = "att_1.2", "job_1" }, says: "no event with that name"},
		{name: "a resolution of another attempt", of: lost().then(resolves("att_1.1", "CANCELLED", "")), do: func(s *story) {
			s.Calls[2].Attempt, s.Calls[2].Job = "att_1.2", "job_1"
		}, says: "no event with that name"},
		{name: "an end that was none", of: lost().then(ends("job_1", "olga", true)), do: func(s *story) { s.Events[7].To = "WAITING" }, says: "no event with that name"},
		{name: "cancelled by nobody", of: byOlga(), do: detail(7, `{"code":"CANCELLED"}`), says: "does not say who"},
		{name: "made by nobody", of: one(), do: detail(1, `{}`), says: "does not say who"},
		{name: "started by nobody", of: none().then(starts("job_1", "att_1.2", fallback, "alice", false), sends("att_1.2", verify.Answered), wins("att_1.2")),
			do: detail(5, `{"target":"demo/laser","reason":"MANUAL"}`), says: "does not say who"},
		{name: "waits by nobody's hand", of: byOlga(), do: detail(8, ``), says: "does not say who"},
		{name: "resolved by nobody", of: lost().then(resolves("att_1.1", "FAILED", "")), do: detail(7, `{"code":"RESOLVED_AS_FAILED"}`), says: "does not say who"},
		{name: "an operator without a name", of: one(), do: detail(3, `{"operator":true}`), says: "does not say whose"},
		{name: "an operator who is not said to be one", of: byOlga(), do: detail(7, by("olga", false, `"code":"CANCELLED"`)), says: "neither the owner"},
		{name: "by a stranger", of: byOlga(), do: detail(8, by("bob", false, "")), says: "neither the owner"},
		{name: "by an operator who asked for nothing", of: lost().then(reads("job_1"), cancels("att_1.1", "olga", true)), do: func(s *story) {
			s.Calls = s.Calls[:3]
		}, says: "who asked for nothing of the kind"},
		{name: "by an operator who was refused", of: byOlga(), do: func(s *story) {
			s.Calls[2].Type, s.Calls[2].Settled = "NotFound", nil
		}, says: "who asked for nothing of the kind"},
		{name: "by an operator who only looked", of: byOlga(), do: func(s *story) { s.Calls[2].Op = verify.OpRead }, says: "who asked for nothing of the kind"},
		{name: "made by an owner who asked for another key", of: one(), do: func(s *story) { s.Calls[0].Key = "key-2" }, says: "who asked for nothing of the kind"},
		{name: "an act with another one's name", of: byOlga(), do: detail(7, by("alice", false, `"code":"CANCELLED"`)), says: "no event with that name"},
		{name: "a resolution with another outcome", of: lost().then(resolves("att_1.1", "CANCELLED", "")), do: func(s *story) {
			s.Calls[2].Outcome = "FAILED"
		}, says: "no event with that name"},
		{name: "a start at another target", of: none().then(starts("job_1", "att_1.2", fallback, "alice", false), sends("att_1.2", verify.Answered), wins("att_1.2")),
			do: func(s *story) { s.Calls[2].Target = "demo/plotter" }, says: "no event with that name"},
		{name: "an end without its event", of: lost().then(ends("job_1", "olga", true)), do: func(s *story) { s.Events = s.Events[:7] }, says: "no event with that name"},
		{name: "a creation with another one's name", of: one(), do: detail(1, by("bob", true, "")), says: "no event with that name"},
	})
}
