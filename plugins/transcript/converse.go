package transcript

import (
	"iter"

	"github.com/tidwall/gjson"
)

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
var Converse = Format{
	Input:    []string{"system", "messages"},
	Output:   []string{"output.message.content"},
	Message:  "output.message",
	Finish:   "stopReason",
	assemble: converse,
}

// converse assembles the events of Bedrock's ConverseStream.
// https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html
func converse(events iter.Seq[event]) *node {
	root := new(node)
	blocks := &node{kind: list}
	for e := range events {
		switch e.name {
		case "messageStart":
			root.at("output").at("message").add(e.Result, converseEvent)
		case "contentBlockStart":
			blocks.at(e.Get("contentBlockIndex").Raw).add(e.Get("start"), converseBlock)
		case "contentBlockDelta":
			addConverseDelta(blocks.at(e.Get("contentBlockIndex").Raw), e.Get("delta"))
		case "contentBlockStop":
		case "messageStop", "metadata":
			root.add(e.Result, converseEvent)
		default: // an exception, by the name that AWS's own types give it
			root.at(e.name).add(e.Result, converseEvent)
		}
	}
	if len(blocks.members) > 0 {
		for _, block := range blocks.members {
			finishConverseBlock(block.node)
		}
		*root.at("output").at("message").at("content") = *blocks
	}
	if root.none() {
		return nil
	}
	return root
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
		if said := block.get("text"); !said.none() {
			*cited.list("content").push().at("text") = *said
		}
		*cited.at("citations") = *citations
		*block = node{}
		*block.at("citationsContent") = *cited
	}
}
