package geminitest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
	"google.golang.org/genai"

	"github.com/docket-gateway/docket/providers/gemini/geminitest"
	"github.com/docket-gateway/docket/providers/providertest"
	"github.com/docket-gateway/docket/providers/providertest/sdkwire"
	"github.com/docket-gateway/docket/providers/sse"
)

const (
	path      = "/models/m:streamGenerateContent?alt=sse"
	goodBody  = `{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"systemInstruction":{"parts":[{"text":"be kind"}]},"generationConfig":{"temperature":0.5,"maxOutputTokens":5}}`
	keyHeader = "X-Goog-Api-Key"
)

// send posts body with a key and returns the answer.
func send(t *testing.T, url, body string, headers ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set(keyHeader, "k")
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Empty(t, resp.Header.Get("X-Request-Id"), "Google's answers have none")
	return resp.StatusCode, string(raw)
}

// scripted are all behaviours that stream chunks of the protocol, and the text that they come to.
func scripted() map[string]struct {
	behave providertest.Behaviour
	text   string
	finish string // the last chunk's, if it has one
} {
	type row = struct {
		behave providertest.Behaviour
		text   string
		finish string
	}
	return map[string]row{
		"OK":      {geminitest.OK(), "{}", "STOP"},
		"Says":    {geminitest.Says(`{"a":"🖨️"}`), `{"a":"🖨️"}`, "STOP"},
		"Nothing": {geminitest.Says(""), "", "STOP"},
		"Limit":   {geminitest.Finishes("{", "MAX_TOKENS"), "{", "MAX_TOKENS"},
		"Filter":  {geminitest.FinishesAlone("SAFETY"), "", "SAFETY"},
		"Blocks":  {geminitest.Blocks("PROHIBITED_CONTENT"), "", ""},
		"Thinks":  {geminitest.Thinks(), "", "STOP"},
		"Cut":     {geminitest.Cut(), `{"text":`, ""},
		"Tool":    {geminitest.Tool(), "{}", "STOP"},
	}
}

// Everything that the fake sends is what the SDK's types are: no field that they do not have, none of another type, and none
// missing that each chunk of the API has.
func TestStreamSpeaksTheSDKsTypes(t *testing.T) {
	t.Parallel()
	for name, tc := range scripted() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, url := providertest.StartOf(t, geminitest.Stream())
			s.Enqueue(tc.behave)
			status, body := send(t, url+path, goodBody)
			require.Equal(t, http.StatusOK, status, body)
			r := sse.NewReader(strings.NewReader(body), 1<<20)
			var last []byte
			for {
				e, err := r.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				require.NoError(t, err)
				last = bytes.Clone(e.Data)
				found, err := sdkwire.Fields[genai.GenerateContentResponse](last)
				require.NoError(t, err)
				require.Empty(t, found, "%s", last)
				for _, field := range []string{"responseId", "modelVersion", "usageMetadata.promptTokenCount", "usageMetadata.totalTokenCount"} {
					require.True(t, gjson.GetBytes(last, field).Exists(), "%s of %s", field, last)
				}
				candidates, blocked := gjson.GetBytes(last, "candidates.#").Int(), gjson.GetBytes(last, "promptFeedback.blockReason").Exists()
				require.Equal(t, candidates == 0, blocked, "%s", last)
			}
			require.Zero(t, r.DamagedLines())
			require.Equal(t, tc.finish, gjson.GetBytes(last, "candidates.0.finishReason").String())
		})
	}
}

// The SDK's own client takes the fake for the API.
func TestTheSDKReadsTheFake(t *testing.T) {
	t.Parallel()
	s, url := providertest.StartOf(t, geminitest.Stream())
	client, err := genai.NewClient(t.Context(), &genai.ClientConfig{Backend: genai.BackendGeminiAPI, APIKey: "k", HTTPOptions: genai.HTTPOptions{BaseURL: url}})
	require.NoError(t, err)
	config := func() *genai.GenerateContentConfig {
		return &genai.GenerateContentConfig{ResponseMIMEType: "application/json", ResponseJsonSchema: map[string]any{"type": "object"}}
	}
	for name, tc := range scripted() {
		s.Enqueue(tc.behave)
		var text strings.Builder
		var finish genai.FinishReason
		for chunk, err := range client.Models.GenerateContentStream(t.Context(), "m", genai.Text("hi"), config()) {
			require.NoError(t, err, name)
			text.WriteString(chunk.Text())
			if len(chunk.Candidates) > 0 {
				finish = chunk.Candidates[0].FinishReason
			}
		}
		require.Equal(t, tc.text, text.String(), name)
		require.Equal(t, tc.finish, string(finish), name)
	}
	for name, behave := range map[string]providertest.Behaviour{
		"Status": geminitest.Error(503, "UNAVAILABLE"), "Lines": geminitest.ErrorLines(503, "UNAVAILABLE"), "Event": geminitest.ErrorEvent(503, "UNAVAILABLE"),
	} {
		s.Enqueue(behave)
		var last error
		for _, err := range client.Models.GenerateContentStream(t.Context(), "m", genai.Text("hi"), config()) {
			last = err
		}
		var said genai.APIError
		require.ErrorAs(t, last, &said, name)
		require.Equal(t, genai.APIError{Code: 503, Status: "UNAVAILABLE", Message: "the fake provider says no"}, said, name)
	}
}

func TestErrorsSpeakTheSDKsType(t *testing.T) {
	t.Parallel()
	s, url := providertest.StartOf(t, geminitest.Stream())
	for _, behave := range []providertest.Behaviour{geminitest.Error(503, "UNAVAILABLE"), geminitest.Quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier", "36s")} {
		s.Enqueue(behave)
		status, body := send(t, url+path, goodBody)
		require.NotEqual(t, http.StatusOK, status)
		found, err := sdkwire.Fields[struct {
			Error *genai.APIError `json:"error"`
		}]([]byte(body))
		require.NoError(t, err)
		require.Empty(t, found)
		for _, field := range []string{"error.code", "error.message", "error.status"} {
			require.True(t, gjson.Get(body, field).Exists(), field)
		}
		require.EqualValues(t, status, gjson.Get(body, "error.code").Int())
	}
}

func TestCheckerSeesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		`{"candidates":[{"content":{"parts":[{"text":"x","surprise":true}]}}]}`: "candidates[0].content.parts[0].surprise: not known",
		`{"candidates":[{"finish_reason":"STOP"}]}`:                             "candidates[0].finish_reason: not known",
		`{"candidates":null}`:                "candidates: null",
		`{"object":"chat.completion.chunk"}`: "object: not known",
	} {
		found, err := sdkwire.Fields[genai.GenerateContentResponse]([]byte(data))
		require.NoError(t, err)
		require.Len(t, found, 1, data)
		require.Contains(t, found[0], want)
	}
	_, err := sdkwire.Fields[genai.GenerateContentResponse]([]byte(`{"candidates":[{"content":{"parts":[{"text":5}]}}]}`))
	require.Error(t, err)
}

func TestRefusesWhatTheAPIWouldNotTake(t *testing.T) {
	t.Parallel()
	contents := `"contents":[{"role":"user","parts":[{"text":"hi"}]}]`
	schema := func(s string) string {
		return `{` + contents + `,"generationConfig":{"responseMimeType":"application/json","responseJsonSchema":` + s + `}}`
	}
	for name, tc := range map[string]struct{ body, says string }{
		"UnknownParameter":  {`{` + contents + `,"max_tokens":5}`, "max_tokens: not known"},
		"UnknownInside":     {`{` + contents + `,"generationConfig":{"max_output_tokens":5}}`, "max_output_tokens: not known"},
		"NoJSON":            {`{`, "invalid JSON payload"},
		"WrongType":         {`{` + contents + `,"generationConfig":{"temperature":"hot"}}`, "invalid JSON payload"},
		"NoContents":        {`{}`, "contents is not specified"},
		"WrongRole":         {`{"contents":[{"role":"assistant","parts":[{"text":"hi"}]}]}`, "valid role"},
		"NoParts":           {`{"contents":[{"role":"user"}]}`, "parts must not be empty"},
		"EmptyPart":         {`{"contents":[{"role":"user","parts":[{}]}]}`, "required oneof"},
		"TooHot":            {`{` + contents + `,"generationConfig":{"temperature":3}}`, "temperature must be in the range"},
		"SchemaWithoutType": {`{` + contents + `,"generationConfig":{"responseJsonSchema":{"type":"object"}}}`, "needs the response_mime_type"},
		"TwoSchemas":        {`{` + contents + `,"generationConfig":{"responseMimeType":"application/json","responseSchema":{"type":"OBJECT"},"responseJsonSchema":{"type":"object"}}}`, "only one of"},
		"UnknownKeyword":    {schema(`{"type":"object","properties":{"a":{"type":"string","pattern":"x"}}}`), "#/properties/a/pattern is not supported"},
		"Const":             {schema(`{"type":"object","properties":{"a":{"const":"x"}}}`), "#/properties/a/const is not supported"},
		"BooleanEnum":       {schema(`{"type":"object","properties":{"a":{"type":"boolean","enum":[true]}}}`), "neither a string nor a number"},
		"BesideReference":   {schema(`{"type":"object","properties":{"a":{"$ref":"#","description":"x"}}}`), "stands beside $ref"},
		"UnknownType":       {schema(`{"type":"text"}`), "is no type"},
		"InAnItem":          {schema(`{"type":"array","items":{"anyOf":[{"minLength":1}]}}`), "#/items/anyOf/0/minLength is not supported"},
		"RequiredCycle":     {schema(`{"type":"object","required":["a"],"properties":{"a":{"$ref":"#"}}}`), "contains itself"},
		"NowhereReferred":   {schema(`{"type":"object","required":["a"],"properties":{"a":{"$ref":"#/$defs/x"}}}`), "refers to nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, url := providertest.StartOf(t, geminitest.Stream())
			status, body := send(t, url+path, tc.body)
			require.Equal(t, http.StatusBadRequest, status, body)
			require.Contains(t, gjson.Get(body, "error.message").String(), tc.says)
			require.Equal(t, "INVALID_ARGUMENT", gjson.Get(body, "error.status").String())
		})
	}
	_, url := providertest.StartOf(t, geminitest.Stream())
	for want, got := range map[int]string{
		http.StatusBadRequest: url + path + "&key=k", http.StatusNotFound: url + "/models/m:generateContent", http.StatusOK: url + path,
	} {
		status, body := send(t, got, goodBody)
		require.Equal(t, want, status, body)
	}
	status, body := send(t, url+path, goodBody, keyHeader, "")
	require.Equal(t, http.StatusForbidden, status, body)
	status, body = send(t, url+path, goodBody, "Content-Type", "text/plain")
	require.Equal(t, http.StatusBadRequest, status, body)
	require.True(t, json.Valid([]byte(body)))
}
