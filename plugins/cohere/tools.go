package cohere

import (
	"encoding/json"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

type tool struct {
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}

// setTools translates the tools and the choice between them. What a choice
// excludes is left out, for Cohere can only be made to call some tool.
func (r *request) setTools(p *translate.Request, _ *translate.Capabilities) error {
	c := p.ToolChoice
	strict := len(p.Tools) > 0
	for i := range p.Tools {
		t := &p.Tools[i]
		if c.Allowed != nil && !slices.Contains(c.Allowed, t.Name) || c.Name != "" && c.Name != t.Name {
			continue
		}
		f := newFunction(t)
		strict = strict && t.Strict != nil && *t.Strict && len(gjson.GetBytes(f.Parameters, "required").Array()) > 0
		r.Tools = append(r.Tools, tool{"function", f})
	}
	r.StrictTools = strict && len(r.Tools) > 0
	for i := range p.Tools {
		if t := &p.Tools[i]; !strict && t.Strict != nil && *t.Strict {
			if err := drop(p, t.Param+".strict", "only possible where all tools are strict and have required properties, left out"); err != nil {
				return err
			}
		}
	}
	switch {
	case c.Mode == "required" && len(r.Tools) == 0:
		return plugins.Invalid("tool_choice", "The tool choice requires a call, but there is no tool to call.")
	case c.Mode == "required":
		r.ToolChoice = "REQUIRED"
	case c.Mode == "none" && len(r.Tools) > 0:
		r.ToolChoice = "NONE"
	}
	return nil
}

func newFunction(t *translate.Tool) function {
	f := function{t.Name, t.Description, t.Parameters}
	switch {
	case t.Type == "custom":
		f.Parameters = translate.CustomParameters
		if definition := gjson.GetBytes(t.Format, "definition").Str; definition != "" { // it has no other place
			f.Description += "\n\nThe input matches this " + gjson.GetBytes(t.Format, "syntax").Str + " grammar:\n" + definition
		}
	case len(t.Parameters) == 0:
		f.Parameters = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return f
}
