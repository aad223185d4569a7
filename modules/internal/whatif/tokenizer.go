package whatif

import (
	"cmp"
	"strings"

	"github.com/weirhq/weir/plugins/catalog"
)

// Tokenizers differ, and so does how much models write. Where the recorded model and another one have
// different tokenizers, the counts are taken to be these parts of the recorded ones.
const (
	leastInput, mostInput   = 0.7, 1.5
	leastOutput, mostOutput = 0.5, 2.0
)

// tokenizerOf is tokenizer, which it keeps.
func (t *Trial) tokenizerOf(m *catalog.Model) string {
	name, ok := t.tokenizers[m]
	if !ok {
		name = tokenizer(m)
		t.tokenizers[m] = name
	}
	return name
}

// generations are tokenizers that not all models of their maker have, by what the models' own names
// begin with. The first match counts. The newer tokenizer of Claude counts about 1.3 times as many
// tokens of the same text.
// https://platform.claude.com/docs/en/build-with-claude/token-counting
// https://github.com/openai/tiktoken/blob/main/tiktoken/model.py
var generations = []struct{ prefix, tokenizer string }{
	{"claude-opus-4-7", newClaude},
	{"claude-opus-4.7", newClaude},
	{"claude-opus-4-8", newClaude},
	{"claude-opus-4.8", newClaude},
	{"claude-opus-4", oldClaude},
	{"claude-sonnet-4", oldClaude},
	{"claude-haiku-4", oldClaude},
	{"claude-4", oldClaude},
	{"claude-3", oldClaude},
	{"claude-2", oldClaude},
	{"claude-1", oldClaude},
	{"claude-v", oldClaude},
	{"claude-instant", oldClaude},
	{"claude", newClaude},

	{"gpt-4o", o200k},
	{"gpt-4.", o200k},
	{"gpt-4", cl100k},
	{"gpt-3.5", cl100k},
	{"gpt-35", cl100k}, // Azure's spelling
	{"davinci-002", cl100k},
	{"babbage-002", cl100k},
}

// The tokenizers of which a maker has had several. o200k is that of all other models of OpenAI, too.
const (
	oldClaude = "claude, old"
	newClaude = "claude, new"
	cl100k    = "cl100k"
	o200k     = "openai"
)

// tokenizer names the tokenizer of a model: its generation, or else its maker.
func tokenizer(m *catalog.Model) string {
	name := m.ID[strings.LastIndexByte(m.ID, '/')+1:]
	name = strings.TrimPrefix(name, "ft:")
	name = name[max(strings.Index(name, "claude"), 0):] // without the region and the maker, as Bedrock has them
	for _, g := range generations {
		if strings.HasPrefix(name, g.prefix) {
			return g.tokenizer
		}
	}
	return cmp.Or(strings.ToLower(m.Owner), m.Provider)
}
