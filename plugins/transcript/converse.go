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
		return root.at("output").at("message").list("content").at(e.Get("contentBlockIndex").Raw)
	}
	switch e.name {
	case "messageStart":
		root.at("output").at("message").add(e.Result, converseEvent)
	case "contentBlockStart":
		block().add(e.Get("start"), converseBlock)
	case "contentBlockDelta":
		addConverseDelta(block(), e.Get("delta"))
	case "contentBlockStop":
	case "messageStop", "metadata":
		root.add(e.Result, converseEvent)
	default: // an exception, by the name that AWS's own types give it
		root.at(e.name).add(e.Result, converseEvent)
	}
}

func finishConverse(root *node) {
	content := root.get("output").get("message").get("content")
	if content.none() {
		return
	}
	for _, block := range content.members {
		finishConverseBlock(block.node)
	}
}

func addConverseDelta(block *node, delta gjson.Result) {
	if results := delta.Get("toolResult"); results.IsArray() {
		block.at("toolResult").list("content").add(results, Collect)
		return
	}
	block.add(delta, converseBlock)
	if citation := delta.Get("citation"); citation.Exists() {
		block.list("citations").push().set(citation.Raw)
	}
}

// finishConverseBlock gives a block the form that Converse answers it in.
func finishConverseBlock(block *node) {
	if use := block.get("toolUse"); !use.none() {
		use.at("input").parse()
	}
	if reasoning := block.get("reasoningContent"); !reasoning.none() && reasoning.get("redactedContent").none() {
		reasoningText := *reasoning
		*reasoning = node{}
		*reasoning.at("reasoningText") = reasoningText
	}
	if citations := block.get("citations"); !citations.none() {
		cited := new(node)
		if text := block.get("text"); !text.none() {
			*cited.list("content").push().at("text") = *text
		}
		*cited.at("citations") = *citations
		*block = node{}
		*block.at("citationsContent") = *cited
	}
}
