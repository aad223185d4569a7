package chat

import (
	"encoding/json"
	"iter"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// Message is one of a conversation.
type Message struct {
	Role    translate.Role `json:"role"`
	Content any            `json:"content"` // a string, parts, or nil beside calls
	thoughts
	Calls[ToolCall]
	ToolCallID string `json:"tool_call_id,omitempty"`
}

// FinishReason is that of an answer that is the message.
func (m *Message) FinishReason() string {
	if len(m.ToolCalls) > 0 {
		return "tool_calls"
	}
	return "stop"
}

// Calls are those of tools in a message: each a ToolCall, or JSON.
type Calls[Call any] struct {
	ToolCalls []Call `json:"tool_calls,omitempty"`
}

// ToolCall is a call of a function or of a custom tool. Calls that spans report may have no ID.
type ToolCall struct {
	ID       string        `json:"id,omitempty"`
	Type     string        `json:"type"`
	Function *FunctionCall `json:"function,omitempty"`
	Custom   *CustomCall   `json:"custom,omitempty"`

	ExtraContent json.RawMessage `json:"extra_content,omitempty"` // Google's
}

// CallFunction returns the call of a function, whose arguments are JSON.
func CallFunction(id, name, arguments string) ToolCall {
	return ToolCall{ID: id, Type: "function", Function: &FunctionCall{name, arguments}}
}

// FunctionCall has the arguments as JSON in a string.
type FunctionCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// CustomCall has free-form input.
type CustomCall struct {
	Name  string `json:"name"`
	Input string `json:"input"`
}

// CallPiece is what a call in an answer says, or what a delta adds to a call.
type CallPiece struct {
	ID, Name string
	// Input are arguments as JSON, or the free-form input of a Custom call.
	Input  string
	Custom bool
}

// CallList is the list of the calls in a message.
func CallList(message gjson.Result) gjson.Result { return message.Get("tool_calls") }

// CallsOf ranges over the calls in a message or a delta by their position.
func CallsOf(message gjson.Result) iter.Seq2[int, gjson.Result] { return callsIn(CallList(message)) }

// callsIn ranges over a list of calls. In a delta of Cohere's, one call stands in the place of
// the list. Together's is null where there is no call.
func callsIn(list gjson.Result) iter.Seq2[int, gjson.Result] {
	return func(yield func(int, gjson.Result) bool) {
		if list.IsObject() {
			yield(0, list)
			return
		}
		i := -1
		list.ForEach(func(_, v gjson.Result) bool {
			i++
			return !v.IsObject() || yield(i, v)
		})
	}
}

// ReadCall reads a call, or a piece of one. Some vendors have the arguments as an object.
func ReadCall(v gjson.Result) CallPiece {
	f := v.Get("function")
	if !f.Exists() {
		f = v.Get("custom")
	}
	c := CallPiece{ID: v.Get("id").Str, Name: f.Get("name").Str}
	switch input, arguments := f.Get("input"), f.Get("arguments"); {
	case input.Type == gjson.String:
		c.Input, c.Custom = plugins.Text(input), true
	case arguments.Type == gjson.JSON:
		c.Input = arguments.Raw
	default:
		c.Input = plugins.Text(arguments)
	}
	return c
}

// The Assembler's keys. Calls have their index, from 0.
const (
	textKey      = -1
	reasoningKey = -2
)

// message reads a message, or what a chunk adds to it.
func (d *decoder) message(v gjson.Result) {
	var content, reasoning, details, refusal, annotations, images, audio, calls gjson.Result
	v.ForEach(func(key, v gjson.Result) bool {
		present := v.Type != gjson.Null && len(v.Raw) > len("[]") // or an empty string
		switch key.Str {
		case "role":
			present = false
		case "content":
			content, d.plain, present = v, v, false
		case "reasoning_content", "reasoning": // some send both, with the same text
			if v.Type == gjson.String && v.Str != "" && reasoning.Str == "" {
				reasoning = v
				d.thinker.field = key.Str
			}
		case "reasoning_details":
			details = v
		case "refusal":
			refusal = v
		case "annotations":
			annotations = v
		case "images":
			images = v
		case "audio":
			audio = v
		case "tool_calls":
			calls = v
		case "function_call": // of servers that do not know tools
			if v.IsObject() {
				calls = gjson.Parse(`{"function":` + v.Raw + `}`)
			}
		}
		d.more = d.more || present
		return true
	})
	if !d.details(details) && reasoning.Str != "" {
		thought := plugins.Text(reasoning)
		d.thinker.text = append(d.thinker.text, thought...)
		d.a.ReasoningText(reasoningKey, thought)
	}
	d.content(content)
	if refusal.Str != "" {
		d.seal()
		d.a.Refusal(textKey, plugins.Text(refusal))
	}
	annotations.ForEach(func(_, v gjson.Result) bool {
		d.annotate(v)
		return true
	})
	images.ForEach(func(_, v gjson.Result) bool {
		d.image(v.Get("image_url.url").Str)
		return true
	})
	d.audio(audio)
	for i, call := range callsIn(calls) {
		d.call(i, call)
	}
}

// content reads a text, or the parts that Mistral makes of it.
func (d *decoder) content(v gjson.Result) {
	if v.Type == gjson.String {
		d.text(plugins.Text(v))
		return
	}
	if !v.IsArray() {
		return
	}
	v.ForEach(func(_, part gjson.Result) bool {
		switch part.Get("type").Str {
		case "text":
			d.text(plugins.Text(part.Get("text")))
		case "thinking":
			thinking := part.Get("thinking")
			d.a.ReasoningText(reasoningKey, plugins.Text(thinking))
			thinking.ForEach(func(_, v gjson.Result) bool {
				d.a.ReasoningText(reasoningKey, plugins.Text(v.Get("text")))
				return true
			})
		}
		return true
	})
}

func (d *decoder) text(s string) {
	if s == "" {
		return
	}
	d.seal()
	d.a.Text(textKey, s)
}

// details reads OpenRouter's, and reports whether they have text.
func (d *decoder) details(list gjson.Result) bool {
	hasText := false
	list.ForEach(func(_, v gjson.Result) bool {
		if !v.IsObject() {
			return true
		}
		d.thinker.add(v)
		if s := plugins.Text(v.Get("summary")); s != "" {
			d.a.Summary(reasoningKey, int(v.Get("index").Int()), s)
			hasText = true
		}
		if s := plugins.Text(v.Get("text")); s != "" {
			d.a.ReasoningText(reasoningKey, s)
			hasText = true
		}
		return true
	})
	return hasText
}

// seal keeps with the reasoning what the vendor may want back.
func (d *decoder) seal() {
	if d.thinker.empty() {
		return
	}
	d.a.Seal(reasoningKey, d.thinker.take(d.vendor))
}

// call reads a tool call, or what a chunk adds to it.
func (d *decoder) call(key int, v gjson.Result) {
	c := ReadCall(v)
	if !d.complete {
		key = d.callKey(v.Get("index"), c.ID, c.Name)
	}
	if c.ID != "" || c.Name != "" { // not amid a call, which reasoning would end
		if extra := v.Get("extra_content"); extra.IsObject() {
			d.thinker.extra = json.RawMessage(extra.Raw)
		}
		d.seal()
	}
	if d.a.Request().IsAnswerTool(c.Name) {
		d.answer = &key
	}
	if d.answer != nil && *d.answer == key {
		d.text(c.Input)
		return
	}
	if c.ID == "" && c.Name != "" && c.Input != "" && d.a.HasCompleteArguments(key) { // another call, at the same index
		d.a.Close(key)
	}
	d.a.Call(key, c.ID, c.Name)
	if c.Custom {
		d.a.CustomInput(key, c.Input)
	} else {
		d.a.Args(key, c.Input)
	}
}

// callKey distinguishes calls by their index, else by their id. If a piece has
// neither, one with a name begins a call, and one without a name continues the last
// call.
func (d *decoder) callKey(index gjson.Result, id, name string) int {
	if index.Type == gjson.Number {
		return max(int(index.Int()), 0)
	}
	if id != "" {
		for i, call := range d.calls {
			if call == id {
				return i
			}
		}
	}
	if id != "" || name != "" || len(d.calls) == 0 {
		d.calls = append(d.calls, id)
	}
	return len(d.calls) - 1
}

// image reads a generated image from a data: URL. At another URL, it is a link.
func (d *decoder) image(url string) {
	head, data, _ := strings.Cut(strings.TrimPrefix(url, "data:"), ",")
	mediaType, isData := strings.CutSuffix(head, ";base64")
	switch {
	case url == "":
	case isData:
		d.seal()
		d.a.Image(mediaType, data)
	default:
		d.seal()
		d.a.Note(url)
	}
}

// audio reads what a model says: its words are a text, and flush notes that the sound is missing.
func (d *decoder) audio(v gjson.Result) {
	d.text(plugins.Text(v.Get("transcript")))
	d.hasAudio = d.hasAudio || v.Get("data").Str != ""
}
