package echo

import (
	"encoding/json"
	"iter"
)

// outputItem is an item of a response's output, with what its stream needs.
type outputItem struct {
	*itemForm
	id     string
	empty  json.RawMessage // the item as its stream opens it
	whole  json.RawMessage
	text   string
	pieces iter.Seq[string] // of text
}

// itemForm is how the text of an item is streamed.
type itemForm struct {
	events   string // what the names of the text's events begin with
	key      string // of the whole text in its last event
	logprobs string // of the text, in its events

	// The events of the part that has the text, the key of the part's index,
	// and the part: "" for an item without parts.
	partEvents, index, part string
}

var (
	reasoningForm = itemForm{
		events: "response.reasoning_summary_text", key: "text",
		partEvents: "response.reasoning_summary_part", index: `,"summary_index":0`,
		part: `{"type":"summary_text","text":%s}`,
	}
	messageForm = itemForm{
		events: "response.output_text", key: "text", logprobs: `,"logprobs":[]`,
		partEvents: "response.content_part", index: `,"content_index":0`,
		part: `{"type":"output_text","annotations":[],"logprobs":[],"text":%s}`,
	}
	callForm = itemForm{events: "response.function_call_arguments", key: "arguments"}
)

// outputItems are the items of the answer: reasoning, message, calls. The one
// that was cut off is incomplete, and then the last.
func outputItems(x *exchange, a Answer) (items []outputItem) {
	status := func(last bool) string {
		if last && a.Finish == FinishLength {
			return "incomplete"
		}
		return "completed"
	}
	if a.Reasoning != "" {
		const format = `{"id":%s,"type":"reasoning","status":%s,"summary":%s%s}`
		id, none := x.id("rs_"), json.RawMessage(nil)
		encrypted := none
		if x.body.Get(`include.#(=="reasoning.encrypted_content")`).Exists() {
			encrypted = render(`,"encrypted_content":%s`, sealed(a.Reasoning))
		}
		items = append(items, outputItem{
			&reasoningForm, id,
			render(format, id, "in_progress", list(nil), none),
			render(format, id, status(a.Text == "" && len(a.Calls) == 0), list{render(reasoningForm.part, a.Reasoning)}, encrypted),
			a.Reasoning, words(a.Reasoning),
		})
	}
	if a.Text != "" {
		const format = `{"id":%s,"type":"message","status":%s,"role":"assistant","content":%s}`
		id := x.id("msg_")
		items = append(items, outputItem{
			&messageForm, id,
			render(format, id, "in_progress", list(nil)),
			render(format, id, status(true), list{render(messageForm.part, a.Text)}),
			a.Text, words(a.Text),
		})
	}
	for i, c := range a.Calls {
		const format = `{"id":%s,"type":"function_call","status":%s,"call_id":%s,"name":%s,"arguments":%s}`
		id, callID := x.itemID("fc_", i), x.itemID("call_", i)
		items = append(items, outputItem{
			&callForm, id,
			render(format, id, "in_progress", callID, c.Name, ""),
			render(format, id, "completed", callID, c.Name, c.Arguments),
			c.Arguments, members(c.Arguments),
		})
	}
	return items
}

// streamResponse opens one item at a time, as OpenAI does.
func streamResponse(w *eventWriter, x *exchange, r Request, a Answer) {
	next := 0
	send := func(event, format string, values ...any) {
		w.event(event, render(`{"type":%s,"sequence_number":%d,%s}`, event, next, render(format, values...)))
		next++
	}
	items := outputItems(x, a)
	begun := x.response(r, "in_progress", nil, json.RawMessage("null"))
	send("response.created", `"response":%s`, begun)
	send("response.in_progress", `"response":%s`, begun)
	for i, item := range items {
		send("response.output_item.added", `"output_index":%d,"item":%s`, i, item.empty)
		at := render(`"item_id":%s,"output_index":%d`+item.index, item.id, i)
		if item.part != "" {
			send(item.partEvents+".added", `%s,"part":%s`, at, render(item.part, ""))
		}
		for piece := range item.pieces {
			send(item.events+".delta", `%s,"delta":%s`+item.logprobs, at, piece)
		}
		send(item.events+".done", `%s,%s:%s`+item.logprobs, at, item.key, item.text)
		if item.part != "" {
			send(item.partEvents+".done", `%s,"part":%s`, at, render(item.part, item.text))
		}
		send("response.output_item.done", `"output_index":%d,"item":%s`, i, item.whole)
	}
	status, response := x.finalResponse(r, a, items)
	send("response."+status, `"response":%s`, response)
	w.done() // not OpenAI's, but Open Responses demands it
}
