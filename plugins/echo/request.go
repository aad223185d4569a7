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

// newRequest reads what every dialect calls the same.
func newRequest(body gjson.Result) Request {
	model := body.Get("model").String()
	if model == "" {
		model = DefaultModel
	}
	return Request{Model: model}
}

// count takes text that is read but not repeated.
func (r *Request) count(content gjson.Result) {
	text, _ := contentOf(content)
	r.InputBytes += len(text)
}

// user takes a user message as the one to repeat.
func (r *Request) user(text string, images int) {
	r.Prompt, r.Images, r.ToolResults = text, images, nil
	r.InputBytes += len(text)
}

// assistant takes a message of the provider's own, after which earlier tool
// results are settled.
func (r *Request) assistant(content gjson.Result) {
	r.count(content)
	r.ToolResults = nil
}

func (r *Request) toolResult(content gjson.Result) {
	text, _ := contentOf(content)
	r.ToolResults = append(r.ToolResults, text)
	r.InputBytes += len(text)
}

// choice is a dialect's tool_choice: the mode "none", "auto" or "required",
// and the tools that it narrows the request's to, if any.
type choice struct {
	mode  string
	names []string
}

func (r *Request) choose(c choice) *plugins.Error {
	if c.mode == "none" {
		r.Tools = nil
		return nil
	}
	for _, name := range c.names {
		if !slices.ContainsFunc(r.Tools, func(t Tool) bool { return t.Name == name }) {
			return plugins.Invalid("tool_choice", "tool_choice names the function %q, which tools does not offer", name)
		}
	}
	r.ToolRequired = c.mode == "required"
	if r.ToolRequired && len(r.Tools) == 0 {
		return plugins.Invalid("tool_choice", "tool_choice requires a function, but tools offers no function")
	}
	if c.names != nil {
		r.Tools = slices.DeleteFunc(r.Tools, func(t Tool) bool { return !slices.Contains(c.names, t.Name) })
	}
	return nil
}

// limit reads the first of the named fields that is set into MaxTokens.
func (r *Request) limit(body gjson.Result, names ...string) *plugins.Error {
	for _, name := range names {
		n := body.Get(name)
		if n.Type == gjson.Null {
			continue
		}
		if n.Type != gjson.Number || n.Num < 1 {
			return plugins.Invalid(name, "%s must be a number of tokens, at least 1", name)
		}
		r.MaxTokens = int(min(n.Num, math.MaxInt32))
		return nil
	}
	return nil
}

// offer takes a function whose schema is in the named field.
func (r *Request) offer(v gjson.Result, schema string) {
	if name := v.Get("name").String(); name != "" {
		r.Tools = append(r.Tools, Tool{Name: name, Parameters: json.RawMessage(v.Get(schema).Raw)})
	}
}

// hold takes the schema of the text, which is in the named field of the format.
func (r *Request) hold(format gjson.Result, schema string) {
	switch format.Get("type").String() {
	case "json_schema":
		r.Schema = json.RawMessage(cmp.Or(format.Get(schema).Raw, "{}"))
	case "json_object":
		r.Schema = json.RawMessage("{}")
	}
}

// asksForReasoning reports whether one of the fields by which vendors turn reasoning on
// is set to anything but off: reasoning_effort: "low", reasoning: {effort},
// thinking: {type: "enabled"}.
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

// contentOf is the text in a message's content, which is a string or a list of
// parts, and the number of images among the parts.
func contentOf(content gjson.Result) (text string, images int) {
	if content.Type == gjson.String {
		return content.Str, 0
	}
	var b strings.Builder
	for part := range objects(content) {
		switch part.Get("type").String() {
		case "image", "image_url", "input_image":
			images++
		default:
			b.WriteString(part.Get("text").String())
		}
	}
	return b.String(), images
}

// objects are the objects in an array; all else is skipped.
func objects(array gjson.Result) iter.Seq[gjson.Result] {
	return func(yield func(gjson.Result) bool) {
		if !array.IsArray() {
			return
		}
		array.ForEach(func(_, v gjson.Result) bool { return !v.IsObject() || yield(v) })
	}
}
