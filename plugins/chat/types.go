package chat

import (
	"encoding/json"

	"github.com/weirhq/weir/plugins/translate"
)

// The types of Chat Completions. Vendors with formats of their own have some of them too.

// Message is one of a conversation.
type Message struct {
	Role    translate.Role `json:"role"`
	Content any            `json:"content"` // a string, parts, or nil beside calls
	thoughts
	Calls[ToolCall]
	ToolCallID string `json:"tool_call_id,omitempty"`
}

// FinishReason is that of an answer that is the message.
func (m *Message) FinishReason() string {
	if len(m.ToolCalls) > 0 {
		return "tool_calls"
	}
	return "stop"
}

// Calls are those of tools in a message: each a ToolCall, or JSON.
type Calls[Call any] struct {
	ToolCalls []Call `json:"tool_calls,omitempty"`
}

// Part is a part of a message's content.
type Part struct {
	Type        string    `json:"type"`
	Text        string    `json:"text,omitempty"`
	ImageURL    *ImageURL `json:"image_url,omitempty"`
	InputAudio  any       `json:"input_audio,omitempty"`  // an Audio, or base64
	File        *File     `json:"file,omitempty"`         // OpenAI's
	DocumentURL string    `json:"document_url,omitempty"` // Mistral's
}

// ImageURL is an image by its URL, which may be a data: URL.
type ImageURL struct {
	URL    string `json:"url"`
	Detail string `json:"detail,omitempty"`
}

// Audio is audio in base64, and its format, such as mp3.
type Audio struct {
	Data   string `json:"data"`
	Format string `json:"format"`
}

// File is an uploaded file, or a data: URL.
type File struct {
	FileID   string `json:"file_id,omitempty"`
	Filename string `json:"filename,omitempty"`
	FileData string `json:"file_data,omitempty"`
}

// Tool is a function, or a custom tool, whose input is free-form.
type Tool struct {
	Type     string      `json:"type"`
	Function *Function   `json:"function,omitempty"`
	Custom   *CustomTool `json:"custom,omitempty"`
}

// Function is a tool with a JSON Schema of its arguments.
type Function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	Strict      *bool           `json:"strict,omitempty"`
}

// CustomTool is a tool with free-form input, which may have to match a grammar.
type CustomTool struct {
	Name        string       `json:"name"`
	Description string       `json:"description,omitempty"`
	Format      *InputFormat `json:"format,omitempty"`
}

// InputFormat has the type "grammar".
type InputFormat struct {
	Type    string   `json:"type"`
	Grammar *Grammar `json:"grammar,omitempty"`
}

// Grammar is a definition in the syntax lark or regex.
type Grammar struct {
	Definition string `json:"definition"`
	Syntax     string `json:"syntax"`
}

// ToolCall is a call of a function or of a custom tool. Calls that spans report may have no ID.
type ToolCall struct {
	ID       string        `json:"id,omitempty"`
	Type     string        `json:"type"`
	Function *FunctionCall `json:"function,omitempty"`
	Custom   *CustomCall   `json:"custom,omitempty"`
}

// CallFunction returns the call of a function, whose arguments are JSON.
func CallFunction(id, name, arguments string) ToolCall {
	return ToolCall{ID: id, Type: "function", Function: &FunctionCall{name, arguments}}
}

// FunctionCall has the arguments as JSON in a string.
type FunctionCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// CustomCall has free-form input.
type CustomCall struct {
	Name  string `json:"name"`
	Input string `json:"input"`
}

// ResponseFormat is the form that the text of the answer must have.
type ResponseFormat struct {
	Type       string      `json:"type"`
	JSONSchema *JSONSchema `json:"json_schema,omitempty"`
}

// JSONSchema is the schema of a ResponseFormat, and its name.
type JSONSchema struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema"`
	Strict      *bool           `json:"strict,omitempty"`
}
