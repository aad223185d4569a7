package whatif

import (
	"cmp"
	"regexp"
	"strconv"
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

// tokenizer names the tokenizer of a model: its maker, and the generation where the maker has had
// several. The newer one of Claude counts about 1.3 times as many tokens of the same text.
// https://platform.claude.com/docs/en/build-with-claude/token-counting
// https://github.com/openai/tiktoken/blob/main/tiktoken/model.py
func tokenizer(m *catalog.Model) string {
	maker := cmp.Or(strings.ToLower(m.Owner), m.Provider)
	switch {
	case strings.Contains(m.ID, "claude") && !isEarlierClaude(m.ID), strings.HasPrefix(m.ID, "gpt-3.5"), m.ID == "gpt-4", strings.HasPrefix(m.ID, "gpt-4-"):
		return maker + "'s other"
	}
	return maker
}

// claudeVersion finds the version of a Claude in its name, such as claude-opus-4-7-20260401 or
// claude-3-5-haiku. A date is no version.
var claudeVersion = regexp.MustCompile(`(opus|sonnet|haiku)-(\d{1,2})(?:[-.](\d{1,2}))?(?:\D|$)`)

// earliestClaude finds the names of the first three versions.
var earliestClaude = regexp.MustCompile(`claude-(v?[123]|instant)`)

// isEarlierClaude reports whether a Claude has the tokenizer of those before Opus 4.7 and Sonnet 5.
func isEarlierClaude(id string) bool {
	version := claudeVersion.FindStringSubmatch(id)
	if version == nil { // the version stands before the name, or it has another name
		return earliestClaude.MatchString(id)
	}
	major, _ := strconv.Atoi(version[2])
	minor, _ := strconv.Atoi(version[3])
	return major < 4 || major == 4 && (version[1] != "opus" || minor < 7)
}
