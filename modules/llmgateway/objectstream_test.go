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
			`{"id":"resp_1","object":"response",` + "\n" + `"status":"incomplete","model":"m","output":[{"id":"msg_1","type":"message","status":"completed","role":"assistant",
				"content":[{"type":"output_text","text":"hi","annotations":[]}]},{"id":"fc_1","type":"function_call","call_id":"1","name":"f","arguments":"{}"}]}`,
			`{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","model":"m","output":[]}}` +
				`{"type":"response.in_progress","sequence_number":1,"response":{"id":"resp_1","object":"response","status":"in_progress","model":"m","output":[]}}` +
				`{"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}` +
				`{"type":"response.content_part.added","sequence_number":3,"output_index":0,"item_id":"msg_1","content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}` +
				`{"type":"response.output_text.delta","sequence_number":4,"output_index":0,"item_id":"msg_1","content_index":0,"delta":"hi","logprobs":[]}` +
				`{"type":"response.output_text.done","sequence_number":5,"output_index":0,"item_id":"msg_1","content_index":0,"text":"hi","logprobs":[]}` +
				`{"type":"response.content_part.done","sequence_number":6,"output_index":0,"item_id":"msg_1","content_index":0,"part":{"type":"output_text","text":"hi","annotations":[]}}` +
				`{"type":"response.output_item.done","sequence_number":7,"output_index":0,"item":{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"hi","annotations":[]}]}}` +
				`{"type":"response.output_item.added","sequence_number":8,"output_index":1,"item":{"id":"fc_1","type":"function_call","call_id":"1","name":"f","arguments":""}}` +
				`{"type":"response.function_call_arguments.delta","sequence_number":9,"output_index":1,"item_id":"fc_1","delta":"{}"}` +
				`{"type":"response.function_call_arguments.done","sequence_number":10,"output_index":1,"item_id":"fc_1","arguments":"{}"}` +
				`{"type":"response.output_item.done","sequence_number":11,"output_index":1,"item":{"id":"fc_1","type":"function_call","call_id":"1","name":"f","arguments":"{}"}}` +
				`{"type":"response.incomplete","sequence_number":12,"response":{"id":"resp_1","object":"response","status":"incomplete","model":"m","output":[{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"hi","annotations":[]}]},{"id":"fc_1","type":"function_call","call_id":"1","name":"f","arguments":"{}"}]}}`,
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

// A client that asks for no stream gets one object also from a provider that streams, and its record says
// so. What the events do not end is an error.
func TestAStreamIsAnObjectToWhoAskedForNone(t *testing.T) {
	messages := func(events ...string) string {
		stream := `data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}}` + "\n\n"
		for _, e := range events {
			stream += "data: " + e + "\n\n"
		}
		return stream
	}
	for name, c := range map[string]struct {
		path, stream string
		want         string // the object, or the message of the error
		status       int
	}{
		"chat": {"/v1/chat/completions", `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"h"},"finish_reason":null}]}` + "\n\n" +
			`data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"i","tool_calls":[{"index":0,"id":"1","type":"function","function":{"name":"f","arguments":"{"}}]},"finish_reason":null}]}` + "\n\n" +
			`data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}` + "\n\ndata: [DONE]\n\n",
			`{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hi","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`, 200},
		"messages": {"/v1/messages", messages(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}`,
			`{"type":"content_block_stop","index":0}`, `{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":2}}`, `{"type":"message_stop"}`),
			`{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"tool_use","id":"t","name":"f","input":{"a":1}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":2}}`, 200},
		"responses": {"/v1/responses", `data: {"type":"response.created","response":{"id":"resp_1","model":"m","status":"in_progress","output":[]}}` + "\n\n" +
			`data: {"type":"response.output_item.done","output_index":0,"item":{"id":"msg_1","type":"message","content":[{"type":"output_text","text":"hi"}]}}` + "\n\n" +
			`data: {"type":"response.completed","response":{"id":"resp_1","model":"m","status":"completed","output":[],"usage":{"input_tokens":1,"output_tokens":2}}}` + "\n\n",
			`{"id":"resp_1","model":"m","status":"completed","output":[{"id":"msg_1","type":"message","content":[{"type":"output_text","text":"hi"}]}],"usage":{"input_tokens":1,"output_tokens":2}}`, 200},
		"it breaks off":       {"/v1/messages", messages(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"h"}}`), "The upstream stream ended early.", 502},
		"it fails":            {"/v1/messages", messages(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), "Overloaded", 529},
		"it ends in a [DONE]": {"/v1/responses", strings.Split(nativeEvents, "event: response.completed")[0] + "data: [DONE]\n\n", "The upstream stream ended early.", 502},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, map[string][]upstream{"raw": {func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, c.stream)
			}}})
			resp, body := s.postTo(c.path, strings.NewReader(`{"model":"raw/m","max_tokens":9,"input":"hi","messages":[]}`))
			got := body
			if c.status != http.StatusOK {
				got = gjson.Get(body, "error.message").Str
			}
			if resp.StatusCode != c.status || got != c.want || resp.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%d %s, want %s", resp.StatusCode, body, c.want)
			}
			records := s.kept.all()
			if r := records[len(records)-1]; r.Stream || c.status == http.StatusOK && (r.response != c.want || r.Usage.Output.N != 2 || r.TimeToFirstToken.Valid) {
				t.Errorf("the record is %+v", r)
			}
		})
	}
}
