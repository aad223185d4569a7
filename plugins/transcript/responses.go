package transcript

import (
	"iter"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/streams"
)

var outputItem = Object(Fields{
	"content": List(Fields{"text": Join, "transcript": Join, "refusal": Join, "annotations": Collect}),
	"summary": List(Fields{"text": Join}),
})

// outputPart is a part of an item's content or summary.
var outputPart = Object(Fields{"text": Join, "transcript": Join, "refusal": Join, "annotations": Collect})

// itemDelta says where the delta of an event belongs: into a field of an item, or of a part in a list of the item.
// item and part are their types if the event that opens them is missing. index is the event's key with the
// position of the part.
type itemDelta struct{ item, list, part, index, field string }

var itemDeltas = map[string]itemDelta{
	"response.output_text.delta":                {"message", "content", "output_text", "content_index", "text"},
	"response.refusal.delta":                    {"message", "content", "refusal", "content_index", "refusal"},
	"response.reasoning_text.delta":             {"reasoning", "content", "reasoning_text", "content_index", "text"},
	"response.reasoning_summary_text.delta":     {"reasoning", "summary", "summary_text", "summary_index", "text"},
	"response.function_call_arguments.delta":    {item: "function_call", field: "arguments"},
	"response.mcp_call_arguments.delta":         {item: "mcp_call", field: "arguments"},
	"response.custom_tool_call_input.delta":     {item: "custom_tool_call", field: "input"},
	"response.code_interpreter_call_code.delta": {item: "code_interpreter_call", field: "code"},
	"response.output_audio_transcript.delta":    {"message", "content", "output_audio", "content_index", "transcript"},
	"response.audio_transcript.delta":           {"message", "content", "audio", "content_index", "transcript"}, // before its general availability
	"response.text.delta":                       {"message", "content", "text", "content_index", "text"},
}

// deltaOf returns where the delta of an event belongs, or the complete value that follows the deltas.
func deltaOf(kind string) (d itemDelta, isComplete bool) {
	begun, isComplete := strings.CutSuffix(kind, ".done")
	if isComplete {
		kind = begun + ".delta"
	}
	return itemDeltas[kind], isComplete
}

// responseError is an error event, flat as it is documented.
var responseError = Object(Fields{"type": Drop, "sequence_number": Drop})

// Responses is the transcript of OpenAI's Responses.
var Responses = Format{
	Input:    []string{"instructions", "input"},
	Output:   []string{`output.#(type=="message")#.content`},
	Message:  "output",
	Finish:   "status",
	Calls:    []CallForm{{Type: "function_call", ID: "call_id", Name: "name", Arguments: "arguments"}},
	assemble: responses,
	last:     completed,
}

// Realtime is the transcript of OpenAI's Realtime: a request is the array of the
// client's events since the response before, a response is one of Responses.
var Realtime = Format{
	Input:    []string{"#.session.instructions", "#.response.instructions", "#.item"},
	Output:   Responses.Output,
	Message:  "output",
	Finish:   "status",
	Calls:    Responses.Calls,
	assemble: responses,
}

// responses takes the response object of the last event that has one. If that object has no
// output, because the stream broke off or the server leaves the output out, the events of the
// items make the output.
// https://platform.openai.com/docs/api-reference/responses-streaming
func responses(root *node, events iter.Seq[event]) {
	output, failure := &node{kind: list}, new(node)
	for e := range events {
		if response := e.Get("response"); response.IsObject() {
			root.set(response.Raw)
		} else if index := e.Get("output_index"); index.Type == gjson.Number {
			item := output.get(index.Raw)
			if item == nil {
				if d, _ := deltaOf(e.Get("type").Str); d.list == "" && d.field != "" { // of an open call, at another index
					item = output.lastOf(d.item)
				}
			}
			if item == nil {
				item = output.ensure(index.Raw)
			}
			addItemEvent(item, e)
		} else if e.Get("type").Str == "error" {
			failure.add(e.Result, responseError)
		}
	}

	response := gjson.Parse(root.raw)
	if len(output.members) > 0 && !response.Get("output.0").Exists() {
		root.expand()
		*root.ensure("output") = *output
	}
	if !failure.isEmpty() && response.Get("error").Type == gjson.Null {
		root.expand()
		*root.ensure("error") = *failure
	}
}

// completed returns the last event if it has the whole response: then no other event needs to
// be read.
func completed(raw []byte) (last event, ok bool) {
	last, ok = eventOf("", streams.LastData(raw))
	return last, ok && last.Get("type").Str == "response.completed" && last.Get("response.output.0").Exists()
}

func addItemEvent(item *node, e event) {
	kind := e.Get("type").Str
	if kind == "response.output_item.done" {
		item.set(e.Get("item").Raw)
	}
	if item.kind == complete && !item.isEmpty() {
		return // is complete
	}
	switch kind {
	case "response.output_item.added":
		item.add(e.Get("item"), outputItem)
	case "response.content_part.added":
		item.list("content").ensure(e.Get("content_index").Raw).add(e.Get("part"), outputPart)
	case "response.reasoning_summary_part.added":
		item.list("summary").ensure(e.Get("summary_index").Raw).add(e.Get("part"), outputPart)
	case "response.output_text.annotation.added":
		part := item.list("content").ensure(e.Get("content_index").Raw)
		part.list("annotations").push().set(e.Get("annotation").Raw)
	default:
		d, isComplete := deltaOf(kind)
		if d.field == "" {
			return
		}
		item.ensureType(d.item)
		if d.list != "" {
			item = item.list(d.list).ensure(e.Get(d.index).Raw)
			item.ensureType(d.part)
		}
		field := item.ensure(d.field)
		if !isComplete {
			e.add(field, e.Get("delta"), Join, "sequence_number", "obfuscation")
		} else if v := e.Get(d.field); len(v.Raw) > field.length() {
			// Some deltas may be missing, and some providers leave the text out here
			// (https://github.com/maximhq/bifrost/pull/895).
			field.add(v, nil)
		}
	}
}

// ensureType sets the type of an item, or of a part, if nothing has.
func (n *node) ensureType(kind string) {
	if n.get("type").isEmpty() {
		n.ensure("type").set(`"` + kind + `"`)
	}
}
