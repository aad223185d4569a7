package chat

import "encoding/json"

// The types of Chat Completions, beside messages and calls, which are in content.go. Vendors
// with formats of their own have some of them too.

// Part is a part of a message's content.
type Part struct {
	Type        string    `json:"type"`
	Text        string    `json:"text,omitempty"`
	ImageURL    *ImageURL `json:"image_url,omitempty"`
	InputAudio  any       `json:"input_audio,omitempty"`  // an Audio, or base64
	File        *File     `json:"file,omitempty"`         // OpenAI's
	DocumentURL string    `json:"document_url,omitempty"` // Mistral's

	CacheControl *cacheControl `json:"cache_control,omitempty"` // OpenRouter's
}

// cacheControl marks a part as the end of a prefix to be cached.
type cacheControl struct {
	Type string `json:"type"`
	TTL  string `json:"ttl,omitempty"`
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
