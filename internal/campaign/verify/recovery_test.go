package verify_test

import (
	"testing"

	"github.com/docket-gateway/docket/internal/campaign/verify"
)

func TestI8(t *testing.T) {
	t.Parallel()
	moving := func(s *story) { s.Resting = false }
	asks := func(op, id, subject string, operator bool, answer string) func(*story) {
		return func(s *story) {
			c := verify.Call{Subject: subject, Operator: operator, Op: op, Type: answer}
			if id[:3] == "att" && op != verify.OpNode {
				c.Attempt = id
			} else {
				c.Job = id
			}
			s.call(c)
		}
	}
	judged(t, "I8", []example{
		{name: "UNKNOWN rests", of: lost()},
		{name: "WAITING rests", of: lost().then(cancels("att_1.1", "alice", false))},
		{name: "an operator lets it wait", of: lost().then(resolves("att_1.1", "CANCELLED", ""))},
		{name: "QUEUED while it moves", of: tell(creates(1)), do: moving},
		{name: "QUEUED for ever", of: tell(creates(1)), says: "still QUEUED"},
		{name: "RUNNING for ever", of: tell(creates(1), sends("att_1.1", verify.Answered), acknowledges("att_1.1")), says: "still RUNNING"},
		{name: "an attempt that is never sent, beside an UNKNOWN one", of: races().then(loses("att_1.1", "IDLE_TIMEOUT")), says: "attempt att_1.2 is still STARTING"},
		{name: "UNKNOWN without such an attempt", of: lost().then(moves("att_1.1", "CANCELLED", by("alice", false, ""))), says: "nothing will move it"},
		{name: "QUEUED without an attempt", of: tell(creates(1), sends("att_1.1", verify.Refused), moves("att_1.1", "FAILED", `{"code":"RATE_LIMITED"}`)),
			do: moving, says: "nothing will move it"},
		{name: "UNKNOWN although an attempt runs", of: races().then(moves("att_1.2", "RUNNING", ""), becomes("job_1", "UNKNOWN", "")), do: moving, says: "it should be RUNNING"},
		{name: "FAILED with an open attempt", of: lost().then(becomes("job_1", "FAILED", "")), says: "it should be UNKNOWN"},
		{name: "waits by itself", of: none(), do: func(s *story) {
			s.Events[3].To, s.job("job_1").State = "WAITING", "WAITING"
		}, says: "nobody has cancelled"},
		{name: "waits after a cancellation that is nobody's", of: lost().then(moves("att_1.1", "CANCELLED", ""), becomes("job_1", "WAITING", "")), says: "nobody has cancelled"},
		{name: "strangers find nothing", of: one().then(asks(verify.OpRead, "job_1", "bob", false, "null"), asks(verify.OpCancel, "att_1.1", "bob", false, "NotFound"))},
		{name: "what never was is not found", of: one().then(asks(verify.OpRead, "job_9", "alice", false, "null"))},
		{name: "the owner finds nothing", of: one().then(asks(verify.OpRead, "job_1", "alice", false, "null")), says: "job of alice found nothing"},
		{name: "the owner finds no attempt", of: one().then(asks(verify.OpCancel, "att_1.1", "alice", false, "NotFound")), says: "cancelAttempt of alice found nothing"},
		{name: "the owner finds no node", of: one().then(asks(verify.OpNode, "att_1.1", "alice", false, "null")), says: "node of alice found nothing"},
		{name: "an operator finds nothing", of: one().then(asks(verify.OpEnd, "job_1", "olga", true, "NotFound")), says: "cancelJob of olga found nothing"},
	})
}
