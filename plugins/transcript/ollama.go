package transcript

// OllamaChat is the transcript of Ollama's /api/chat.
// https://github.com/ollama/ollama/blob/main/docs/api.md
var OllamaChat = Format{
	Input:   []string{"messages"},
	Output:  []string{"message.content"},
	Message: "message",
	Finish:  "done_reason",
	Calls:   Chat.Calls,
	Chunk:   ollamaChunk,
}

// OllamaGenerate is the transcript of Ollama's /api/generate.
var OllamaGenerate = Format{
	Input:   []string{"system", "prompt"},
	Output:  []string{"response"},
	Message: "response",
	Finish:  "done_reason",
	Chunk:   ollamaChunk,
}

var ollamaChunk = Object(Fields{
	"message": Object(Fields{
		"role":           First,
		"content":        Join,
		"thinking":       Join,
		chatCalls.Member: Collect,
		"images":         Collect,
	}),
	"response":   Join,
	"thinking":   Join,
	"logprobs":   Collect,
	"created_at": Last,
})
