package chat

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins/plugintest"
)

// Streams in which a provider splits a character, leaves ids empty, goes on at another index, or
// has no events.
func TestOddStreams(t *testing.T) {
	chunk := func(delta, finish string) string {
		return `{"id":"c","model":"m","choices":[{"index":0,"delta":{` + delta + `},"finish_reason":` + finish + `}]}`
	}
	call := func(piece string) string { return chunk(`"tool_calls":[`+piece+`]`, "null") }
	events := func(chunks ...string) string {
		return "data: " + strings.Join(append(chunks, chunk("", `"stop"`), "[DONE]"), "\n\ndata: ") + "\n\n"
	}
	first, second := `{"id":"","function":{"name":"f","arguments":"{\"a\":1}"}}`, `{"id":"","function":{"name":"f","arguments":"{\"a\":2}"}}`
	indexed := func(call string) string { return strings.Replace(call, `{"id"`, `{"index":0,"id"`, 1) }
	text, arguments := "output.#.content.0.text", "output.#.arguments"
	for name, c := range map[string]struct {
		body, path, want string
	}{
		"half a character":                {events(chunk(`"content":"a \ud83d"`, "null"), chunk(`"content":"\ude00 b"`, "null")), text, `["a 😀 b"]`},
		"half a character alone":          {events(chunk(`"content":"a \ud83d"`, "null")), text, `["a ` + "\uFFFD" + `"]`},
		"half a character of thoughts":    {events(chunk(`"reasoning_content":"a \ud83d"`, "null"), chunk(`"reasoning_content":"\ude00 b"`, "null")), text, `["a 😀 b"]`},
		"half a character of arguments":   {events(call(`{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\":\"\ud83d"}}`), call(`{"index":0,"function":{"arguments":"\ude00\"}"}}`)), arguments, `["{\"a\":\"😀\"}"]`},
		"another index":                   {events(call(`{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\":"}}`), call(`{"index":1,"function":{"arguments":"1}"}}`)), arguments, `["{\"a\":1}"]`},
		"empty ids":                       {events(call(first), call(second)), arguments, `["{\"a\":1}","{\"a\":2}"]`},
		"empty ids at one index":          {events(call(indexed(first)), call(indexed(second))), arguments, `["{\"a\":1}","{\"a\":2}"]`},
		"empty ids in one chunk":          {events(call(first + "," + second)), arguments, `["{\"a\":1}","{\"a\":2}"]`},
		"an end that repeats the name":    {events(call(indexed(first)), call(`{"index":0,"id":"","function":{"name":"f","arguments":""}}`)), arguments, `["{\"a\":1}"]`},
		"another id in each piece":        {events(call(`{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\":"}}`), call(`{"index":0,"id":"y","function":{"arguments":"1}"}}`)), arguments, `["{\"a\":1}"]`},
		"a call that begins twice":        {events(call(`{"index":0,"id":"x","function":{"name":"f","arguments":""}}`), call(`{"index":0,"id":"y","function":{"name":"f","arguments":""}}`), call(`{"index":0,"function":{"arguments":"{\"a\":1}"}}`)), arguments, `["{\"a\":1}"]`},
		"calls at one index":              {events(call(`{"index":0,"id":"x","function":{"name":"f","arguments":"{}"}}`), call(`{"index":0,"id":"y","function":{"name":"f","arguments":"{}"}}`)), arguments, `["{}","{}"]`},
		"arguments of nothing":            {events(call(`{"index":0,"id":"x","function":{"name":"f","arguments":"null"}}`), call(`{"index":1,"id":"y","function":{"name":"f","arguments":" "}}`)), arguments, `["{}","{}"]`},
		"a function that is called":       {events(chunk(`"function_call":{"name":"f","arguments":"{\"a\":"}`, "null"), chunk(`"function_call":{"arguments":"1}"}`, `"function_call"`)), arguments, `["{\"a\":1}"]`},
		"usage in a choice":               {"data: " + `{"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"All"},"finish_reason":"stop","usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11,"cached_tokens":4}}]}` + "\n\ndata: [DONE]\n\n", "[usage.input_tokens,usage.input_tokens_details.cached_tokens]", "[9,4]"},
		"lines":                           {chunk(`"content":"Half "`, "null") + "\n" + chunk(`"content":"of it."`, `"stop"`) + "\n", text, `["Half of it."]`},
		"one line":                        {chunk(`"content":"All of it."`, `"stop"`) + "\n", text, `["All of it."]`},
		"comments in the place of events": {events(": keepalive", chunk(`"content":"All"`, "null"), ": keepalive"), text, `["All"]`},
	} {
		r := plugintest.Answer(t, For("compatible"), `{"model":"m","input":"hi","stream":true,"tools":[{"type":"function","name":"f","parameters":{"type":"object"}}]}`, c.body)
		if got := r.Get(c.path).Raw; got != c.want || r.Get("status").Str != "completed" {
			t.Errorf("%s: %s, want %s: %s", name, got, c.want, r)
		}
	}
}
