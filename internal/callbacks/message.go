package callbacks

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/docket-gateway/docket/internal/canonical"
	"github.com/docket-gateway/docket/internal/jobs"
	"github.com/docket-gateway/docket/internal/schema"
)

// messageSchema is what a callback's body must keep. Decoding alone would pass over unknown keys, keys in another case
// and keys that are there twice.
//
//go:embed message.schema.json
var messageSchema []byte

// message is a callback's body. Optional members may be null.
type message struct {
	AttemptID string  `json:"attemptId"`
	Outcome   string  `json:"outcome"` // succeeded or failed
	Output    *string `json:"output"`  // the model's text, byte for byte
	Error     *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	Usage *struct {
		InputTokens       *int `json:"inputTokens"`
		CachedInputTokens *int `json:"cachedInputTokens"`
		OutputTokens      *int `json:"outputTokens"`
	} `json:"usage"`
	ProviderRequestID *string `json:"providerRequestId"`
}

// parse reads a body; problem says what is wrong with it, without any value of it.
func parse(rules *schema.Schema, body []byte) (m message, problem string) {
	if err := canonical.Check(body); err != nil {
		return m, "the body is not valid JSON: " + err.Error()
	}
	if issues := rules.Validate(body); len(issues) > 0 {
		var said []string
		for _, is := range issues[:min(len(issues), 5)] {
			said = append(said, fmt.Sprintf("%s: %s", is.Pointer, is.Message))
		}
		return m, strings.Join(said, "; ")
	}
	if err := json.Unmarshal(body, &m); err != nil { // a count such as 1e2
		return m, "a count must be written as a whole number"
	}
	return m, ""
}

func (m message) outcome() jobs.Outcome {
	var o jobs.Outcome
	if m.Error != nil {
		// Never retryable: a provider that calls back has had its own retries.
		o.Failure = &jobs.Failure{Code: m.Error.Code, Message: m.Error.Message}
	} else {
		o.Output = json.RawMessage(*m.Output)
	}
	if m.Usage != nil {
		o.Usage = jobs.Usage(*m.Usage)
	}
	if m.ProviderRequestID != nil {
		o.ProviderRequestID = *m.ProviderRequestID
	}
	return o
}
