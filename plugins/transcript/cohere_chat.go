package transcript

import "iter"

var cohereMessage = objectOf(fields{"role": first, "tool_plan": pieces})

var cohereContent = objectOf(fields{"type": first, "text": pieces, "thinking": pieces})

var cohereToolCall = objectOf(fields{
	"id":       first,
	"type":     first,
	"function": objectOf(fields{"name": named, "arguments": pieces}),
})

// cohereChat assembles the events of Cohere's Chat v2.
// https://docs.cohere.com/reference/chat-stream
func cohereChat(events iter.Seq[event]) *node {
	root := new(node)
	for e := range events {
		index, delta := e.Get("index").Raw, e.Get("delta")
		m := delta.Get("message")
		switch e.Get("type").Str {
		case "message-start":
			root.at("id").add(e.Get("id"), first)
			root.at("message").at("role").add(m.Get("role"), first)
		case "tool-plan-delta":
			root.at("message").add(m, cohereMessage)
		case "content-start", "content-delta":
			root.at("message").list("content").at(index).add(m.Get("content"), cohereContent)
		case "tool-call-start", "tool-call-delta":
			root.at("message").list("tool_calls").at(index).add(m.Get("tool_calls"), cohereToolCall)
		case "citation-start":
			root.at("message").list("citations").at(index).set(m.Get("citations").Raw)
		case "message-end":
			root.add(delta, fieldwise)
		}
		if logprobs := e.Get("logprobs"); logprobs.Exists() {
			root.list("logprobs").push().set(logprobs.Raw)
		}
	}
	if root.none() {
		return nil
	}
	return root
}
