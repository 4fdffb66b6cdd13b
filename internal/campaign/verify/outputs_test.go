package verify_test

import (
	"encoding/json"
	"testing"

	"github.com/docket-gateway/docket/internal/campaign/verify"
)

func TestI13(t *testing.T) {
	t.Parallel()
	broken := func() *story { return tell(creates(1), sends("att_1.1", verify.Broken), wins("att_1.1")) }
	judged(t, "I13", []example{
		{name: "valid", of: one()},
		{name: "invalid", of: broken(), says: "its result is none for task triage: no answer"},
		{name: "invalid to the provider alone", of: broken(), do: func(s *story) {
			s.Conforms = func(string, json.RawMessage) error { return nil }
		}, says: "broke on purpose"},
		{name: "an operator's, after the provider's invalid one was lost", of: tell(creates(1), sends("att_1.1", verify.Broken),
			loses("att_1.1", "IDLE_TIMEOUT"), resolves("att_1.1", "SUCCEEDED", byHand))},
		{name: "an operator's invalid one", of: lost().then(resolves("att_1.1", "SUCCEEDED", `{"wrong":1}`)), says: "its result is none"},
		{name: "nothing to judge by", of: one(), do: func(s *story) { s.Conforms = nil }, says: "nothing to judge"},
	})
}
