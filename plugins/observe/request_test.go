package observe

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/weirhq/weir/plugins"
)

func readRequest(d plugins.Dialect, body []byte, size func() int) plugins.RequestInfo {
	r := NewRequestReader(d)
	defer r.Free() // so that those that follow are read in used memory
	feed(r.Write, body, size)
	return *r.Request()
}

func TestRequestReader(t *testing.T) {
	for _, c := range []struct {
		name    string
		dialect plugins.Dialect
		body    string
		want    plugins.RequestInfo
	}{
		{"chat", plugins.Chat, `{"messages":[{"role":"user","content":"\"image_url\""}],"stream":true,"model":"gpt","stream_options":{"include_usage":true},"service_tier":"flex"}`,
			plugins.RequestInfo{Model: "gpt", Stream: true, IncludeUsage: true, ServiceTier: "flex"}},
		{"no stream", plugins.Chat, `{"model":"gpt","stream":false,"stream_options":null}`, plugins.RequestInfo{Model: "gpt"}},
		{"a model elsewhere", plugins.Chat, `{"messages":[{"model":"x","stream":true}],"tools":[{"type":"file"}]}`, plugins.RequestInfo{}},
		{"image_url", plugins.Chat, `{"messages":[{"content":[{"type":"text"},{"type":"image_url"}]}]}`, plugins.RequestInfo{Media: true}},
		{"text parts", plugins.Chat, `{"messages":[{"content":[{"type":"text","text":"x"}]}]}`, plugins.RequestInfo{}},
		{"input_image", plugins.Responses, `{"input":[{"role":"user","content":[{"type":"input_image"}]}]}`, plugins.RequestInfo{Media: true}},
		{"a tool's image", plugins.Responses, `{"input":[{"type":"function_call_output","output":[{"type":"input_image"}]}]}`, plugins.RequestInfo{Media: true}},
		{"document", plugins.Messages, `{"messages":[{"content":[{"type":"document","source":{}}]}]}`, plugins.RequestInfo{Media: true}},
		{"a tool's screenshot", plugins.Messages, `{"messages":[{"content":[{"type":"tool_result","content":[{"type":"image"}]}]}]}`, plugins.RequestInfo{Media: true}},
		{"inlineData", plugins.GenerateContent, `{"contents":[{"parts":[{"text":"x"},{"inlineData":{"data":"AA"}}]}],"serviceTier":"flex"}`, plugins.RequestInfo{Media: true, ServiceTier: "flex"}},
		{"converse", plugins.Converse, `{"messages":[{"content":[{"image":{"format":"png"}}]}],"serviceTier":{"type":"priority"}}`, plugins.RequestInfo{Media: true, ServiceTier: "priority"}},
		{"ollama streams by default", plugins.OllamaChat, `{"model":"llama","messages":[{"images":["AA"]}]}`, plugins.RequestInfo{Model: "llama", Stream: true, Media: true}},
		{"ollama told not to", plugins.OllamaGenerate, `{"model":"llama","images":[],"stream":false}`, plugins.RequestInfo{Model: "llama"}},
		{"no JSON", plugins.Chat, `model=gpt`, plugins.RequestInfo{}},
		{"two requests", plugins.Chat, `{"model":"gpt"}{"model":"other","stream":true}`, plugins.RequestInfo{Model: "gpt"}},
		{"cut", plugins.Chat, `{"model":"gpt","messages":[`, plugins.RequestInfo{Model: "gpt"}},
	} {
		for name, size := range chunkings {
			if got := readRequest(c.dialect, []byte(c.body), size); got != c.want {
				t.Errorf("%s, %s: %+v, want %+v", c.name, name, got, c.want)
			}
		}
	}
}

func FuzzRequestReader(f *testing.F) {
	f.Add([]byte(`{"model":"gpt\u0061","stream":true,"messages":[{"content":[{"type":"image_url"}]}]}`), uint16(1))
	f.Fuzz(func(t *testing.T, b []byte, seed uint16) {
		whole := readRequest(plugins.Chat, b, chunkings["whole"])
		if cut := readRequest(plugins.Chat, b, cuts(seed)); cut != whole {
			t.Fatalf("in pieces %+v, as a whole %+v", cut, whole)
		}
		if whole, cut := outlineOf(plugins.Chat, b, chunkings["whole"]), outlineOf(plugins.Chat, b, cuts(seed)); !reflect.DeepEqual(whole, cut) {
			t.Fatalf("in pieces %+v, as a whole %+v", cut, whole)
		}
		var members map[string]json.RawMessage
		if json.Unmarshal(b, &members) != nil {
			return
		}
		// Of members that occur twice, both count the last; "stream" alone can
		// change back.
		if want := string(members["stream"]) == "true"; whole.Stream != want && members["stream"] != nil && string(members["stream"]) != "null" {
			t.Fatalf("stream %t of %s", whole.Stream, members["stream"])
		}
	})
}
