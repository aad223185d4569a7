package anthropic

import (
	"slices"
	"strings"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// thinking is whether and how much the model thinks before it answers.
type thinking struct {
	Type         string `json:"type"`
	BudgetTokens int64  `json:"budget_tokens,omitempty"`
	Display      string `json:"display,omitempty"`
}

// efforts are the levels of effort that the Responses API has beside none, in
// their order. Anthropic has all but the first.
var efforts = []string{"minimal", "low", "medium", "high", "xhigh", "max"}

// shares are the parts of max_tokens, in percent, that models which count their
// thoughts in tokens may spend on them by effort.
var shares = map[string]int64{"minimal": 5, "low": 10, "medium": 30, "high": 60, "xhigh": 80, "max": 90}

func (r *request) setThinking(p *translate.Request, m *model) error {
	effort := p.Reasoning.Effort
	switch {
	case effort != "" && effort != "none" && !slices.Contains(efforts, effort):
		return plugins.Invalid("reasoning.effort", "Invalid value: '%s'. Supported values are: 'none', '%s'.",
			effort, strings.Join(efforts, "', '"))
	case !m.Reasoning:
		return dropReasoning(p, "not supported by the model, left out")
	case effort == "none":
		return r.disableThinking(p, m)
	case r.forced() && !m.is(alwaysThinks): // "Thinking may not be enabled when tool_choice forces tool use."
		if err := dropReasoning(p, "not possible where a call is forced, left out"); err != nil {
			return err
		}
		return r.disableThinking(p, m)
	case effort == "" && p.Reasoning.Summary == "":
		return nil
	case m.MinBudget > 0:
		return r.setBudget(p, m)
	}
	r.Thinking = &thinking{Type: "adaptive", Display: "omitted"}
	if p.Reasoning.Summary != "" {
		r.Thinking.Display = "summarized"
	}
	return r.setEffort(p, m)
}

func dropReasoning(p *translate.Request, done string) error {
	if p.Reasoning.Effort != "" && p.Reasoning.Effort != "none" {
		if err := drop(p, "reasoning.effort", done); err != nil {
			return err
		}
	}
	if p.Reasoning.Summary != "" {
		return drop(p, "reasoning.summary", done)
	}
	return nil
}

func (r *request) disableThinking(p *translate.Request, m *model) error {
	switch {
	case m.is(thinksBetweenTools):
		r.Thinking = &thinking{Type: "between_tools"}
	case m.is(alwaysThinks):
		return drop(p, "reasoning.effort", "not possible with a model that always thinks, left out")
	case m.MinBudget == 0: // the others think only when told to
		r.Thinking = &thinking{Type: "disabled"}
	}
	return nil
}

// setEffort asks for the highest effort that the model has, up to the one that
// the client asks for.
func (r *request) setEffort(p *translate.Request, m *model) error {
	asked := p.Reasoning.Effort
	if asked == "" || len(m.Efforts) == 0 {
		return nil
	}
	rank, effort := slices.Index(efforts, asked), ""
	for i, level := range efforts {
		if slices.Contains(m.Efforts, level) && (effort == "" || i <= rank) {
			effort = level
		}
	}
	if effort != asked {
		if err := drop(p, "reasoning.effort", "not a level of the model, "+effort+" in its place"); err != nil {
			return err
		}
		p.Reasoning.Effort = effort
	}
	r.output().Effort = effort
	return nil
}

// setBudget is for the models that count their thoughts in tokens, of which
// some have levels of effort too.
func (r *request) setBudget(p *translate.Request, m *model) error {
	switch {
	case p.Reasoning.Effort == "":
		return drop(p, "reasoning.summary", "not possible without reasoning.effort, left out")
	case r.MaxTokens <= m.MinBudget:
		return dropReasoning(p, "not possible within max_output_tokens, left out")
	case translate.ResumesWithoutReasoning(p.Turns, ownThoughts):
		// "A final assistant message must start with a thinking block."
		return dropReasoning(p, "not possible after calls without the reasoning that led to them, left out")
	}
	r.Thinking = &thinking{Type: "enabled", BudgetTokens: max(m.MinBudget, r.MaxTokens/100*shares[p.Reasoning.Effort])}
	if m.MaxBudget > 0 {
		r.Thinking.BudgetTokens = min(r.Thinking.BudgetTokens, m.MaxBudget)
	}
	return r.setEffort(p, m)
}

// ownThoughts reports whether a reasoning is of this provider.
func ownThoughts(r *translate.ReasoningItem) bool { return unseal(r.EncryptedContent) != nil }
