package anthropictest_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/shared"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/docket-gateway/docket/providers/anthropic/anthropictest"
	"github.com/docket-gateway/docket/providers/providertest"
	"github.com/docket-gateway/docket/providers/providertest/sdkwire"
	"github.com/docket-gateway/docket/providers/sse"
)

const (
	plain = `{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]`
	tools = plain + `,"tools":[{"name":"answer","input_schema":{"type":"object","properties":{"a":{"type":"string"}}}}],"tool_choice":{"type":"tool","name":"answer"}}`
)

// send posts body and returns the answer. Headers are pairs and go over those that the API wants.
func send(t *testing.T, url, body string, headers ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/messages", strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("X-Api-Key", "k")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.NotEmpty(t, resp.Header.Get("Request-Id"))
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
		require.Equal(t, e.Name, gjson.GetBytes(e.Data, "type").String())
		all = append(all, bytes.Clone(e.Data))
	}
}

// Everything that the fake sends is what the SDK's types are: no field that they do not have, none missing that they require.
// The SDK has no types for ping and the event that is an error, and passes the first over.
func TestSpeaksTheSDKsTypes(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]providertest.Behaviour{
		"OK": anthropictest.OK(), "Says": anthropictest.Says(`{"a":1}`), "Nothing": anthropictest.Says(""), "Cut": anthropictest.Cut(),
		"AtLimit": anthropictest.Ends("{", "max_tokens"), "Refuses": anthropictest.Refuses(), "Tool": anthropictest.CallsTool(),
		"Twice": anthropictest.CallsTwice(), "Thinks": anthropictest.Thinks("{}"), "Filters": anthropictest.Filters(),
		"Error":  anthropictest.ErrorEvent("overloaded_error", "Overloaded"),
		"Blocks": anthropictest.Blocks("tool_use", anthropictest.Text("x"), anthropictest.Use("answer", map[string]any{})),
	} {
		for way, body := range map[string]string{"": plain + "}", "ByTool": tools} {
			t.Run(name+way, func(t *testing.T) {
				t.Parallel()
				s, url := providertest.StartOf(t, anthropictest.Messages())
				s.Enqueue(b)
				status, stream := send(t, url, body)
				require.Equal(t, http.StatusOK, status, stream)
				all := events(t, stream)
				require.Greater(t, len(all), 2)
				for _, data := range all {
					var found []string
					var err error
					switch gjson.GetBytes(data, "type").String() {
					case "ping":
						require.JSONEq(t, `{"type":"ping"}`, string(data))
					case "error":
						found, err = sdkwire.Decode[shared.ErrorResponse](data)
					default:
						found, err = sdkwire.Decode[sdk.MessageStreamEventUnion](data)
					}
					require.NoError(t, err)
					require.Empty(t, found, "%s", data)
				}
			})
		}
	}
}

// The SDK's own accumulator takes the fake's streams for whole messages.
func TestTheSDKAccumulatesIt(t *testing.T) {
	t.Parallel()
	s, url := providertest.StartOf(t, anthropictest.Messages())
	s.Enqueue(anthropictest.Says(`{"a":"x"}`))
	_, stream := send(t, url, tools)
	var m sdk.Message
	for _, data := range events(t, stream) {
		var e sdk.MessageStreamEventUnion
		require.NoError(t, e.UnmarshalJSON(data))
		require.NoError(t, m.Accumulate(e))
	}
	require.Equal(t, sdk.StopReasonToolUse, m.StopReason)
	require.Len(t, m.Content, 1)
	require.JSONEq(t, `{"a":"x"}`, string(m.Content[0].AsToolUse().Input))
}

func TestWholeMessagesAndErrorsSpeakTheSDKsTypes(t *testing.T) {
	t.Parallel()
	s, url := providertest.StartOf(t, anthropictest.Messages())
	s.Enqueue(anthropictest.Whole("tool_use", anthropictest.Text("x"), anthropictest.Use("answer", map[string]any{"a": "x"})),
		anthropictest.Error(529, "overloaded_error"))
	status, body := send(t, url, tools)
	require.Equal(t, http.StatusOK, status)
	found, err := sdkwire.Decode[sdk.Message]([]byte(body))
	require.NoError(t, err)
	require.Empty(t, found)
	status, body = send(t, url, tools)
	require.Equal(t, 529, status)
	found, err = sdkwire.Decode[shared.ErrorResponse]([]byte(body))
	require.NoError(t, err)
	require.Empty(t, found)
}

func TestCheckerSeesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta"}}`:                        "text: missing",
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x","extra":1}}`:   "extra: not known",
		`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":5}}`: "partial_json: not a string",
		`{"type":"content_block_delta","delta":{"type":"text_delta","text":"x"}}`:                       "index: missing",
		`{"type":"content_block_stop","index":"x"}`:                                                     "index: of another type",
		`{"type":"content_block_start","index":0,"content_block":{"type":"hologram"}}`:                  "no known variant",
		`{"type":"hello"}`: "no known variant",
	} {
		found, err := sdkwire.Decode[sdk.MessageStreamEventUnion]([]byte(data))
		require.NoError(t, err)
		require.Len(t, found, 1, data)
		require.Contains(t, found[0], want)
	}
}

// schema is a request for structured outputs by it.
func schema(s string) string {
	return plain + `,"output_config":{"format":{"type":"json_schema","schema":` + s + `}}}`
}

func property(s string) string {
	return schema(`{"type":"object","additionalProperties":false,"required":["a"],"properties":{"a":` + s + `}}`)
}

func tool(s string) string {
	return plain + `,"tools":[{"name":"answer","input_schema":` + s + `}],"tool_choice":{"type":"tool","name":"answer"}}`
}

func many(n int, s string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = `"p` + strings.Repeat("x", i) + `":` + s
	}
	return strings.Join(all, ",")
}

func TestRefusesWhatTheAPIWouldNotTake(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ body, says string }{
		"UnknownParameter":    {plain + `,"max_output_tokens":5}`, "max_output_tokens: not known"},
		"UnknownInside":       {plain + `,"output_config":{"format":{"type":"json_schema","schema":{},"strickt":true}}}`, "strickt: not known"},
		"NoJSON":              {`{`, "not valid JSON"},
		"NotStreamed":         {strings.Replace(plain, `"stream":true,`, "", 1) + "}", "stream"},
		"NoModel":             {strings.Replace(plain, `"model":"m",`, "", 1) + "}", "model: Field required"},
		"NoBound":             {strings.Replace(plain, `"max_tokens":9,`, "", 1) + "}", "max_tokens: Field required"},
		"BoundOfNothing":      {strings.Replace(plain, `"max_tokens":9`, `"max_tokens":0`, 1) + "}", "max_tokens: must be at least 1"},
		"Hot":                 {plain + `,"temperature":1.1}`, "temperature: range"},
		"TemperatureNotTaken": {strings.Replace(plain, `"model":"m"`, `"model":"reasoning-1"`, 1) + `,"temperature":0}`, "deprecated for this model"},
		"NoMessage":           {`{"model":"m","max_tokens":9,"stream":true,"messages":[]}`, "first message"},
		"EmptyPrompt":         {strings.Replace(plain, `"text":"hi"`, `"text":""`, 1) + "}", "messages: text content blocks must be non-empty"},
		"EmptySystem":         {plain + `,"system":[{"type":"text","text":""}]}`, "system: text content blocks must be non-empty"},
		"NoSuchTool":          {strings.Replace(tools, `"name":"answer"}}`, `"name":"other"}}`, 1), "not found in provided tools"},
		"ToolOfAnArray":       {tool(`{"type":"array"}`), "input_schema.type"},
		"ToolOfAChoice":       {tool(`{"type":"object","anyOf":[]}`), "does not support oneOf"},
		"ToolProperty":        {tool(`{"type":"object","properties":{"naïve":{}}}`), "Property keys should match"},
		"SchemaOpen":          {schema(`{"type":"object","properties":{}}`), "must be explicitly set to false"},
		"SchemaKeyword":       {property(`{"type":"string","minLength":3}`), "'minLength' is not supported"},
		"SchemaFormat":        {property(`{"type":"string","format":"mine"}`), "format 'mine' is not supported"},
		"SchemaPattern":       {property(`{"type":"string","pattern":"(?=x)"}`), "pattern is not supported"},
		"SchemaMinItems":      {property(`{"type":"array","items":{"type":"string"},"minItems":2}`), "values other than 0 or 1"},
		"SchemaEnum":          {property(`{"enum":[{}]}`), "complex types"},
		"SchemaCircle":        {property(`{"$ref":"#"}`), "Circular references"},
		"SchemaElsewhere":     {property(`{"$ref":"https://example.com/"}`), "is not supported"},
		"SchemaCircleOfTwo":   {schema(`{"type":"object","additionalProperties":false,"properties":{},"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`), "Circular references"},
		"SchemaOptional":      {schema(`{"type":"object","additionalProperties":false,"properties":{` + many(25, `{"type":"string"}`) + `}}`), "too many optional parameters (25)"},
		"SchemaUnions":        {schema(`{"type":"object","additionalProperties":false,"properties":{` + many(17, `{"type":["string","null"]}`) + `}}`), "union types (17)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, url := providertest.StartOf(t, anthropictest.Messages())
			status, body := send(t, url, tc.body)
			require.Equal(t, http.StatusBadRequest, status, body)
			require.Contains(t, gjson.Get(body, "error.message").String(), tc.says)
		})
	}
}

func TestRefusesRequestsWithoutTheHeaders(t *testing.T) {
	t.Parallel()
	_, url := providertest.StartOf(t, anthropictest.Messages())
	status, _ := send(t, url, plain+"}")
	require.Equal(t, http.StatusOK, status)
	status, _ = send(t, url, plain+"}", "X-Api-Key", "")
	require.Equal(t, http.StatusUnauthorized, status)
	status, _ = send(t, url, plain+"}", "Anthropic-Version", "2020-01-01")
	require.Equal(t, http.StatusBadRequest, status)
}

// What stands at the bounds is taken.
func TestTakesWhatIsAllowed(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"Optional":   schema(`{"type":"object","additionalProperties":false,"properties":{` + many(24, `{"type":"string"}`) + `}}`),
		"References": schema(`{"type":"object","additionalProperties":false,"required":["a","b"],"properties":{"a":{"$ref":"#/$defs/d"},"b":{"$ref":"#/$defs/d"}},"$defs":{"d":{"enum":["x"]}}}`),
		"Tool":       tool(`{"type":"object","properties":{"a":{"oneOf":[{"type":"string","minLength":2}]}},"required":["a"],"additionalProperties":false,"$defs":{}}`),
		"Hot":        plain + `,"temperature":1,"system":[{"type":"text","text":"x"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, url := providertest.StartOf(t, anthropictest.Messages())
			status, answer := send(t, url, body)
			require.Equal(t, http.StatusOK, status, answer)
		})
	}
}
