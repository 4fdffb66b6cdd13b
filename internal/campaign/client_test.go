package campaign

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/docket-gateway/docket/internal/campaign/verify"
)

// callTimeout is when a client gives up waiting for an answer.
const callTimeout = 10 * time.Second

// recorder keeps every call with its answer.
type recorder struct {
	start time.Time

	mu      sync.Mutex
	calls   []verify.Call
	streams []verify.Stream
	watched map[string]int // subscribers that are not done, by job
}

func (r *recorder) since() time.Duration { return time.Since(r.start) }

func (r *recorder) add(c verify.Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, c)
}

// watching counts the subscribers of a job.
func (r *recorder) watching(job string, more int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watched[job] += more
}

// untold are the jobs among the given ones whose subscribers have not been told that it is over.
func (r *recorder) untold(over []string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, job := range over {
		n += r.watched[job]
	}
	return n
}

// api reaches the gateways as one person, each call through any of them.
type api struct {
	fleet    *fleet
	recorder *recorder
	http     *http.Client
}

const (
	slot     = ` id idempotencyKey owner task state version input result completedBy{id} `
	seenJob  = ` job{` + slot + `} `
	mutation = ` __typename ...on UserError{code} `
)

var documents = map[string]string{
	verify.OpCreate: `mutation($input: CreateJobInput!){answer: createJob(input: $input){` + mutation +
		`...on CreateJobSuccess{replayed` + seenJob + `} ...on IdempotencyConflict{` + seenJob + `}}}`,
	verify.OpStart: `mutation($input: StartAttemptInput!){answer: startAttempt(input: $input){` + mutation +
		`...on StartAttemptSuccess{attempt{id state}` + seenJob + `} ...on AttemptBlocked{attempt: blockedBy{id state}} ...on JobFinished{` + seenJob + `}}}`,
	verify.OpCancel: `mutation($input: CancelAttemptInput!){answer: cancelAttempt(input: $input){` + mutation +
		`...on CancelAttemptSuccess{attempt{id state}` + seenJob + `} ...on AttemptFinished{attempt{id state}` + seenJob + `}}}`,
	verify.OpResolve: `mutation($input: ResolveAttemptInput!){answer: resolveAttempt(input: $input){` + mutation +
		`...on ResolveAttemptSuccess{attempt{id state}` + seenJob + `} ...on AttemptFinished{attempt{id state}` + seenJob + `}}}`,
	verify.OpEnd: `mutation($input: CancelJobInput!){answer: cancelJob(input: $input){` + mutation +
		`...on CancelJobSuccess{` + seenJob + `} ...on JobFinished{` + seenJob + `}}}`,
	verify.OpRead:  `query($id: ID!){answer: job(id: $id){__typename ` + slot + ` attempts{id number state target}}}`,
	verify.OpByKey: `query($key: String!){answer: jobByKey(idempotencyKey: $key){__typename ` + slot + `}}`,
	verify.OpNode:  `query($id: ID!){answer: node(id: $id){__typename ...on Job{` + slot + `} ...on Attempt{id state}}}`,
}

// rows are a job's attempts in an answer.
type row struct {
	ID     string
	Number int
	State  string
	Target string
}

type seen struct {
	ID, IdempotencyKey, Owner, Task, State string
	Version                                int
	Input, Result                          json.RawMessage
	CompletedBy                            *struct{ ID string }
	Attempts                               []row
}

func (s *seen) history() *verify.Seen {
	if s == nil || s.IdempotencyKey == "" {
		return nil
	}
	out := &verify.Seen{ID: s.ID, Key: s.IdempotencyKey, Owner: s.Owner, Task: s.Task, State: s.State, Version: s.Version, Input: s.Input}
	if string(s.Result) != "null" {
		out.Result = s.Result
	}
	if s.CompletedBy != nil {
		out.CompletedBy = s.CompletedBy.ID
	}
	return out
}

// answer is any operation's.
type answer struct {
	seen // for queries

	Typename string `json:"__typename"`
	Replayed bool
	Code     string
	Job      *seen
	Attempt  *row
}

// call sends the operation and records what became of it. The answer is nil without one.
func (a *api) call(ctx context.Context, r *rand.Rand, c verify.Call, headers ...string) *answer {
	variables := map[string]any{"id": c.Job + c.Attempt, "key": c.Key}
	switch c.Op {
	case verify.OpCreate, verify.OpStart, verify.OpCancel, verify.OpResolve, verify.OpEnd:
		panic("call: a mutation needs its input")
	}
	return a.send(ctx, r, c, variables, headers...)
}

// mutate is call for an operation with an input.
func (a *api) mutate(ctx context.Context, r *rand.Rand, c verify.Call, input map[string]any, headers ...string) *answer {
	return a.send(ctx, r, c, map[string]any{"input": input}, headers...)
}

func (a *api) send(ctx context.Context, r *rand.Rand, c verify.Call, variables map[string]any, headers ...string) *answer {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	c.Start, c.End = a.recorder.since(), verify.Never
	out, code, err := a.post(ctx, r, c, variables, headers)
	end := a.recorder.since()
	c.Code = code
	switch {
	case err != nil:
		c.Transport = err.Error()
	case out == nil && code == "":
		c.End, c.Type = end, "null"
	case out != nil:
		c.End, c.Type, c.Code, c.Replayed, c.Found = end, out.Typename, out.Code, out.Replayed, out.Job.history()
		if c.Found == nil {
			c.Found = out.history()
		}
		switch {
		case out.Attempt != nil:
			c.Settled = &verify.SeenAttempt{ID: out.Attempt.ID, State: out.Attempt.State}
		case out.Typename == "Attempt":
			c.Settled = &verify.SeenAttempt{ID: out.ID, State: out.State}
		}
	}
	a.recorder.add(c)
	return out
}

var errNobody = errors.New("no gateway runs")

// post returns the answer; or neither it nor a code for null; or the code of a top-level error.
func (a *api) post(ctx context.Context, r *rand.Rand, c verify.Call, variables map[string]any, headers []string) (*answer, string, error) {
	urls := a.fleet.urls()
	if len(urls) == 0 {
		return nil, "", errNobody
	}
	body, err := json.Marshal(map[string]any{"query": documents[c.Op], "variables": variables})
	if err != nil {
		return nil, "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, pick(r, urls...)+"/graphql", bytes.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", bearer(c.Subject, c.Operator))
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := a.http.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, "", err
	}
	var decoded struct {
		Data   *struct{ Answer *answer }
		Errors []struct {
			Message    string
			Extensions struct{ Code string }
		}
	}
	if err := json.Unmarshal(raw, &decoded); err != nil {
		return nil, "", fmt.Errorf("status %d: %w: %q", res.StatusCode, err, raw)
	}
	if len(decoded.Errors) > 0 {
		return nil, decoded.Errors[0].Extensions.Code, fmt.Errorf("status %d: %s", res.StatusCode, decoded.Errors[0].Message)
	}
	if decoded.Data == nil {
		return nil, "", fmt.Errorf("status %d: no data: %q", res.StatusCode, raw)
	}
	return decoded.Data.Answer, "", nil
}

func bearer(subject string, operator bool) string {
	if operator {
		subject += ":operator"
	}
	return "Bearer dev:" + subject
}
