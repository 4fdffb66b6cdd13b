package openaicompat

import (
	"encoding/json"
	"fmt"

	"github.com/docket-gateway/docket/providers"
)

var _ providers.WireFaulter = (*Provider)(nil)

// WireFaults implements providers.WireFaulter.
func (p *Provider) WireFaults(model string) providers.WireFaults { return ChatWireFaults(model) }

// ChatWireFaults are those of Chat Completions. Chunks are the SDK's ChatCompletionChunk (chatcompletion.go of
// github.com/openai/openai-go/v3 v3.99.0), errors its apierror.Error; codes are those of
// https://platform.openai.com/docs/guides/error-codes.
func ChatWireFaults(model string) providers.WireFaults {
	c := chunks{model}
	const piece = `{"content":"{"}`
	begun := c.delta(`{"role":"assistant","content":"","refusal":null}`, "") + c.delta(piece, "")
	end := func(reason string) string { return c.delta(`{}`, reason) + c.usage() + "data: [DONE]\n\n" }
	return providers.WireFaults{
		RateLimit:  providers.WireError(429, `{"error":{"message":"Rate limit reached for requests","type":"requests","param":null,"code":"rate_limit_exceeded"}}`).Waiting(),
		Overload:   providers.WireError(503, `{"error":{"message":"The engine is currently overloaded, please try again later","type":"server_error","param":null,"code":"server_error"}}`),
		Refusal:    providers.WireStream(c.delta(`{"role":"assistant","content":"","refusal":null}`, ""), c.delta(`{"refusal":"I cannot help with that."}`, ""), end("stop")),
		Truncation: providers.WireStream(begun, end("length")),
		Filter:     providers.WireStream(begun, end("content_filter")),
		Damaged:    providers.WireStream(begun, "data: {\"choices\":[{\"index\":0,\"delta\":{\"con\n\n", c.delta(`{"content":"}"}`, ""), end("stop")),
		Begun:      providers.WireStream(begun),
	}
}

// chunks are a completion's on its way.
type chunks struct{ model string }

func (c chunks) chunk(choices, usage string) string {
	model, _ := json.Marshal(c.model) //nolint:errchkjson // a string always marshals
	return fmt.Sprintf("data: {\"id\":\"chatcmpl-fault\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":%s,\"choices\":[%s],\"usage\":%s}\n\n",
		model, choices, usage)
}

// delta is a chunk with the delta; finish is empty before the last one.
func (c chunks) delta(delta, finish string) string {
	reason := "null"
	if finish != "" {
		reason = `"` + finish + `"`
	}
	return c.chunk(fmt.Sprintf(`{"index":0,"delta":%s,"logprobs":null,"finish_reason":%s}`, delta, reason), "null")
}

func (c chunks) usage() string {
	return c.chunk("", `{"prompt_tokens":11,"completion_tokens":1,"total_tokens":12}`)
}
