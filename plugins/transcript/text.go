package transcript

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// inputTexts are the places of a request's texts, in the order in which a model
// reads them.
var inputTexts = map[plugins.Dialect][]string{
	plugins.Chat:            {"messages"},
	plugins.Responses:       {"instructions", "input"},
	plugins.Completions:     {"prompt"},
	plugins.Embeddings:      {"input"},
	plugins.Messages:        {"system", "messages"},
	plugins.GenerateContent: {"systemInstruction", "system_instruction", "contents"},
	plugins.Converse:        {"system", "messages"},
	plugins.Invoke:          {"system", "messages", "prompt", "inputText"},
	plugins.CohereChat:      {"messages"},
	plugins.OllamaChat:      {"messages"},
	plugins.OllamaGenerate:  {"system", "prompt"},
}

// outputTexts are the places of a response's texts.
var outputTexts = map[plugins.Dialect][]string{
	plugins.Chat:            {"choices.#.message.content"},
	plugins.Responses:       {`output.#(type=="message")#.content`},
	plugins.Completions:     {"choices.#.text"},
	plugins.Messages:        {`content.#(type=="text")#.text`},
	plugins.GenerateContent: {"candidates.#.content"},
	plugins.Converse:        {"output.message.content"},
	plugins.Invoke: {
		`content.#(type=="text")#.text`, "output.message.content", "choices.#.message.content",
		"generation", "results.#.outputText", "outputs.#.text", "generations.#.text", "completion", "text",
	},
	plugins.CohereChat:     {"message.content"},
	plugins.OllamaChat:     {"message.content"},
	plugins.OllamaGenerate: {"response"},
}

// InputText is the input text of a request: instructions and the texts of all
// messages in their order, joined by newlines. Reasoning that a client sends
// back, and calls of tools, are no text; their results are.
func InputText(d plugins.Dialect, request []byte) string { return texts(inputTexts[d], request) }

// OutputText is the output text of a stored response: the text parts of all
// choices in their order, joined by newlines, without reasoning and refusals.
func OutputText(d plugins.Dialect, response []byte) string { return texts(outputTexts[d], response) }

func texts(places []string, body []byte) string {
	var found []string
	for _, place := range places {
		eachPart(gjson.GetBytes(body, place), 0, func(part gjson.Result) {
			if part.Type == gjson.JSON {
				part = part.Get("text")
			}
			if part.Str != "" {
				found = append(found, part.Str)
			}
		})
	}
	return strings.Join(found, "\n")
}

// containers are the keys of messages and parts under which further parts
// stand: a tool's result has parts of its own.
var containers = map[string]bool{
	"content":          true,
	"parts":            true,
	"output":           true,
	"toolResult":       true, // Converse
	"citationsContent": true, // Converse
	"functionResponse": true, // Gemini
}

// deepestPart is how many containers a part may stand in. The known dialects
// need six: message, content, tool result, content, part.
const deepestPart = 16

// eachPart calls do with each string and each object among the messages and
// parts in v, in document order, but with no reasoning.
func eachPart(v gjson.Result, depth int, do func(part gjson.Result)) {
	switch {
	case depth > deepestPart:
	case v.Type == gjson.String:
		do(v)
	case v.IsArray():
		v.ForEach(func(_, element gjson.Result) bool {
			eachPart(element, depth+1, do)
			return true
		})
	case v.IsObject() && !isReasoning(v):
		do(v)
		v.ForEach(func(key, value gjson.Result) bool {
			if containers[key.Str] {
				eachPart(value, depth+1, do)
			}
			return true
		})
	}
}

func isReasoning(part gjson.Result) bool {
	switch part.Get("type").Str {
	case "reasoning", "reasoning_text", "thinking":
		return true
	}
	return part.Get("thought").Bool()
}
