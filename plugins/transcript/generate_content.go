package transcript

import "github.com/tidwall/gjson"

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
	for _, candidate := range root.at("candidates").members {
		for _, part := range candidate.node.at("content").at("parts").members {
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
