package plugins

import (
	"net/http"
	"slices"
	"strings"
)

// ContextExceeded is the code of an error for a request that is longer than the model's context.
// Clients compact the conversation then.
const ContextExceeded = "context_length_exceeded"

// promptTooLong begins the same error in Anthropic's words, which Claude Code looks for
// (https://platform.claude.com/docs/en/build-with-claude/context-windows).
const promptTooLong = "prompt is too long"

// contextExceeded are the words by which vendors say that a request is longer than the model's
// context, in lower case.
var contextExceeded = []string{
	"maximum context length",                 // OpenAI, Azure, DeepSeek, Mistral, OpenRouter, vLLM
	"model's context length",                 // vLLM: "You passed 9 input tokens …", SGLang: "The input is longer than …"
	"maximum model length",                   // vLLM: "The decoder prompt is longer than …"
	"max_model_len",                          // vLLM
	"exceeds the context window",             // OpenAI's Responses
	"context window exceeds limit",           // MiniMax
	"context_length_exceeded",                // those behind OpenRouter
	promptTooLong,                            // Anthropic, Fireworks
	"exceed context limit",                   // Anthropic, with the limit of the output
	"prompt too long",                        // Ollama
	"exceeds the context length",             // Ollama's embeddings
	"input is too long",                      // Bedrock
	"input tokens exceeded",                  // Bedrock
	"number of input tokens exceeds",         // Bedrock
	"input token count",                      // Gemini, Vertex AI
	"exceeds the available context size",     // llama.cpp (https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md)
	"exceed_context_size_error",              // llama.cpp
	"context size has been exceeded",         // llama.cpp, while it writes
	"context the overflows",                  // LM Studio
	"greater than the context length",        // LM Studio
	"too many tokens:",                       // Cohere
	"reduce the length of the messages",      // Groq, Cerebras
	"maximum prompt length",                  // xAI
	"prompt token count",                     // GitHub Copilot
	"exceeded model token limit",             // Moonshot
	"prompt exceeds max length",              // Z.ai
	"range of input length should be",        // Alibaba
	"`max_new_tokens` must be <=",            // Together, Text Generation Inference
	"`inputs` must have less than",           // Text Generation Inference
	"exceeds the maximum number of tokens",   // Vertex AI
	"exceeds the maximum input length",       // NVIDIA NIM
	"exceeds maximum allowed context length", // Fireworks
}

// contextStatuses are those of such errors: Together has 403, llama.cpp and Ollama had 500. A 429 with the same words
// is about a rate.
var contextStatuses = []int{0, http.StatusBadRequest, http.StatusForbidden, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity, http.StatusInternalServerError}

// saysContextExceeded reports whether a message of a provider, or its code, says so.
func saysContextExceeded(status int, message string) bool {
	if !slices.Contains(contextStatuses, status) {
		return false
	}
	message = strings.ToLower(message)
	return slices.ContainsFunc(contextExceeded, func(words string) bool { return strings.Contains(message, words) })
}

// AnthropicMessage returns the message as Anthropic has it for errors that its clients know by
// their words.
func (e *Error) AnthropicMessage() string {
	if e.Code == ContextExceeded && !strings.HasPrefix(e.Message, promptTooLong) {
		return promptTooLong + ": " + e.Message
	}
	return e.Message
}
