package chat

import (
	"encoding/json"

	"github.com/weirhq/weir/plugins/translate"
)

func (r *request) setFormat(a attempt) error {
	f := a.request.Format
	switch {
	case f.Type == "json_schema" && a.vendor.format == objectOnly:
		r.ResponseFormat = &ResponseFormat{Type: "json_object"}
		r.addSystem(a, translate.RoleSystem, "Answer with one JSON object that matches this JSON schema:\n"+string(f.Schema))
		return a.request.DropWithWarning("text.format", "not enforced by the provider, a JSON object and an instruction in its place")
	case f.Type == "json_schema" && a.vendor.formatOrTools && len(r.Tools) > 0:
		return r.setAnswerTool(a)
	case f.Type == "json_schema":
		name := f.Name
		if name == "" {
			name = "answer"
		}
		r.ResponseFormat = &ResponseFormat{"json_schema", &JSONSchema{name, f.Description, f.Schema, f.Strict}}
	case f.Type == "json_object" && a.vendor.formatOrTools && len(r.Tools) > 0:
		r.addSystem(a, translate.RoleSystem, translate.JSONInstruction)
		return a.request.DropWithWarning("text.format", "not enforced by the provider together with tools, an instruction in its place")
	case f.Type == "json_object" && a.vendor.format == schemaOnly:
		r.ResponseFormat = &ResponseFormat{"json_schema", &JSONSchema{Name: "answer", Schema: json.RawMessage(`{"type":"object"}`)}}
	case f.Type == "json_object":
		r.ResponseFormat = &ResponseFormat{Type: "json_object"}
	}
	return nil
}

// setAnswerTool leaves the model no way to answer but by a call: to the client's tools,
// or with the answer.
func (r *request) setAnswerTool(a attempt) error {
	t, err := a.request.AnswerTool()
	if t == nil {
		return err
	}
	if a.request.ToolChoice.Mode == "none" {
		r.Tools = nil
	}
	r.Tools = append(r.Tools, newTool(a, t))
	r.ToolChoice = "required"
	return nil
}
