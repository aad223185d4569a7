package echo

import (
	"cmp"
	"encoding/json"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// modelOf returns the model that a request names, or DefaultModel if it names none.
func modelOf(body gjson.Result) string { return cmp.Or(body.Get("model").String(), DefaultModel) }

// readRequest reads a request of the Responses API. It ignores the fields that cannot change the
// answer, valid or not: clients send all that OpenAI accepts.
func readRequest(body gjson.Result) (Request, *plugins.Error) {
	r := Request{Model: modelOf(body)}
	r.countText(body.Get("instructions"))
	input := body.Get("input")
	switch {
	case input.Type == gjson.String:
		r.setPrompt(input.Str, 0)
	case input.IsArray():
		calls := map[string]bool{}
		for item := range objects(input) {
			id := item.Get("call_id").String()
			switch item.Get("type").String() {
			case "function_call":
				calls[id] = true
			case "function_call_output":
				if !calls[id] && !body.Get("previous_response_id").Exists() {
					return r, plugins.Invalid("input", "No tool call found for function call output with call_id %s.", id)
				}
			}
			r.addItem(item)
		}
	default:
		return r, plugins.Invalid("input", "input must be a string or an array of items")
	}

	for t := range objects(body.Get("tools")) {
		if name := t.Get("name").String(); t.Get("type").String() == "function" && name != "" {
			r.Tools = append(r.Tools, Tool{Name: name, Parameters: json.RawMessage(t.Get("parameters").Raw)})
		}
	}
	r.SingleCall = body.Get("parallel_tool_calls").Type == gjson.False
	r.readFormat(body.Get("text.format"))
	r.Reasoning = asksForReasoning(body, "reasoning")
	if e := r.readToolChoice(body.Get("tool_choice")); e != nil {
		return r, e
	}
	return r, r.readMaxTokens(body.Get("max_output_tokens"))
}

func (r *Request) addItem(item gjson.Result) {
	content := item.Get("content")
	switch item.Get("type").String() {
	case "message", "": // the type of a message may be left out
		switch item.Get("role").String() {
		case "user":
			r.setPrompt(contentOf(content))
		case "assistant":
			r.addModelTurn(content)
		default:
			r.countText(content)
		}
	case "function_call":
		r.addModelTurn(item.Get("arguments"))
	case "function_call_output":
		text, _ := contentOf(item.Get("output"))
		r.ToolResults = append(r.ToolResults, text)
		r.InputBytes += len(text)
	}
}

// countText counts text that the answer does not repeat.
func (r *Request) countText(content gjson.Result) {
	text, _ := contentOf(content)
	r.InputBytes += len(text)
}

// setPrompt sets the user message that the answer repeats. The last one counts.
func (r *Request) setPrompt(text string, images int) {
	r.Prompt, r.Images, r.ToolResults = text, images, nil
	r.InputBytes += len(text)
}

// addModelTurn adds a message or a tool call of the model. It has already answered the tool results before it.
func (r *Request) addModelTurn(content gjson.Result) {
	r.countText(content)
	r.ToolResults = nil
}

// readToolChoice reads tool_choice: a mode, or an object that selects some of the tools. It ignores
// hosted tools, which echo does not have.
func (r *Request) readToolChoice(v gjson.Result) *plugins.Error {
	mode, names := v.String(), []string(nil)
	switch v.Get("type").String() {
	case "function":
		mode, names = "required", []string{v.Get("name").String()}
	case "allowed_tools":
		mode = v.Get("mode").String()
		for t := range objects(v.Get("tools")) {
			names = append(names, t.Get("name").String())
		}
	}
	if mode == "none" {
		r.Tools = nil
		return nil
	}
	for _, name := range names {
		if !slices.ContainsFunc(r.Tools, func(t Tool) bool { return t.Name == name }) {
			return plugins.Invalid("tool_choice", "tool_choice names the function %q, which tools does not offer", name)
		}
	}
	r.ToolRequired = mode == "required"
	if r.ToolRequired && len(r.Tools) == 0 {
		return plugins.Invalid("tool_choice", "tool_choice requires a function, but tools offers no function")
	}
	if names != nil {
		r.Tools = slices.DeleteFunc(r.Tools, func(t Tool) bool { return !slices.Contains(names, t.Name) })
	}
	return nil
}

func (r *Request) readMaxTokens(v gjson.Result) *plugins.Error {
	switch {
	case v.Type == gjson.Null:
		return nil
	case v.Type != gjson.Number || v.Num < 1:
		return plugins.Invalid("max_output_tokens", "'max_output_tokens' must be a number of tokens, at least 1")
	}
	r.MaxTokens = int(min(v.Num, math.MaxInt32))
	return nil
}

// readFormat reads the schema that the text must match. json_object allows any object.
func (r *Request) readFormat(format gjson.Result) {
	switch format.Get("type").String() {
	case "json_schema":
		r.Schema = json.RawMessage(cmp.Or(format.Get("schema").Raw, "{}"))
	case "json_object":
		r.Schema = json.RawMessage("{}")
	}
}

// asksForReasoning reports whether one of the fields turns reasoning on. It understands each vendor's
// form: reasoning_effort: "low", reasoning: {effort}, and thinking: {type: "enabled"}.
func asksForReasoning(body gjson.Result, fields ...string) bool {
	return slices.ContainsFunc(fields, func(field string) bool {
		v := body.Get(field)
		if v.IsObject() {
			return v.Get("effort").String() != "none" && v.Get("type").String() != "disabled" &&
				v.Get("enabled").Type != gjson.False
		}
		return v.Type == gjson.String && v.Str != "none"
	})
}

// contentOf returns the text in a message's content, and its number of images. The content is a string
// or a list of parts.
func contentOf(content gjson.Result) (text string, images int) {
	if content.Type == gjson.String {
		return content.Str, 0
	}
	var b strings.Builder
	for part := range objects(content) {
		if part.Get("type").String() == "input_image" {
			images++
		}
		b.WriteString(part.Get("text").String())
	}
	return b.String(), images
}

// objects yields the objects in an array. It skips all other elements.
func objects(array gjson.Result) iter.Seq[gjson.Result] {
	return func(yield func(gjson.Result) bool) {
		if !array.IsArray() {
			return
		}
		array.ForEach(func(_, v gjson.Result) bool { return !v.IsObject() || yield(v) })
	}
}
