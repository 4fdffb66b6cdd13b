package anthropic

import (
	"encoding/json"
	"fmt"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/docket-gateway/docket/providers"
)

// toolName is the name of the tool whose input is the answer.
const toolName = "answer"

// maxTemperature is the API's bound (MessageNewParams.Temperature). A task may go to 2.
const maxTemperature = 1.0

// params is a request of the Messages API. Its error is a *providers.Failure that says what cannot be asked for.
func (p *Provider) params(req providers.Request) (sdk.MessageNewParams, error) {
	model := p.models[req.Model]
	maxTokens, err := maxTokens(req, model)
	if err != nil {
		return sdk.MessageNewParams{}, err
	}
	params := sdk.MessageNewParams{
		Model:     req.Model,
		MaxTokens: maxTokens,
		Messages:  []sdk.MessageParam{sdk.NewUserMessage(sdk.NewTextBlock(req.Prompt))},
	}
	if req.System != "" { // an empty block is refused
		params.System = []sdk.TextBlockParam{{Text: req.System}}
	}
	if !model.Reasoning {
		if !(req.Temperature >= 0 && req.Temperature <= maxTemperature) {
			return params, unsupported(fmt.Sprintf("Anthropic takes a temperature from 0 to %g, and the task's is %g", maxTemperature, req.Temperature))
		}
		params.Temperature = sdk.Float(req.Temperature)
	}
	if len(req.Schema) == 0 {
		return params, nil
	}
	if model.StructuredOutput == StructuredTool {
		return params, forceTool(&params, req.Schema)
	}
	return params, constrain(&params, req.Schema)
}

// maxTokens is what the API requires: the task's bound, which the model's own is above, or else the model's.
func maxTokens(req providers.Request, model providers.Model) (int64, error) {
	n := req.MaxOutputTokens
	if n <= 0 || model.MaxOutputTokens > 0 && n > model.MaxOutputTokens {
		n = model.MaxOutputTokens
	}
	if n <= 0 {
		return 0, unsupported("Anthropic requires a bound on the output: max_output_tokens of the task or of the model")
	}
	return int64(n), nil
}

// constrain asks for structured outputs.
func constrain(params *sdk.MessageNewParams, schema json.RawMessage) error {
	form, err := structuredForm(schema)
	if err != nil {
		return err
	}
	// As it is, and not as the map that the field takes: the order of the keys is the order in which the model writes.
	params.OutputConfig.Format.SetExtraFields(map[string]any{"schema": form})
	return nil
}

// forceTool offers one tool and forces its use.
func forceTool(params *sdk.MessageNewParams, schema json.RawMessage) error {
	if err := checkToolSchema(schema); err != nil {
		return err
	}
	params.Tools = []sdk.ToolUnionParam{{OfTool: &sdk.ToolParam{
		Name: toolName, Description: sdk.String("Gives the answer. Its input is the whole answer."),
		InputSchema: param.Override[sdk.ToolInputSchemaParam](schema),
	}}}
	params.ToolChoice = sdk.ToolChoiceUnionParam{OfTool: &sdk.ToolChoiceToolParam{Name: toolName, DisableParallelToolUse: sdk.Bool(true)}}
	return nil
}

func unsupported(message string) error {
	return &providers.Failure{Code: providers.CodeUnsupported, Message: message}
}
