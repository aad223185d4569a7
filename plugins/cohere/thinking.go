package cohere

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// thinking is whether, and with how many tokens, the model thinks before it
// answers. Models that can do so unless told not to.
type thinking struct {
	Type        string `json:"type"`
	TokenBudget *int64 `json:"token_budget,omitempty"`
}

// shares are the parts, in percent, of the output that the model may spend on
// thinking by effort. More than high is no limit.
var shares = map[string]int64{"minimal": 5, "low": 10, "medium": 30, "high": 60, "xhigh": 0, "max": 0}

// defaultOutput is the output that shares are taken of where nobody limits it,
// in tokens.
const defaultOutput = 32_000

func (r *request) setThinking(p *translate.Request, c *translate.Capabilities) error {
	effort := p.Reasoning.Effort
	share, known := shares[effort]
	switch {
	case effort == "":
		return nil
	case !known && effort != "none":
		return plugins.Invalid("reasoning.effort", "Invalid value: '%s'. Supported values are: 'none', '%s'.",
			effort, strings.Join([]string{"minimal", "low", "medium", "high", "xhigh", "max"}, "', '"))
	case c != nil && len(c.Input) > 0 && !c.Reasoning:
		if effort == "none" {
			return nil
		}
		return drop(p, "reasoning.effort", "not supported by the model, left out")
	case effort == "none":
		r.Thinking = &thinking{Type: "disabled"}
		return nil
	}
	r.Thinking = &thinking{Type: "enabled"}
	if share == 0 {
		return nil
	}
	output := p.MaxOutputTokens
	if c != nil && c.MaxOutput > 0 {
		output = output.Or(plugins.Known(c.MaxOutput))
	}
	budget := max(1, output.Or(plugins.Known(defaultOutput)).N*share/100)
	r.Thinking.TokenBudget = &budget
	return nil
}

// thoughts are what the model thought before it answered or made calls. They
// are the encrypted_content of our reasoning items, which so are told from those
// of other providers.
type thoughts struct {
	Thinking string `json:"thinking,omitempty"`
	ToolPlan string `json:"tool_plan,omitempty"`
}

func (t thoughts) seal() string {
	b, _ := json.Marshal(t) // strings
	return string(b)
}

// unseal is the thoughts in a reasoning's encrypted_content, none if another
// provider made it.
func unseal(encrypted string) (t thoughts) {
	v := gjson.Parse(encrypted)
	if keys := v.Get("@keys").Array(); plugins.ValidJSON([]byte(encrypted)) && v.IsObject() && !slices.ContainsFunc(keys, foreign) {
		t.Thinking, t.ToolPlan = v.Get("thinking").Str, v.Get("tool_plan").Str
	}
	return t
}

func foreign(key gjson.Result) bool { return key.Str != "thinking" && key.Str != "tool_plan" }
