package observe

import (
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/transcript"
)

// Decisions is OpenAI's Decisions: typed answers to questions about one input. OpenRouter calls the
// input state.
// https://developers.openai.com/api/reference/resources/decisions
// https://openrouter.ai/docs/client-sdks/typescript/models/decisionsresponse
func init() {
	Register(Dialect{
		Name:     plugins.Decisions,
		Paths:    []string{"/decisions"},
		Request:  tables(modelRequest, typedPart.Under("input.#"), typedPart.Under("input.#.content.#"), typedPart.Under("input.#.output.#")),
		Response: tables(errorFields.Under("error"), responsesUsage.Under("usage"), Table{"id": ResponseID, "model": Model, "answers": Content, "answers.#": Content}),
		Object:   []string{"answers:[", "answers:{"},
		Variants: map[string]Table{"openrouter": openRouterCost.Under("usage")},
		Transcript: transcript.Format{
			Input: []string{"input", "state", "questions"},
		},
	})
}
