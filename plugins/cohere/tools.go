package cohere

import (
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/chat"
	"github.com/weirhq/weir/plugins/translate"
)

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
		offered := newTool(t)
		strict = strict && t.IsStrict() && len(gjson.GetBytes(offered.Function.Parameters, "required").Array()) > 0
		r.Tools = append(r.Tools, offered)
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

func newTool(t *translate.Tool) chat.Tool {
	f := &chat.Function{Name: t.Name}
	f.Description, f.Parameters = t.AsFunction()
	return chat.Tool{Type: "function", Function: f}
}
