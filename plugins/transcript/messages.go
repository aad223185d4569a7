package transcript

var contentBlock = Object(Fields{
	"text":      Join,
	"thinking":  Join,
	"signature": Join,
	"citations": Collect,
})

var contentBlockDelta = Object(Fields{
	"type":         Drop,
	"text":         Join,
	"thinking":     Join,
	"signature":    Join,
	"partial_json": Join,
	"content":      Join, // of a compaction
	"citation":     Drop,
})

var message = Object(Fields{
	"type":    First,
	"id":      First,
	"model":   First,
	"role":    First,
	"content": List(nil),
	"usage":   Merge,
})

var messageDelta = Object(Fields{
	"type":  Drop,
	"delta": Drop,
	"usage": Merge,
})

// Messages is the transcript of Anthropic's Messages.
// https://docs.claude.com/en/docs/build-with-claude/streaming
var Messages = Format{
	Input:   []string{"system", "messages"},
	Output:  []string{`content.#(type=="text")#.text`},
	Message: "content",
	Finish:  "stop_reason",
	Calls:   []CallForm{{Type: "tool_use", ID: "id", Name: "name", Arguments: "input"}},
	add:     addMessagesEvent,
	finish:  finishMessage,
}

func addMessagesEvent(root *node, e event) {
	switch e.Get("type").Str {
	case "message_start":
		root.add(e.Get("message"), message)
	case "content_block_start":
		block := root.list("content").ensure(e.Get("index").Raw)
		block.add(e.Get("content_block"), contentBlock)
	case "content_block_delta":
		content, delta := root.list("content"), e.Get("delta")
		block := content.get(e.Get("index").Raw)
		if block == nil && delta.Get("partial_json").Exists() { // of a call, at another index
			block = content.lastOf("tool_use")
		}
		if block == nil {
			block = content.ensure(e.Get("index").Raw)
		}
		if citation := delta.Get("citation"); citation.Exists() {
			block.add(delta, contentBlockDelta)
			block.list("citations").push().set(citation.Raw)
		} else {
			e.add(block, delta, contentBlockDelta)
		}
	case "message_delta":
		root.add(e.Get("delta"), message)
		root.add(e.Result, messageDelta)
	case "error":
		root.add(e.Result, message)
	}
}

// finishMessage parses the input of tool calls.
func finishMessage(root *node) {
	if content := root.get("content"); content != nil {
		for _, block := range content.members {
			if block.node.get("partial_json").isEmpty() {
				continue
			}
			block.node.rename("partial_json", "input")
			block.node.get("input").parse()
		}
	}
}
