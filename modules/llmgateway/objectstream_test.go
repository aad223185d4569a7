package llmgateway

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/streams"
)

// A client that asks for a stream gets events also from a provider that answers in one piece.
func TestAnObjectIsStreamedToWhoAskedForAStream(t *testing.T) {
	for path, c := range map[string]struct {
		object string
		want   string // the events, without spaces
	}{
		"/v1/responses": {
			`{"id":"resp_1","object":"response",` + "\n" + `"status":"incomplete","model":"m","output":[]}`,
			`{"type":"response.incomplete","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"incomplete","model":"m","output":[]}}`,
		},
		"/v1/chat/completions": {
			`{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hi",
				"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`,
			`{"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"finish_reason":"tool_calls","delta":{"role":"assistant","content":"hi",` +
				`"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"},"index":0}]}}],"usage":{"prompt_tokens":1,"completion_tokens":2}}[DONE]`,
		},
		"/v1/messages": {
			`{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"thinking","thinking":"so","signature":"s"},{"type":"text","text":"hi"},
				{"type":"tool_use","id":"t","name":"f","input":{"a": 1}},{"type":"redacted_thinking","data":"d"}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":2}}`,
			`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":2}}}` +
				`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}` +
				`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"so"}}` +
				`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s"}}{"type":"content_block_stop","index":0}` +
				`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}` +
				`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"hi"}}{"type":"content_block_stop","index":1}` +
				`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}` +
				`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"a\": 1}"}}{"type":"content_block_stop","index":2}` +
				`{"type":"content_block_start","index":3,"content_block":{"type":"redacted_thinking","data":"d"}}{"type":"content_block_stop","index":3}` +
				`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"input_tokens":1,"output_tokens":2}}{"type":"message_stop"}`,
		},
	} {
		s := serve(t, map[string][]upstream{"raw": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, c.object) }}})
		resp, body := s.postTo(path, strings.NewReader(`{"model":"raw/m","max_tokens":9,"input":"hi","messages":[],"stream":true}`))
		events := ""
		for e, err := range streams.ReadSSE(strings.NewReader(body)) {
			if err != nil {
				t.Fatal(err)
			}
			events += string(e.Data)
		}
		if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" || events != c.want {
			t.Errorf("%s: %d %s, want %s", path, resp.StatusCode, body, c.want)
		}
		if r := s.kept.all()[0]; r.response != c.object || r.Usage.Input.Valid != gjson.Get(c.object, "usage").Exists() {
			t.Errorf("%s: the record is %+v", path, r)
		}
	}
}
