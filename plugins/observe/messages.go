package observe

// messages is Anthropic's Messages: the message itself, or a stream of events.
// Its message_start has the input's counts and a placeholder of output, its
// message_delta the final counts, lately with the input's again.
var messages = dialect{
	fields: compile(messagesFields...),
	last:   []string{"message_stop"},
}

var messagesFields = []table{
	message,
	message.under("message"),
	messagesUsage.under("usage"),
	messagesUsage.under("message.usage"),
	errorFields.under("error"),
	{
		"":                   sentinel,
		"type":               eventType,
		"delta.stop_reason":  finish,
		"delta.text":         content,
		"delta.thinking":     content,
		"delta.partial_json": content,
		"content_block.type": outputType,
		"content_block.text": content,
		"content_block.data": content, // redacted thinking
	},
}

var message = table{
	"id":          responseID,
	"model":       model,
	"stop_reason": finish,
	"content.#":   content,
}

// The counts of input leave out what the cache served or took.
var messagesUsage = table{
	"input_tokens":                             uncached,
	"cache_read_input_tokens":                  cacheRead,
	"cache_creation_input_tokens":              cacheWrite,
	"cache_creation.ephemeral_5m_input_tokens": cacheWrite5m,
	"cache_creation.ephemeral_1h_input_tokens": cacheWrite1h,
	"output_tokens":                            output,
	"output_tokens_details.thinking_tokens":    reasoning,
	"server_tool_use.web_search_requests":      webSearches,
	"service_tier":                             tier,
}
