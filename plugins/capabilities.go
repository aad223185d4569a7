package plugins

import "slices"

// Capabilities are what is known of a model.
type Capabilities struct {
	// Input are the kinds of content the model takes: text, image, audio, video,
	// pdf. Empty if unknown, as in entries of the catalogue that only price old names
	// or whole groups of names.
	Input []string `json:"input,omitempty"`
	// Output are the kinds of content it gives. Embedding and transcription
	// models say text like the others.
	Output []string `json:"output,omitempty"`
	// MaxOutput is the number of tokens the output may have, 0 if unknown.
	MaxOutput int64 `json:"max_output,omitempty"`

	// Reasoning models think before they answer.
	Reasoning bool `json:"reasoning,omitempty"`
	// Efforts are the levels of reasoning effort that can be asked for.
	Efforts []string `json:"efforts,omitempty"`
	// Budget bounds the reasoning tokens that can be asked for.
	Budget Budget `json:"budget,omitzero"`
	// Interleaved is the field of a Chat Completions message that carries the
	// reasoning of earlier turns back to the model, such as
	// "reasoning_content".
	Interleaved string `json:"interleaved,omitempty"`
	// ToolCall models call functions.
	ToolCall bool `json:"tool_call,omitempty"`
	// StructuredOutput models answer by a JSON schema.
	StructuredOutput bool `json:"structured_output,omitempty"`
	// Temperature models take a sampling temperature.
	Temperature bool `json:"temperature,omitempty"`
}

// Budget is a range of reasoning tokens; a zero bound is none.
type Budget struct {
	Min int64 `json:"min,omitempty"`
	Max int64 `json:"max,omitempty"`
}

// Described reports whether the catalogue describes the model, and not only its
// price. Nil describes nothing.
func (c *Capabilities) Described() bool { return c != nil && len(c.Input) > 0 }

// Takes reports whether the model takes a kind of content. A model that is not described
// takes all.
func (c *Capabilities) Takes(kind string) bool {
	return !c.Described() || slices.Contains(c.Input, kind)
}
