package observe

// ollama is Ollama's chat and generate. The prompt's count is left out where
// the whole prompt was in the cache.
var ollama = dialect{
	fields: compile(errorFields.under("error"), table{
		"":                     sentinel,
		"model":                model,
		"done":                 done,
		"done_reason":          finish,
		"response":             content,
		"thinking":             content,
		"message.content":      content,
		"message.thinking":     content,
		"message.tool_calls.#": content,
		"message.images.#":     content,
		"prompt_eval_count":    input,
		"eval_count":           output,
	}),
}
