package cohere

import (
	"encoding/json"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// thinking is whether, and with how many tokens, the model thinks. Models that can think do so by default.
type thinking struct {
	Type        string `json:"type"`
	TokenBudget *int64 `json:"token_budget,omitempty"`
}

// defaultOutput is the output, in tokens, that reasoning gets a share of if the request has no limit.
const defaultOutput = 32_000

func (r *request) setReasoning(p *translate.Request, c *plugins.Capabilities) error {
	if err := p.CheckEffort(); err != nil {
		return err
	}
	switch effort := p.Reasoning.Effort; {
	case effort == "":
		return nil
	case c.Described() && !c.Reasoning:
		return p.DropReasoning(translate.ModelRefuses)
	case effort == "none":
		r.Thinking = &thinking{Type: "disabled"}
		return nil
	case effort == "xhigh", effort == "max": // no limit
		r.Thinking = &thinking{Type: "enabled"}
		return nil
	}
	output := p.MaxOutputTokens
	if c != nil && c.MaxOutput > 0 {
		output = output.Or(plugins.Known(c.MaxOutput))
	}
	budget := max(1, p.Reasoning.Budget(output.Or(plugins.Known(defaultOutput)).N))
	r.Thinking = &thinking{Type: "enabled", TokenBudget: &budget}
	return nil
}

// thoughts are what the model thought before it answered or made calls. As JSON, they are the
// encrypted_content of our reasoning items.
type thoughts struct {
	Thinking string `json:"thinking,omitempty"`
	ToolPlan string `json:"tool_plan,omitempty"`
}

func (t thoughts) encode() string {
	b, _ := json.Marshal(t) // strings
	return string(b)
}

// ownReasoning reads an encrypted_content. It is empty if another provider made it.
func ownReasoning(encrypted string) (t thoughts) {
	v := gjson.Parse(encrypted)
	if keys := v.Get("@keys").Array(); plugins.ValidJSON([]byte(encrypted)) && v.IsObject() && !slices.ContainsFunc(keys, foreign) {
		t.Thinking, t.ToolPlan = v.Get("thinking").Str, v.Get("tool_plan").Str
	}
	return t
}

func foreign(key gjson.Result) bool { return key.Str != "thinking" && key.Str != "tool_plan" }
