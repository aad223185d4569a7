package translate

import (
	"slices"

	"github.com/weirhq/weir/plugins"
)

// Unseal opens the encrypted content of earlier reasoning for the provider of this
// attempt, by the inverse of Options.Seal. What open does not recognize is left out
// with a warning: no provider accepts the reasoning of another. The turns of other
// copies of p stay as they are.
func (p *Request) Unseal(open func(sealed string) (string, bool)) error {
	turns := make([]Turn, 0, len(p.Turns))
	for _, t := range p.Turns {
		items := make([]Item, 0, len(t.Items))
		for _, item := range t.Items {
			r, ok := item.(*ReasoningItem)
			if !ok || r.EncryptedContent == "" {
				items = append(items, item)
				continue
			}
			content, ok := open(r.EncryptedContent)
			if !ok {
				field := indexPath("input", r.Index) + ".encrypted_content"
				if err := p.DropWithWarning(field, "reasoning of another provider, left out"); err != nil {
					return err
				}
				continue
			}
			opened := *r
			opened.EncryptedContent = content
			items = append(items, &opened)
		}
		if len(items) > 0 {
			turns = append(turns, Turn{t.Role, items})
		}
	}
	p.Turns = turns
	return nil
}

// ResumesWithoutReasoning reports whether the model is about to go on from calls
// before which it did not think: of all turns with calls since the user spoke, none
// begins with reasoning that own says is the model's. It need not think again
// between them.
func ResumesWithoutReasoning(turns []Turn, own func(*ReasoningItem) bool) bool {
	hasCalls := false
	for _, t := range slices.Backward(turns) {
		switch t.Role {
		case RoleTool:
			hasCalls = true
		case RoleAssistant:
			first, ok := t.Items[0].(*ReasoningItem)
			if !hasCalls || ok && own(first) {
				return false
			}
		default:
			if hasCalls {
				return true
			}
		}
	}
	return hasCalls
}

// Efforts are the levels of reasoning.effort in their order.
var Efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// effortShares are the percentages of the output that a model may spend on reasoning, by effort.
var effortShares = map[string]int64{"minimal": 5, "low": 10, "medium": 30, "high": 60, "xhigh": 80, "max": 90}

// Budget returns how many of the tokens of an output the effort lets the model
// spend on reasoning.
func (r Reasoning) Budget(output int64) int64 { return output * effortShares[r.Effort] / 100 }

// EffortOf returns the highest effort whose Budget of the output is within budget, or
// else the lowest.
func EffortOf(budget, output int64) string {
	effort := Efforts[1]
	for _, level := range Efforts[1:] {
		if (Reasoning{Effort: level}).Budget(output) <= budget {
			effort = level
		}
	}
	return effort
}

// CheckEffort returns an error if the effort is not one of Efforts.
func (p *Request) CheckEffort() error {
	if effort := p.Reasoning.Effort; effort != "" && !slices.Contains(Efforts, effort) {
		return InvalidValue("reasoning.effort", effort, Efforts)
	}
	return nil
}

// LimitEffort sets the effort to the highest of the model's levels that is not
// above it, or else to the lowest, with a warning where that is another one. An
// effort for which there is no level is dropped. A request for reasoning never
// becomes "none".
func (p *Request) LimitEffort(levels []string) error {
	effort := p.Reasoning.Effort
	if slices.Contains(levels, effort) {
		return nil
	}
	best := ""
	for _, level := range levels {
		switch {
		case level == "none":
		case best == "":
			best = level
		case effortRank(level) <= effortRank(effort):
			if effortRank(best) > effortRank(effort) || effortRank(level) > effortRank(best) {
				best = level
			}
		case effortRank(level) < effortRank(best):
			best = level
		}
	}
	if best == "" {
		return p.DropWithWarning("reasoning.effort", ModelRefuses)
	}
	return p.replace("reasoning.effort", "not a level of the model", string(plugins.AppendString(nil, best)))
}

// effortRank is the position of a level. A level that is not in Efforts, such as "default", is in the middle.
func effortRank(level string) int {
	if i := slices.Index(Efforts, level); i >= 0 {
		return i
	}
	return slices.Index(Efforts, "medium")
}

// DropReasoning drops the settings of reasoning. An effort of "none" is honoured
// by a model that does not reason.
func (p *Request) DropReasoning(done string) error {
	if p.Reasoning.Effort != "" && p.Reasoning.Effort != "none" {
		if err := p.DropWithWarning("reasoning.effort", done); err != nil {
			return err
		}
	}
	if p.Reasoning.Summary != "" {
		return p.DropWithWarning("reasoning.summary", done)
	}
	return nil
}

// DropForeignReasoning drops an item of reasoning that another provider wrote,
// which this one cannot use.
func (p *Request) DropForeignReasoning(r *ReasoningItem) error {
	return p.DropWithWarning(indexPath("input", r.Index), "reasoning of another provider, left out")
}
