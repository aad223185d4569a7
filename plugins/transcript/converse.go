package transcript

import "github.com/tidwall/gjson"

var converseEvent = Object(Fields{
	"p":     Drop, // hides the length of what a frame says
	"usage": Merge,
})

var converseBlock = Object(Fields{
	"text":             Join,
	"toolUse":          Object(Fields{"input": Join}),
	"toolResult":       Merge,
	"reasoningContent": Object(Fields{"text": Join, "signature": Join, "redactedContent": Join}),
	"citation":         Drop,
})

// Converse is the transcript of Bedrock's Converse.
// https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html
var Converse = Format{
	Input:   []string{"system", "messages"},
	Output:  []string{"output.message.content"},
	Message: "output.message",
	Finish:  "stopReason",
	Calls:   []CallForm{{Member: "toolUse", ID: "toolUseId", Name: "name", Arguments: "input"}},
	add:     addConverseEvent,
	finish:  finishConverse,
}

func addConverseEvent(root *node, e event) {
	block := func() *node {
		return root.ensure("output").ensure("message").list("content").ensure(e.Get("contentBlockIndex").Raw)
	}
	switch e.name {
	case "messageStart":
		root.ensure("output").ensure("message").add(e.Result, converseEvent)
	case "contentBlockStart":
		block().add(e.Get("start"), converseBlock)
	case "contentBlockDelta":
		addConverseDelta(block(), e.Get("delta"))
	case "contentBlockStop":
	case "messageStop", "metadata":
		root.add(e.Result, converseEvent)
	default: // an exception, by the name that AWS's own types give it
		root.ensure(e.name).add(e.Result, converseEvent)
	}
}

func finishConverse(root *node) {
	content := root.get("output").get("message").get("content")
	if content.isEmpty() {
		return
	}
	for _, block := range content.members {
		finishConverseBlock(block.node)
	}
}

func addConverseDelta(block *node, delta gjson.Result) {
	if results := delta.Get("toolResult"); results.IsArray() {
		block.ensure("toolResult").list("content").add(results, Collect)
		return
	}
	block.add(delta, converseBlock)
	if citation := delta.Get("citation"); citation.Exists() {
		block.list("citations").push().set(citation.Raw)
	}
}

// finishConverseBlock gives a block the form that Converse answers it in.
func finishConverseBlock(block *node) {
	if use := block.get("toolUse"); !use.isEmpty() {
		use.ensure("input").parse()
	}
	if reasoning := block.get("reasoningContent"); !reasoning.isEmpty() && reasoning.get("redactedContent").isEmpty() {
		reasoningText := *reasoning
		*reasoning = node{}
		*reasoning.ensure("reasoningText") = reasoningText
	}
	if citations := block.get("citations"); !citations.isEmpty() {
		cited := new(node)
		if text := block.get("text"); !text.isEmpty() {
			*cited.list("content").push().ensure("text") = *text
		}
		*cited.ensure("citations") = *citations
		*block = node{}
		*block.ensure("citationsContent") = *cited
	}
}
