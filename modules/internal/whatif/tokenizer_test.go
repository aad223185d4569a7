package whatif

import (
	"testing"

	"github.com/weirhq/weir/plugins/catalog"
)

// Models of one maker may have different tokenizers, wherever they are hosted.
func TestTokenizers(t *testing.T) {
	for want, models := range map[string][]string{
		oldClaude: {
			"claude-2", "claude-v1", "claude-3-haiku-20240307", "claude-3-5-haiku-20241022", "claude-opus-4-20250514", "claude-opus-4-6",
			"claude-sonnet-4-5-20250929", "claude-haiku-4-5", "claude-opus-4@20250514",
			"anthropic.claude-3-5-sonnet-20240620-v1:0", "eu.anthropic.claude-opus-4-5-20251101-v1:0", "anthropic.claude-sonnet-4-20250514-v1:0",
			"anthropic.claude-v2:1", "anthropic.claude-instant-v1",
			"anthropic/claude-4-opus", "anthropic/claude-4-sonnet", "anthropic/claude-3.5-haiku", "anthropic/claude-opus-4.6:batch",
		},
		newClaude: {
			"claude-opus-4-7", "claude-opus-4-8", "claude-opus-5", "claude-sonnet-5", "claude-fable-5", "claude-opus-4-7@default",
			"anthropic.claude-opus-5", "us.anthropic.claude-sonnet-5", "anthropic/claude-opus-4.7-fast", "~anthropic/claude-opus-latest",
		},
		cl100k: {
			"gpt-4", "gpt-4-turbo", "gpt-3.5-turbo", "gpt-35-turbo", "ft:gpt-3.5-turbo-", "davinci-002",
			"openai/gpt-4", "openai/gpt-4-turbo:batch", "openai/gpt-4-1106-preview", "openai/gpt-3.5-turbo",
		},
		o200k: {"gpt-4o", "gpt-4.1", "gpt-5-mini", "o3", "openai/gpt-4o", "openai/gpt-4.1:batch", "ft:gpt-4o-mini", "chatgpt-4o-latest"},
	} {
		for _, id := range models {
			if got := tokenizer(&catalog.Model{ID: id, Owner: "OpenAI", Provider: "openrouter"}); got != want {
				t.Errorf("%s has the tokenizer %s, want %s", id, got, want)
			}
		}
	}
}
