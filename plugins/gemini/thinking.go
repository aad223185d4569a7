package gemini

import (
	"slices"
	"strings"

	"github.com/weirhq/weir/plugins"
)

// thinkingConfig is how much the model thinks before it answers, and whether it
// tells its thoughts.
type thinkingConfig struct {
	ThinkingLevel   string `json:"thinkingLevel,omitempty"`
	ThinkingBudget  *int64 `json:"thinkingBudget,omitempty"`
	IncludeThoughts bool   `json:"includeThoughts,omitempty"`
}

// efforts are the levels of effort that the Responses API has, in their order.
// Gemini's levels are minimal to high.
var efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// budgets are the tokens for thinking that Google itself gives to an effort
// (https://ai.google.dev/gemini-api/docs/openai).
var budgets = map[string]int64{
	"minimal": 1024, "low": 1024, "medium": 8192, "high": 24576, "xhigh": 1 << 40, "max": 1 << 40, // as many as there may be
}

func (r *request) setThinking() error {
	p, m := r.prompt, r.model
	effort := p.Reasoning.Effort
	switch {
	case effort == "" && p.Reasoning.Summary == "":
		return nil
	case effort != "" && !slices.Contains(efforts, effort):
		return plugins.Invalid("reasoning.effort", "Invalid value: '%s'. Supported values are: '%s'.",
			effort, strings.Join(efforts, "', '"))
	case !m.Reasoning || !m.hasLevels() && m.MaxBudget == 0:
		return r.dropReasoning()
	}
	c := &thinkingConfig{IncludeThoughts: p.Reasoning.Summary != ""}
	r.GenerationConfig.ThinkingConfig = c
	switch {
	case effort == "":
		return nil
	case m.hasLevels():
		return r.setLevel(c)
	}
	return r.setBudget(c)
}

func (r *request) dropReasoning() error {
	const done = "not supported by the model, left out"
	if effort := r.prompt.Reasoning.Effort; effort != "" && effort != "none" {
		if err := r.drop("reasoning.effort", done); err != nil {
			return err
		}
	}
	if r.prompt.Reasoning.Summary != "" {
		return r.drop("reasoning.summary", done)
	}
	return nil
}

// setLevel asks for the highest level that the model has, up to the effort that
// the client asks for.
func (r *request) setLevel(c *thinkingConfig) error {
	asked, level := r.prompt.Reasoning.Effort, ""
	for i, effort := range efforts {
		if slices.Contains(r.model.Efforts, effort) && (level == "" || i <= slices.Index(efforts, asked)) {
			level = effort
		}
	}
	if level != asked {
		if err := r.drop("reasoning.effort", "not a level of the model, "+level+" in its place"); err != nil {
			return err
		}
		r.prompt.Reasoning.Effort = level
	}
	c.ThinkingLevel = strings.ToUpper(level)
	return nil
}

// setBudget is for the models that count their thoughts in tokens.
func (r *request) setBudget(c *thinkingConfig) error {
	m := r.model
	budget := min(max(budgets[r.prompt.Reasoning.Effort], m.MinBudget), m.MaxBudget)
	if r.prompt.Reasoning.Effort == "none" {
		switch {
		case m.thinksIfTold:
			budget = 0
		case budget > 0:
			if err := r.drop("reasoning.effort", "not possible with a model that always thinks, the least in its place"); err != nil {
				return err
			}
		}
		c.IncludeThoughts = c.IncludeThoughts && budget > 0
	}
	c.ThinkingBudget = &budget
	return nil
}
