package anthropic

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/plugins/translate"
)

func TestProvider(t *testing.T) {
	plugintest.Provider(t, Provider{}, "claude-3-7-sonnet-latest", "messages", "tools_alone")
}

// FuzzDecode: whatever the provider sends, the client gets a legal stream or
// object.
func FuzzDecode(f *testing.F) {
	plugintest.Fuzz(f, Provider{}, plugintest.Fixtures(f, "testdata"), nil)
}

func TestTruncationIsIncomplete(t *testing.T) {
	for stop, want := range map[string]string{
		"end_turn": "completed", "pause_turn": "incomplete", "stop_sequence": "completed", "of_the_future": "incomplete",
		"max_tokens": "incomplete", "model_context_window_exceeded": "incomplete", "compaction": "incomplete", "refusal": "incomplete",
	} {
		body := `{"type":"message","content":[{"type":"text","text":"Once"}],"stop_reason":"` + stop + `"}`
		r := plugintest.Answer(t, Provider{}, `{"model":"m","input":"hi"}`, body)
		if got := r.Get("status").Str; got != want || r.Get("output.0.status").Str != want {
			t.Errorf("%s: got %s", stop, r)
		}
	}
}

// BenchmarkDecode reads a stream of 200 events of text.
func BenchmarkDecode(b *testing.B) {
	event := "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" and then some\"}   }\n\n"
	body := "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"model\":\"m\",\"usage\":{\"input_tokens\":9}}}\n\n" +
		strings.Repeat(event, 197) +
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":20}}\n\n" +
		"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	plugintest.BenchmarkDecode(b, Provider{}, body)
}

// Others who speak Messages have rules of their own: DashScope's input has what its cache took.
func TestInputOfVendors(t *testing.T) {
	const message = `{"type":"message","model":"m","content":[{"type":"text","text":"a"}],"stop_reason":"end_turn","usage":{"input_tokens":3602,"cache_creation_input_tokens":3590,"output_tokens":8}}`
	for vendor, want := range map[string]int64{"": 7192, "dashscope": 3602} {
		a := translate.NewAssembler(&translate.Request{Model: "m"}, io.Discard, translate.Options{Provider: vendor})
		if err := new(Provider).Decode(plugintest.Response(http.StatusOK, message), a); err != nil {
			t.Fatal(err)
		}
		if got := a.Info().Usage.Input.N; got != want {
			t.Errorf("%q: the input is %d, want %d", vendor, got, want)
		}
	}
}
