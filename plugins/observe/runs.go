package observe

import (
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/transcript"
)

// Runs is OpenAI's Assistants. A run that streams reports its usage in the event
// that ends it; any other has none yet when it is created.
// https://platform.openai.com/docs/api-reference/runs
func init() {
	Register(Dialect{
		Name:      plugins.Runs,
		Operation: "invoke_agent",
		Paths:     []string{"/runs", "/submit_tool_outputs"},
		Providers: []string{"openai", "azure"},
		Polled:    []string{"/runs/{id}"},
		Signs:     []string{`object:"thread.run"`},
		Request:   modelRequest,
		Response: tables(chatUsage.Under("usage"), errorFields.Under("error"), errorFields.Under("last_error"), toolCalls.Under("delta.step_details"), Table{
			"id":                         ResponseID,
			"model":                      Model,
			"status":                     FinishReason,
			"delta.content.#.text.value": Content,
		}),
		Transcript: transcript.Runs,
	})
}
