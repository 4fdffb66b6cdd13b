package openai

import (
	openai "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/openaicompat"
)

// responsesParams is a request of the Responses API. Nothing is kept at OpenAI unless it runs in the background: then it
// must be there when it is asked for, longer than the ten minutes that one is kept by itself
// (https://developers.openai.com/docs/guides/background).
func (p *Provider) responsesParams(req providers.Request) responses.ResponseNewParams {
	params := responses.ResponseNewParams{
		Model: req.Model,
		Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(req.Prompt)},
		Store: openai.Bool(p.cfg.Background),
	}
	if p.cfg.Background {
		params.Background = openai.Bool(true)
	}
	if req.System != "" {
		params.Instructions = openai.String(req.System)
	}
	if !p.models[req.Model].Reasoning {
		params.Temperature = openai.Float(req.Temperature)
	}
	if req.MaxOutputTokens > 0 {
		params.MaxOutputTokens = openai.Int(int64(req.MaxOutputTokens))
	}
	if len(req.Schema) > 0 {
		format := responses.ResponseFormatTextJSONSchemaConfigParam{
			Name: openaicompat.FormatName(req.Task), Strict: openai.Bool(p.cfg.StrictSchema)}
		// As it is, and not as the map that the field takes: the order of the keys is the order in which the model writes.
		format.SetExtraFields(map[string]any{"schema": req.Schema})
		params.Text.Format.OfJSONSchema = &format
	}
	return params
}

// chatParams is a request of Chat Completions. max_completion_tokens is the name that reasoning models know.
func (p *Provider) chatParams(req providers.Request) openai.ChatCompletionNewParams {
	params := openai.ChatCompletionNewParams{
		Model:         req.Model,
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
		Store:         openai.Bool(false),
	}
	if req.System != "" {
		params.Messages = append(params.Messages, openai.SystemMessage(req.System))
	}
	params.Messages = append(params.Messages, openai.UserMessage(req.Prompt))
	if !p.models[req.Model].Reasoning {
		params.Temperature = openai.Float(req.Temperature)
	}
	if req.MaxOutputTokens > 0 {
		params.MaxCompletionTokens = openai.Int(int64(req.MaxOutputTokens))
	}
	if len(req.Schema) > 0 {
		params.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{
			Name: openaicompat.FormatName(req.Task), Schema: req.Schema, Strict: openai.Bool(p.cfg.StrictSchema)}}
	}
	return params
}
