package chat

import (
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/translate"
)

type toolChoice struct {
	Type     string    `json:"type"`
	Function *toolName `json:"function,omitempty"`
	Custom   *toolName `json:"custom,omitempty"`
}

type toolName struct {
	Name string `json:"name"`
}

// setTools translates the tools that the model may use, and the choice between
// them. allowed_tools leaves the others out.
func (r *request) setTools(a attempt) error {
	c := a.request.ToolChoice
	for i := range a.request.Tools {
		t := &a.request.Tools[i]
		switch {
		case !c.Allows(t):
		case t.Hosted():
			if err := r.setSearch(a, t); err != nil {
				return err
			}
		case a.vendor.tools.tools != allTools && c.Name != "" && c.Name != t.Name:
		default:
			r.Tools = append(r.Tools, newTool(a, t))
		}
	}
	if len(r.Tools) > 0 && a.vendor.translates("parallel_tool_calls") {
		r.ParallelToolCalls = a.request.ParallelToolCalls
	}
	return r.setToolChoice(a)
}

// forced reports whether the model must call a tool.
func (r *request) forced() bool {
	return r.ToolChoice != nil && r.ToolChoice != "auto" && r.ToolChoice != "none"
}

func (r *request) setToolChoice(a attempt) error {
	switch c := a.request.ToolChoice; {
	case c.Mode == "required" && c.Name == "" && c.Type != "":
		return r.forceSearch(a)
	case c.Mode == "required" && len(r.Tools) == 0:
		return translate.NoToolError()
	case c.Mode == "required" && a.vendor.tools.tools == freeChoice:
		r.addSystem(a, translate.RoleSystem, "Answer with a call of a tool, not with a text.")
		a.request.ToolChoice = translate.ToolChoice{Mode: "auto", Allowed: c.Allowed}
		return a.request.DropWithWarning("tool_choice", "not enforced by the provider, an instruction in its place")
	case c.Mode == "none" && a.vendor.tools.tools == freeChoice:
		r.Tools = nil
	case c.Mode == "" || len(r.Tools) == 0 || c.Mode == "auto" && a.vendor.tools.tools == freeChoice:
	case c.Type == "custom" && a.vendor.tools.customTools:
		r.ToolChoice = toolChoice{Type: "custom", Custom: &toolName{c.Name}}
	case c.Name != "" && a.vendor.tools.tools != wordChoice:
		r.ToolChoice = toolChoice{Type: "function", Function: &toolName{c.Name}}
	case c.Mode == "required" && a.vendor.tools.anyTool != "":
		r.ToolChoice = a.vendor.tools.anyTool
	default:
		r.ToolChoice = c.Mode
	}
	return nil
}

func newTool(a attempt, t *translate.Tool) Tool {
	if t.Type == "custom" && a.vendor.tools.customTools {
		custom := &CustomTool{Name: t.Name, Description: t.Description}
		if definition := gjson.GetBytes(t.Format, "definition").Str; definition != "" {
			custom.Format = &InputFormat{"grammar", &Grammar{definition, gjson.GetBytes(t.Format, "syntax").Str}}
		}
		return Tool{Type: "custom", Custom: custom}
	}
	f := &Function{Name: t.Name, Strict: t.Strict}
	f.Description, f.Parameters = t.AsFunction()
	return Tool{Type: "function", Function: f}
}

func newToolCall(a attempt, c *translate.ToolCall) ToolCall {
	if c.Custom && a.vendor.tools.customTools {
		return ToolCall{ID: c.CallID, Type: "custom", Custom: &CustomCall{c.Name, c.Arguments}}
	}
	return CallFunction(c.CallID, c.Name, string(c.Object()))
}
