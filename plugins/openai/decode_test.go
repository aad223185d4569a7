package openai

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/plugins/translate"
)

func TestFixtures(t *testing.T) {
	fixtures := plugintest.Fixtures(t, "testdata")
	plugintest.Run(t, Provider{}, translate.Target{Model: "m-1", BaseURL: "http://localhost"}, fixtures)
	plugintest.Named(t, fixtures, "parallel_tools").InTurn(t, Provider{})
}

// FuzzDecode: whatever the provider sends, the client gets a legal stream or
// object.
func FuzzDecode(f *testing.F) {
	plugintest.Fuzz(f, Provider{}, plugintest.Fixtures(f, "testdata"), nil)
}

func TestCassettes(t *testing.T) {
	plugintest.Cassettes(t, "responses", func(string) translate.Provider { return Provider{} })
}

// BenchmarkDecode reads a stream of 200 events of text.
func BenchmarkDecode(b *testing.B) {
	event := "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":4,\"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0,\"delta\":\" and then some\",\"logprobs\":[]}\n\n"
	body := "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_1\",\"model\":\"m\"}}\n\n" +
		strings.Repeat(event, 198) +
		"event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"usage\":{\"input_tokens\":9,\"output_tokens\":20}}}\n\n"
	plugintest.BenchmarkDecode(b, Provider{}, body)
}
