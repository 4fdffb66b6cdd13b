package verify_test

import (
	"testing"

	"github.com/docket-gateway/docket/internal/campaign/verify"
)

func TestI9(t *testing.T) {
	t.Parallel()
	judged(t, "I9", []example{
		{name: "two attempts, one request each", of: tell(creates(1), sends("att_1.1", verify.Refused),
			goesOn("att_1.1", "RATE_LIMITED", "att_1.2", primary, "RETRY"), sends("att_1.2", verify.Answered), wins("att_1.2"))},
		{name: "marked and never sent", of: tell(creates(1)).then(func(s *story) { s.attempt("att_1.1").Sent = true }, loses("att_1.1", "WORKER_LOST"))},
		{name: "sent twice", of: one(), do: func(s *story) { s.Requests = append(s.Requests, s.Requests[0]) }, says: "more than once"},
		{name: "an attempt that nobody knows", of: one(), do: func(s *story) { s.Requests[0].Attempt = "att_9" }, says: "which has no row"},
		{name: "not marked", of: one(), do: func(s *story) { s.attempt("att_1.1").Sent = false }, says: "does not say that it was sent"},
		{name: "UNKNOWN without a mark", of: tell(creates(1)).then(loses("att_1.1", "WORKER_LOST")), says: "was UNKNOWN, and its row"},
		{name: "another target", of: one(), do: func(s *story) { s.Requests[0].Target = fallback }, says: "its row says demo/inkjet"},
		{name: "acknowledged by nobody", of: lost(), do: func(s *story) { s.Requests = nil }, says: "the provider never got it"},
	})
}
