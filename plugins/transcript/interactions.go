package transcript

import (
	"iter"

	"github.com/tidwall/gjson"
)

// Interactions is the transcript of Gemini's Interactions, which have steps since May 2026, and
// had outputs before.
// https://ai.google.dev/gemini-api/docs/interactions/streaming
var Interactions = Format{
	Input:    []string{"system_instruction", "input"},
	Output:   []string{`outputs.#(type=="text")#.text`, `steps.#(type=="model_output")#.content`},
	Message:  "[outputs,steps]",
	Finish:   "status",
	Calls:    []CallForm{{Type: "function_call", ID: "id", Name: "name", Arguments: "arguments"}},
	assemble: interactions,
}

// interactionPart is a step, an output, or a content of a step. Its deltas can have another type.
var interactionPart = Object(Fields{
	"type": First, "text": Join, "data": Join, "arguments": Join, "signature": Join,
	"content": Collect, "summary": Collect, "annotations": Collect,
})

// interactions assembles the steps or outputs from their events: the interaction in the last event
// has none.
func interactions(root *node, events iter.Seq[event]) {
	outputs, steps := &node{kind: list}, &node{kind: list}
	for e := range events {
		switch index := e.Get("index").Raw; e.Get("event_type").Str {
		case "content.start":
			beginPart(outputs.ensure(index), e.Get("content"))
		case "content.delta":
			addPartDelta(outputs.ensure(index), e, false)
		case "step.start":
			beginPart(steps.ensure(index), e.Get("step"))
		case "step.delta":
			addPartDelta(steps.ensure(index), e, true)
		case "interaction.status_update":
			root.ensure("status").set(e.Get("status").Raw)
		case "error":
			root.ensure("error").set(e.Get("error").Raw)
		default:
			if interaction := e.Get("interaction"); interaction.IsObject() {
				root.add(interaction, Merge)
			}
		}
	}
	setParts(root.ensure("outputs"), outputs)
	setParts(root.ensure("steps"), steps)
}

// setParts sets the parts of an interaction that has none.
func setParts(n, parts *node) {
	if len(parts.members) == 0 || !n.isEmpty() && !n.equals("[]") {
		return
	}
	for _, m := range parts.members {
		if a := m.node.get("arguments"); a != nil && (a.isEmpty() || a.kind == text || a.raw[0] == '"') {
			a.parse()
		}
	}
	*n = *parts
}

// beginPart adds what a part begins with. Arguments that are still empty come as a text.
func beginPart(n *node, v gjson.Result) {
	n.add(v, interactionPart)
	if a := n.get("arguments"); a != nil && a.equals("{}") {
		a.set("")
	}
}

// addPartDelta adds the delta of an event to an output or a step. The contents of a step and of a
// summary come one after the other.
func addPartDelta(n *node, e event, isStep bool) {
	delta, key := e.Get("delta"), ""
	switch delta.Get("type").Str {
	case "thought_summary":
		delta, key = delta.Get("content"), "summary"
	case "text", "text_annotation_delta", "image", "audio", "video", "document":
		if isStep {
			key = "content"
		}
	}
	if key != "" {
		contents, kind := n.list(key), delta.Get("type")
		last := contents.last()
		if last == nil || kind.Str != "text_annotation_delta" && (!last.ensure("type").equals(kind.Raw) || kind.Str != "text" && kind.Str != "audio") {
			last = contents.push()
		}
		n = last
	}
	e.add(n, delta, interactionPart, "event_id")
}
