package gemini

import (
	"encoding/json"
	"fmt"

	"github.com/docket-gateway/docket/providers"
)

var _ providers.WireFaulter = (*Provider)(nil)

// WireFaults implements providers.WireFaulter. Chunks are the SDK's GenerateContentResponse with Candidate, Content and Part (types.go of
// google.golang.org/genai), errors its APIError, which is google.rpc.Status with the details of google/rpc/error_details.proto: a rate
// limit tells how long to wait as RetryInfo, and by no header. A model that refuses has no reason of its own to finish for: its
// answer has thoughts and no output.
func (p *Provider) WireFaults(model string) providers.WireFaults {
	c := responseChunks{model: model}
	begun := c.chunk("", `{"text":"{"}`)
	return providers.WireFaults{
		RateLimit: providers.WireError(429, fmt.Sprintf(`{"error":{"code":429,"message":"You exceeded your current quota. Please retry in %[1]s.","status":"RESOURCE_EXHAUSTED","details":[`+
			`{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerMinutePerProjectPerModel-FreeTier","quotaValue":"10"}]},`+
			`{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"%[1]s"}]}}`, providers.WireRetryAfter)),
		Overload:   providers.WireError(503, `{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}`),
		Refusal:    providers.WireStream(c.chunk("", `{"text":"I cannot help with that.","thought":true}`), c.chunk("STOP", "")),
		Truncation: providers.WireStream(begun, c.chunk("MAX_TOKENS", "")),
		Filter:     providers.WireStream(begun, c.chunk("SAFETY", "")),
		Damaged:    providers.WireStream(begun, "data: {\"candidates\":[{\"content\":{\"parts\":[{\"te\r\n\r\n", c.chunk("STOP", `{"text":"}"}`)),
		Begun:      providers.WireStream(begun),
	}
}

// responseChunks are those of one response.
type responseChunks struct{ model string }

// chunk has the part, and the reason to finish if it is the last one.
func (c responseChunks) chunk(finish, part string) string {
	candidate := `"index":0`
	if part != "" {
		candidate += `,"content":{"role":"model","parts":[` + part + `]}`
	}
	if finish != "" {
		candidate += fmt.Sprintf(`,"finishReason":%q`, finish)
	}
	model, _ := json.Marshal(c.model) //nolint:errchkjson // a string always marshals
	return fmt.Sprintf("data: {\"candidates\":[{%s}],\"usageMetadata\":{\"promptTokenCount\":11,\"candidatesTokenCount\":1,\"totalTokenCount\":12},\"modelVersion\":%s,\"responseId\":\"fault\"}\r\n\r\n",
		candidate, model)
}
