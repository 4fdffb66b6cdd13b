package openaitest

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/docket-gateway/docket/providers/providertest"
)

// Chat is the protocol of Chat Completions. A request that is not scripted is answered well.
func Chat() providertest.Protocol {
	return providertest.Protocol{
		Serves: func(r *http.Request) bool {
			return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/chat/completions")
		},
		Model:   modelOf,
		Check:   checkChat,
		Default: func(string) providertest.Behaviour { return ChatOK() },
	}
}

// chunks is a completion on its way.
type chunks struct {
	x   *providertest.Exchange
	req request
}

// chunk is the SDK's ChatCompletionChunk.
func (c chunks) chunk(choices []any, usage any) {
	if choices == nil {
		choices = []any{}
	}
	c.x.Data(encode(object{
		"id": fmt.Sprintf("chatcmpl-fake-%d", c.x.Entry.Number), "object": "chat.completion.chunk", "created": 1700000000, "model": c.req.Model,
		"service_tier": "default", "system_fingerprint": "fp_fake", "choices": choices, "usage": usage, "obfuscation": "x",
	}))
}

// delta is the SDK's ChatCompletionChunkChoice.
func (c chunks) delta(delta object, finish any) {
	c.chunk([]any{object{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": finish}}, nil)
}

func openChat(x *providertest.Exchange) chunks {
	c := chunks{x: x, req: read(x.Entry.Body)}
	x.Headers()
	c.delta(object{"role": "assistant", "content": "", "refusal": nil}, nil)
	return c
}

// end sends the finish reason, the usage and the end marker.
func (c chunks) end(reason, output string) {
	c.delta(object{}, reason)
	n := providertest.Tokens(output)
	c.chunk(nil, object{
		"prompt_tokens": 11, "completion_tokens": n, "total_tokens": 11 + n,
		"prompt_tokens_details":     object{"cached_tokens": providertest.CachedTokens, "audio_tokens": 0},
		"completion_tokens_details": object{"reasoning_tokens": 0, "audio_tokens": 0, "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0},
	})
	c.x.Data("[DONE]")
}

// ChatOK streams a good answer.
func ChatOK() providertest.Behaviour {
	return func(x *providertest.Exchange) { ChatSays(read(x.Entry.Body).output(), "stop")(x) }
}

// ChatSays streams the given output and ends with reason.
func ChatSays(output, reason string) providertest.Behaviour {
	return func(x *providertest.Exchange) {
		c := openChat(x)
		for _, p := range providertest.Pieces(output, 3) {
			c.delta(object{"content": p}, nil)
		}
		c.end(reason, output)
	}
}

// ChatStarts acknowledges, streams a piece and then nothing.
func ChatStarts() providertest.Behaviour {
	return func(x *providertest.Exchange) {
		openChat(x).delta(object{"content": "{"}, nil)
		x.Until(nil)
	}
}

// ChatCut streams a piece and ends cleanly, without the end marker.
func ChatCut() providertest.Behaviour {
	return func(x *providertest.Exchange) { openChat(x).delta(object{"content": "{"}, nil) }
}

// ChatDamaged streams a good answer with one broken event in its middle.
func ChatDamaged() providertest.Behaviour {
	return func(x *providertest.Exchange) {
		c := openChat(x)
		c.delta(object{"content": "{"}, nil)
		x.Data(`{"choices":[{"index":0,"delta":{"con`)
		c.delta(object{"content": "}"}, nil)
		c.end("stop", "{}")
	}
}

// ChatRefuses streams a refusal.
func ChatRefuses() providertest.Behaviour {
	return func(x *providertest.Exchange) {
		c := openChat(x)
		c.delta(object{"refusal": "I cannot "}, nil)
		c.delta(object{"refusal": "help with that."}, nil)
		c.end("stop", "I cannot help with that.")
	}
}

// ChatErrorEvent streams a piece and then an error.
func ChatErrorEvent(code string) providertest.Behaviour {
	return func(x *providertest.Exchange) {
		openChat(x).delta(object{"content": "{"}, nil)
		x.Data(ErrorBody(code))
	}
}

// ChatTool ends with a call of a tool, without being asked for one.
func ChatTool() providertest.Behaviour {
	return func(x *providertest.Exchange) {
		c := openChat(x)
		c.delta(object{"tool_calls": []any{object{"index": 0, "id": "call_fake", "type": "function", "function": object{"name": "look_up", "arguments": "{}"}}}}, nil)
		c.end("tool_calls", "")
	}
}
