package bedrock

import (
	"encoding/json"
	"slices"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/anthropic"
	"github.com/weirhq/weir/plugins/translate"
)

type toolConfig struct {
	Tools      []tool      `json:"tools"`
	ToolChoice *toolChoice `json:"toolChoice,omitempty"`
}

// tool is a function, a tool that Bedrock hosts, or the mark after one that ends a prefix to be
// cached. One of its fields is set.
type tool struct {
	ToolSpec   *toolSpec   `json:"toolSpec,omitempty"`
	SystemTool *systemTool `json:"systemTool,omitempty"`
	CachePoint *cachePoint `json:"cachePoint,omitempty"`
}

type toolSpec struct {
	Name        string      `json:"name"`
	Description string      `json:"description,omitempty"`
	InputSchema inputSchema `json:"inputSchema"`
	Strict      bool        `json:"strict,omitempty"`
}

type inputSchema struct {
	JSON json.RawMessage `json:"json"`
}

type systemTool struct {
	Name string `json:"name"`
}

// toolChoice has one of its fields set. No value forbids calls.
type toolChoice struct {
	Auto *struct{}   `json:"auto,omitempty"`
	Any  *struct{}   `json:"any,omitempty"`
	Tool *systemTool `json:"tool,omitempty"`
}

// The tools that Bedrock hosts for Nova.
const (
	webSearch       = "nova_grounding"
	codeInterpreter = "nova_code_interpreter"
)

const silence = "Do not call any tool: answer in text."

func (r *request) setTools(p *translate.Request, m *model) error {
	if err := p.DropTools(func(*translate.Tool) bool { return m.maker != byAmazon }); err != nil {
		return err
	}
	c := p.ToolChoice
	mapped, err := translate.MapTools(p, func(t *translate.Tool) ([]tool, error) {
		to, err := newTool(p, m, t)
		if t.CacheBreakpoint && m.maker == byAnthropic { // Nova caches, but refuses a mark among its tools
			return []tool{to, {CachePoint: cacheOf(p, m, t.CachesLonger)}}, err
		}
		return []tool{to}, err
	})
	if err != nil {
		return err
	}
	tools := slices.Concat(mapped...)
	switch {
	case len(tools) > 0 && !m.ToolCall:
		return plugins.Unsupported("tools", "The model does not call tools.")
	case len(tools) == 0 || c.Mode == "none":
		return r.keepTools(p, m, tools)
	case c.Mode == "required" && m.Has(anthropic.ChoosesTools):
		return plugins.Unsupported("tool_choice", "The model cannot be made to call a tool: use 'auto'.")
	}
	r.ToolConfig = &toolConfig{Tools: tools}
	return r.setToolChoice(p, m)
}

func (r *request) setToolChoice(p *translate.Request, m *model) error {
	c := p.ToolChoice
	if p.OneCall() {
		if m.maker == byAnthropic {
			r.fields().ToolChoice = &anthropic.ToolChoice{Type: claudeMode(c), Name: chosen(c), DisableParallelToolUse: true}
			return nil
		}
		if err := p.DropWithWarning("parallel_tool_calls", translate.ModelRefuses); err != nil {
			return err
		}
	}
	switch {
	case c.Type != "":
		r.ToolConfig.ToolChoice = &toolChoice{Tool: &systemTool{chosen(c)}}
	case c.Mode == "required":
		r.ToolConfig.ToolChoice = &toolChoice{Any: &struct{}{}}
	case c.Mode == "auto":
		r.ToolConfig.ToolChoice = &toolChoice{Auto: &struct{}{}}
	}
	return nil
}

func claudeMode(c translate.ToolChoice) string {
	switch {
	case c.Type != "":
		return "tool"
	case c.Mode == "required":
		return "any"
	}
	return "auto"
}

// chosen is the name of the tool that must be used, "" if there is none.
func chosen(c translate.ToolChoice) string {
	switch c.Type {
	case "", "function", "custom":
		return c.Name
	case "code_interpreter":
		return codeInterpreter
	}
	return webSearch
}

func (r *request) forced() bool {
	if f := r.ModelFields; f != nil && f.ToolChoice != nil {
		return f.ToolChoice.Type != "auto"
	}
	return r.ToolConfig != nil && r.ToolConfig.ToolChoice != nil && r.ToolConfig.ToolChoice.Auto == nil
}

// keepTools is for a turn without calls. The provider demands tools if there were calls before.
func (r *request) keepTools(p *translate.Request, m *model, tools []tool) error {
	earlierTools := callsOf(p)
	if len(earlierTools) == 0 || m.answersByCall(p) {
		return nil
	}
	if len(tools) == 0 {
		tools = earlierTools
	}
	r.ToolConfig = &toolConfig{Tools: tools}
	r.System = append(r.System, block{Text: silence})
	return p.DropWithWarning("tool_choice", "calls cannot be forbidden after earlier ones, an instruction in its place")
}

// callsOf returns the tools that the model called before. Only their names are known.
func callsOf(p *translate.Request) []tool {
	var tools []tool
	known := make(map[string]bool)
	for _, t := range p.Turns {
		for _, item := range t.Items {
			call, ok := item.(*translate.ToolCall)
			if ok && !known[call.Name] {
				known[call.Name] = true
				tools = append(tools, tool{ToolSpec: &toolSpec{Name: call.Name, InputSchema: inputSchema{translate.ObjectSchema(nil)}}})
			}
		}
	}
	return tools
}

func newTool(p *translate.Request, m *model, t *translate.Tool) (tool, error) {
	switch {
	case !t.Hosted():
		return newFunction(p, m, t)
	case t.Type == "code_interpreter":
		return tool{SystemTool: &systemTool{codeInterpreter}}, nil
	}
	for _, filter := range []string{"filters.allowed_domains", "filters.blocked_domains"} {
		if t.Field(filter) != nil {
			return tool{}, plugins.Unsupported(t.Param+"."+filter, "The provider cannot confine its search to domains.")
		}
	}
	return tool{SystemTool: &systemTool{webSearch}}, p.DropHints(t, "user_location", "search_context_size")
}

func newFunction(p *translate.Request, m *model, t *translate.Tool) (tool, error) {
	f := &toolSpec{Name: t.Name}
	f.Description, f.InputSchema.JSON = t.AsFunction()
	switch {
	case !t.IsStrict():
		return tool{ToolSpec: f}, nil
	case !m.StructuredOutput:
		return tool{ToolSpec: f}, p.DropWithWarning(t.Param+".strict", translate.ModelRefuses)
	}
	f.Strict = true
	var err error
	f.InputSchema.JSON, err = anthropic.Enforceable(p, t.Param+".parameters", f.InputSchema.JSON)
	return tool{ToolSpec: f}, err
}
