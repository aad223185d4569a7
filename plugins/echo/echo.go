// Package echo is a mock provider of models, without a network: it answers a request
// by repeating its last user message. It reads Responses. The gateway's readers and writers
// add OpenAI's Chat Completions and Anthropic's Messages. Quickstarts, examples and tests
// use it.
package echo

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/weirhq/weir/plugins"
)

// DefaultModel is the model's name where the request names none.
const DefaultModel = "echo-1"

// Request is what an answer depends on. It is the same for every dialect.
type Request struct {
	Model       string   // the name that the answer carries
	Prompt      string   // the text of the last user message
	Images      int      // images in the last user message
	ToolResults []string // texts of the tool results that the conversation ends with
	InputBytes  int      // the length of all text in the request

	Tools        []Tool // the functions that may be called
	ToolRequired bool   // at least one of Tools must be called
	SingleCall   bool   // at most one of Tools may be called

	Schema    json.RawMessage // the JSON Schema that the text must match, nil if there is none
	Reasoning bool            // reasoning comes before the answer
	MaxTokens int             // bounds the output, reasoning included; 0 is no limit
}

// Tool is a function that the client offers.
type Tool struct {
	Name string
	// Parameters is the JSON Schema of the arguments, nil if there is none.
	Parameters json.RawMessage
}

// Answer is the content of an answer, before a dialect encodes it.
type Answer struct {
	Reasoning string
	Text      string
	Calls     []Call
	Cut       bool // MaxTokens cut it off
	Usage     plugins.Usage
}

// Call is a call of one of the request's tools.
type Call struct {
	Name string
	// Arguments is a JSON object.
	Arguments string
}

const thought = "The user said something, so the answer repeats it."

// Answer is the same for equal requests. A tool is called when one is required
// or when the prompt names it with parentheses, as in "get_weather()"; any
// other answer repeats the prompt, or the tool results that ended the
// conversation, unless a schema asks for an instance of it.
func (r Request) Answer() Answer {
	a := Answer{Calls: r.calls()}
	if len(a.Calls) == 0 {
		a.Text = r.text()
	}
	if r.Reasoning {
		a.Reasoning = thought
	}
	if r.MaxTokens > 0 {
		a.truncate(r.MaxTokens)
	}

	reasoning := tokens(len(a.Reasoning))
	output := reasoning + tokens(len(a.Text))
	for _, c := range a.Calls {
		output += c.tokens()
	}
	a.Usage = plugins.Usage{
		Input:      plugins.Known(int64(tokens(r.InputBytes))),
		CacheRead:  plugins.Known(0),
		CacheWrite: plugins.Known(0),
		Output:     plugins.Known(int64(output)),
		Reasoning:  plugins.Known(int64(reasoning)),
	}
	return a
}

func (r Request) calls() []Call {
	var calls []Call
	if len(r.ToolResults) == 0 {
		for _, t := range r.Tools {
			if strings.Contains(r.Prompt, t.Name+"()") {
				calls = append(calls, t.call())
			}
		}
	}
	if len(calls) == 0 && r.ToolRequired && len(r.Tools) > 0 {
		calls = append(calls, r.Tools[0].call())
	}
	if r.SingleCall && len(calls) > 1 {
		calls = calls[:1]
	}
	return calls
}

func (r Request) text() string {
	if r.Schema != nil {
		return string(exampleArguments(r.Schema))
	}
	if len(r.ToolResults) > 0 {
		return "The tool returned: " + strings.Join(r.ToolResults, ", ")
	}
	text := "You said nothing."
	if r.Prompt != "" {
		text = "You said: " + r.Prompt
	}
	switch r.Images {
	case 0:
		return text
	case 1:
		return text + " (with 1 image)"
	default:
		return fmt.Sprintf("%s (with %d images)", text, r.Images)
	}
}

// truncate cuts a to at most limit tokens. A call that does not fit is left out: half of its
// arguments would be no JSON.
func (a *Answer) truncate(limit int) {
	cut := func(s string) string {
		n := len(s)
		if tokens(n) > limit {
			a.Cut = true
			for n = limit * bytesPerToken; !utf8.RuneStart(s[n]); n-- {
			}
		}
		limit -= tokens(n)
		return s[:n]
	}
	a.Reasoning = cut(a.Reasoning)
	a.Text = cut(a.Text)
	for i, c := range a.Calls {
		if c.tokens() > limit {
			a.Calls, a.Cut = a.Calls[:i], true
			return
		}
		limit -= c.tokens()
	}
}

func (t Tool) call() Call {
	return Call{Name: t.Name, Arguments: string(exampleArguments(t.Parameters))}
}

func (c Call) tokens() int { return tokens(len(c.Name) + len(c.Arguments)) }

const bytesPerToken = 4

// tokens is the number of tokens in a text of n bytes.
func tokens(n int) int { return (n + bytesPerToken - 1) / bytesPerToken }
