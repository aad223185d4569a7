package bedrock

import (
	"cmp"
	"strings"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/anthropic"
	"github.com/weirhq/weir/plugins/translate"
)

// model is what can be asked of a model.
type model struct {
	plugins.Capabilities
	anthropic.Quirk
	maker maker
}

// maker is whose API a model has beneath Converse: it decides on the fields that
// Converse passes through.
type maker uint8

const (
	anotherMaker maker = iota
	byAnthropic
	byAmazon
)

// families are the capabilities of models that the catalogue does not describe, by
// a part of their ids; the first match counts. A Claude is treated as a new one
// unless it is known to be old: new models refuse more than old ones.
var families = []struct {
	part         string
	capabilities plugins.Capabilities
}{
	{"claude-3-7", plugins.Capabilities{Reasoning: true, Budget: plugins.Budget{Min: 1024}, MaxOutput: 64000, Temperature: true}},
	{"claude-opus-4-2025", plugins.Capabilities{Reasoning: true, Budget: plugins.Budget{Min: 1024}, MaxOutput: 32000, Temperature: true}},
	{"claude-sonnet-4-2025", plugins.Capabilities{Reasoning: true, Budget: plugins.Budget{Min: 1024}, MaxOutput: 64000, Temperature: true}},
	{"claude-3", plugins.Capabilities{Temperature: true}},
	{"claude-v2", plugins.Capabilities{Temperature: true}},
	{"claude-instant", plugins.Capabilities{Temperature: true}},
	{"claude", plugins.Capabilities{Reasoning: true, Efforts: translate.Efforts[2:], StructuredOutput: true}},
	{"nova-2", plugins.Capabilities{Reasoning: true, Efforts: translate.Efforts[2:5], Temperature: true}},
	{"gpt-oss", plugins.Capabilities{Reasoning: true, Efforts: translate.Efforts[2:5], StructuredOutput: true, Temperature: true}},
	{"", plugins.Capabilities{StructuredOutput: true, Temperature: true}},
}

func modelOf(t translate.Target) *model {
	m, name := new(model), cmp.Or(t.Listed, t.Model)
	switch {
	case strings.Contains(name, "anthropic."), strings.Contains(name, "claude"):
		m.maker = byAnthropic
		m.Quirk = anthropic.QuirksOf(name[max(strings.Index(name, "claude"), 0):])
	case strings.Contains(name, "amazon."):
		m.maker = byAmazon
	}
	if t.Capabilities.Described() {
		m.Capabilities = *t.Capabilities
		return m
	}
	for _, f := range families {
		if strings.Contains(name, f.part) {
			m.Capabilities = f.capabilities
			m.ToolCall = true
			break
		}
	}
	return m
}

// caches reports whether the prompt of the model can be cached.
func (m *model) caches() bool { return m.maker == byAnthropic || m.maker == byAmazon }
