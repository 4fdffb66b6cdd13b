package openaicompat

import (
	"encoding/json"
	"regexp"
	"strings"

	openai "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/shared"

	"github.com/docket-gateway/docket/providers"
)

// buildBody builds the request's body. The schema is passed as it is, with all its keywords; a server may ignore some,
// so the output is validated here in any case.
func buildBody(req providers.Request, strict bool) ([]byte, error) {
	params := openai.ChatCompletionNewParams{
		Model: req.Model,
		StreamOptions: openai.ChatCompletionStreamOptionsParam{
			IncludeUsage: openai.Bool(true),
		},
	}
	params.SetExtraFields(map[string]any{"stream": true}) // the SDK adds it in the call that we do not use
	if req.System != "" {
		params.Messages = append(params.Messages, openai.SystemMessage(req.System))
	}
	params.Messages = append(params.Messages, openai.UserMessage(req.Prompt))
	if !fixedTemperature(req.Model) {
		params.Temperature = openai.Float(req.Temperature)
	}
	if req.MaxOutputTokens > 0 {
		if fixedTemperature(req.Model) {
			params.MaxCompletionTokens = openai.Int(int64(req.MaxOutputTokens))
		} else {
			params.MaxTokens = openai.Int(int64(req.MaxOutputTokens)) // the name that every compatible server knows
		}
	}
	if len(req.Schema) > 0 {
		format := shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: FormatName(req.Task), Schema: req.Schema}
		if strict {
			format.Strict = openai.Bool(true)
		}
		params.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{JSONSchema: format}
	}
	return json.Marshal(params)
}

var reasoning = regexp.MustCompile(`^(o[134]([-.].*)?|gpt-5([-.].*)?)$`)

// fixedTemperature says whether the model is known to reject a temperature and the old name of the token limit:
// OpenAI's reasoning models, also behind a gateway that names them vendor/model.
func fixedTemperature(model string) bool {
	name := model[strings.LastIndexByte(model, '/')+1:]
	return reasoning.MatchString(name) && !strings.HasPrefix(name, "gpt-5-chat")
}

var notInName = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// FormatName makes a task's name one that the API takes: 1 to 64 letters, digits, dashes and underscores.
func FormatName(task string) string {
	name := notInName.ReplaceAllString(task, "_")
	if len(name) > 64 {
		name = name[:64]
	}
	if name == "" {
		return "output"
	}
	return name
}
