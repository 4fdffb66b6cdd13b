package conformance

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// request looks at what is sent.
func request(t *testing.T, a Adapter) {
	Bubble(t, a, nil, func(t *testing.T, b *Bundle) {
		req := Request()
		out := b.Sender.Send(t.Context(), req, b.Recorder)
		require.Equal(t, completed, out.Kind, "the fake takes the request: %+v", out.Failure)
		if !a.Fake.Protocol.Unnamed {
			require.NotEmpty(t, b.Recorder.Ack.ProviderRequestID)
		}
		require.NotEmpty(t, out.ProviderRequestID)
		require.Len(t, b.Server.Log(), 1)
		e := b.Server.Log()[0]
		require.Equal(t, Model, e.Model)
		for _, name := range a.Identity {
			require.Equal(t, []string{req.AttemptID}, e.Header.Values(name), name)
		}
		require.Equal(t, []string{req.Traceparent}, e.Header.Values("Traceparent"))
		require.Equal(t, Key, strings.TrimPrefix(e.Header.Get(a.KeyIn), "Bearer "))
		for name, values := range e.Header {
			if name != a.KeyIn {
				require.NotContains(t, strings.Join(values, " "), Key, name)
			}
		}
		require.NotContains(t, string(e.Body), Key)
		require.NotEmpty(t, b.Sender.AdapterVersion())
	})
}

// systemPrompt looks whether the system prompt reaches the fake as one, which then does what a contract's canary asks for.
func systemPrompt(t *testing.T, a Adapter) {
	const object = `{"text":"canary-1","n":1}`
	for _, order := range []string{"Answer with exactly this JSON object and nothing else:\n", "Answer with something like this:\n"} {
		Bubble(t, a, nil, func(t *testing.T, b *Bundle) {
			req := Request()
			req.System = "Echo.\n\n" + order + object
			req.Prompt = "Answer with exactly this JSON object and nothing else:\n{}"
			out := b.Sender.Send(t.Context(), req, b.Recorder)
			require.Equal(t, completed, out.Kind, "%+v", out.Failure)
			require.Equal(t, strings.Contains(order, "exactly this"), string(out.Output) == object, "%s", out.Output)
		})
	}
}
