package verify_test

import (
	"encoding/json"
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/campaign/verify"
)

// unheard takes the last call's answer away.
func unheard(s *story) {
	c := &s.Calls[len(s.Calls)-1]
	c.End, c.Type, c.Found, c.Settled = verify.Never, "", nil, nil
}

// saw adds a look at job 1 as it was, after all that has happened.
func saw(was *verify.Seen) func(*story) {
	return func(s *story) {
		s.call(verify.Call{Subject: "alice", Op: verify.OpRead, Job: "job_1", Type: "Job", Found: was})
	}
}

// whenOpen is job 1 as it was before anything happened.
func whenOpen() *verify.Seen { return tell(creates(1)).seen("job_1") }

func TestResultSlot(t *testing.T) {
	t.Parallel()
	last := func(s *story) *verify.Call { return &s.Calls[len(s.Calls)-1] }
	none2 := func() *story {
		return none().then(starts("job_1", "att_1.2", fallback, "alice", false), reads("job_1"))
	}
	two := func() *story { return none2().then(sends("att_1.2", verify.Answered), wins("att_1.2"), reads("job_1")) }
	cancelledJob := func() *story { return lost().then(ends("job_1", "alice", false), reads("job_1")) }
	operator := func() *story { return lost().then(resolves("att_1.1", "SUCCEEDED", byHand), reads("job_1")) }
	judged(t, "result slot", []example{
		{name: "empty, then taken", of: one()},
		{name: "two lives", of: two()},
		{name: "cancelled", of: cancelledJob()},
		{name: "cancelled, and nobody was told", of: lost().then(ends("job_1", "alice", false), unheard, reads("job_1"))},
		{name: "an operator's", of: operator()},
		{name: "an operator's, and nobody was told", of: lost().then(resolves("att_1.1", "SUCCEEDED", byHand), unheard, reads("job_1"))},
		{name: "re-opened, and nobody was told", of: none().then(starts("job_1", "att_1.2", fallback, "alice", false), unheard,
			sends("att_1.2", verify.Answered), wins("att_1.2"), reads("job_1"))},
		{name: "a look while it was taken sees it empty", of: one().then(saw(whenOpen())), do: func(s *story) { last(s).Start = s.Requests[0].At }},
		{name: "an empty one while it is cancelled", of: cancelledJob().then(saw(whenOpen())), do: func(s *story) {
			last(s).Found.State, last(s).Start = "UNKNOWN", s.Calls[2].Start
		}},

		{name: "two winners", of: one().then(reads("job_1")), do: func(s *story) { last(s).Found.CompletedBy = "att_1.2" }, says: "no order explains"},
		{name: "a winner that the database does not have", of: lost().then(reads("job_1")), do: func(s *story) {
			f := last(s).Found
			f.State, f.Version, f.CompletedBy, f.Result = "SUCCEEDED", 2, "att_1.1", json.RawMessage(byHand)
		}, says: "no order explains"},
		{name: "a winner that vanishes", of: one().then(saw(whenOpen())), says: "no order explains"},
		{name: "a winner that vanishes, and the version stays", of: one().then(reads("job_1")), do: func(s *story) {
			f := last(s).Found
			f.State, f.CompletedBy, f.Result = "UNKNOWN", "", nil
		}, says: "no order explains"},
		{name: "a result that changes", of: one().then(reads("job_1")), do: func(s *story) {
			last(s).Found.Result = json.RawMessage(`{"answer":"mark-101x"}`)
		}, says: "no order explains"},
		{name: "a result that comes after its winner", of: one(), do: func(s *story) { last(s).Found.Result = nil }, says: "no order explains"},
		{name: "a result before anybody was asked", of: one(), do: func(s *story) {
			last(s).Start, last(s).End = s.Requests[0].At-2, s.Requests[0].At-1
		}, says: "no order explains"},
		{name: "a result of a cancelled job", of: cancelledJob().then(reads("job_1")), do: func(s *story) {
			f := last(s).Found
			f.State, f.Version, f.CompletedBy, f.Result = "SUCCEEDED", 2, "att_1.1", json.RawMessage(byHand)
		}, says: "no order explains"},
		{name: "cancelled, and the database has a result", of: one().then(ends("job_1", "alice", false)), do: func(s *story) {
			*s.job("job_1") = one().Jobs[0]
			s.Events = s.Events[:6]
		}, says: "no order explains"},
		{name: "still running after its cancellation", of: cancelledJob().then(saw(whenOpen())), do: func(s *story) { last(s).Found.State = "RUNNING" }, says: "no order explains"},
		{name: "cancelled twice", of: cancelledJob(), do: func(s *story) { s.Calls = append(s.Calls, s.Calls[2]) }, says: "no order explains"},
		{name: "cancelled by nobody", of: cancelledJob(), do: func(s *story) { s.Calls = s.Calls[:2] }, says: "no order explains"},
		{name: "cancelled before anybody asked for it", of: lost().then(ends("job_1", "alice", false), unheard), do: func(s *story) {
			s.then(reads("job_1"))
			last(s).Start, last(s).End = s.Calls[2].Start-2, s.Calls[2].Start-1
		}, says: "no order explains"},
		{name: "an operator's result that was acknowledged and is not there", of: operator(), do: func(s *story) {
			s.Calls = s.Calls[:3]
			*s.job("job_1") = lost().Jobs[0]
			s.Events = s.Events[:6]
		}, says: "no order explains"},
		{name: "two results that were acknowledged", of: operator(), do: func(s *story) {
			c := s.Calls[2]
			c.Attempt, c.Found, c.Result = "att_1.1", nil, json.RawMessage(`{"answer":"by foot"}`)
			s.Calls = append(s.Calls, c)
		}, says: "no order explains"},
		{name: "taken by an attempt of a former life", of: two(), do: func(s *story) { s.attempt("att_1.2").JobVersion = 1 }, says: "no order explains"},
		{name: "FAILED again after it was re-opened", of: none2(), do: func(s *story) {
			s.then(saw(none().seen("job_1")))
		}, says: "no order explains"},
		{name: "re-opened by nobody", of: two(), do: func(s *story) { s.Calls = append(s.Calls[:2:2], s.Calls[3:]...) }, says: "no order explains"},
		{name: "re-opened, and its answer says that it is not", of: none2(), do: func(s *story) {
			s.Calls[2].Found = none().seen("job_1")
		}, says: "no order explains"},
		{name: "a version that went back", of: one().then(reads("job_1")), do: func(s *story) { last(s).Found.Version = 1 }, says: "no order explains"},
		{name: "a row without its winner", of: one(), do: func(s *story) {
			s.job("job_1").CompletedBy, s.job("job_1").Result = "", nil
		}, says: "no order explains"},
	})
}

// Many may have looked at once; those that say the same need not be tried in every order.
func TestResultSlotOfAHotJob(t *testing.T) {
	t.Parallel()
	hot := func() *story {
		s := tell(creates(1))
		open := s.seen("job_1")
		s.then(sends("att_1.1", verify.Answered), wins("att_1.1"))
		for range 2000 {
			s.then(saw(open), saw(s.seen("job_1")))
			for i := range 2 {
				s.Calls[len(s.Calls)-1-i].Start = s.Requests[0].At
			}
		}
		return s
	}
	judged(t, "result slot", []example{
		{name: "all of them within its time", of: hot()},
		{name: "one of them too late", of: hot(), do: func(s *story) { s.Calls[len(s.Calls)-2].Start = s.now - 1 }, says: "no order explains"},
		{name: "one of them too early", of: hot(), do: func(s *story) {
			c := &s.Calls[len(s.Calls)/2]
			require.Equal(t, 2, c.Found.Version)
			c.Start, c.End = 1, 2
		}, says: "no order explains"},
	})
}

func TestResultSlotThatCouldNotBeDecided(t *testing.T) {
	t.Parallel()
	require.Empty(t, verify.SlotVerdict(porcupine.Ok, nil))
	require.Contains(t, verify.SlotVerdict(porcupine.Unknown, nil), "not decided")
	require.Contains(t, verify.SlotVerdict(porcupine.Illegal, nil), "no order explains")
}
