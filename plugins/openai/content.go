package openai

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// item says which parts of an item a stream has reported so far.
type item struct {
	added     bool // its beginning
	ended     bool // all of it
	isCall    bool // it is a call that has begun
	comments  bool // its text is no part of the answer
	annotated int  // how many annotations
	sent      [kinds]int
}

// kind is a kind of an item's texts.
type kind int

const (
	outputText kind = iota
	refusal
	summary
	reasoningText
	arguments
	kinds
)

// add counts a piece of a text. Half of a surrogate pair counts as half of four bytes.
func (i *item) add(k kind, s string) {
	n := len(s)
	text, waiting := plugins.JoinSurrogates(s)
	if waiting != "" {
		n--
	}
	if strings.HasPrefix(text, "\uFFFD") && !strings.HasPrefix(s, "\uFFFD") {
		n--
	}
	i.sent[k] += n
}

// wholeItem has the whole texts of an item, in their order.
type wholeItem struct {
	*item
	passed [kinds]int // how much of them has been compared with what was sent
}

// rest returns what the deltas have left out of a text: a provider may send no delta, or not all
// of them.
func (c *wholeItem) rest(k kind, text gjson.Result) string {
	s := plugins.Text(text)
	from := min(max(c.sent[k]-c.passed[k], 0), len(s))
	c.passed[k] += len(s)
	c.sent[k] = max(c.sent[k], c.passed[k])
	return s[from:]
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
	d.item(key).added, d.item(key).comments = true, d.isComment(v)
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

// endItem reads an item that is whole: what deltas have left out of it.
func (d *decoder) endItem(key int, v gjson.Result) {
	key = d.keyOf(key, v)
	i := &wholeItem{item: d.item(key)}
	if i.ended {
		return
	}
	switch v.Get("type").Str {
	case "message":
		i.comments = i.comments || d.isComment(v)
		d.message(key, i, v)
	case "reasoning":
		for n, part := range v.Get("summary").Array() {
			d.a.Summary(key, n, i.rest(summary, part.Get("text")))
		}
		for _, part := range v.Get("content").Array() {
			d.a.ReasoningText(key, i.rest(reasoningText, part.Get("text")))
		}
		d.seal(key, v)
	case "function_call":
		d.call(key, v)
		d.a.Args(key, i.rest(arguments, v.Get("arguments")))
	case "custom_tool_call":
		if d.searchesX(v) {
			input := v.Get("input").Str
			if !plugins.ValidJSON([]byte(input)) {
				input = ""
			}
			d.a.WebSearch(translate.HostedCall{Queries: []string{gjson.Get(input, "query").Str}})
			break
		}
		d.call(key, v)
		d.a.CustomInput(key, i.rest(arguments, v.Get("input")))
	default:
		d.a.Item(json.RawMessage(v.Raw))
	}
	i.added, i.ended = true, true
	if v.Get("status").Str != "incomplete" { // or else the end of the response says so
		d.a.Close(key)
	}
}

// keyOf returns the key of an item at an index: that of the call with its id, if there is one.
func (d *decoder) keyOf(index int, v gjson.Result) int {
	if key, ok := d.calls[v.Get("call_id").Str]; ok {
		return key
	}
	return index
}

// openCall returns the key of the call that arguments at an index belong to: that of the index, or
// of the call that began last and is open if there is no item at the index. ok is false if there is none.
func (d *decoder) openCall(index int) (key int, ok bool) {
	if i := d.items[index]; i != nil {
		return index, i.isCall
	}
	for len(d.begun) > 0 {
		if key = d.begun[len(d.begun)-1]; !d.items[key].ended {
			return key, true
		}
		d.begun = d.begun[:len(d.begun)-1]
	}
	return 0, false
}

func (d *decoder) message(key int, i *wholeItem, v gjson.Result) {
	annotations := 0
	for _, part := range v.Get("content").Array() {
		text := i.rest(outputText, part.Get("text"))
		if text == part.Get("text").Str { // else its deltas had some
			d.logprobs(key, part)
		}
		d.text(key, text)
		d.a.Refusal(key, i.rest(refusal, part.Get("refusal")))
		for _, annotation := range part.Get("annotations").Array() {
			if annotations++; annotations > i.annotated {
				d.annotate(key, annotation)
			}
		}
	}
}

// isComment reports whether an item is a message in which a model tells what it does while the
// client wants JSON: other formats have one text, which the comment would spoil.
func (d *decoder) isComment(v gjson.Result) bool {
	format := d.a.Request().Format.Type
	return v.Get("phase").Str == "commentary" && (format == "json_schema" || format == "json_object")
}

// text adds to the text of a message. A comment is reasoning.
func (d *decoder) text(key int, s string) {
	if d.item(key).comments {
		d.a.ReasoningText(key, s)
		return
	}
	d.a.Text(key, s)
}

// logprobs adds the logprobs of the text that comes next.
func (d *decoder) logprobs(key int, v gjson.Result) {
	if d.item(key).comments {
		return
	}
	if list := v.Get("logprobs").Raw; list != "" && list != "[]" {
		d.a.Logprobs(key, json.RawMessage(list))
	}
}

// call begins a call.
func (d *decoder) call(key int, v gjson.Result) {
	id := v.Get("call_id").Str
	if i := d.item(key); !i.isCall {
		i.isCall = true
		d.begun = append(d.begun, key)
	}
	if _, known := d.calls[id]; !known && id != "" {
		if d.calls == nil {
			d.calls = make(map[string]int)
		}
		d.calls[id] = key
	}
	d.a.Call(key, id, translate.FlatName(v))
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
