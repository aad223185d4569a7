package gemini

import (
	"slices"
	"strings"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

type model struct {
	plugins.Capabilities
	// thinksIfTold: the model thinks only on request, and thinking can be turned
	// off whatever its smallest budget is. No catalogue has this.
	thinksIfTold bool
}

// early are the beginnings of the names of models without thinking levels.
var early = []string{"gemini-1", "gemini-2", "gemma"}

// modelOf returns what is known of the target's model. A model that the catalogue
// does not describe is treated as a new one, unless it is known to be old.
func modelOf(t translate.Target) *model {
	m := &model{thinksIfTold: strings.HasPrefix(t.Model, "gemini-2.5-flash-lite")}
	switch {
	case t.Capabilities.Described():
		m.Capabilities = *t.Capabilities
	case slices.ContainsFunc(early, func(prefix string) bool { return strings.HasPrefix(t.Model, prefix) }):
		m.Capabilities = plugins.Capabilities{Temperature: true}
	default:
		m.Capabilities = plugins.Capabilities{Reasoning: true, Efforts: translate.Efforts[1:5], Temperature: true}
	}
	return m
}

// hasLevels reports whether the model has levels of thinking, as all have since
// Gemini 3. These also take JSON formats and hosted tools beside functions, and
// refuse calls without their thought signatures.
func (m *model) hasLevels() bool { return len(m.Efforts) > 0 }
