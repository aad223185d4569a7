package catalog

import (
	"fmt"
	"time"
)

// Model is what one provider says about one of its models. Zero values mean
// unknown, and a capability that is false is one that no source claims.
type Model struct {
	// Provider is Weir's name of the provider that serves the model.
	Provider string `json:"-"`
	// ID is the name that the provider's API takes.
	ID string `json:"id"`
	// Name is the name for people.
	Name string `json:"name,omitempty"`
	// Owner is the maker, such as "meta" for a Llama on any provider.
	Owner string `json:"owner,omitempty"`
	// Aliases are other names that the provider has for the same model.
	Aliases []string `json:"aliases,omitempty"`
	// Match is the rule for names that are neither ID nor alias.
	Match *Match `json:"match,omitempty"`

	// Input are the kinds of content the model takes: text, image, audio, video,
	// pdf. Empty if unknown, as in entries that only price old names or whole
	// groups of names.
	Input []string `json:"input,omitempty"`
	// Output are the kinds of content it gives. Embedding and transcription
	// models say text like the others.
	Output []string `json:"output,omitempty"`
	// Context is the number of tokens that input and output may have together.
	Context int64 `json:"context,omitempty"`
	// MaxInput is the number of tokens the input may have.
	MaxInput int64 `json:"max_input,omitempty"`
	// MaxOutput is the number of tokens the output may have.
	MaxOutput int64 `json:"max_output,omitempty"`
	// Released is the day the model came out.
	Released Date `json:"released,omitzero"`

	// Reasoning models think before they answer.
	Reasoning bool `json:"reasoning,omitempty"`
	// Efforts are the levels of reasoning effort that can be asked for.
	Efforts []string `json:"efforts,omitempty"`
	// Budget bounds the reasoning tokens that can be asked for.
	Budget *Budget `json:"budget,omitempty"`
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

	// Prices are what the model costs. Of those that hold for a call, the last
	// one counts.
	Prices []Price `json:"prices,omitempty"`
}

// Budget is a range of reasoning tokens; a zero bound is none.
type Budget struct {
	Min int64 `json:"min,omitempty"`
	Max int64 `json:"max,omitempty"`
}

// Multimodal reports whether the model takes or gives more than one kind of
// content.
func (m *Model) Multimodal() bool { return len(m.Input) > 1 || len(m.Output) > 1 }

// Date is a day, in days since 1 January 1970 UTC. The zero Date is unknown.
type Date int32

const day = 24 * 60 * 60

func dateOf(t time.Time) Date {
	s := t.Unix()
	return Date((s - ((s%day)+day)%day) / day)
}

// ParseDate reads a date such as "2025-06-10".
func ParseDate(s string) (Date, error) {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a date; write it as YYYY-MM-DD", s)
	}
	return dateOf(t), nil
}

// Time is the beginning of the day in UTC.
func (d Date) Time() time.Time { return time.Unix(int64(d)*day, 0).UTC() }

func (d Date) String() string { return d.Time().Format(time.DateOnly) }

// MarshalText writes the date as YYYY-MM-DD.
func (d Date) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (d *Date) UnmarshalText(b []byte) (err error) {
	*d, err = ParseDate(string(b))
	return err
}
