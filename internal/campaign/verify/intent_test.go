package verify_test

import (
	"encoding/json"
	"testing"

	"github.com/docket-gateway/docket/internal/campaign/verify"
)

func TestI2(t *testing.T) {
	t.Parallel()
	last := func(s *story) *verify.Call { return &s.Calls[len(s.Calls)-1] }
	// differs is a createJob of job 1's key with another input.
	differs := func(s *story) {
		s.call(verify.Call{
			Subject: "alice", Op: verify.OpCreate, Key: "key-1", Task: "triage", Input: json.RawMessage(`{"text":"other","n":1}`),
			Type: "IdempotencyConflict", Code: "IDEMPOTENCY_CONFLICT", Found: s.seen("job_1"),
		})
	}
	heardOf := func() *story {
		return tell(createsUnheard(1), sends("att_1.1", verify.Answered), wins("att_1.1"))
	}
	judged(t, "I2", []example{
		{name: "a replay that is written otherwise", of: one().then(again)},
		{name: "a conflict", of: one().then(differs)},
		{name: "a conflict with a job that nobody was told of", of: heardOf().then(differs)},
		{name: "a conflict over the target alone", of: one().then(differs), do: func(s *story) {
			last(s).Input, last(s).Target = s.Calls[0].Input, primary
		}},
		{name: "a task that is not known to the harness", of: one(), do: func(s *story) { s.Calls[0].Task = "" }},
		{name: "another intent that was not answered", of: one().then(differs, unheard)},
		{name: "another intent that is invalid", of: one().then(differs), do: func(s *story) {
			last(s).Type, last(s).Code, last(s).Found = "InvalidInput", "INVALID_INPUT", nil
		}},
		{name: "a conflict with its own intent, beside another that nobody was told of", of: heardOf().then(differs, unheard, differs), do: func(s *story) {
			last(s).Input = s.Calls[0].Input
		}, says: "told of a conflict"},
		{name: "another input, and yet a success", of: one().then(again), do: func(s *story) {
			last(s).Input = json.RawMessage(`{"text":"t1","n":2}`)
		}, says: "was answered with a job of"},
		{name: "a string is no number", of: one().then(again), do: func(s *story) {
			last(s).Input = json.RawMessage(`{"text":"t1","n":"1"}`)
		}, says: "was answered with a job of"},
		{name: "another task", of: one().then(again), do: func(s *story) { last(s).Task = "invoice" }, says: "was answered with a job of"},
		{name: "another target", of: one().then(again), do: func(s *story) { last(s).Target = fallback }, says: "was answered with a job of"},
		{name: "the server's target and the same one by name", of: one().then(again), do: func(s *story) { last(s).Target = primary }, says: "two intents"},
		{name: "a conflict with its own intent", of: one().then(differs), do: func(s *story) { last(s).Input = s.Calls[0].Input }, says: "told of a conflict"},
		{name: "a conflict with its own intent, which nobody was told of", of: heardOf().then(differs), do: func(s *story) {
			last(s).Input = s.Calls[0].Input
		}, says: "told of a conflict"},
		{name: "a conflict of two unanswered intents", of: heardOf().then(differs), do: func(s *story) {
			c := s.Calls[0]
			c.Target = primary
			s.Calls = append(s.Calls, c)
			s.Calls[1].Input = s.Calls[0].Input
		}},
		{name: "a row with an input that nobody asked for", of: one(), do: func(s *story) {
			s.Calls[0].Input = json.RawMessage(`{"text":"other"}`)
		}, says: "nobody asked for the job"},
		{name: "a row with the input of a refused call", of: one().then(differs), do: func(s *story) {
			s.job("job_1").Input = last(s).Input
		}, says: "nobody asked for the job"},
		{name: "invalid, and then valid", of: one().then(again), do: func(s *story) {
			last(s).Type, last(s).Code, last(s).Found = "InvalidInput", "INVALID_INPUT", nil
		}, says: "own intent is invalid"},
	})
}
