package observe

import (
	"testing"

	"github.com/weirhq/weir/plugins"
)

// What fits a template is not read, so it must say what the template said.
func TestEventsThatNeedNotBeRead(t *testing.T) {
	const (
		chatEvent     = `{"id":"c1","created":7,"model":"m","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}],"usage":null,"obfuscation":"x"}`
		responseEvent = `{"type":"response.output_text.delta","sequence_number":9,"item_id":"msg","delta":"a","logprobs":[]}`
		messagesEvent = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}`
	)
	for name, c := range map[string]struct {
		dialect     plugins.Dialect
		first, then string
		want        bool
	}{
		"the same":          {plugins.Chat, chatEvent, chatEvent, true},
		"another text":      {plugins.Chat, chatEvent, `{"id":"c1","created":7,"model":"m","choices":[{"index":0,"delta":{"content":"\\\"b\\"},"finish_reason":null}],"usage":null,"obfuscation":""}`, true},
		"another number":    {plugins.Responses, responseEvent, `{"type":"response.output_text.delta","sequence_number":10,"item_id":"msg","delta":"","logprobs":[]}`, true},
		"a fraction":        {plugins.Responses, responseEvent, `{"type":"response.output_text.delta","sequence_number":1.5,"item_id":"msg","delta":"","logprobs":[]}`, false},
		"another type":      {plugins.Responses, responseEvent, `{"type":"response.completed","sequence_number":9,"item_id":"msg","delta":"a","logprobs":[]}`, false},
		"a cut":             {plugins.Responses, responseEvent, `{"type":"response.output_text.delta","sequence_number":9,"item_id":"msg","delta":"a\"}`, false},
		"more":              {plugins.Messages, messagesEvent, messagesEvent + messagesEvent, false},
		"another model":     {plugins.Chat, chatEvent, `{"id":"c1","created":7,"model":"n","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}],"usage":null,"obfuscation":"x"}`, false},
		"a finish":          {plugins.Chat, chatEvent, `{"id":"c1","created":7,"model":"m","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}],"usage":null,"obfuscation":"x"}`, false},
		"a report of usage": {plugins.Chat, `{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":1}}`, `{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":1}}`, false},
		"no content yet":    {plugins.Chat, `{"choices":[{"delta":{"content":""}}]}`, `{"choices":[{"delta":{"content":""}}]}`, false},
		"unfinished":        {plugins.Chat, `{"choices":[{"delta":{"content":"a"}}]`, `{"choices":[{"delta":{"content":"a"}}]`, false},
	} {
		t.Run(name, func(t *testing.T) {
			x := New(c.dialect, "", typed(sseType)).(*observer)
			x.Write([]byte("data: " + c.first + "\n\n"))
			if got := x.scan.template.Fits([]byte(c.then)); got != c.want {
				t.Errorf("%v", got)
			}
		})
	}
}

// Only one piece of data makes a template, and only an event's first is compared.
func TestEventsInPartsAreRead(t *testing.T) {
	event := `{"choices":[{"delta":{"content":"a"}}]}`
	stream := "data: " + event + "\n\ndata: " + event + "\ndata: {\"usage\":{\"prompt_tokens\":3}}\n\n" +
		"data: {\"choices\":[],\ndata: \"usage\":{\"completion_tokens\":4}}\n\n"
	seen := observe(plugins.Chat, "", sseType, []byte(stream), chunkings["whole"])
	if seen.Usage.Input != plugins.Known(3) || seen.Usage.Output != plugins.Known(4) {
		t.Errorf("%+v", seen.Usage)
	}
}
