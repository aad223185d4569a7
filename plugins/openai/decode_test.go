package openai

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins/plugintest"
)

func TestProvider(t *testing.T) {
	plugintest.Provider(t, Provider{}, "m-1", "responses", "parallel_tools")
}

// FuzzDecode: whatever the provider sends, the client gets a legal stream or
// object.
func FuzzDecode(f *testing.F) {
	plugintest.Fuzz(f, Provider{}, plugintest.Fixtures(f, "testdata"), nil)
}

// BenchmarkDecode reads a stream of 200 events of text.
func BenchmarkDecode(b *testing.B) {
	event := "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":4,\"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0,\"delta\":\" and then some\",\"logprobs\":[]}\n\n"
	body := "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_1\",\"model\":\"m\"}}\n\n" +
		strings.Repeat(event, 198) +
		"event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"usage\":{\"input_tokens\":9,\"output_tokens\":20}}}\n\n"
	plugintest.BenchmarkDecode(b, Provider{}, body)
}
