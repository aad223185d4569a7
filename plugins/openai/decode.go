package openai

import (
	"cmp"
	"net/http"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// Decode implements translate.Provider.
func (Provider) Decode(resp *http.Response, a *translate.Assembler) error {
	d := &decoder{a: a}
	return translate.ReadAnswer(resp, a, d.object, d.event)
}

// decoder reads one answer. Of a stream it believes which item a delta belongs
// to, and little else: ids may change, and items end before they begin.
type decoder struct {
	a     *translate.Assembler
	items map[int]*item  // that a stream has reported, by output_index
	calls map[string]int // the keys of the calls in items, by call_id
	begun []int          // the keys of the calls in items, in the order of their beginning; ended ones may be missing
}

// object reads an answer that is not a stream.
func (d *decoder) object(body []byte) {
	if v, ok := ParseObject(d.a, body); ok {
		d.start(v)
		d.complete(v, body)
	}
}

// ParseObject reads a response that is not a stream. If the body is an error or no JSON, the
// Assembler fails and ok is false.
func ParseObject(a *translate.Assembler, body []byte) (v gjson.Result, ok bool) {
	if v, ok = a.ParseJSON(body); !ok {
		return v, false
	}
	if v.Get("error").Type != gjson.Null && !v.Get("output").Exists() {
		a.Fail(NewError(0, v))
		return v, false
	}
	return v, true
}

// event reads an event of a stream, and reports whether more may follow.
func (d *decoder) event(_, data []byte) bool {
	e, ok := d.a.ParseEvent(data)
	if !ok {
		return false
	}
	switch e.Get("type").Str {
	case "response.output_text.delta":
		d.logprobs(index(e), e)
		d.piece(outputText, e, index(e), d.text)
	case "response.output_text.done":
		d.rest(outputText, e, "text", "content_index", d.text)
	case "response.refusal.delta":
		d.piece(refusal, e, index(e), d.a.Refusal)
	case "response.reasoning_summary_text.delta":
		d.piece(summary, e, index(e), func(key int, s string) { d.a.Summary(key, int(e.Get("summary_index").Int()), s) })
	case "response.reasoning_text.delta":
		d.piece(reasoningText, e, index(e), d.a.ReasoningText)
	case "response.function_call_arguments.delta":
		if key, ok := d.openCall(index(e)); ok {
			d.piece(arguments, e, key, d.a.Args)
		}
	case "response.function_call_arguments.done":
		d.rest(arguments, e, "arguments", "", d.a.Args)
	case "response.custom_tool_call_input.delta":
		if key, ok := d.openCall(index(e)); ok {
			d.piece(arguments, e, key, d.a.CustomInput)
		}
	case "response.custom_tool_call_input.done":
		d.rest(arguments, e, "input", "", d.a.CustomInput)
	case "response.output_text.annotation.added":
		d.item(index(e)).annotated++
		d.annotate(index(e), e.Get("annotation"))
	case "response.output_item.added":
		d.addItem(index(e), e.Get("item"))
	case "response.output_item.done":
		d.endItem(index(e), e.Get("item"))
	case "response.created", "response.in_progress":
		d.start(e.Get("response"))
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.done":
		d.start(e.Get("response"))
		d.complete(e.Get("response"), data)
		return false
	case "error":
		d.a.Fail(NewError(0, e))
		return false
	case "":
		if e.Get("error").Type != gjson.Null { // OpenRouter's and xAI's have no type
			d.a.Fail(NewError(0, e))
			return false
		}
	}
	return true
}

// index is the item that an event is about.
func index(event gjson.Result) int { return int(event.Get("output_index").Int()) }

// piece passes a piece of an item on to add.
func (d *decoder) piece(k kind, event gjson.Result, key int, add func(key int, s string)) {
	if s := plugins.Text(event.Get("delta")); s != "" {
		d.item(key).add(k, s)
		add(key, s)
	}
}

// rest passes on to add what the deltas have left out of a text, which an event has as a whole. If
// the text is not the first of its item, the end of the item says what is left.
func (d *decoder) rest(k kind, event gjson.Result, field, part string, add func(key int, s string)) {
	i := d.items[index(event)]
	if i == nil || i.ended || k == arguments && !i.isCall || part != "" && event.Get(part).Int() > 0 {
		return
	}
	add(index(event), (&wholeItem{item: i}).rest(k, event.Get(field)))
}

// start reads what comes before the content.
func (d *decoder) start(response gjson.Result) {
	d.a.Start(response.Get("model").Str, response.Get("id").Str)
	if tier := response.Get("service_tier").Str; tier != "" {
		d.a.ServiceTier(tier)
	}
}

// complete reads the whole response, which body holds: what a stream has left out of its items,
// what was used and how it ended.
func (d *decoder) complete(response gjson.Result, body []byte) {
	for key, v := range response.Get("output").Array() {
		d.endItem(key, v)
	}
	d.a.Observe(plugins.Responses, "openrouter", body) // who adds a cost
	Finish(d.a, response)
}

// reasons are those for which a response is incomplete.
var reasons = translate.Reasons{
	"max_output_tokens": translate.ReasonMaxOutputTokens,
	"max_tokens":        translate.ReasonMaxOutputTokens,
	"length":            translate.ReasonMaxOutputTokens,
	"content_filter":    translate.ReasonContentFilter,
}

// Finish reads how a response ended.
func Finish(a *translate.Assembler, response gjson.Result) {
	switch response.Get("status").Str {
	case "completed":
		a.Finish(translate.ReasonStop)
	case "incomplete":
		a.Finish(reasons.Of(cmp.Or(response.Get("incomplete_details.reason").Str, "incomplete")))
	case "failed", "cancelled":
		a.Finish(translate.ReasonError)
		if response.Get("error").IsObject() {
			a.Fail(NewError(0, response))
		}
	}
}
