package chat

import "slices"

type effort struct {
	Effort string `json:"effort"`
}

type thinking struct {
	Type string `json:"type"`
}

type templateOptions struct {
	EnableThinking bool `json:"enable_thinking"`
}

// setEffort says how much the model thinks, at the level nearest to the one
// asked for.
func (r *request) setEffort(a attempt) error {
	asked := a.Request.Reasoning.Effort
	if asked == "" {
		return nil
	}
	levels := a.efforts
	if a.Capabilities != nil && len(a.Capabilities.Efforts) > 0 {
		levels = a.Capabilities.Efforts
	}
	switch {
	case a.known() && !a.thinks():
		if asked == "none" {
			return nil
		}
		return a.drop("reasoning.effort", "not supported by the model, left out")
	case a.effort == thinkingSwitch:
		r.Thinking = &thinking{"enabled"}
		if asked == "none" {
			r.Thinking.Type = "disabled"
			return nil
		}
		if len(levels) == 0 {
			return nil
		}
	case len(levels) == 0:
		return a.drop("reasoning.effort", "not supported by the model, left out")
	}
	chosen := nearest(asked, levels)
	if chosen != asked {
		if err := a.drop("reasoning.effort", "no level of the model, '"+chosen+"' in place of '"+asked+"'"); err != nil {
			return err
		}
		a.Request.Reasoning.Effort = chosen
	}
	switch {
	case a.effort == reasoningObject:
		r.Reasoning = &effort{chosen}
	case a.effort == templateThinking && chosen == "none":
		r.ChatTemplateKwargs = &templateOptions{EnableThinking: false}
	case a.effort == templateThinking:
		r.ReasoningEffort = chosen
		r.ChatTemplateKwargs = &templateOptions{EnableThinking: true}
	default:
		r.ReasoningEffort = chosen
	}
	return nil
}

// known reports whether the catalogue describes the model, and not only its
// price.
func (a attempt) known() bool { return a.Capabilities != nil && len(a.Capabilities.Input) > 0 }

// scale are the levels of effort in their order.
var scale = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// nearest is the level that is nearest to the one asked for: of two, the higher
// one. Levels that are not of the scale, such as "default", are in its middle.
// Thinking is not turned off for who asks for little, where there is a choice.
func nearest(asked string, levels []string) string {
	if slices.Contains(levels, asked) {
		return asked
	}
	best, least := "", len(scale)*2
	for _, level := range levels {
		d := rank(level) - rank(asked)
		if d < 0 {
			d = -d
		}
		if level == "none" {
			d += len(scale)
		}
		if d < least || d == least && rank(level) > rank(best) {
			best, least = level, d
		}
	}
	return best
}

func rank(level string) int {
	if i := slices.Index(scale, level); i >= 0 {
		return i
	}
	return slices.Index(scale, "medium")
}
