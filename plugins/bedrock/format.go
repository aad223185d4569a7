package bedrock

import (
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/anthropic"
	"github.com/weirhq/weir/plugins/translate"
)

type outputConfig struct {
	TextFormat textFormat `json:"textFormat"`
}

type textFormat struct {
	Type      string    `json:"type"`
	Structure structure `json:"structure"`
}

type structure struct {
	JSONSchema jsonSchema `json:"jsonSchema"`
}

type jsonSchema struct {
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
	Schema      string `json:"schema"` // JSON in a string
}

func (m *model) answersByCall(p *translate.Request) bool {
	return p.Format.Type == "json_schema" && !m.StructuredOutput && !m.Has(anthropic.ChoosesTools)
}

func (r *request) setFormat(p *translate.Request, m *model) error {
	switch {
	case p.Format.Type == "json_object":
		r.System = append(r.System, block{Text: translate.JSONInstruction})
		return p.DropWithWarning("text.format", "not enforced by the provider, an instruction in its place")
	case p.Format.Type != "json_schema":
		return nil
	case m.answersByCall(p):
		return r.setAnswerTool(p, m)
	}
	schema, err := anthropic.Enforceable(p, "text.format.schema", p.Format.Schema)
	if err != nil {
		return err
	}
	r.OutputConfig = &outputConfig{textFormat{"json_schema", structure{jsonSchema{
		Name:        p.Format.Name,
		Description: p.Format.Description,
		Schema:      string(schema),
	}}}}
	return nil
}

// setAnswerTool makes the model answer by a call: of a tool of the client's, or with the answer.
func (r *request) setAnswerTool(p *translate.Request, m *model) error {
	if !m.ToolCall {
		return plugins.Unsupported("text.format", "The model cannot be held to a JSON schema.")
	}
	t, err := p.AnswerTool()
	if t == nil {
		return err
	}
	if r.ToolConfig == nil {
		r.ToolConfig = new(toolConfig)
	}
	description, parameters := t.AsFunction()
	r.ToolConfig.Tools = append(r.ToolConfig.Tools,
		tool{ToolSpec: &toolSpec{Name: t.Name, Description: description, InputSchema: inputSchema{parameters}}})
	r.ToolConfig.ToolChoice = &toolChoice{Any: &struct{}{}}
	if f := r.ModelFields; f != nil && f.ToolChoice != nil {
		r.ToolConfig.ToolChoice, f.ToolChoice.Type = nil, "any"
	}
	return nil
}
