package transcript

import (
	"strings"

	"github.com/tidwall/gjson"
)

var generateContentResponse = Object(Fields{
	"responseId":   First,
	"modelVersion": First,
	"createTime":   First,
	"candidates": List(Fields{
		"content": Object(Fields{
			"role": First,
			"parts": listOf(samePart, Fields{
				"text":         Join,
				"functionCall": Object(Fields{"partialArgs": Collect}),
			}),
		}),
		"groundingMetadata": Merge,
		"citationMetadata":  Object(Fields{"citations": Collect, "citationSources": Collect}),
		"logprobsResult":    Object(Fields{"topCandidates": Collect, "chosenCandidates": Collect}),
	}),
	"promptFeedback": Merge,
	"usageMetadata":  Merge,
})

// GenerateContent is the transcript of Gemini and Vertex.
// https://ai.google.dev/api/generate-content#method:-models.streamgeneratecontent
var GenerateContent = Format{
	Input:    []string{"systemInstruction", "system_instruction", "contents"},
	Output:   []string{"candidates.#.content"},
	Choices:  "candidates.#.content",
	Finish:   "candidates.#.finishReason",
	Calls:    []CallForm{{Member: "functionCall", ID: "id", Name: "name", Arguments: "args"}},
	add:      addGenerateContent,
	finish:   finishGenerateContent,
	required: []string{"candidates", "promptFeedback", "error"},
	array:    true,
}

func addGenerateContent(root *node, e event) {
	if e.Get("usageMetadata.totalTokenCount").Exists() {
		root.remove("usageMetadata") // a complete report leaves out the counts that are 0
	}
	e.add(root, e.Result, generateContentResponse)
}

func finishGenerateContent(root *node) {
	for _, candidate := range root.ensure("candidates").members {
		for _, part := range candidate.node.ensure("content").ensure("parts").members {
			finishFunctionCall(part.node.get("functionCall"))
		}
	}
}

// samePart joins a part to the one before it, if both are nothing but text or
// both nothing but a thought's text, or if it continues a function call.
func samePart(parts *node, part gjson.Result, _ int) (*node, string) {
	last := parts.last()
	if last == nil {
		return nil, ""
	}
	if continues(last.get("functionCall"), part.Get("functionCall")) {
		return last, ""
	}
	if last.get("text").isEmpty() || !part.Get("text").Exists() {
		return nil, ""
	}
	for _, m := range last.members {
		if m.key != "text" && m.key != "thought" {
			return nil, ""
		}
	}
	thought := last.get("thought")
	alike := part.Get("thought").Bool() == (thought != nil && thought.raw == "true")
	part.ForEach(func(key, _ gjson.Result) bool {
		alike = alike && (key.Str == "text" || key.Str == "thought")
		return alike
	})
	if !alike {
		return nil, ""
	}
	return last, ""
}

// continues is true where next is a further piece of the function call that
// Vertex streams argument by argument (streamFunctionCallArguments).
func continues(call *node, next gjson.Result) bool {
	if call.isEmpty() || !next.IsObject() || next.Get("name").Exists() {
		return false
	}
	more := call.get("willContinue")
	return more != nil && more.raw == "true"
}

// finishFunctionCall puts the arguments of a call together from their pieces.
func finishFunctionCall(call *node) {
	if call.isEmpty() {
		return
	}
	call.remove("willContinue")
	partial := call.get("partialArgs")
	if partial.isEmpty() {
		return
	}
	var args node
	args.setKind(object)
	gjson.ParseBytes(partial.appendJSON(nil)).ForEach(func(_, arg gjson.Result) bool {
		value := args.atPath(arg.Get("jsonPath").Str)
		for _, kind := range []string{"stringValue", "numberValue", "boolValue", "nullValue"} {
			if piece := arg.Get(kind); piece.Exists() {
				value.add(piece, Join)
			}
		}
		return true
	})
	call.remove("partialArgs")
	*call.ensure("args") = args
}

// atPath returns the node at a JSONPath (RFC 9535) of names and indices, such as
// $.rooms[0].name.
func (n *node) atPath(path string) *node {
	path = strings.TrimPrefix(path, "$")
	for depth := 0; path != "" && depth < deepest; depth++ {
		end := 1 + strings.IndexAny(path[1:], ".[")
		if end == 0 {
			end = len(path)
		}
		key := strings.Trim(path[:end], ".[]'\"")
		if path[0] == '[' && !strings.ContainsAny(path[:end], "'\"") {
			n.setKind(list)
		}
		n = n.ensure(key)
		path = path[end:]
	}
	return n
}
