package cohere

import (
	"encoding/json"

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

// setTools translates the tools and the choice. Tools that the choice excludes are left out: Cohere cannot be
// made to call a certain tool.
func (r *request) setTools(p *translate.Request, _ *plugins.Capabilities) error {
	c := p.ToolChoice
	strict := len(p.Tools) > 0
	for i := range p.Tools {
		t := &p.Tools[i]
		if !c.Allows(t) || c.Name != "" && c.Name != t.Name {
			continue
		}
		f := function{Name: t.Name}
		f.Description, f.Parameters = t.AsFunction()
		strict = strict && t.IsStrict() && len(gjson.GetBytes(f.Parameters, "required").Array()) > 0
		r.Tools = append(r.Tools, tool{"function", f})
	}
	r.StrictTools = strict && len(r.Tools) > 0
	for i := range p.Tools {
		if t := &p.Tools[i]; !strict && t.IsStrict() {
			if err := p.DropWithWarning(t.Param+".strict", "only possible where all tools are strict and have required properties, left out"); err != nil {
				return err
			}
		}
	}
	switch {
	case c.Mode == "required" && len(r.Tools) == 0:
		return translate.NoToolError()
	case c.Mode == "required":
		r.ToolChoice = "REQUIRED"
	case c.Mode == "none" && len(r.Tools) > 0:
		r.ToolChoice = "NONE"
	}
	return nil
}
