package chat

import (
	"strings"

	"github.com/tidwall/gjson"
)

// The Assembler's keys. Calls have their index, from 0.
const (
	textKey      = -1
	reasoningKey = -2
)

// message reads a message, or what a chunk adds to it.
func (d *decoder) message(v gjson.Result) {
	var content, reasoning, details, refusal, annotations, images, calls gjson.Result
	v.ForEach(func(key, v gjson.Result) bool {
		said := v.Type != gjson.Null && len(v.Raw) > len("[]") // or an empty string
		switch key.Str {
		case "role":
			said = false
		case "content":
			content, d.plain, said = v, v, false
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
		case "tool_calls":
			calls = v
		}
		d.more = d.more || said
		return true
	})
	if !d.details(details) && reasoning.Str != "" {
		d.thinker.text = append(d.thinker.text, reasoning.Str...)
		d.a.ReasoningText(reasoningKey, reasoning.Str)
	}
	d.content(content)
	if refusal.Str != "" {
		d.seal()
		d.a.Refusal(textKey, refusal.Str)
	}
	annotations.ForEach(func(_, v gjson.Result) bool {
		d.annotate(v)
		return true
	})
	images.ForEach(func(_, v gjson.Result) bool {
		d.image(v.Get("image_url.url").Str)
		return true
	})
	i := 0
	calls.ForEach(func(_, v gjson.Result) bool {
		if v.IsObject() { // Together's is null where there is no call
			d.call(i, v)
		}
		i++
		return true
	})
}

// content reads a text, or the parts that Mistral makes of it.
func (d *decoder) content(v gjson.Result) {
	if v.Type == gjson.String {
		d.text(v.Str)
		return
	}
	if !v.IsArray() {
		return
	}
	v.ForEach(func(_, part gjson.Result) bool {
		switch part.Get("type").Str {
		case "text":
			d.text(part.Get("text").Str)
		case "thinking":
			thinking := part.Get("thinking")
			d.a.ReasoningText(reasoningKey, thinking.Str)
			thinking.ForEach(func(_, v gjson.Result) bool {
				d.a.ReasoningText(reasoningKey, v.Get("text").Str)
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
	said := false
	list.ForEach(func(_, v gjson.Result) bool {
		if !v.IsObject() {
			return true
		}
		d.thinker.add(v)
		if s := v.Get("summary").Str; s != "" {
			d.a.Summary(reasoningKey, int(v.Get("index").Int()), s)
			said = true
		}
		if s := v.Get("text").Str; s != "" {
			d.a.ReasoningText(reasoningKey, s)
			said = true
		}
		return true
	})
	return said
}

// seal keeps with the reasoning what the vendor may want back.
func (d *decoder) seal() {
	if d.thinker.empty() {
		return
	}
	d.a.Seal(reasoningKey, d.thinker.take(d.vendor))
}

// call reads a tool call, or what a chunk adds to it.
func (d *decoder) call(i int, v gjson.Result) {
	f := v.Get("function")
	if !f.Exists() {
		f = v.Get("custom")
	}
	id, name, key := v.Get("id").Str, f.Get("name").Str, i
	if !d.whole {
		key = d.callKey(v.Get("index"), id, name)
	}
	if id != "" || name != "" { // not amid a call, which reasoning would end
		d.seal()
	}
	if d.a.Request().IsAnswerTool(name) {
		d.answer = &key
	}
	if d.answer != nil && *d.answer == key {
		d.text(f.Get("arguments").Str)
		return
	}
	d.a.Call(key, id, name)
	if input := f.Get("input"); input.Type == gjson.String {
		d.a.CustomInput(key, input.Str)
		return
	}
	switch arguments := f.Get("arguments"); arguments.Type {
	case gjson.String:
		d.a.Args(key, arguments.Str)
	case gjson.JSON:
		d.a.Args(key, arguments.Raw)
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
		for i, known := range d.calls {
			if known == id {
				return i
			}
		}
	}
	if id != "" || name != "" || len(d.calls) == 0 {
		d.calls = append(d.calls, id)
	}
	return len(d.calls) - 1
}

// image reads a generated image from a data: URL.
func (d *decoder) image(url string) {
	head, data, _ := strings.Cut(strings.TrimPrefix(url, "data:"), ",")
	if mediaType, ok := strings.CutSuffix(head, ";base64"); ok {
		d.seal()
		d.a.Image(mediaType, data)
	}
}
