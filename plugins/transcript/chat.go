package transcript

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// contentPart is a part of a content list: text, or Mistral's thinking, which
// is itself a list of texts.
var contentPart = Object(Fields{
	"text":     Join,
	"thinking": listOf(sameType, Fields{"text": Join}),
})

// chatCalls is where a message has its calls of tools: Cohere's and Ollama's too.
var chatCalls = CallForm{Member: "tool_calls", ID: "id", Name: "function.name", Arguments: "function.arguments"}

var functionCall = Object(Fields{"name": joinNames, "arguments": Join})

// toolCall is a call, or a piece of one.
var toolCall = Object(Fields{
	"id":       First,
	"type":     First,
	"function": functionCall,
	"custom":   Object(Fields{"name": joinNames, "input": Join}),
})

var chatDelta = Object(Fields{
	"role":              First,
	"content":           {how: join, find: sameType, item: contentPart},
	"refusal":           Join,
	"reasoning":         Join,
	"reasoning_content": Join,
	"reasoning_details": listOf(sameDetail, Fields{
		"text": Join, "summary": Join, "data": Join, "signature": Join,
	}),
	"function_call":  functionCall,
	chatCalls.Member: {how: collect, find: sameCall, item: toolCall},
	"audio":          Object(Fields{"id": First, "data": Join, "transcript": Join}),
	"annotations":    Collect,
	"images":         Collect,
	"citations":      Collect,
})

var chatChunk = Object(Fields{
	"id":          First,
	"created":     First,
	"model":       First,
	"obfuscation": Drop,
	"x_groq":      Object(Fields{"id": First}),
	"choices": List(Fields{
		"delta":                  chatDelta,
		"logprobs":               Object(Fields{"content": Collect, "refusal": Collect}),
		"content_filter_results": Merge,
	}),
})

// Chat is the transcript of Chat Completions.
// https://platform.openai.com/docs/api-reference/chat-streaming
var Chat = Format{
	Input:    []string{"messages"},
	Output:   []string{"choices.#.message.content"},
	Choices:  "choices.#.message",
	Finish:   "choices.#.finish_reason",
	Calls:    []CallForm{chatCalls},
	Chunk:    chatChunk,
	finish:   finishChat,
	required: []string{"choices", "error"},
}

func finishChat(root *node) {
	choices := root.get("choices")
	if choices.isEmpty() {
		return
	}
	root.ensure("object").set(`"chat.completion"`)
	if usage := root.ensure("x_groq").get("usage"); !usage.isEmpty() && root.get("usage").isEmpty() {
		*root.ensure("usage") = *usage
	}
	for _, choice := range choices.members {
		// Perplexity repeats the message so far beside each delta.
		choice.node.rename("delta", "message")
		for _, call := range choice.node.ensure("message").ensure(chatCalls.Member).members {
			call.node.remove("index")
		}
	}
}

// sameType joins a text or thinking to the element before it, if of that type.
func sameType(list *node, part gjson.Result, _ int) (*node, string) {
	last, kind := list.last(), part.Get("type")
	if last != nil && (kind.Str == "text" || kind.Str == "thinking") {
		if before := last.get("type"); before != nil && before.raw == kind.Raw {
			return last, ""
		}
	}
	return nil, ""
}

// sameDetail joins OpenRouter's reasoning details of the same index and type.
func sameDetail(list *node, detail gjson.Result, _ int) (*node, string) {
	index := detail.Get("index")
	if !index.Exists() {
		return nil, ""
	}
	key := index.Raw + detail.Get("type").Raw
	return list.get(key), key
}

// sameCall joins the pieces of a tool call: those of the same index, else of the same id. As where an answer is
// translated, a piece with neither an id nor a name goes on with the last call if no call has its index, and one
// with a name begins a further call at its index if it has another id: there are providers that number all calls 0
// (https://github.com/vercel/ai/pull/14277). Without an id, it does so after a call that came whole in one piece.
// What came in several is not looked at: that would take long, and templates rely on it.
func sameCall(list *node, piece gjson.Result, _ int) (call *node, key string) {
	id, name := piece.Get("id"), piece.Get("function.name")
	if !name.Exists() {
		name = piece.Get("custom.name")
	}
	if key = id.Str; piece.Get("index").Type == gjson.Number {
		key = piece.Get("index").Raw
	}
	if key != "" {
		call = list.get(key)
	}
	switch {
	case call == nil && id.Str == "" && name.Str == "":
		return list.last(), key
	case call == nil, name.Str == "":
		return call, key
	}
	f := call.get("function")
	switch {
	case id.Str == "", call.get("id").isBlank():
		if begun := f.get("arguments"); begun != nil && begun.kind == complete && isWholeCall(gjson.Parse(begun.raw)) {
			if next := piece.Get("function.arguments"); next.IsObject() || strings.HasPrefix(strings.TrimSpace(next.Str), "{") {
				return nil, key
			}
		}
		return call, key
	case call.get("id").equals(id.Raw):
		return call, key
	case f.get("arguments").isBlank() && !f.get("name").isEmpty() && f.get("name").equalsText(name.Raw):
		return call, key // it begins a second time (https://github.com/Avarok-Cybersecurity/atlas/issues/33)
	}
	return nil, key
}

// isWholeCall reports whether arguments are an object, or a string with one.
func isWholeCall(arguments gjson.Result) bool {
	return arguments.IsObject() || plugins.ValidNested([]byte(arguments.Str), deepest) && gjson.Parse(arguments.Str).IsObject()
}

var completionChunk = Object(Fields{
	"id":      First,
	"created": First,
	"model":   First,
	"choices": List(Fields{
		"text": Join,
		"logprobs": Object(Fields{
			"tokens": Collect, "token_logprobs": Collect, "top_logprobs": Collect, "text_offset": Collect,
		}),
	}),
	"results": List(Fields{"generated_text": Join, "input_token_count": First}), // watsonx
})

// Completions is the transcript of the legacy Completions.
var Completions = Format{
	Input:    []string{"prompt", "input"},
	Output:   []string{"choices.#.text", "results.#.generated_text"},
	Choices:  "[choices.#.text,results.#.generated_text]|@flatten",
	Finish:   "[choices.#.finish_reason,results.#.stop_reason]|@flatten",
	Chunk:    completionChunk,
	required: []string{"choices", "results", "error"},
}
