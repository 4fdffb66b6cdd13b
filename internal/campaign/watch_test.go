package campaign

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/docket-gateway/docket/internal/campaign/verify"
)

const eventsDocument = `subscription($id: ID!, $after: Int){jobEvents(jobId: $id, after: $after){number type attempt{id} from to detail}}`

// watch follows a job's events until the server says that it is over, and resumes wherever it is cut off. What it got is
// in the recorder when it returns.
func (a *api) watch(ctx context.Context, r *rand.Rand, owner, jobID string) {
	s := verify.Stream{Job: jobID}
	for !s.Complete && ctx.Err() == nil {
		// A connection that lives for ever would prove nothing.
		bound, cancel := context.WithTimeout(ctx, time.Duration(100+r.IntN(2000))*time.Millisecond)
		a.follow(bound, r, owner, &s)
		cancel()
	}
	a.recorder.watching(jobID, -1)
	a.recorder.mu.Lock()
	defer a.recorder.mu.Unlock()
	a.recorder.streams = append(a.recorder.streams, s)
}

// follow is one connection.
func (a *api) follow(ctx context.Context, r *rand.Rand, owner string, s *verify.Stream) {
	urls := a.fleet.urls()
	if len(urls) == 0 {
		<-time.After(20 * time.Millisecond)
		return
	}
	variables := map[string]any{"id": s.Job}
	if n := len(s.Events); n > 0 {
		variables["after"] = s.Events[n-1].Number
	}
	body, err := json.Marshal(map[string]any{"query": eventsDocument, "variables": variables})
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, pick(r, urls...)+"/graphql", bytes.NewReader(body))
	if err != nil {
		panic(err) // only the address is not constant, and it is the gateway's own
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Authorization", bearer(owner, false))
	res, err := a.http.Do(req)
	if err != nil {
		return
	}
	defer func() { _ = res.Body.Close() }()
	scanner := bufio.NewScanner(res.Body)
	scanner.Buffer(nil, 1<<20)
	kind := ""
	for scanner.Scan() {
		field, value, _ := strings.Cut(scanner.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "event":
			kind = value
		case "data":
			if kind == "complete" {
				s.Complete = true
				return
			}
			var next struct {
				Data *struct {
					JobEvents struct {
						Number         int
						Type, From, To string
						Attempt        *struct{ ID string }
						Detail         json.RawMessage
					}
				}
			}
			if json.Unmarshal([]byte(value), &next) != nil || next.Data == nil {
				return // cut off in the middle, or an error that ends the stream
			}
			e := next.Data.JobEvents
			got := verify.Event{Job: s.Job, Number: e.Number, Type: e.Type, From: e.From, To: e.To, Detail: e.Detail}
			if e.Attempt != nil {
				got.Attempt = e.Attempt.ID
			}
			s.Events = append(s.Events, got)
		}
	}
}
