package verify_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/docket-gateway/docket/internal/campaign/verify"
)

func TestI10(t *testing.T) {
	t.Parallel()
	// falls back to a target after the first attempt's refusal.
	falls := func(target, reason string) *story {
		return tell(creates(1), sends("att_1.1", verify.Refused), goesOn("att_1.1", "PROVIDER_REJECTED", "att_1.2", target, reason))
	}
	skips := func(target string) *story {
		return tell(creates(1), sends("att_1.1", verify.Refused), moves("att_1.1", "FAILED", `{"code":"REFUSED"}`), func(s *story) {
			s.event("job_1", "FALLBACK_SKIPPED", "", "", "", fmt.Sprintf(`{"target":%q,"reasons":["not proved"]}`, target))
		}, becomes("job_1", "FAILED", `{"code":"REFUSED"}`))
	}
	refused := func(target string) func(*story) {
		return func(s *story) {
			s.call(verify.Call{Subject: "alice", Op: verify.OpStart, Job: "job_1", Target: target, Type: "FallbackNotAllowed", Code: "FALLBACK_NOT_ALLOWED"})
		}
	}
	judged(t, "I10", []example{
		{name: "a proved fallback", of: falls(fallback, "FALLBACK").then(sends("att_1.2", verify.Answered), wins("att_1.2"))},
		{name: "stopped just before it was sent", of: falls(unproved, "FALLBACK").then(fails("att_1.2", "CONTRACT_NOT_PASSED"))},
		{name: "skipped", of: skips(unproved)},
		{name: "refused by hand", of: none().then(refused(unproved))},
		{name: "refused at a job that never was", of: none().then(refused(unproved)), do: func(s *story) { s.Calls[len(s.Calls)-1].Job = "job_9" }},
		{name: "by hand, off the route", of: none().then(starts("job_1", "att_1.2", "demo/plotter", "alice", false), sends("att_1.2", verify.Refused),
			fails("att_1.2", "PROVIDER_REJECTED")), do: func(s *story) { s.Proved["demo/plotter"] = true }},
		{name: "a fallback that has proved nothing", of: falls(unproved, "FALLBACK").then(sends("att_1.2", verify.Answered), wins("att_1.2")), says: "the provider got attempt att_1.2"},
		{name: "created at one that has proved nothing", of: falls(unproved, "FALLBACK").then(fails("att_1.2", "PROVIDER_UNREACHABLE")), says: "attempt att_1.2 (FAILED) is at demo/fax"},
		{name: "stopped after it was sent", of: falls(unproved, "FALLBACK").then(fails("att_1.2", "CONTRACT_NOT_PASSED")), do: func(s *story) {
			s.attempt("att_1.2").Sent = true
		}, says: "attempt att_1.2 (FAILED) is at demo/fax"},
		{name: "sent elsewhere than its row says", of: one(), do: func(s *story) { s.Requests[0].Target = unproved }, says: "the provider got attempt att_1.1 at demo/fax"},
		{name: "not stopped, whatever its code", of: falls(unproved, "FALLBACK").then(moves("att_1.2", "SUPERSEDED", `{"code":"CONTRACT_NOT_PASSED"}`)),
			says: "attempt att_1.2 (SUPERSEDED) is at demo/fax"},
		{name: "stopped at its own target", of: tell(creates(1), fails("att_1.1", "CONTRACT_NOT_PASSED")), says: "stopped by the gate at demo/inkjet"},
		{name: "stopped at one that is proved", of: falls(fallback, "FALLBACK").then(fails("att_1.2", "CONTRACT_NOT_PASSED")), says: "stopped by the gate at demo/laser"},
		{name: "off the route", of: falls("demo/plotter", "FALLBACK").then(sends("att_1.2", verify.Refused), fails("att_1.2", "PROVIDER_REJECTED")),
			do: func(s *story) { s.Proved["demo/plotter"] = true }, says: "not on the job's route"},
		{name: "skipped although it is proved", of: skips(fallback), says: `skips "demo/laser"`},
		{name: "skipped its own target", of: skips(primary), says: `skips "demo/inkjet"`},
		{name: "skipped, and nobody knows which", of: skips(unproved), do: func(s *story) { s.Events[3].Detail = json.RawMessage(`{}`) }, says: `skips ""`},
		{name: "refused by hand although it is proved", of: none().then(refused(fallback)), says: `refused "demo/laser"`},
		{name: "refused its own target", of: none().then(refused(primary)), says: `refused "demo/inkjet"`},
		{name: "refused without a target", of: none().then(refused("")), says: `refused ""`},
	})
}
