package anthropic

import (
	"encoding/json"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// Thinking is whether and how much Claude thinks before it answers.
type Thinking struct {
	Type         string `json:"type"`
	BudgetTokens int64  `json:"budget_tokens,omitempty"`
	Display      string `json:"display,omitempty"`
}

// Thinker is what decides on Claude's thinking beside what the client asks for.
type Thinker struct {
	*plugins.Capabilities
	// Always: thinking cannot be disabled. BetweenTools: it can be confined to
	// what follows tools.
	Always, BetweenTools bool
	// Forced: the model must call a tool.
	Forced bool
	// MaxTokens limits the output, thinking included.
	MaxTokens int64
	// Own reports whether a reasoning is one that the provider takes back.
	Own func(*translate.ReasoningItem) bool
}

// Think translates the reasoning that p asks for, to nil where Claude does what it
// does by itself. The effort that remains in p.Reasoning is a level of the model,
// and to be sent where effort is true.
func (t Thinker) Think(p *translate.Request) (thinking *Thinking, effort bool, err error) {
	reasoning := p.Reasoning
	if err := p.CheckEffort(); err != nil {
		return nil, false, err
	}
	switch {
	case !t.Reasoning:
		return nil, false, p.DropReasoning(translate.ModelRefuses)
	case reasoning.Effort == "none":
		return t.disable(p)
	case t.Forced && !t.Always: // "Thinking may not be enabled when tool_choice forces tool use."
		if err := p.DropReasoning("not possible where a call is forced, left out"); err != nil {
			return nil, false, err
		}
		return t.disable(p)
	case reasoning.Effort == "" && reasoning.Summary == "":
		return nil, false, nil
	case t.Budget.Min > 0:
		thinking, err = t.budget(p)
	default:
		thinking = &Thinking{Type: "adaptive", Display: "omitted"}
		if reasoning.Summary != "" {
			thinking.Display = "summarized"
		}
	}
	if err != nil || thinking == nil || reasoning.Effort == "" || len(t.Efforts) == 0 {
		return thinking, false, err
	}
	err = p.LimitEffort(t.Efforts)
	return thinking, p.Reasoning.Effort != "", err
}

func (t Thinker) disable(p *translate.Request) (*Thinking, bool, error) {
	switch {
	case t.BetweenTools:
		return &Thinking{Type: "between_tools"}, false, nil
	case t.Always:
		return nil, false, p.DropWithWarning("reasoning.effort", "not possible with a model that always thinks, left out")
	case t.Budget.Min == 0: // the others think only when told to
		return &Thinking{Type: "disabled"}, false, nil
	}
	return nil, false, nil
}

// budget is for the models that limit their thoughts in tokens. Some of them have
// levels of effort too.
func (t Thinker) budget(p *translate.Request) (*Thinking, error) {
	switch {
	case p.Reasoning.Effort == "":
		return nil, p.DropWithWarning("reasoning.summary", "not possible without reasoning.effort, left out")
	case t.MaxTokens <= t.Budget.Min:
		return nil, p.DropReasoning("not possible within max_output_tokens, left out")
	case translate.ResumesWithoutReasoning(p.Turns, t.Own):
		// "A final assistant message must start with a thinking block."
		return nil, p.DropReasoning("not possible after calls without the reasoning that led to them, left out")
	}
	budget := max(t.Budget.Min, p.Reasoning.Budget(t.MaxTokens))
	if t.Budget.Max > 0 {
		budget = min(budget, t.Budget.Max)
	}
	return &Thinking{Type: "enabled", BudgetTokens: budget}, nil
}

func (r *request) setReasoning(p *translate.Request, m *model) error {
	thinking, effort, err := Thinker{
		Capabilities: &m.Capabilities,
		Always:       m.Has(AlwaysThinks),
		BetweenTools: m.Has(thinksBetweenTools),
		Forced:       r.forced(),
		MaxTokens:    r.MaxTokens,
		Own:          func(r *translate.ReasoningItem) bool { return ownReasoning(r.EncryptedContent) != nil },
	}.Think(p)
	r.Thinking = thinking
	if effort {
		r.output().Effort = p.Reasoning.Effort
	}
	return err
}

// The encrypted_content of our reasoning items is the block that the provider
// wants back unchanged: {"type":"thinking","thinking":...,"signature":...} or
// {"type":"redacted_thinking","data":...}.

type thinkingBlock struct {
	Type      string `json:"type"`
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
}

type redactedBlock struct {
	Type string `json:"type"`
	Data string `json:"data"`
}

func encodeReasoning(block any) string {
	b, _ := json.Marshal(block) // structs of strings
	return string(b)
}

// ownReasoning is the block in an encrypted_content, nil if another provider made it.
func ownReasoning(encrypted string) any {
	v := gjson.Parse(encrypted)
	if !plugins.ValidJSON([]byte(encrypted)) {
		return nil
	}
	switch v.Get("type").Str {
	case "thinking":
		if signature := v.Get("signature").Str; signature != "" {
			return thinkingBlock{"thinking", v.Get("thinking").Str, signature}
		}
	case "redacted_thinking":
		if data := v.Get("data").Str; data != "" {
			return redactedBlock{"redacted_thinking", data}
		}
	}
	return nil
}
