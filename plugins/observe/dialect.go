package observe

import "github.com/weirhq/weir/plugins"

// dialect is how a wire format says what an Extraction holds.
type dialect struct {
	fields *node
	// last names the event types that end a stream.
	last []string
	// finished is how near its end a finish reason brings a stream.
	finished plugins.Phase
}

var dialects = map[plugins.Dialect]*dialect{
	plugins.Unknown:         &unknown,
	plugins.Chat:            &chat,
	plugins.Completions:     &chat,
	plugins.Embeddings:      &embeddings,
	plugins.Responses:       &responses,
	plugins.Messages:        &messages,
	plugins.GenerateContent: &generateContent,
	plugins.Converse:        &converse,
	plugins.Invoke:          &invoke,
	plugins.CohereChat:      &cohereChat,
	plugins.OllamaChat:      &ollama,
	plugins.OllamaGenerate:  &ollama,
}

// served names a dialect as one provider speaks it.
type served struct {
	provider string
	dialect  plugins.Dialect
}

// variants are the dialects of providers whose fields mean something else.
var variants = map[served]*dialect{
	{"openrouter", plugins.Chat}:        &openRouterChat,
	{"openrouter", plugins.Completions}: &openRouterChat,
	{"openrouter", plugins.Responses}:   &openRouterResponses,
	{"perplexity", plugins.Chat}:        &perplexityChat,
}

func dialectOf(d plugins.Dialect, provider string) *dialect {
	if v, ok := variants[served{provider, d}]; ok {
		return v
	}
	if known, ok := dialects[d]; ok {
		return known
	}
	return &unknown
}

// errorFields is an error as all who speak JSON name its parts.
var errorFields = table{
	"":       failure,
	"type":   errorType,
	"code":   errorCode,
	"status": errorCode, // Google
}

var unknown = dialect{
	fields: compile(errorFields.under("error"), table{
		"":                 sentinel,
		"id":               responseID,
		"model":            model,
		"object":           shape,
		"type":             shape,
		"choices":          shape,
		"candidates":       shape,
		"usageMetadata":    shape,
		"promptFeedback":   shape,
		"stopReason":       shape,
		"message":          shape,
		"response":         shape,
		"data.#.embedding": shape,
	}),
}

// shapeOf is the dialect that a value at a path of the unknown one shows; anonymous
// is true while no id was seen.
func shapeOf(v value, anonymous bool) plugins.Dialect {
	switch v.key {
	case "object":
		return objects[string(v.bytes)]
	case "type":
		return types[string(v.bytes)]
	case "candidates", "usageMetadata", "promptFeedback":
		return plugins.GenerateContent
	case "embedding":
		return plugins.Embeddings
	}
	switch {
	case v.key == "choices" && v.kind == array:
		return plugins.Chat
	case v.key == "stopReason" && v.kind == text:
		return plugins.Converse
	case v.key == "response" && v.kind == text:
		return plugins.OllamaGenerate
	case v.key == "message" && v.kind == object && anonymous:
		return plugins.OllamaChat
	case v.key == "message" && v.kind == object:
		return plugins.CohereChat
	}
	return plugins.Unknown
}

// objects are the values of "object" in what OpenAI's APIs answer.
var objects = map[string]plugins.Dialect{
	"chat.completion":       plugins.Chat,
	"chat.completion.chunk": plugins.Chat,
	"chat.completion.done":  plugins.Chat, // Perplexity
	"text_completion":       plugins.Completions,
	"response":              plugins.Responses,
}

// types are the values of "type" with which messages and streams begin.
var types = map[string]plugins.Dialect{
	"message":              plugins.Messages,
	"message_start":        plugins.Messages,
	"message-start":        plugins.CohereChat,
	"response.created":     plugins.Responses,
	"response.queued":      plugins.Responses,
	"response.in_progress": plugins.Responses,
	"response.failed":      plugins.Responses,
}
