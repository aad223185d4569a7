package anthropic

import (
	"cmp"
	"strings"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

type model struct {
	plugins.Capabilities
	Quirk
	claude bool // by its name: other vendors have the Messages API, too
}

// Quirk is a set of differences between models that are in no catalogue.
type Quirk uint8

// The quirks of Claude.
const (
	// AlwaysThinks: thinking cannot be disabled.
	AlwaysThinks Quirk = 1 << iota
	// thinksBetweenTools: thinking can be confined to what follows tools.
	thinksBetweenTools
	// ChoosesTools: a call cannot be forced.
	ChoosesTools
	// noFormat: answers are not held to a JSON schema.
	noFormat
	// early: a model from before thinking.
	early
	// adapts: thinking can be adaptive, though it can be limited in tokens, too.
	adapts
	// Prefills: the client may begin the answer.
	Prefills
	// systemFirst: the system speaks only before the conversation.
	systemFirst
)

// quirks are the quirks of models by the beginning of their names. The first match counts.
var quirks = []struct {
	prefix string
	quirk  Quirk
}{
	{"claude-opus-5-5", AlwaysThinks | ChoosesTools},
	{"claude-sonnet-5-5", AlwaysThinks | thinksBetweenTools | ChoosesTools},
	{"claude-fable-5-1", AlwaysThinks | ChoosesTools},
	{"claude-fable-5", AlwaysThinks},
	{"claude-opus-4-7", systemFirst},
	{"claude-opus-4-6", adapts | systemFirst},
	{"claude-sonnet-4-6", adapts | systemFirst},
	{"claude-opus-4-5", Prefills | systemFirst},
	{"claude-sonnet-4-5", Prefills | systemFirst},
	{"claude-haiku-4-5", Prefills | systemFirst},
	{"claude-opus-4-1", Prefills | systemFirst},
	{"claude-3-7", noFormat | Prefills | systemFirst},
	{"claude-3", noFormat | early | Prefills | systemFirst},
	{"claude-2", noFormat | early | Prefills | systemFirst},
	{"claude-v1", noFormat | early | Prefills | systemFirst},
	{"claude-instant", noFormat | early | Prefills | systemFirst},
	{"claude-opus-4-0", noFormat | Prefills | systemFirst},
	{"claude-opus-4-2025", noFormat | Prefills | systemFirst},
	{"claude-sonnet-4-0", noFormat | Prefills | systemFirst},
	{"claude-sonnet-4-2025", noFormat | Prefills | systemFirst},
}

// QuirksOf returns the quirks of the model whose name begins so.
func QuirksOf(name string) Quirk {
	for _, q := range quirks {
		if strings.HasPrefix(name, q.prefix) {
			return q.quirk
		}
	}
	return 0
}

// Has reports whether the set has a quirk.
func (q Quirk) Has(one Quirk) bool { return q&one != 0 }

// modelOf returns what is known of the target's model. A model that the catalogue
// does not describe is treated as a new one, unless it is known to be old: new
// models refuse more than old ones.
func modelOf(t translate.Target) *model {
	m := &model{Quirk: QuirksOf(t.Model), claude: strings.Contains(cmp.Or(t.Listed, t.Model), "claude")}
	switch {
	case t.Capabilities.Described():
		m.Capabilities = *t.Capabilities
	case m.Has(early):
		m.Capabilities = plugins.Capabilities{Temperature: true}
	default:
		m.Capabilities = plugins.Capabilities{Reasoning: true, Efforts: translate.Efforts[2:]}
	}
	if t.Capabilities != nil {
		m.MaxOutput = t.Capabilities.MaxOutput
	}
	return m
}

func (m *model) maxOutput() int64 {
	if m.MaxOutput == 0 {
		return 4096
	}
	return m.MaxOutput
}
