package openai

import (
	"encoding/json"
	"slices"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// item says which parts of an item a stream has reported so far.
type item struct {
	reported  bool // some of its content
	called    bool // it is a call that has begun
	annotated int  // how many annotations
}

// item is the item at an index.
func (d *decoder) item(key int) *item {
	i := d.items[key]
	if i == nil {
		if d.items == nil {
			d.items = make(map[int]*item)
		}
		i = new(item)
		d.items[key] = i
	}
	return i
}

// addItem reads the start of an item. Only the start of a call has content.
func (d *decoder) addItem(key int, v gjson.Result) {
	if t := v.Get("type").Str; (t == "function_call" || t == "custom_tool_call") && !d.searchesX(v) {
		d.call(key, v)
	}
}

// searchesX reports whether an item is a search of posts that xAI has run: a call of a tool
// that the client does not have (https://docs.x.ai/docs/guides/tools/overview).
func (d *decoder) searchesX(v gjson.Result) bool {
	p := d.a.Request()
	return v.Get("type").Str == "custom_tool_call" && p.Tool(v.Get("name").Str) == nil &&
		slices.ContainsFunc(p.Tools, func(t translate.Tool) bool { return t.Type == "x_search" })
}

// endItem reads an item that is whole: all of it if no delta came, else what
// deltas leave out.
func (d *decoder) endItem(key int, v gjson.Result) {
	i := d.item(key)
	switch v.Get("type").Str {
	case "message":
		d.message(key, i, v)
	case "reasoning":
		if !i.reported {
			for n, part := range v.Get("summary").Array() {
				d.a.Summary(key, n, part.Get("text").Str)
			}
			for _, part := range v.Get("content").Array() {
				d.a.ReasoningText(key, part.Get("text").Str)
			}
		}
		d.seal(key, v)
	case "function_call":
		if !i.reported {
			d.call(key, v)
			d.a.Args(key, v.Get("arguments").Str)
		}
	case "custom_tool_call":
		if d.searchesX(v) {
			input := v.Get("input").Str
			if !plugins.ValidJSON([]byte(input)) {
				input = ""
			}
			d.a.WebSearch(translate.HostedCall{Queries: []string{gjson.Get(input, "query").Str}})
		} else if !i.reported {
			d.call(key, v)
			d.a.CustomInput(key, v.Get("input").Str)
		}
	default:
		d.a.Item(json.RawMessage(v.Raw))
	}
	i.reported = true
	if v.Get("status").Str != "incomplete" { // or else the end of the response says so
		d.a.Close(key)
	}
}

func (d *decoder) message(key int, i *item, v gjson.Result) {
	annotations := 0
	for _, part := range v.Get("content").Array() {
		if !i.reported {
			d.logprobs(key, part)
			d.a.Text(key, part.Get("text").Str)
			d.a.Refusal(key, part.Get("refusal").Str)
		}
		for _, annotation := range part.Get("annotations").Array() {
			if annotations++; annotations > i.annotated {
				d.annotate(key, annotation)
			}
		}
	}
}

// logprobs adds the logprobs of the text that comes next.
func (d *decoder) logprobs(key int, v gjson.Result) {
	if list := v.Get("logprobs").Raw; list != "" && list != "[]" {
		d.a.Logprobs(key, json.RawMessage(list))
	}
}

// call begins a call.
func (d *decoder) call(key int, v gjson.Result) {
	d.item(key).called = true
	d.a.Call(key, v.Get("call_id").Str, translate.FlatName(v))
}

// annotate adds an annotation, with what clients rely on and xAI leaves out.
func (d *decoder) annotate(key int, v gjson.Result) {
	raw := []byte(v.Raw)
	if v.Get("type").Str == "url_citation" {
		for _, field := range []struct {
			name   string
			absent any
		}{{"title", v.Get("url").Str}, {"start_index", 0}, {"end_index", 0}} {
			if v.Get(field.name).Type == gjson.Null {
				raw, _ = sjson.SetBytes(raw, field.name, field.absent) // an object, and a plain path
			}
		}
	}
	d.a.Annotation(key, raw)
}
