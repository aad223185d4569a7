package anthropic

import (
	"encoding/json"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// tool is a function, or a tool that the provider hosts, which has a type.
type tool struct {
	Type        string          `json:"type,omitempty"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema,omitempty"`
	Strict      bool            `json:"strict,omitempty"`

	// Of the web search.
	MaxUses        int64           `json:"max_uses,omitempty"`
	AllowedDomains json.RawMessage `json:"allowed_domains,omitempty"`
	BlockedDomains json.RawMessage `json:"blocked_domains,omitempty"`
	UserLocation   json.RawMessage `json:"user_location,omitempty"`

	CacheControl *cacheControl `json:"cache_control,omitempty"`
}

// ToolChoice says whether the model may, must or must not call tools. Bedrock passes
// it on.
type ToolChoice struct {
	Type                   string `json:"type"`
	Name                   string `json:"name,omitempty"`
	DisableParallelToolUse bool   `json:"disable_parallel_tool_use,omitempty"`
}

// The names of the hosted tools.
const (
	webSearch     = "web_search"
	codeExecution = "code_execution"
)

func (r *request) setTools(p *translate.Request, m *model) error {
	c := p.ToolChoice
	var err error
	if r.Tools, err = translate.MapTools(p, func(t *translate.Tool) (tool, error) {
		to, err := newTool(p, m, t)
		if t.CacheBreakpoint {
			to.CacheControl = cacheOf(p, t.CachesLonger)
		}
		return to, err
	}); err != nil {
		return err
	}
	if c.Mode == "required" && m.Has(ChoosesTools) {
		return plugins.Unsupported("tool_choice", "The model cannot be made to call a tool: use 'auto'.")
	}
	sequential := p.OneCall()
	switch {
	case len(r.Tools) == 0 || c.Mode == "" && !sequential:
	case c.Mode == "none":
		r.ToolChoice = &ToolChoice{Type: "none"}
	case c.Type != "":
		r.ToolChoice = &ToolChoice{"tool", chosen(c), sequential}
	case c.Mode == "required":
		r.ToolChoice = &ToolChoice{Type: "any", DisableParallelToolUse: sequential}
	default:
		r.ToolChoice = &ToolChoice{Type: "auto", DisableParallelToolUse: sequential}
	}
	return nil
}

func (r *request) forced() bool {
	return r.ToolChoice != nil && (r.ToolChoice.Type == "any" || r.ToolChoice.Type == "tool")
}

func chosen(c translate.ToolChoice) string {
	switch c.Type {
	case "function", "custom":
		return c.Name
	case "code_interpreter":
		return codeExecution
	}
	return webSearch
}

func newTool(p *translate.Request, m *model, t *translate.Tool) (tool, error) {
	switch t.Type {
	case "function", "custom":
		return newFunction(p, m, t)
	case "code_interpreter":
		return tool{Type: "code_execution_20250825", Name: codeExecution}, nil
	}
	return tool{
		Type:           "web_search_20250305",
		Name:           webSearch,
		MaxUses:        p.MaxToolCalls.N,
		AllowedDomains: t.Field("filters.allowed_domains"),
		BlockedDomains: t.Field("filters.blocked_domains"),
		UserLocation:   t.Field("user_location"),
	}, p.DropHints(t, "search_context_size")
}

func newFunction(p *translate.Request, m *model, t *translate.Tool) (tool, error) {
	f := tool{Name: t.Name}
	f.Description, f.InputSchema = t.AsFunction()
	if !t.IsStrict() {
		return f, nil
	}
	if m.Has(noFormat) {
		return f, p.DropWithWarning(t.Param+".strict", translate.ModelRefuses)
	}
	f.Strict = true
	var err error
	f.InputSchema, err = Enforceable(p, t.Param+".parameters", f.InputSchema)
	return f, err
}
