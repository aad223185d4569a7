package observe

// cohereChat is Cohere's v2 Chat. It bills for other counts than it reports as
// tokens, which include its own preamble.
var cohereChat = dialect{
	fields: compile(cohereFields...),
	last:   []string{"message-end"},
}

var cohereFields = []table{
	{
		"":                            sentinel,
		"id":                          responseID,
		"type":                        eventType,
		"finish_reason":               finish,
		"delta.finish_reason":         finish,
		"delta.error":                 failure,
		"generations.#.text":          content, // InvokeModel's Command
		"generations.#.finish_reason": finish,
	},
	cohereMessage.under("message"),
	cohereMessage.under("delta.message"),
	cohereUsage.under("usage"),
	cohereUsage.under("delta.usage"),
	errorFields.under("error"),
}

// A stream's delta holds one part or call, a message the list of them.
var cohereMessage = table{
	"content.text":       content,
	"content.thinking":   content,
	"content.#.text":     content,
	"content.#.thinking": content,
	"tool_plan":          content,
	"tool_calls":         content,
	"tool_calls.#":       content,
}

var cohereUsage = table{
	"tokens.input_tokens":        input,
	"tokens.output_tokens":       output,
	"cached_tokens":              cacheRead,
	"billed_units.input_tokens":  billedInput,
	"billed_units.output_tokens": billedOutput,
}
