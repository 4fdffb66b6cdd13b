package verify_test

import (
	"encoding/json"
	"testing"

	"github.com/docket-gateway/docket/internal/campaign/verify"
)

// again is a replay of job 1's createJob.
func again(s *story) {
	j := s.job("job_1")
	s.call(verify.Call{
		Subject: "alice", Op: verify.OpCreate, Key: j.Key, Task: j.Task, Input: json.RawMessage(`{"n":1.0, "text":"t1"}`),
		Type: "CreateJobSuccess", Replayed: true, Found: s.seen("job_1"),
	})
}

func byKey(s *story) {
	s.call(verify.Call{Subject: "alice", Op: verify.OpByKey, Key: "key-1", Type: "Job", Found: s.seen("job_1")})
}

func TestI1(t *testing.T) {
	t.Parallel()
	last := func(s *story) *verify.Call { return &s.Calls[len(s.Calls)-1] }
	judged(t, "I1", []example{
		{name: "a job, its replay and its look-up", of: one(), do: func(s *story) { again(s); byKey(s) }},
		{name: "only replays, and one call without an answer", of: tell(createsUnheard(1)).then(again, sends("att_1.1", verify.Answered), wins("att_1.1"))},
		{name: "a replay that was faster than the call that made the job", of: tell(creates(1)), do: func(s *story) {
			again(s)
			s.then(sends("att_1.1", verify.Answered), wins("att_1.1"))
			last(s).Start, last(s).End = s.Calls[0].Start, s.Calls[0].Start
		}},
		{name: "another owner's job of the same key", of: one().then(createsFor("bob", 2)), do: func(s *story) {
			s.then(sends("att_2.1", verify.Answered), wins("att_2.1"))
			s.job("job_2").Key = "key-1"
			s.Calls[2].Key, s.Calls[2].Found.Key = "key-1", "key-1"
		}},
		{name: "two rows", of: one().then(creates(2)), do: func(s *story) { s.job("job_2").Key = "key-1" }, says: "two jobs for key"},
		{name: "two ids", of: one().then(creates(2), again), do: func(s *story) { last(s).Found.ID = "job_2" }, says: "in one answer and job_1"},
		{name: "an acknowledged job without a row", of: one(), do: func(s *story) { s.Jobs = nil }, says: "there is no row"},
		{name: "a row with another input", of: one(), do: func(s *story) { s.job("job_1").Input = json.RawMessage(`{"text":"t1","n":2}`) }, says: "its row is"},
		{name: "a row with another task", of: one(), do: func(s *story) { s.job("job_1").Task = "invoice" }, says: "its row is"},
		{name: "another owner's job in the answer", of: one().then(again), do: func(s *story) { last(s).Found.Owner = "bob" }, says: "with the job of bob"},
		{name: "another key's job in the answer", of: one().then(byKey), do: func(s *story) { last(s).Found.Key = "key-2" }, says: `key "key-2"`},
		{name: "made twice", of: one().then(again), do: func(s *story) { last(s).Replayed = false }, says: "2 answers"},
		{name: "a replay of nothing", of: one(), do: func(s *story) { s.Calls[0].Replayed = true }, says: "no createJob that can have made"},
		{name: "a replay before the job was made", of: one().then(again), do: func(s *story) {
			last(s).Start, last(s).End = s.Calls[0].Start-2, s.Calls[0].Start-1
		}, says: "no createJob that can have made"},
		{name: "a look-up before the job was made", of: one().then(byKey), do: func(s *story) {
			last(s).Start, last(s).End = s.Calls[0].Start-2, s.Calls[0].Start-1
		}, says: "jobByKey for key"},
		{name: "a row that nobody asked for", of: one(), do: func(s *story) { s.Calls = nil }, says: "nobody can have made"},
		{name: "a row of a refused call", of: one(), do: func(s *story) {
			s.Calls = s.Calls[:1]
			s.Calls[0].Type, s.Calls[0].Found = "InvalidInput", nil
		}, says: "nobody can have made"},
		{name: "forgotten", of: one().then(byKey), do: func(s *story) { last(s).Type, last(s).Found = "null", nil }, says: "found nothing after"},
		{name: "not found while it was being made", of: one().then(byKey), do: func(s *story) {
			last(s).Type, last(s).Found = "null", nil
			last(s).Start = s.Calls[0].End
		}},
		{name: "forgotten, and found again", of: one().then(byKey, again), do: func(s *story) {
			s.Calls[2].Type, s.Calls[2].Found = "null", nil
		}, says: "found nothing after"},
		{name: "a look-up without its job", of: one().then(byKey), do: func(s *story) { last(s).Found = nil }, says: "without a job"},
		{name: "a conflict without its job", of: one().then(again), do: func(s *story) { last(s).Type, last(s).Found = "IdempotencyConflict", nil }, says: "without a job"},
		{name: "a conflict with another job", of: one().then(creates(2), again), do: func(s *story) {
			last(s).Type, last(s).Input, last(s).Found.ID = "IdempotencyConflict", nil, "job_2"
		}, says: "in one answer and job_1"},
		{name: "a row of another owner", of: one(), do: func(s *story) { s.job("job_1").Owner = "bob" }, says: "its row is (bob"},
		{name: "a row of another key", of: one(), do: func(s *story) { s.job("job_1").Key = "key-9" }, says: `its row is (alice, "key-9"`},
		{name: "an answer without its job", of: one(), do: func(s *story) { s.Calls[0].Found = nil }, says: "without a job"},
	})
}
