package transcript

import (
	"iter"

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
var GenerateContent = Format{
	Input:    []string{"systemInstruction", "system_instruction", "contents"},
	Output:   []string{"candidates.#.content"},
	Choices:  "candidates.#.content",
	Finish:   "candidates.#.finishReason",
	assemble: generateContent,
	array:    true,
}

// generateContent assembles the partial responses of Gemini and Vertex.
// https://ai.google.dev/api/generate-content#method:-models.streamgeneratecontent
func generateContent(events iter.Seq[event]) *node {
	root := new(node)
	for e := range events {
		if e.Get("usageMetadata.totalTokenCount").Exists() {
			root.remove("usageMetadata") // counts that the whole report lacks are 0 by now
		}
		e.add(root, e.Result, generateContentResponse)
	}
	for _, candidate := range root.at("candidates").members {
		for _, part := range candidate.node.at("content").at("parts").members {
			finishFunctionCall(part.node.get("functionCall"))
		}
	}
	for _, key := range []string{"candidates", "promptFeedback", "error"} {
		if !root.get(key).none() {
			return root
		}
	}
	return nil
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
	if last.get("text").none() || !part.Get("text").Exists() {
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
