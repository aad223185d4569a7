package transcript

import "iter"

var ollamaChunk = objectOf(fields{
	"message": objectOf(fields{
		"role":       first,
		"content":    pieces,
		"thinking":   pieces,
		"tool_calls": every,
		"images":     every,
	}),
	"response":   pieces,
	"thinking":   pieces,
	"logprobs":   every,
	"created_at": latest,
})

// ollama assembles the lines of Ollama's /api/chat and /api/generate.
// https://github.com/ollama/ollama/blob/main/docs/api.md
func ollama(events iter.Seq[event]) *node {
	root := new(node)
	for e := range events {
		e.add(root, e.Result, ollamaChunk)
	}
	for _, key := range []string{"message", "response", "error"} {
		if !root.get(key).none() {
			return root
		}
	}
	return nil
}
