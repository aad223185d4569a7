package transcript

import (
	"iter"

	"github.com/tidwall/gjson"
)

// contentPart is a part of a content list: text, or Mistral's thinking, which
// is itself a list of texts.
var contentPart = objectOf(fields{
	"text":     pieces,
	"thinking": listOf(sameType, fields{"text": pieces}),
})

var chatDelta = objectOf(fields{
	"role":              first,
	"content":           {how: join, find: sameType, item: contentPart},
	"refusal":           pieces,
	"reasoning":         pieces,
	"reasoning_content": pieces,
	"reasoning_details": listOf(sameDetail, fields{
		"text": pieces, "summary": pieces, "data": pieces, "signature": pieces,
	}),
	"function_call": objectOf(fields{"name": named, "arguments": pieces}),
	"tool_calls": listOf(sameCall, fields{
		"id":       first,
		"type":     first,
		"function": objectOf(fields{"name": named, "arguments": pieces}),
		"custom":   objectOf(fields{"name": named, "input": pieces}),
	}),
	"audio":       objectOf(fields{"id": first, "data": pieces, "transcript": pieces}),
	"annotations": every,
	"images":      every,
	"citations":   every,
})

var chatChunk = objectOf(fields{
	"id":          first,
	"created":     first,
	"model":       first,
	"obfuscation": padding,
	"x_groq":      objectOf(fields{"id": first}),
	"choices": listOf(byIndex, fields{
		"delta":                  chatDelta,
		"logprobs":               objectOf(fields{"content": every, "refusal": every}),
		"content_filter_results": fieldwise,
	}),
})

// chat assembles the chunks of Chat Completions.
// https://platform.openai.com/docs/api-reference/chat-streaming
func chat(events iter.Seq[event]) *node {
	root := new(node)
	for e := range events {
		e.add(root, e.Result, chatChunk)
	}
	choices := root.get("choices")
	if choices.none() {
		return only(root, "error")
	}
	root.at("object").set(`"chat.completion"`)
	if usage := root.at("x_groq").get("usage"); !usage.none() && root.get("usage").none() {
		*root.at("usage") = *usage
	}
	for _, choice := range choices.members {
		// Perplexity repeats the message so far beside each delta.
		choice.node.rename("delta", "message")
		for _, call := range choice.node.at("message").at("tool_calls").members {
			call.node.remove("index")
		}
	}
	return root
}

// only is root where it has the field key, else nil: the stream was not one of
// its dialect.
func only(root *node, key string) *node {
	if root.get(key).none() {
		return nil
	}
	return root
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

// sameCall joins the pieces of a tool call: those of the same index, else of
// the same id, else of the same position. A named call with another id under a
// known index is a further call (Gemini's OpenAI endpoint numbers all calls 0).
func sameCall(list *node, call gjson.Result, i int) (*node, string) {
	id := call.Get("id")
	index := call.Get("index")
	if index.Type != gjson.Number {
		switch {
		case id.Str != "":
			return list.get(id.Str), id.Str
		case i < len(list.members):
			return list.members[i].node, ""
		}
		return nil, ""
	}
	known := list.get(index.Raw)
	if known == nil {
		return nil, index.Raw
	}
	if old := known.get("id"); !old.blank() && id.Str != "" && old.raw != id.Raw && call.Get("function.name").Str != "" {
		return list.get(id.Str), id.Str
	}
	return known, ""
}

var completionChunk = objectOf(fields{
	"id":      first,
	"created": first,
	"model":   first,
	"choices": listOf(byIndex, fields{
		"text": pieces,
		"logprobs": objectOf(fields{
			"tokens": every, "token_logprobs": every, "top_logprobs": every, "text_offset": every,
		}),
	}),
})

// completions assembles the chunks of the legacy Completions.
func completions(events iter.Seq[event]) *node {
	root := new(node)
	for e := range events {
		e.add(root, e.Result, completionChunk)
	}
	if root.get("choices").none() {
		return only(root, "error")
	}
	return root
}
