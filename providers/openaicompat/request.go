package openaicompat

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	openai "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/shared"

	"github.com/docket-gateway/docket/providers"
)

// buildBody builds the request's body. The schema is passed as it is, with all its keywords; a server may ignore some,
// so the output is validated here in any case.
func buildBody(req providers.Request, cfg providers.Config) ([]byte, error) {
	params := openai.ChatCompletionNewParams{Model: req.Model}
	if !cfg.OmitStreamUsage {
		params.StreamOptions.IncludeUsage = openai.Bool(true)
	}
	params.SetExtraFields(map[string]any{"stream": true}) // the SDK adds it in the call that we do not use
	if req.System != "" {
		params.Messages = append(params.Messages, openai.SystemMessage(req.System))
	}
	params.Messages = append(params.Messages, openai.UserMessage(req.Prompt))
	if !slices.ContainsFunc(cfg.Models, func(m providers.Model) bool { return m.Name == req.Model && m.Reasoning }) {
		params.Temperature = openai.Float(req.Temperature)
	}
	if req.MaxOutputTokens > 0 {
		limit := openai.Int(int64(req.MaxOutputTokens))
		if maxTokensField(cfg, req.Model) == providers.FieldMaxCompletionTokens {
			params.MaxCompletionTokens = limit
		} else {
			params.MaxTokens = limit
		}
	}
	if len(req.Schema) > 0 {
		constrain(&params, req, cfg)
	}
	return json.Marshal(params)
}

// constrain asks for the output schema, or for as much of it as the server takes.
func constrain(params *openai.ChatCompletionNewParams, req providers.Request, cfg providers.Config) {
	switch cfg.ResponseFormat {
	case providers.FormatNone:
	case providers.FormatObject:
		params.ResponseFormat.OfJSONObject = &shared.ResponseFormatJSONObjectParam{}
	default:
		format := shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: FormatName(req.Task), Schema: req.Schema}
		if cfg.StrictSchema {
			format.Strict = openai.Bool(true)
		}
		params.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{JSONSchema: format}
	}
}

// maxTokensField is the name of the token limit. Every compatible server knows max_tokens, and OpenAI's reasoning models refuse it.
func maxTokensField(cfg providers.Config, model string) string {
	switch {
	case cfg.MaxTokensField != "":
		return cfg.MaxTokensField
	case NamesReasoning(model):
		return providers.FieldMaxCompletionTokens
	default:
		return providers.FieldMaxTokens
	}
}

var reasoning = regexp.MustCompile(`^(o[134]([-.].*)?|gpt-5([-.].*)?)$`)

// NamesReasoning says whether a model's name is that of one of OpenAI's reasoning models, also behind a gateway that names
// them vendor/model. Where the configuration says nothing of it, such a model gets no temperature.
func NamesReasoning(model string) bool {
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
