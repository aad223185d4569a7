package bedrock

import (
	"testing"

	"github.com/weirhq/weir/plugins/plugintest"
)

func TestSignaturesComeBack(t *testing.T) {
	for _, name := range []string{"reasoning_tools", "reasoning", "omitted_reasoning", "redacted_reasoning"} {
		body := plugintest.Named(t, fixtures(t), name).ComesBack(t, new(Provider), claude45, "output.message.content", "messages.1.content")
		if body.Get("additionalModelRequestFields.thinking.type").Str != "enabled" {
			t.Errorf("%s: does not think: %s", name, body)
		}
	}
}

func TestForeignReasoningIsLeftOut(t *testing.T) {
	const path, want = "messages.1.content", `[{"text":"4"}]`
	plugintest.Maps(t, new(Provider), claude45, plugintest.AfterReasoning(""), path, want)
	for _, encrypted := range []string{"gAAAAABo", `{"reasoningText":{"text":"unsigned"}}`, `[]`} {
		plugintest.Maps(t, new(Provider), claude45, plugintest.AfterReasoning(encrypted), path, want, "input[1]")
	}
	plugintest.Maps(t, new(Provider), nova2, plugintest.AfterReasoning(`{"reasoningText":{"text":"t","signature":"Claude's"}}`), path, want, "input[1]")
}
