package bedrock

import (
	"slices"
	"strings"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// thinking is whether and how much Claude thinks before it answers.
type thinking struct {
	Type         string `json:"type"`
	BudgetTokens int64  `json:"budget_tokens,omitempty"`
	Display      string `json:"display,omitempty"`
}

// effort is how much Claude does for its answer.
type effort struct {
	Effort string `json:"effort"`
}

// reasoningConfig is whether and how much Nova thinks.
type reasoningConfig struct {
	Type               string `json:"type"`
	MaxReasoningEffort string `json:"maxReasoningEffort"`
}

// efforts are the levels of effort that the Responses API has beside none, in
// their order.
var efforts = []string{"minimal", "low", "medium", "high", "xhigh", "max"}

// shares are the parts of the output, in percent, that models which count their
// thoughts in tokens may spend on them by effort.
var shares = map[string]int64{"minimal": 5, "low": 10, "medium": 30, "high": 60, "xhigh": 80, "max": 90}

// setReasoning asks for thoughts in the maker's own words. A summary needs asking
// for with Claude alone: the others tell their thoughts anyway.
func (r *request) setReasoning(p *translate.Request, m *model) error {
	asked := p.Reasoning.Effort
	switch {
	case asked != "" && asked != "none" && !slices.Contains(efforts, asked):
		return plugins.Invalid("reasoning.effort", "Invalid value: '%s'. Supported values are: 'none', '%s'.",
			asked, strings.Join(efforts, "', '"))
	case !m.Reasoning:
		return dropReasoning(p, "not supported by the model, left out")
	case m.maker == byAnthropic:
		return r.setThinking(p, m)
	case asked == "", asked == "none" && m.maker == byAmazon: // which thinks only when told to
		return nil
	case asked == "none" && slices.Contains(m.Efforts, asked):
		r.fields().ReasoningEffort = asked
		return nil
	case asked == "none":
		return drop(p, "reasoning.effort", "not possible with a model that always thinks, left out")
	}
	level, err := levelOf(p, m)
	switch {
	case err != nil || level == "":
		return err
	case m.maker != byAmazon:
		r.fields().ReasoningEffort = level
		return nil
	case level == "high" && p.MaxOutputTokens.Valid:
		if err := drop(p, "reasoning.effort", "'high' is not possible with max_output_tokens, 'medium' in its place"); err != nil {
			return err
		}
		level, p.Reasoning.Effort = "medium", "medium"
	}
	r.fields().ReasoningConfig = &reasoningConfig{"enabled", level}
	return nil
}

// levelOf is the highest effort that the model has, up to the one that the client
// asks for, "" where it has none.
func levelOf(p *translate.Request, m *model) (string, error) {
	asked := p.Reasoning.Effort
	rank, level := slices.Index(efforts, asked), ""
	for i, e := range efforts {
		if slices.Contains(m.Efforts, e) && (level == "" || i <= rank) {
			level = e
		}
	}
	if level == "" {
		return "", drop(p, "reasoning.effort", "not supported by the model, left out")
	}
	if level != asked {
		if err := drop(p, "reasoning.effort", "not a level of the model, '"+level+"' in its place"); err != nil {
			return "", err
		}
		p.Reasoning.Effort = level
	}
	return level, nil
}

// thinks reports whether the model thinks in a way that rules sampling out.
func (r *request) thinks() bool {
	f := r.ModelFields
	switch {
	case f == nil:
		return false
	case f.Thinking != nil:
		return f.Thinking.Type != "disabled"
	}
	return f.ReasoningConfig != nil && f.ReasoningConfig.MaxReasoningEffort == "high"
}

func (r *request) setThinking(p *translate.Request, m *model) error {
	asked := p.Reasoning.Effort
	switch {
	case asked == "none":
		return r.disableThinking(p, m)
	case r.forced() && !m.is(alwaysThinks): // "Thinking may not be enabled when tool_choice forces tool use."
		if err := dropReasoning(p, "not possible where a call is forced, left out"); err != nil {
			return err
		}
		return r.disableThinking(p, m)
	case asked == "" && p.Reasoning.Summary == "":
		return nil
	case m.MinBudget > 0:
		return r.setBudget(p, m)
	}
	r.fields().Thinking = &thinking{Type: "adaptive", Display: "omitted"}
	if p.Reasoning.Summary != "" {
		r.fields().Thinking.Display = "summarized"
	}
	if asked == "" {
		return nil
	}
	level, err := levelOf(p, m)
	if level != "" {
		r.fields().OutputConfig = &effort{level}
	}
	return err
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
	case m.is(alwaysThinks):
		return drop(p, "reasoning.effort", "not possible with a model that always thinks, left out")
	case m.Reasoning && m.MinBudget == 0: // the others think only when told to
		r.fields().Thinking = &thinking{Type: "disabled"}
	}
	return nil
}

// setBudget is for the models that count their thoughts in tokens.
func (r *request) setBudget(p *translate.Request, m *model) error {
	limit := p.MaxOutputTokens.Or(plugins.Known(m.MaxOutput)).N
	switch {
	case p.Reasoning.Effort == "":
		return drop(p, "reasoning.summary", "not possible without reasoning.effort, left out")
	case limit <= m.MinBudget:
		return dropReasoning(p, "not possible within max_output_tokens, left out")
	case translate.ResumesWithoutReasoning(p.Turns, ownThoughts):
		// "A final assistant message must start with a thinking block."
		return dropReasoning(p, "not possible after calls without the reasoning that led to them, left out")
	}
	budget := max(m.MinBudget, limit/100*shares[p.Reasoning.Effort])
	if m.MaxBudget > 0 {
		budget = min(budget, m.MaxBudget)
	}
	r.inference().MaxTokens = limit
	r.fields().Thinking = &thinking{Type: "enabled", BudgetTokens: budget}
	return nil
}

// ownThoughts reports whether a reasoning is of this provider.
func ownThoughts(r *translate.ReasoningItem) bool { return unseal(r.EncryptedContent) != nil }
