package bedrock

import (
	"strings"

	"github.com/weirhq/weir/plugins/translate"
)

// model is what can be asked of a model.
type model struct {
	translate.Capabilities
	maker maker
	quirk quirk
}

// maker is whose API a model has beneath Converse: it decides on the fields that
// Converse passes through.
type maker uint8

const (
	anotherMaker maker = iota
	byAnthropic
	byAmazon
)

// quirk is a difference between models that is in no catalogue.
type quirk uint8

const (
	// alwaysThinks: thinking cannot be disabled.
	alwaysThinks quirk = 1 << iota
	// choosesTools: a call cannot be forced.
	choosesTools
)

// quirks are those of the models whose ids have such a part; the first counts.
var quirks = []struct {
	part  string
	quirk quirk
}{
	{"claude-opus-5-5", alwaysThinks | choosesTools},
	{"claude-sonnet-5-5", alwaysThinks | choosesTools},
	{"claude-fable-5-1", alwaysThinks | choosesTools},
	{"claude-fable-5", alwaysThinks},
}

// families are the capabilities of models that the catalogue does not describe, by
// a part of their ids; the first match counts. A Claude is treated as a new one
// unless it is known to be old: new models refuse more than old ones.
var families = []struct {
	part         string
	capabilities translate.Capabilities
}{
	{"claude-3-7", translate.Capabilities{Reasoning: true, MinBudget: 1024, MaxOutput: 64000, Temperature: true}},
	{"claude-opus-4-2025", translate.Capabilities{Reasoning: true, MinBudget: 1024, MaxOutput: 32000, Temperature: true}},
	{"claude-sonnet-4-2025", translate.Capabilities{Reasoning: true, MinBudget: 1024, MaxOutput: 64000, Temperature: true}},
	{"claude-3", translate.Capabilities{Temperature: true}},
	{"claude-v2", translate.Capabilities{Temperature: true}},
	{"claude-instant", translate.Capabilities{Temperature: true}},
	{"claude", translate.Capabilities{Reasoning: true, Efforts: translate.Efforts[2:], StructuredOutput: true}},
	{"nova-2", translate.Capabilities{Reasoning: true, Efforts: translate.Efforts[2:5], Temperature: true}},
	{"gpt-oss", translate.Capabilities{Reasoning: true, Efforts: translate.Efforts[2:5], StructuredOutput: true, Temperature: true}},
	{"", translate.Capabilities{StructuredOutput: true, Temperature: true}},
}

func modelOf(t translate.Target) *model {
	m := new(model)
	switch {
	case strings.Contains(t.Model, "anthropic."), strings.Contains(t.Model, "claude"):
		m.maker = byAnthropic
	case strings.Contains(t.Model, "amazon."):
		m.maker = byAmazon
	}
	for _, q := range quirks {
		if strings.Contains(t.Model, q.part) {
			m.quirk = q.quirk
			break
		}
	}
	if t.Capabilities.Described() {
		m.Capabilities = *t.Capabilities
		return m
	}
	for _, f := range families {
		if strings.Contains(t.Model, f.part) {
			m.Capabilities = f.capabilities
			m.ToolCall = true
			break
		}
	}
	return m
}

func (m *model) is(q quirk) bool { return m.quirk&q != 0 }

// caches reports whether the prompt of the model can be cached.
func (m *model) caches() bool { return m.maker == byAnthropic || m.maker == byAmazon }
