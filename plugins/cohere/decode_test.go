package cohere

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins/plugintest"
)

func TestProvider(t *testing.T) {
	plugintest.Provider(t, Provider{}, "m-1", "cohere.v2.chat", "plan_parallel_tools")
}

// FuzzDecode: whatever the provider sends, the client gets a legal stream or
// object.
func FuzzDecode(f *testing.F) {
	plugintest.Fuzz(f, Provider{}, plugintest.Fixtures(f, "testdata"), nil)
}

// BenchmarkDecode reads a stream of 200 events of text.
func BenchmarkDecode(b *testing.B) {
	event := "event: content-delta\ndata: {\"type\":\"content-delta\",\"index\":0,\"delta\":{\"message\":{\"content\":{\"text\":\" and then some\"}}}}\n\n"
	body := "event: message-start\ndata: {\"id\":\"1\",\"type\":\"message-start\",\"delta\":{\"message\":{\"role\":\"assistant\"}}}\n\n" +
		strings.Repeat(event, 198) +
		"event: message-end\ndata: {\"type\":\"message-end\",\"delta\":{\"finish_reason\":\"COMPLETE\",\"usage\":{\"tokens\":{\"input_tokens\":9,\"output_tokens\":20}}}}\n\n"
	plugintest.BenchmarkDecode(b, Provider{}, body)
}
