package anthropic

import (
	"strings"

	"github.com/weirhq/weir/plugins/translate"
)

// model is what can be asked of a model.
type model struct {
	translate.Capabilities
	quirk
}

// quirk is a difference between models that is in no catalogue.
type quirk uint8

const (
	// alwaysThinks: thinking cannot be disabled.
	alwaysThinks quirk = 1 << iota
	// thinksBetweenTools: thinking can be confined to what follows tools.
	thinksBetweenTools
	// choosesTools: a call cannot be forced.
	choosesTools
	// noFormat: answers are not held to a JSON schema.
	noFormat
	// early: a model from before thinking.
	early
)

// quirks are those of the models whose names begin so; the first one counts.
var quirks = []struct {
	prefix string
	quirk  quirk
}{
	{"claude-opus-5-5", alwaysThinks | choosesTools},
	{"claude-sonnet-5-5", alwaysThinks | thinksBetweenTools | choosesTools},
	{"claude-fable-5-1", alwaysThinks | choosesTools},
	{"claude-fable-5", alwaysThinks},
	{"claude-3-7", noFormat},
	{"claude-3", noFormat | early},
	{"claude-2", noFormat | early},
	{"claude-v1", noFormat | early},
	{"claude-instant", noFormat | early},
	{"claude-opus-4-0", noFormat},
	{"claude-opus-4-2025", noFormat},
	{"claude-sonnet-4-0", noFormat},
	{"claude-sonnet-4-2025", noFormat},
}

// modelOf returns what is known of the target's model. A model that the catalogue
// does not describe is treated as a new one, unless it is known to be old: new
// models refuse more than old ones.
func modelOf(t translate.Target) *model {
	m := new(model)
	for _, q := range quirks {
		if strings.HasPrefix(t.Model, q.prefix) {
			m.quirk = q.quirk
			break
		}
	}
	switch {
	case t.Capabilities.Described():
		m.Capabilities = *t.Capabilities
	case m.is(early):
		m.Capabilities = translate.Capabilities{Temperature: true}
	default:
		m.Capabilities = translate.Capabilities{Reasoning: true, Efforts: translate.Efforts[2:]}
	}
	if t.Capabilities != nil {
		m.MaxOutput = t.Capabilities.MaxOutput
	}
	return m
}

func (m *model) is(q quirk) bool { return m.quirk&q != 0 }

// maxOutput is the max_tokens of requests that have none.
func (m *model) maxOutput() int64 {
	if m.MaxOutput == 0 {
		return 4096
	}
	return m.MaxOutput
}
