package anthropic

import (
	"encoding/json"

	"github.com/weirhq/weir/plugins/translate"
)

type outputFormat struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"schema"`
}

func (r *request) setFormat(p *translate.Request, m *model) error {
	switch {
	case p.Format.Type == "json_object":
		r.System = append(r.System, &textBlock{Type: "text", Text: translate.JSONInstruction})
		return p.DropWithWarning("text.format", "not enforced by the provider, an instruction in its place")
	case p.Format.Type != "json_schema":
		return nil
	case m.Has(noFormat):
		return r.setAnswerTool(p)
	}
	schema, err := Enforceable(p, "text.format.schema", p.Format.Schema)
	if err != nil {
		return err
	}
	r.output().Format = &outputFormat{"json_schema", schema}
	return nil
}

// setAnswerTool makes the model answer by a call: of a tool of the client's, or with the answer.
func (r *request) setAnswerTool(p *translate.Request) error {
	t, err := p.AnswerTool()
	if t == nil {
		return err
	}
	if p.ToolChoice.Mode == "none" {
		r.Tools = nil
	}
	description, parameters := t.AsFunction()
	r.Tools = append(r.Tools, tool{Name: t.Name, Description: description, InputSchema: parameters})
	r.ToolChoice = &ToolChoice{Type: "any", DisableParallelToolUse: true}
	return nil
}
