package acceptance

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/await"
)

type attempt struct {
	ID     string
	Number int
	Target string
	Reason string
	State  string
	Error  *struct {
		Code      string
		Message   string
		Retryable bool
	}
	Usage             *struct{ InputTokens, OutputTokens *int }
	SentAt            *string
	ProviderRequestID string
}

func (a attempt) code() string {
	if a.Error == nil {
		return ""
	}
	return a.Error.Code
}

type job struct {
	ID             string
	IdempotencyKey string
	Task           string
	Input          json.RawMessage
	Target         string
	Fallbacks      []string
	State          string
	Version        int
	Result         json.RawMessage
	Owner          string
	CompletedBy    *struct{ ID string }
	Attempts       []attempt
}

// states is what a failed wait says of it.
func (j job) states() string {
	text := fmt.Sprintf("%s is %s", j.ID, j.State)
	for _, a := range j.Attempts {
		text += fmt.Sprintf("; attempt %d at %s is %s", a.Number, a.Target, strings.TrimSpace(a.State+" "+a.code()))
	}
	return text
}

// last is the newest attempt.
func (j job) last() attempt { return j.Attempts[len(j.Attempts)-1] }

type event struct {
	Number  int
	Type    string
	At      time.Time
	From    string
	To      string
	Attempt *struct{ ID string }
	Detail  struct {
		By       string
		Operator bool
		Target   string
		Reasons  []string
		Code     string
		Note     string
	}
}

// outcome is any member of any mutation's union.
type outcome struct {
	Typename  string `json:"__typename"`
	Replayed  bool
	Job       job
	Attempt   attempt
	BlockedBy attempt
	Target    string
	Reasons   []string
	Code      string
	Message   string
	Issues    []struct{ Path, Message string }
}

const (
	attemptFields = ` id number target reason state error{code message retryable} usage{inputTokens outputTokens} sentAt providerRequestId `
	jobFields     = ` id idempotencyKey task input target fallbacks state version result owner completedBy{id} attempts{` + attemptFields + `} `
	eventFields   = ` number type at from to attempt{id} detail `
	created       = ` __typename ...on CreateJobSuccess{replayed job{` + jobFields + `}} ...on UserError{code message}
		...on IdempotencyConflict{job{` + jobFields + `}} ...on InvalidInput{issues{path message}} `

	createMutation = `mutation($input: CreateJobInput!){createJob(input: $input){` + created + `}}`
	startMutation  = `mutation($input: StartAttemptInput!){startAttempt(input: $input){ __typename
		...on StartAttemptSuccess{attempt{` + attemptFields + `} job{` + jobFields + `}} ...on UserError{code message}
		...on AttemptBlocked{blockedBy{` + attemptFields + `}} ...on FallbackNotAllowed{target reasons} ...on JobFinished{job{` + jobFields + `}} }}`
	cancelAttemptMutation = `mutation($input: CancelAttemptInput!){cancelAttempt(input: $input){ __typename
		...on CancelAttemptSuccess{attempt{` + attemptFields + `} job{` + jobFields + `}} ...on UserError{code message}
		...on AttemptFinished{attempt{` + attemptFields + `} job{` + jobFields + `}} }}`
	cancelJobMutation = `mutation($input: CancelJobInput!){cancelJob(input: $input){ __typename
		...on CancelJobSuccess{job{` + jobFields + `}} ...on UserError{code message} ...on JobFinished{job{` + jobFields + `}} }}`
	resolveMutation = `mutation($input: ResolveAttemptInput!){resolveAttempt(input: $input){ __typename
		...on ResolveAttemptSuccess{attempt{` + attemptFields + `} job{` + jobFields + `}} ...on UserError{code message}
		...on AttemptFinished{attempt{` + attemptFields + `} job{` + jobFields + `}} ...on InvalidInput{issues{path message}} }}`

	jobQuery           = `query($id: ID!){job(id: $id){` + jobFields + `}}`
	jobByKeyQuery      = `query($key: String!){jobByKey(idempotencyKey: $key){` + jobFields + `}}`
	eventsQuery        = `query($id: ID!){job(id: $id){events(first: 1000){` + eventFields + `}}}`
	attemptsStream     = `subscription($id: ID!){attemptUpdated(jobId: $id){` + attemptFields + `}}`
	eventsStream       = `subscription($id: ID!, $after: Int){jobEvents(jobId: $id, after: $after){` + eventFields + `}}`
	typeCreated        = "CreateJobSuccess"
	typeConflict       = "IdempotencyConflict"
	typeInvalid        = "InvalidInput"
	typeStarted        = "StartAttemptSuccess"
	typeBlocked        = "AttemptBlocked"
	typeNotAllowed     = "FallbackNotAllowed"
	typeCancelled      = "CancelAttemptSuccess"
	typeJobCancelled   = "CancelJobSuccess"
	typeResolved       = "ResolveAttemptSuccess"
	typeAttemptOver    = "AttemptFinished"
	typeJobOver        = "JobFinished"
	typeNotFound       = "NotFound"
	typeAttemptState   = "ATTEMPT_STATE"
	typeAttemptCreated = "ATTEMPT_CREATED"
	typeSkipped        = "FALLBACK_SKIPPED"
)

// mutate runs a mutation of one root field on its input.
func (c *client) mutate(t *testing.T, name, query string, input variables) outcome {
	t.Helper()
	return field[outcome](t, c, name, query, variables{"input": input})
}

// create makes a job that must be new.
func (c *client) create(t *testing.T, input variables) job {
	t.Helper()
	o := c.mutate(t, "createJob", createMutation, input)
	require.Equal(t, typeCreated, o.Typename, "%+v", o)
	require.False(t, o.Replayed)
	return o.Job
}

// start asks for another attempt; without a target if it is empty.
func (c *client) start(t *testing.T, jobID, target string) outcome {
	t.Helper()
	input := variables{"jobId": jobID}
	if target != "" {
		input["target"] = target
	}
	return c.mutate(t, "startAttempt", startMutation, input)
}

func (c *client) cancelAttempt(t *testing.T, id string) outcome {
	t.Helper()
	return c.mutate(t, "cancelAttempt", cancelAttemptMutation, variables{"attemptId": id, "note": "given up"})
}

func (c *client) cancelJob(t *testing.T, id string) outcome {
	t.Helper()
	return c.mutate(t, "cancelJob", cancelJobMutation, variables{"jobId": id})
}

func (c *client) resolve(t *testing.T, input variables) outcome {
	t.Helper()
	return c.mutate(t, "resolveAttempt", resolveMutation, input)
}

// job reads a job that must be there.
func (c *client) job(t *testing.T, id string) job {
	t.Helper()
	j := field[*job](t, c, "job", jobQuery, variables{"id": id})
	require.NotNil(t, j, "no job %s", id)
	return *j
}

func (c *client) jobByKey(t *testing.T, key string) *job {
	t.Helper()
	return field[*job](t, c, "jobByKey", jobByKeyQuery, variables{"key": key})
}

func (c *client) events(t *testing.T, id string) []event {
	t.Helper()
	return field[struct{ Events []event }](t, c, "job", eventsQuery, variables{"id": id}).Events
}

// becomes waits until the job is in the state.
func (c *client) becomes(t *testing.T, id, state string) job {
	t.Helper()
	var j job
	await.Until(t, "job "+id+" becomes "+state, func() bool {
		j = c.job(t, id)
		return j.State == state
	}, func() string { return j.states() })
	return j
}

// attemptBecomes waits until the job's attempt of that number is in the state.
func (c *client) attemptBecomes(t *testing.T, id string, number int, state string) attempt {
	t.Helper()
	var j job
	await.Until(t, fmt.Sprintf("attempt %d of job %s becomes %s", number, id, state), func() bool {
		j = c.job(t, id)
		return len(j.Attempts) >= number && j.Attempts[number-1].State == state
	}, func() string { return j.states() })
	return j.Attempts[number-1]
}
