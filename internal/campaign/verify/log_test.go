package verify_test

import (
	"testing"

	"github.com/docket-gateway/docket/internal/campaign/verify"
)

func TestI7(t *testing.T) {
	t.Parallel()
	judged(t, "I7", []example{
		{name: "a whole life", of: one()},
		{name: "re-opened after its end", of: none().then(
			starts("job_1", "att_1.2", fallback, "alice", false), sends("att_1.2", verify.Answered), wins("att_1.2"))},
		{name: "a number is missing", of: one(), do: func(s *story) { s.Events = append(s.Events[:2:2], s.Events[3:]...) }, says: "event 3 is numbered 4"},
		{name: "a number is there twice", of: one(), do: func(s *story) { s.Events[3].Number = 3 }, says: "event 4 is numbered 3"},
		{name: "the last event is missing", of: one(), do: func(s *story) { s.Events = s.Events[:5] }, says: "there are 6 events; there are 5"},
		{name: "the attempt's row moved without an event", of: one(), do: func(s *story) { s.attempt("att_1.1").State = "FAILED" }, says: "its row says FAILED"},
		{name: "the job's row moved without an event", of: lost(), do: func(s *story) { s.job("job_1").State = "WAITING" }, says: "its row says WAITING"},
		{name: "an event without the attempt's row", of: one(), do: func(s *story) { s.Attempts = nil }, says: "has no such row"},
		{name: "an attempt without an event", of: one(), do: func(s *story) {
			s.Attempts = append(s.Attempts, verify.Attempt{ID: "att_9", Job: "job_1", Number: 2, State: "STARTING"})
		}, says: "has a row and no event"},
		{name: "two attempts in another order than their numbers", of: tell(creates(1), sends("att_1.1", verify.Refused),
			goesOn("att_1.1", "RATE_LIMITED", "att_1.2", primary, "RETRY"), sends("att_1.2", verify.Answered), wins("att_1.2")), do: func(s *story) {
			s.Attempts[0].Number, s.Attempts[1].Number = 2, 1
		}, says: "another order"},
		{name: "a move from where it was not", of: one(), do: func(s *story) { s.Events[4].From = "UNKNOWN" }, says: `it was "RUNNING"`},
		{name: "a move to where it was", of: one(), do: func(s *story) { s.Events[2].To = "STARTING" }, says: `from "STARTING" to "STARTING"`},
		{name: "a job's move from where it was not", of: one(), do: func(s *story) { s.Events[5].From = "QUEUED" }, says: "moves the job from"},
		{name: "created twice", of: one(), do: func(s *story) { s.event("job_1", "JOB_CREATED", "", "", "SUCCEEDED", "") }, says: "for the first event alone"},
		{name: "created from something", of: one(), do: func(s *story) { s.Events[0].From = "WAITING" }, says: "for the first event alone"},
		{name: "created after its attempt", of: one(), do: func(s *story) {
			s.Events[0].Number, s.Events[1].Number = 2, 1
		}, says: "for the first event alone"},
		{name: "a job's move to where it was", of: lost(), do: func(s *story) { s.event("job_1", "JOB_STATE", "", "UNKNOWN", "UNKNOWN", "") }, says: `from "UNKNOWN" to "UNKNOWN"`},
		{name: "an attempt without an id", of: one(), do: func(s *story) { s.event("job_1", "ATTEMPT_CREATED", "", "", "STARTING", "") }, says: "creates attempt  from"},
		{name: "another job's attempt", of: one().then(creates(2), sends("att_2.1", verify.Answered), wins("att_2.1")), do: func(s *story) {
			s.event("job_1", "ATTEMPT_CREATED", "att_2.1", "", "STARTING", "")
		}, says: "has no such row"},
		{name: "a number that is not the first", of: one(), do: func(s *story) { s.Attempts[0].Number = 2 }, says: "has number 2"},
		{name: "an attempt created as RUNNING", of: one(), do: func(s *story) { s.Events[1].To = "RUNNING" }, says: "creates attempt att_1.1"},
		{name: "an attempt created twice", of: one(), do: func(s *story) { s.event("job_1", "ATTEMPT_CREATED", "att_1.1", "", "STARTING", "") }, says: "creates attempt"},
		{name: "requeued before it was sent", of: tell(creates(1)).then(func(s *story) {
			s.event("job_1", "ATTEMPT_REQUEUED", "att_1.1", "", "", "")
		}, sends("att_1.1", verify.Answered), wins("att_1.1"))},
		{name: "an attempt created from something", of: one(), do: func(s *story) { s.Events[1].From = "RUNNING" }, says: "creates attempt att_1.1"},
		{name: "a move of an attempt that was not created", of: one(), do: func(s *story) {
			s.event("job_1", "ATTEMPT_STATE", "att_9", "", "RUNNING", "")
		}, says: "moves attempt att_9"},
		{name: "requeued from something", of: tell(creates(1)).then(func(s *story) {
			s.event("job_1", "ATTEMPT_REQUEUED", "att_1.1", "STARTING", "", "")
		}), says: "to another worker"},
		{name: "requeued to something", of: tell(creates(1)).then(func(s *story) {
			s.event("job_1", "ATTEMPT_REQUEUED", "att_1.1", "", "STARTING", "")
		}), says: "to another worker"},
		{name: "sent again", of: lost(), do: func(s *story) { s.event("job_1", "ATTEMPT_RESENT", "att_1.1", "", "", `{"number":1}`) }},
		{name: "sent again from something", of: lost(), do: func(s *story) { s.event("job_1", "ATTEMPT_RESENT", "att_1.1", "UNKNOWN", "", "") }, says: "again"},
		{name: "sent again to something", of: lost(), do: func(s *story) { s.event("job_1", "ATTEMPT_RESENT", "att_1.1", "", "UNKNOWN", "") }, says: "again"},
		{name: "a skipped fallback from something", of: lost(), do: func(s *story) { s.event("job_1", "FALLBACK_SKIPPED", "", "FAILED", "", "") }, says: "moves something"},
		{name: "requeued while it ran", of: one(), do: func(s *story) { s.event("job_1", "ATTEMPT_REQUEUED", "att_1.1", "", "", "") }, says: "to another worker"},
		{name: "sent again although it is settled", of: one(), do: func(s *story) { s.event("job_1", "ATTEMPT_RESENT", "att_1.1", "", "", "") }, says: "again"},
		{name: "a skipped fallback that moves", of: one(), do: func(s *story) { s.event("job_1", "FALLBACK_SKIPPED", "", "", "FAILED", "") }, says: "moves something"},
		{name: "an unknown type", of: one(), do: func(s *story) { s.event("job_1", "JOB_PRINTED", "", "", "", "") }, says: "unknown type"},
	})
}

func TestI7Streams(t *testing.T) {
	t.Parallel()
	stream := func(s *story) *verify.Stream { return &s.Streams[0] }
	reopened := func() *story {
		return none().then(watches("job_1", 0, 4, true),
			starts("job_1", "att_1.2", fallback, "alice", false), sends("att_1.2", verify.Answered), wins("att_1.2"))
	}
	judged(t, "I7", []example{
		{name: "everything", of: one().then(watches("job_1", 0, 6, true))},
		{name: "from the middle, and cut", of: one().then(watches("job_1", 2, 4, false))},
		{name: "complete at an end that was not the last one", of: reopened()},
		{name: "nothing more than it had", of: one().then(watches("job_1", 6, 6, true))},
		{name: "events that do not name their job", of: one().then(watches("job_1", 0, 6, true)), do: func(s *story) {
			for i := range stream(s).Events {
				stream(s).Events[i].Job = ""
			}
		}},
		{name: "an event before the first", of: one(), do: func(s *story) {
			s.Streams = []verify.Stream{{Job: "job_1", After: -1, Events: []verify.Event{{Number: 0}}}}
		}, says: "got event 0; the log has 6"},
		{name: "another origin than the log's", of: one().then(watches("job_1", 0, 6, true)), do: func(s *story) { stream(s).Events[4].From = "UNKNOWN" }, says: "the log has"},
		{name: "another type than the log's", of: one().then(watches("job_1", 0, 6, true)), do: func(s *story) { stream(s).Events[4].Type = "JOB_STATE" }, says: "the log has"},
		{name: "a gap", of: one().then(watches("job_1", 0, 6, true)), do: func(s *story) {
			stream(s).Events = append(stream(s).Events[:2:2], stream(s).Events[3:]...)
		}, says: "got event 4 where 3 was next"},
		{name: "one twice", of: one().then(watches("job_1", 0, 6, true)), do: func(s *story) {
			stream(s).Events = append(stream(s).Events[:3:3], stream(s).Events[2:]...)
		}, says: "got event 3 where 4 was next"},
		{name: "out of order", of: one().then(watches("job_1", 0, 6, true)), do: func(s *story) {
			e := stream(s).Events
			e[1], e[2] = e[2], e[1]
		}, says: "got event 3 where 2 was next"},
		{name: "not from its start", of: one().then(watches("job_1", 1, 6, true)), do: func(s *story) { stream(s).After = 0 }, says: "where 1 was next"},
		{name: "another state than the log's", of: one().then(watches("job_1", 0, 6, true)), do: func(s *story) { stream(s).Events[4].To = "FAILED" }, says: "the log has"},
		{name: "another attempt than the log's", of: one().then(watches("job_1", 0, 6, true)), do: func(s *story) { stream(s).Events[4].Attempt = "att_2" }, says: "the log has"},
		{name: "more than the log", of: one().then(watches("job_1", 0, 6, true)), do: func(s *story) {
			stream(s).Events = append(stream(s).Events, verify.Event{Job: "job_1", Number: 7, Type: "JOB_STATE"})
		}, says: "got event 7; the log has 6"},
		{name: "another job's", of: one().then(watches("job_1", 0, 6, true)), do: func(s *story) { stream(s).Events[0].Job = "job_2" }, says: "an event of job job_2"},
		{name: "complete too early", of: one().then(watches("job_1", 0, 5, true)), says: "complete after event 5"},
		{name: "complete although the job waits", of: lost().then(watches("job_1", 0, 6, true)), says: `when the job was "UNKNOWN"`},
		{name: "complete with nothing although the job began", of: lost().then(watches("job_1", 0, 0, true)), says: "complete after event 0"},
	})
}
