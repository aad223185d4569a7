package whatif

import (
	"testing"

	"github.com/weirhq/weir/plugins/catalog"
)

// Models of one maker may have different tokenizers.
func TestTokenizers(t *testing.T) {
	for provider, models := range map[string][2][]string{
		"anthropic": {
			{"claude-3-haiku-20240307", "claude-3-5-haiku-20241022", "claude-opus-4-20250514", "claude-opus-4-6", "claude-sonnet-4-5-20250929", "claude-haiku-4-5"},
			{"claude-opus-4-7", "claude-opus-4-8", "claude-opus-5", "claude-sonnet-5", "claude-fable-5"},
		},
		"bedrock": {
			{"anthropic.claude-3-5-sonnet-20240620-v1:0", "eu.anthropic.claude-opus-4-5-20251101-v1:0", "anthropic.claude-sonnet-4-20250514-v1:0"},
			{"anthropic.claude-opus-5", "us.anthropic.claude-sonnet-5"},
		},
		"openai": {{"gpt-4o", "gpt-4.1", "gpt-5-mini", "o3"}, {"gpt-4", "gpt-4-turbo", "gpt-3.5-turbo"}},
	} {
		for generation, ids := range models {
			for _, id := range ids {
				m := &catalog.Model{ID: id, Owner: "Maker", Provider: provider}
				if other := tokenizer(m) != "maker"; other != (generation == 1) {
					t.Errorf("%s has the tokenizer %s", id, tokenizer(m))
				}
			}
		}
	}
}
