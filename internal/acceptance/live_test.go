package acceptance

import (
	"bufio"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/await"
)

// brokenOff reads what still comes, and fails unless the stream ends in a way that tells clients to resume.
func (s *stream) brokenOff(t *testing.T, transport string) []event {
	t.Helper()
	var all []event
	for {
		m := s.next(t)
		if m.end == "" {
			all = append(all, decode[event](t, m.Data["jobEvents"]))
			continue
		}
		require.Contains(t, m.end, "broken", "no complete")
		if transport == "WebSocket" {
			require.Contains(t, m.end, "StatusGoingAway")
		}
		return all
	}
}

// A subscriber's replica stops; it goes on at the other one, at one that is started anew, and as a browser's EventSource does.
func TestSubscriberResumesAtAnyReplicaAndAfterARestart(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	f.OnModel("primary", acknowledged(nil, "never"))
	s := settings{database: databases.DSN(t), url: f.url, tasks: writeTasks(t)}
	stays := s.start(t)
	for transport, open := range transports {
		leaves := s.start(t)
		j := leaves.create(t, intent(transport))
		leaves.attemptBecomes(t, j.ID, 1, "RUNNING")
		watched := open(leaves.client, t, eventsStream, variables{"id": j.ID})
		seen := []event{item[event](t, watched, "jobEvents")}
		leaves.stop()
		seen = append(seen, watched.brokenOff(t, transport)...)
		after := seen[len(seen)-1].Number

		there := open(stays.client, t, eventsStream, variables{"id": j.ID, "after": after})
		restarted := s.start(t)
		anew := open(restarted.client, t, eventsStream, variables{"id": j.ID, "after": after})
		source := restarted.eventSource(t, j.ID, after)
		require.Equal(t, typeJobCancelled, stays.cancelJob(t, j.ID).Typename)

		stored := stays.events(t, j.ID)
		requireStory(t, seen, 0, stored[:after])
		requireStory(t, rest[event](t, there, "jobEvents"), after, stored)
		requireStory(t, rest[event](t, anew, "jobEvents"), after, stored)
		require.Equal(t, numbersAfter(after, len(stored)), source())
		// And once it has all, it is told to stay away.
		require.Equal(t, http.StatusNoContent, stays.resume(t, j.ID, len(stored)).StatusCode)
		restarted.stop()
	}
}

func numbersAfter(after, last int) (all []string) {
	for n := after + 1; n <= last; n++ {
		all = append(all, strconv.Itoa(n))
	}
	return all
}

// resume asks as a browser's EventSource does when it connects again.
func (c *client) resume(t *testing.T, jobID string, last int) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.url+"/graphql?"+url.Values{
		"query": {eventsStream}, "variables": {`{"id":"` + jobID + `"}`},
	}.Encode(), nil)
	require.NoError(t, err)
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Authorization", c.authorization())
	req.Header.Set("Last-Event-ID", strconv.Itoa(last))
	res, err := c.http.Do(req)
	require.NoError(t, err)
	t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// eventSource returns the ids of all events up to the stream's good end.
func (c *client) eventSource(t *testing.T, jobID string, last int) func() []string {
	t.Helper()
	res := c.resume(t, jobID, last)
	require.Equal(t, http.StatusOK, res.StatusCode)
	return func() (ids []string) {
		lines := bufio.NewScanner(res.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
				ids = append(ids, id)
			}
			if lines.Text() == "event: complete" {
				return ids
			}
		}
		require.Fail(t, "no complete", "%v", lines.Err())
		return nil
	}
}

// The socket is gone before the answer: the same mutation, sent again over another one, meets the same job.
func TestMutationIsSentAgainAfterItsSocketWasDropped(t *testing.T) {
	t.Parallel()
	for name, fresh := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := fresh(t)
			g, _ := newGateway(t, settings{database: database})
			const n = 10
			for i := range n {
				key := "dropped " + strconv.Itoa(i)
				conn, err := g.dial(t.Context())
				require.NoError(t, err)
				require.NoError(t, wsjson.Write(t.Context(), conn, map[string]any{
					"id": "1", "type": "subscribe", "payload": map[string]any{"query": createMutation, "variables": variables{"input": intent(key)}},
				}))
				if i%2 == 0 {
					_ = conn.CloseNow() // at once, or once it is stored and before the answer is read
				} else {
					await.Until(t, "it is stored", func() bool { return g.jobByKey(t, key) != nil })
					_ = conn.Close(websocket.StatusGoingAway, "")
				}
				again := g.overWebSocket(t, createMutation, variables{"input": intent(key)})
				o := item[outcome](t, again, "createJob")
				require.Equal(t, "CreateJobSuccess", o.Typename)
				if i%2 == 1 {
					require.True(t, o.Replayed)
				}
				require.Len(t, g.becomes(t, o.Job.ID, "SUCCEEDED").Attempts, 1)
			}
			require.Equal(t, n, counts(t, database)["jobs"])
		})
	}
}
