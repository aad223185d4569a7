package chat

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins/plugintest"
)

// BenchmarkDecode reads a stream of 200 events of text.
func BenchmarkDecode(b *testing.B) {
	event := `data: {"id":"chatcmpl-CMKBAQ4vWbdeHIVnqDgk62In6psws","object":"chat.completion.chunk","created":1759449904,` +
		`"model":"gpt-4o-2024-08-06","service_tier":"default","system_fingerprint":"fp_cbf1785567","choices":[{"index":0,` +
		`"delta":{"content":" and then"},"logprobs":null,"finish_reason":null}],"usage":null}` + "\n\n"
	body := strings.Repeat(event, 198) +
		`data: {"id":"c","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":200}}` +
		"\n\ndata: [DONE]\n\n"
	plugintest.BenchmarkDecode(b, For("openai"), body)
}
