package openaitest_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	openai "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/docket-gateway/docket/providers/openai/openaitest"
	"github.com/docket-gateway/docket/providers/providertest"
	"github.com/docket-gateway/docket/providers/providertest/sdkwire"
	"github.com/docket-gateway/docket/providers/sse"
)

const responsesRequest = `{"model":"m","input":"hi","instructions":"be kind","temperature":0.5,"stream":true,"store":false}`
const chatRequest = `{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true}`

// strict is a request with a strict output schema.
func strict(schema string) string {
	return `{"model":"m","input":"hi","text":{"format":{"type":"json_schema","name":"n","strict":true,"schema":` + schema + `}}}`
}

// send posts body and returns the answer.
func send(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer k")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(raw)
}

// events returns the data of a stream's events.
func events(t *testing.T, stream string) [][]byte {
	t.Helper()
	r := sse.NewReader(strings.NewReader(stream), 1<<20)
	var all [][]byte
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			require.Zero(t, r.DamagedLines())
			return all
		}
		require.NoError(t, err)
		if e.Name != "" {
			require.Equal(t, e.Name, gjson.GetBytes(e.Data, "type").String())
		}
		all = append(all, bytes.Clone(e.Data))
	}
}

// Everything that the fakes send is what the SDK's types are: no field that they do not have, none missing that they
// require.
func TestResponsesSpeaksTheSDKsTypes(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]providertest.Behaviour{
		"OK": openaitest.ResponsesOK(), "Says": openaitest.ResponsesSays(`{"a":1}`), "Cut": openaitest.ResponsesCut(),
		"Incomplete": openaitest.ResponsesIncomplete("content_filter"), "Fails": openaitest.ResponsesFails("server_error"),
		"ErrorEvent": openaitest.ResponsesErrorEvent("x"), "Refuses": openaitest.ResponsesRefuses(), "Tool": openaitest.ResponsesTool(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, url := providertest.StartOf(t, openaitest.Responses())
			s.Enqueue(b)
			status, body := send(t, http.MethodPost, url+"/responses", responsesRequest)
			require.Equal(t, http.StatusOK, status, body)
			all := events(t, body)
			require.NotEmpty(t, all)
			for i, data := range all {
				found, err := sdkwire.Decode[responses.ResponseStreamEventUnion](data)
				require.NoError(t, err)
				require.Empty(t, found, "%s", data)
				require.Equal(t, int64(i), gjson.GetBytes(data, "sequence_number").Int())
			}
		})
	}
}

func TestChatSpeaksTheSDKsTypes(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]providertest.Behaviour{
		"OK": openaitest.ChatOK(), "Says": openaitest.ChatSays(`{"a":1}`, "stop"), "Cut": openaitest.ChatCut(),
		"Refuses": openaitest.ChatRefuses(), "Tool": openaitest.ChatTool(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, url := providertest.StartOf(t, openaitest.Chat())
			s.Enqueue(b)
			status, body := send(t, http.MethodPost, url+"/chat/completions", chatRequest)
			require.Equal(t, http.StatusOK, status, body)
			for _, data := range events(t, body) {
				if string(data) == "[DONE]" {
					continue
				}
				found, err := sdkwire.Decode[openai.ChatCompletionChunk](data)
				require.NoError(t, err)
				require.Empty(t, found, "%s", data)
			}
		})
	}
}

func TestErrorsSpeakTheSDKsType(t *testing.T) {
	t.Parallel()
	found, err := sdkwire.Decode[openai.Error]([]byte(gjson.Get(openaitest.ErrorBody("x"), "error").Raw))
	require.NoError(t, err)
	require.Empty(t, found)
}

func TestCheckerSeesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		`{"type":"response.output_text.delta","content_index":0,"delta":"x","item_id":"i","logprobs":[],"output_index":0}`:                                     "sequence_number: missing",
		`{"type":"response.output_text.delta","content_index":0,"delta":"x","item_id":"i","logprobs":[],"output_index":0,"sequence_number":1,"surprise":true}`: "surprise: not known",
		`{"type":"response.output_text.delta","content_index":0,"delta":5,"item_id":"i","logprobs":[],"output_index":0,"sequence_number":1}`:                   "delta: not a string",
		`{"type":"response.output_text.delta","content_index":"x","delta":"x","item_id":"i","logprobs":[],"output_index":0,"sequence_number":1}`:               "content_index: of another type",
		`{"type":"response.hello"}`: "no known variant",
	} {
		found, err := sdkwire.Decode[responses.ResponseStreamEventUnion]([]byte(data))
		require.NoError(t, err)
		require.Len(t, found, 1, data)
		require.Contains(t, found[0], want)
	}
}

func TestRefusesWhatTheAPIWouldNotTake(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		protocol providertest.Protocol
		path     string
		body     string
		says     string
	}{
		"UnknownParameter":       {openaitest.Responses(), "/responses", `{"model":"m","input":"hi","max_tokens":5}`, "max_tokens: not known"},
		"UnknownInside":          {openaitest.Responses(), "/responses", `{"model":"m","input":"hi","text":{"format":{"type":"json_schema","name":"n","schema":{},"strickt":true}}}`, "strickt: not known"},
		"NoModel":                {openaitest.Responses(), "/responses", `{"input":"hi"}`, "model"},
		"NoJSON":                 {openaitest.Responses(), "/responses", `{`, "not a JSON object"},
		"TemperatureOfReasoning": {openaitest.Responses(), "/responses", `{"model":"reasoning","input":"hi","temperature":0}`, "'temperature' is not supported"},
		"OpenObject":             {openaitest.Responses(), "/responses", strict(`{"type":"object","properties":{},"required":[]}`), "'additionalProperties' is required"},
		"OptionalProperty":       {openaitest.Responses(), "/responses", strict(`{"type":"object","properties":{"a":{"type":"string"}},"required":[],"additionalProperties":false}`), "'required' is required"},
		"KeywordInside":          {openaitest.Responses(), "/responses", strict(`{"type":"object","properties":{"a":{"type":"array","items":{"type":"string","minLength":1}}},"required":["a"],"additionalProperties":false}`), "'minLength' is not permitted"},
		"NoObject":               {openaitest.Responses(), "/responses", strict(`{"type":"array","items":{"type":"string"}}`), "type: \\\"object\\\""},
		"UntypedDefinition":      {openaitest.Responses(), "/responses", strict(`{"type":"object","properties":{},"required":[],"additionalProperties":false,"$defs":{"x":{}}}`), "must have a 'type' key"},
		"UnusualFormat":          {openaitest.Responses(), "/responses", strict(`{"type":"object","properties":{"a":{"type":"string","format":"mine"}},"required":["a"],"additionalProperties":false}`), "format 'mine'"},
		"ChatUnknownParameter":   {openaitest.Chat(), "/chat/completions", `{"model":"m","messages":[],"max_output_tokens":5}`, "max_output_tokens: not known"},
		"ChatOldLimit":           {openaitest.Chat(), "/chat/completions", `{"model":"reasoning","messages":[],"max_tokens":5}`, "max_completion_tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, url := providertest.StartOf(t, tc.protocol)
			status, body := send(t, http.MethodPost, url+tc.path, tc.body)
			require.Equal(t, http.StatusBadRequest, status, body)
			require.Contains(t, body, tc.says)
		})
	}
}
