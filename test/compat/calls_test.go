package compat

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// call is one call of an official client, as calls.js and calls.py read it.
type call struct {
	ID string `json:"id"`
	// Endpoint decides which method of which client is called.
	Endpoint string            `json:"endpoint"`
	BaseURL  string            `json:"base_url"`
	Headers  map[string]string `json:"headers"`
	// Request is the body; the clients of Gemini take Model and Stream apart.
	Request json.RawMessage `json:"request"`
	Model   string          `json:"model"`
	Stream  bool            `json:"stream"`
	// Beta asks for the beta client, Helper for the client's own accumulator
	// of streams in place of the bare events.
	Beta   bool `json:"beta"`
	Helper bool `json:"helper"`

	recording *Recording
}

// seen is what a client made of an answer.
type seen struct {
	ID        string          `json:"id"`
	Text      string          `json:"text"`
	ToolCalls []toolCall      `json:"tool_calls"`
	Usage     json.RawMessage `json:"usage"`
	Error     *clientError    `json:"error"`
}

type toolCall struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"` // an object, or a string of JSON
}

type clientError struct {
	Type    string `json:"type"`
	Status  int    `json:"status"` // 0 when the client got no answer
	Message string `json:"message"`
}

// dialect says, of an endpoint that an official client calls, where an answer
// has what the client hands out, as gjson paths.
type dialect struct {
	path            string // what the client appends to its base URL
	helper          bool   // the client has an accumulator of streams
	text            string
	tools           string
	name, arguments string // in each of tools
	usage           string
	input, output   []string // in usage, each count the sum of its places
}

var dialects = map[string]dialect{
	"chat.completions": {
		path: "/chat/completions", helper: true,
		text:  "choices.0.message.content",
		tools: "choices.0.message.tool_calls.#.function", name: "name", arguments: "arguments",
		usage: "usage", input: []string{"prompt_tokens"}, output: []string{"completion_tokens"},
	},
	"responses": {
		path: "/responses", helper: true,
		text:  `output.#(type=="message")#.content|@flatten|#(type=="output_text")#.text`,
		tools: `output.#(type=="function_call")#`, name: "name", arguments: "arguments",
		usage: "usage", input: []string{"input_tokens"}, output: []string{"output_tokens"},
	},
	"messages": {
		path: "/v1/messages", helper: true,
		text:  `content.#(type=="text")#.text`,
		tools: `content.#(type=="tool_use")#`, name: "name", arguments: "input",
		usage: "usage", output: []string{"output_tokens"},
		input: []string{"input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"},
	},
	"generateContent": {
		path:  "/v1beta/models/",
		text:  "candidates.0.content.parts.#(thought==~false)#.text",
		tools: "candidates.0.content.parts.#.functionCall", name: "name", arguments: "args",
		usage: "usageMetadata",
		input: []string{"promptTokenCount", "toolUsePromptTokenCount"}, output: []string{"candidatesTokenCount", "thoughtsTokenCount"},
	},
}

// calls are those by which the clients of a language can make the recorded
// requests: each stream both bare and with the client's accumulator.
func calls(language string, all []*Recording) []call {
	var calls []call
	for _, r := range all {
		d := dialects[r.Endpoint]
		base, rest, ok := strings.Cut(r.URL.Path, d.path)
		if !ok || d.path == "" {
			continue // no official client sends there
		}
		model, _, _ := strings.Cut(rest, ":")
		c := call{
			ID: language + " " + r.Name, Endpoint: r.Endpoint, BaseURL: r.Prefix() + base,
			Request: r.Request, Model: model, Stream: r.Stream, Beta: r.URL.Query().Get("beta") == "true",
			recording: r,
		}
		calls = append(calls, c)
		if r.Stream && d.helper {
			c.Helper = true
			c.ID += " helper"
			calls = append(calls, c)
		}
	}
	return calls
}

// checkUsage holds the usage that a client handed out against the recording.
func (d dialect) checkUsage(t *testing.T, usage gjson.Result, want *Usage) {
	t.Helper()
	if want == nil || usage.Type == gjson.Null {
		return // some providers report it where the client doesn't look
	}
	if got := sum(usage, d.input); got != want.Input {
		t.Errorf("the client saw %d input tokens, want %d: %s", got, want.Input, usage.Raw)
	}
	if got := sum(usage, d.output); got != want.Output {
		t.Errorf("the client saw %d output tokens, want %d: %s", got, want.Output, usage.Raw)
	}
}

func sum(usage gjson.Result, places []string) (n int64) {
	for _, place := range places {
		n += usage.Get(place).Int()
	}
	return n
}

// checkStored holds a stored answer against what the client made of it.
func (d dialect) checkStored(t *testing.T, stored gjson.Result, s seen) {
	t.Helper()
	if got := concatenated(stored.Get(d.text)); got != s.Text {
		t.Errorf("the stored text is %q, the client saw %q", got, s.Text)
	}
	tools := stored.Get(d.tools).Array()
	if len(tools) != len(s.ToolCalls) {
		t.Fatalf("%d tool calls are stored, the client saw %d: %s", len(tools), len(s.ToolCalls), stored.Raw)
	}
	for i, tool := range tools {
		if got := tool.Get(d.name).Str; got != s.ToolCalls[i].Name {
			t.Errorf("tool call %d is stored as %q, the client saw %q", i, got, s.ToolCalls[i].Name)
		}
		checkSame(t, "the stored arguments", arguments(tool.Get(d.arguments)), arguments(gjson.ParseBytes(s.ToolCalls[i].Arguments)))
	}
}

// concatenated is a text or the texts of several parts.
func concatenated(v gjson.Result) string {
	if !v.IsArray() {
		return v.Str
	}
	var b strings.Builder
	for _, part := range v.Array() {
		b.WriteString(part.Str)
	}
	return b.String()
}

// arguments are the arguments of a tool call as JSON. A call without any has an
// empty object, or nothing.
func arguments(v gjson.Result) string {
	text := v.Raw
	if v.Type == gjson.String {
		text = v.Str
	}
	if text == "" {
		return "{}"
	}
	return text
}
