package observe

import "github.com/weirhq/weir/plugins"

// generateContent is Gemini's and Vertex's: one response object, or a stream of
// them, each with the counts so far, as events or as one array. No event says
// that it is the last: clients stop at the finish reason.
var generateContent = dialect{
	fields: compile(table{
		"":                                  sentinel,
		"responseId":                        responseID,
		"modelVersion":                      model,
		"candidates.#":                      choice,
		"candidates.#.index":                choiceIndex,
		"candidates.#.finishReason":         finish,
		"promptFeedback.blockReason":        finish,
		"usageMetadata.serviceTier":         tier,
		"usageMetadata.trafficType":         tier, // Vertex
		"candidates.#.content.parts.#.text": content,
		"candidates.#.content.parts.#.functionCall":        content,
		"candidates.#.content.parts.#.toolCall":            content,
		"candidates.#.content.parts.#.inlineData":          content,
		"candidates.#.content.parts.#.fileData":            content,
		"candidates.#.content.parts.#.executableCode":      content,
		"candidates.#.content.parts.#.codeExecutionResult": content,

		"usageMetadata":                         usageMetadata,
		"usageMetadata.promptTokenCount":        input,
		"usageMetadata.toolUsePromptTokenCount": toolInput,
		"usageMetadata.cachedContentTokenCount": cacheRead,
		"usageMetadata.candidatesTokenCount":    output,
		"usageMetadata.thoughtsTokenCount":      thoughts,
		"usageMetadata.totalTokenCount":         total,
	},
		modalities(inputDetail).under("usageMetadata.promptTokensDetails.#"),
		modalities(cachedDetail).under("usageMetadata.cacheTokensDetails.#"),
		modalities(outputDetail).under("usageMetadata.candidatesTokensDetails.#"),
		errorFields.under("error")),
	finished: plugins.Ended,
}

// modalities is an element of Google's lists of counts by modality.
func modalities(count field) table {
	return table{"": detail, "modality": detailName, "tokenCount": count}
}

// supersede begins a new report of Google's. A whole one, with its total, has
// no field for what is 0, so nothing of the last report may show through; some
// chunks of Vertex have no count at all.
func (x *observer) supersede() {
	x.settle()
	x.last, x.report, x.reporting = x.report, report{}, true
}

func (x *observer) settle() {
	if x.reporting && !x.report.get(total).Valid {
		x.report.fill(&x.last)
		x.changed = true
	}
	x.reporting = false
}
