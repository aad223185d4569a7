package observe

import (
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/transcript"
)

// OllamaChat is Ollama's own chat.
// https://github.com/ollama/ollama/blob/main/docs/api.md
func init() {
	Register(Dialect{
		Name:       plugins.OllamaChat,
		Paths:      []string{"/api/chat"},
		Signs:      []string{`message:{`},
		Request:    ollamaRequest,
		Streams:    true,
		Response:   ollamaResponse,
		Lines:      true,
		Transcript: transcript.OllamaChat,
	})
}

// OllamaGenerate is Ollama's completion of a prompt.
func init() {
	Register(Dialect{
		Name:       plugins.OllamaGenerate,
		Operation:  "text_completion",
		Paths:      []string{"/api/generate"},
		Signs:      []string{`response:"`},
		Request:    ollamaRequest,
		Streams:    true,
		Response:   ollamaResponse,
		Lines:      true,
		Transcript: transcript.OllamaGenerate,
	})
}

// OllamaEmbed is Ollama's embeddings.
func init() {
	Register(Dialect{
		Name:       plugins.OllamaEmbed,
		Operation:  "embeddings",
		NoOutput:   true,
		Paths:      []string{"/api/embed"},
		Request:    modelRequest,
		Response:   ollamaResponse,
		Transcript: transcript.Format{Input: []string{"input"}},
	})
}

var ollamaRequest = tables(modelRequest, messagesIn("messages"), Table{
	"tools":               Tools,
	"images.#":            Media,
	"messages.#.images.#": Media,
})

// The prompt's count is left out where the whole prompt was in the cache.
var ollamaResponse = tables(errorFields.Under("error"), toolCalls.Under("message"), Table{
	"model":             Model,
	"done":              Done,
	"done_reason":       FinishReason,
	"response":          Content,
	"thinking":          Content,
	"message.content":   Content,
	"message.thinking":  Content,
	"message.images.#":  Content,
	"prompt_eval_count": Input,
	"eval_count":        Output,
})
