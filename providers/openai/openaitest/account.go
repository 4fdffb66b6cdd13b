package openaitest

import (
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/docket-gateway/docket/providers/providertest"
)

// Account keeps background responses as OpenAI does: they can be asked for and cancelled by their ids. It is safe for
// concurrent use.
type Account struct {
	mu        sync.Mutex
	responses map[string]object
	cancelled []string
}

// NewAccount returns an account without responses.
func NewAccount() *Account { return &Account{responses: map[string]object{}} }

// Protocol is the Responses protocol of the account. What is created and not scripted is answered well, and kept.
func (a *Account) Protocol() providertest.Protocol {
	p := Responses()
	p.Default = func(string) providertest.Behaviour { return a.serve }
	return p
}

func (a *Account) serve(x *providertest.Exchange) {
	id, cancel := strings.CutSuffix(x.Entry.Path[strings.LastIndex(x.Entry.Path, "/responses")+len("/responses"):], "/cancel")
	id = strings.TrimPrefix(id, "/")
	switch {
	case x.Entry.Method == http.MethodPost && !cancel:
		ResponsesOK()(x)
	case cancel:
		a.mu.Lock()
		r, ok := a.responses[id]
		if ok && (r["status"] == "queued" || r["status"] == "in_progress") {
			a.cancelled = append(a.cancelled, id)
			r["status"] = "cancelled"
		}
		a.mu.Unlock()
		a.answer(x, id)
	default:
		a.answer(x, id)
	}
}

func (a *Account) answer(x *providertest.Exchange, id string) {
	a.mu.Lock()
	r, ok := a.responses[id]
	body := ""
	if ok {
		body = encode(r)
	}
	a.mu.Unlock()
	if !ok {
		x.Respond(http.StatusNotFound, "application/json",
			encode(errorBody{Error: apiError{Message: "Response with id '" + id + "' not found.", Type: "invalid_request_error"}}))
		return
	}
	x.Respond(http.StatusOK, "application/json", body)
}

// Runs creates a response, acknowledges it with its first events and then falls silent; the response runs on until it is
// put.
func (a *Account) Runs() providertest.Behaviour {
	return func(x *providertest.Exchange) {
		s := open(x)
		a.mu.Lock()
		a.responses[s.id] = s.response("in_progress")
		a.mu.Unlock()
		x.Until(nil)
	}
}

// Put keeps a response of that status: with an output if it is completed, an incomplete one's reason or a failed one's code
// otherwise.
func (a *Account) Put(id, status, what string) {
	r := response(id, request{Model: "model-1", Background: true}, status)
	switch status {
	case "completed":
		r["output"], r["usage"] = []any{message("completed", text(what))}, usage(what)
	case "incomplete":
		r["incomplete_details"], r["usage"] = object{"reason": what}, usage("")
	case "failed":
		r["error"] = object{"code": what, "message": "the fake provider says no"}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.responses[id] = r
}

// Cancelled returns the ids that were cancelled, in order.
func (a *Account) Cancelled() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.cancelled)
}
