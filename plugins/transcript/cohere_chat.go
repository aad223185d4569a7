package transcript

var cohereMessage = Object(Fields{"role": First, "tool_plan": Join})

var cohereContent = Object(Fields{"type": First, "text": Join, "thinking": Join})

// CohereChat is the transcript of Cohere's Chat v2.
// https://docs.cohere.com/reference/chat-stream
var CohereChat = Format{
	Input:   []string{"messages"},
	Output:  []string{"message.content"},
	Message: "message",
	Finish:  "finish_reason",
	Calls:   Chat.Calls,
	add:     addCohereChat,
}

func addCohereChat(root *node, e event) {
	index, delta := e.Get("index").Raw, e.Get("delta")
	m := delta.Get("message")
	switch e.Get("type").Str {
	case "message-start":
		root.ensure("id").add(e.Get("id"), First)
		root.ensure("message").ensure("role").add(m.Get("role"), First)
	case "tool-plan-delta":
		root.ensure("message").add(m, cohereMessage)
	case "content-start", "content-delta":
		root.ensure("message").list("content").ensure(index).add(m.Get("content"), cohereContent)
	case "tool-call-start", "tool-call-delta":
		root.ensure("message").list(chatCalls.Member).ensure(index).add(m.Get(chatCalls.Member), toolCall)
	case "citation-start":
		root.ensure("message").list("citations").ensure(index).set(m.Get("citations").Raw)
	case "message-end":
		root.add(delta, Merge)
	}
	if logprobs := e.Get("logprobs"); logprobs.Exists() {
		root.list("logprobs").push().set(logprobs.Raw)
	}
}
