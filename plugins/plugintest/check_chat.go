package plugintest

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// Message is what a legal stream of Chat Completions or of Messages said.
type Message struct {
	// Text, Refusal and Reasoning are what was said in all.
	Text, Refusal, Reasoning string
	// Calls are the calls of tools in their order.
	Calls []Call
	// Hosted are the inputs and the results of tools that the provider ran, as JSON.
	Hosted []string
	// Citations are the sources of the text, as the API has them.
	Citations []string
	// Finish is the finish_reason or stop_reason, "" if the stream failed.
	Finish string
	// Error is the message of the error that ended the stream.
	Error string
	// Input and Output are the tokens, 0 if unknown.
	Input, Output int64
}

// Call is a call of a tool.
type Call struct{ ID, Name, Arguments string }

// CheckChat reads a whole stream of POST /v1/chat/completions by the grammar that
// clients rely on: a chunk with the role, deltas, one finish_reason, the usage if it
// was asked for, [DONE]; or an error at the end. Errors are as those of [Check].
func CheckChat(stream []byte) (*Message, error) {
	var c chatChecker
	if err := eachEvent(stream, c.event); err != nil {
		return nil, err
	}
	if !c.ended {
		return nil, fmt.Errorf("the stream has no end")
	}
	return &c.Message, nil
}

type chatChecker struct {
	Message
	head         string   // what all chunks have
	listed       [2]int64 // annotations and images so far
	usage, ended bool     // seen
}

func (c *chatChecker) event(name string, data []byte) error {
	switch {
	case c.ended:
		return fmt.Errorf("something follows the end")
	case name != "":
		return fmt.Errorf("the event is named %q", name)
	case string(data) == "[DONE]":
		c.ended = true
		if c.Finish == "" {
			return fmt.Errorf("[DONE] before a finish_reason")
		}
		return nil
	case !gjson.ValidBytes(data):
		return fmt.Errorf("the data is not JSON")
	}
	v := gjson.ParseBytes(data)
	if e := v.Get("error"); e.Exists() {
		c.ended, c.Error, c.Finish = true, e.Get("message").Str, ""
		if c.Error == "" || e.Get("type").Str == "" {
			return fmt.Errorf("the error has no message or no type")
		}
		return nil
	}
	head := v.Get("[id,object,created,model]").Raw
	if c.head == "" {
		c.head = head
		if v.Get("id").Str == "" || v.Get("object").Str != "chat.completion.chunk" || v.Get("created").Type != gjson.Number ||
			v.Get("model").Type != gjson.String || v.Get("choices.0.delta.role").Str != "assistant" {
			return fmt.Errorf("the first chunk lacks what it must have")
		}
	}
	if head != c.head {
		return fmt.Errorf("the chunk is one of another completion")
	}
	return c.chunk(v)
}

func (c *chatChecker) chunk(v gjson.Result) error {
	choices, usage := v.Get("choices"), v.Get("usage")
	switch n := len(choices.Array()); {
	case !choices.IsArray() || n > 1:
		return fmt.Errorf("there are %d choices", n)
	case n == 0 && (c.Finish == "" || c.usage || !usage.Exists()):
		return fmt.Errorf("the usage comes before the end, twice, or not at all")
	case n == 0:
		c.usage = true
		return c.count(usage)
	case usage.Type != gjson.Null:
		return fmt.Errorf("there is usage beside a choice")
	case c.Finish != "":
		return fmt.Errorf("a delta follows the finish_reason")
	}
	choice := choices.Get("0")
	delta, finish := choice.Get("delta"), choice.Get("finish_reason")
	if choice.Get("index").Raw != "0" || !delta.IsObject() || !finish.Exists() || !choice.Get("logprobs").Exists() {
		return fmt.Errorf("the choice lacks what it must have")
	}
	c.Text += delta.Get("content").Str
	c.Refusal += delta.Get("refusal").Str
	c.Reasoning += delta.Get("reasoning_content").Str
	for _, call := range chatCalls(delta) {
		if err := c.call(call); err != nil {
			return err
		}
	}
	if err := c.cite(delta.Get("annotations")); err != nil {
		return err
	}
	for i, list := range []string{"annotations", "images"} {
		for _, element := range delta.Get(list).Array() {
			if n := element.Get("index"); n.Type != gjson.Number || n.Int() != c.listed[i] {
				return fmt.Errorf("an element of %s has the index %q, want %d", list, n.Raw, c.listed[i])
			}
			c.listed[i]++
		}
	}
	c.Finish = finish.Str
	if c.Finish != "" && !slices.Contains(chatFinishes, c.Finish) {
		return errUnknownReason(c.Finish)
	}
	if calls := len(c.Calls) > 0; c.Finish == "tool_calls" && !calls || c.Finish == "stop" && calls {
		return fmt.Errorf("the finish_reason does not fit %d calls", len(c.Calls))
	}
	return nil
}

// chatFinishes are the reasons to stop that the API has: strict clients take no other
// (https://platform.openai.com/docs/api-reference/chat/object).
var chatFinishes = []string{"stop", "length", "tool_calls", "content_filter", "function_call"}

func errUnknownReason(reason string) error {
	return fmt.Errorf("the API has no reason to stop %q", reason)
}

// chatCalls are the calls of a message of Chat Completions.
func chatCalls(message gjson.Result) []gjson.Result { return message.Get("tool_calls").Array() }

// chatItems are the items of Responses that members of a message become.
var chatItems = map[string]string{"tool_calls": "function_call", "reasoning": "reasoning", "reasoning_content": "reasoning"}

// cite adds annotations. Each must be about a part of the text so far, as AI SDKs demand.
func (m *Message) cite(annotations gjson.Result) error {
	length := int64(utf8.RuneCountInString(m.Text))
	for _, annotation := range annotations.Array() {
		c := annotation.Get("url_citation")
		start, end := c.Get("start_index"), c.Get("end_index")
		if annotation.Get("type").Str != "url_citation" || c.Get("url").Str == "" || c.Get("title").Str == "" ||
			start.Type != gjson.Number || start.Int() < 0 || start.Int() > end.Int() || end.Int() > length {
			return fmt.Errorf("an annotation of a text of %d characters is %s", length, annotation.Raw)
		}
		m.Citations = append(m.Citations, c.Raw)
	}
	return nil
}

// call adds the beginning of a call, or more of its arguments.
func (c *chatChecker) call(v gjson.Result) error {
	i, id := int(v.Get("index").Int()), v.Get("id").Str
	f, arguments := v.Get("function"), "arguments"
	if v.Get("custom").Exists() {
		f, arguments = v.Get("custom"), "input"
	}
	if v.Get("index").Type != gjson.Number || f.Get(arguments).Type != gjson.String {
		return fmt.Errorf("a call has no index or no arguments")
	}
	switch {
	case i == len(c.Calls) && id != "" && f.Get("name").Str != "" && (v.Get("type").Str == "function") == v.Get("function").Exists():
		c.Calls = append(c.Calls, Call{ID: id, Name: f.Get("name").Str})
	case i < 0 || i >= len(c.Calls) || id != "":
		return fmt.Errorf("the call %d begins without its id and name, out of order, or again", i)
	}
	c.Calls[i].Arguments += f.Get(arguments).Str
	return nil
}

func (c *chatChecker) count(usage gjson.Result) error {
	if usage.Type == gjson.Null {
		return nil
	}
	c.Input, c.Output = usage.Get("prompt_tokens").Int(), usage.Get("completion_tokens").Int()
	for _, path := range []string{"prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details.cached_tokens", "completion_tokens_details.reasoning_tokens"} {
		if n := usage.Get(path); n.Type != gjson.Number || n.Int() < 0 {
			return fmt.Errorf("usage.%s is %q", path, n.Raw)
		}
	}
	if usage.Get("total_tokens").Int() != c.Input+c.Output || usage.Get("prompt_tokens_details.cached_tokens").Int() > c.Input ||
		usage.Get("completion_tokens_details.reasoning_tokens").Int() > c.Output {
		return fmt.Errorf("the usage does not add up")
	}
	return nil
}

// ReadChat reads a completion that is one object.
func ReadChat(object []byte) (*Message, error) {
	v := gjson.ParseBytes(object)
	if !gjson.ValidBytes(object) {
		return nil, fmt.Errorf("the completion is not JSON")
	}
	if e := v.Get("error"); e.Exists() {
		return &Message{Error: e.Get("message").Str}, nil
	}
	message := v.Get("choices.0.message")
	if v.Get("object").Str != "chat.completion" || v.Get("id").Str == "" || v.Get("choices.#").Int() != 1 || message.Get("role").Str != "assistant" ||
		!message.Get("content").Exists() || v.Get("choices.0.finish_reason").Str == "" {
		return nil, fmt.Errorf("the completion lacks what it must have")
	}
	c := chatChecker{Message: Message{
		Text: message.Get("content").Str, Refusal: message.Get("refusal").Str, Reasoning: message.Get("reasoning_content").Str,
		Finish: v.Get("choices.0.finish_reason").Str,
	}}
	if !slices.Contains(chatFinishes, c.Finish) {
		return nil, errUnknownReason(c.Finish)
	}
	if err := c.cite(message.Get("annotations")); err != nil {
		return nil, err
	}
	for _, call := range chatCalls(message) {
		kind := call.Get("type").Str
		arguments := call.Get(kind + "." + map[string]string{"function": "arguments", "custom": "input"}[kind]).Str
		c.Calls = append(c.Calls, Call{call.Get("id").Str, call.Get(kind + ".name").Str, arguments})
	}
	if usage := v.Get("usage"); !usage.Exists() {
		return nil, fmt.Errorf("there is no usage")
	} else if err := c.count(usage); err != nil {
		return nil, err
	}
	return &c.Message, nil
}

// same compares what two ways to read an answer came to. The parts of a reasoning may come in
// another order.
func (m *Message) same(other content) bool {
	n := other.(*Message)
	if m.Error != "" || n.Error != "" {
		return m.Error == n.Error
	}
	slices.Sort(m.Citations)
	slices.Sort(n.Citations)
	return slices.Equal(m.Citations, n.Citations) && m.Text == n.Text && m.Refusal == n.Refusal && m.Finish == n.Finish &&
		len(m.Reasoning) == len(n.Reasoning) && slices.Equal(m.Calls, n.Calls)
}
