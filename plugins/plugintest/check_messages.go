package plugintest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/translate"
)

// CheckMessages reads a whole stream of POST /v1/messages by the grammar that clients
// rely on: message_start, blocks one after the other, message_delta, message_stop; or
// an error at the end. Errors are as those of [Check].
func CheckMessages(stream []byte) (*Message, error) {
	var c messagesChecker
	if err := eachEvent(stream, c.event); err != nil {
		return nil, err
	}
	if !c.ended {
		return nil, fmt.Errorf("the stream has no end")
	}
	for i := range c.Calls {
		c.Calls[i].Arguments = inputOf(c.Calls[i].Arguments)
	}
	return &c.Message, nil
}

type messagesChecker struct {
	Message
	blocks       int
	open         string // the type of the block that is open
	signed       bool   // it has its signature
	hosted       string // the id of the last call of a hosted tool
	begun, ended bool
}

func (c *messagesChecker) event(name string, data []byte) error {
	v := gjson.ParseBytes(data)
	kind := v.Get("type").Str
	switch {
	case c.ended:
		return fmt.Errorf("something follows the end")
	case !gjson.ValidBytes(data) || name != kind:
		return fmt.Errorf("the data is not JSON, or not of the type %q", name)
	case c.begun == (kind == "message_start"):
		return fmt.Errorf("it is not the first event, or not the only one of its type")
	case c.Finish != "" && kind != "message_stop" && kind != "ping" && kind != "error":
		return fmt.Errorf("it comes after the stop_reason")
	}
	switch kind {
	case "message_start":
		c.begun = true
		m := v.Get("message")
		if m.Get("id").Str == "" || m.Get("type").Str != "message" || m.Get("role").Str != "assistant" || m.Get("model").Type != gjson.String ||
			m.Get("content").Raw != "[]" || m.Get("stop_reason").Raw != "null" {
			return fmt.Errorf("the message lacks what it must have")
		}
		return c.count(m.Get("usage"))
	case "content_block_start":
		return c.start(v)
	case "content_block_delta":
		return c.delta(v)
	case "content_block_stop":
		if c.open == "" || v.Get("index").Int() != int64(c.blocks-1) {
			return fmt.Errorf("the block is not open")
		}
		c.open = ""
	case "message_delta":
		c.Finish = v.Get("delta.stop_reason").Str
		if !slices.Contains(stopReasons, c.Finish) {
			return errUnknownReason(c.Finish)
		}
		if calls := len(c.Calls) > 0; c.open != "" || c.Finish == "tool_use" && !calls || c.Finish == "end_turn" && calls {
			return fmt.Errorf("a block is open, or the stop_reason does not fit %d calls", len(c.Calls))
		}
		return c.count(v.Get("usage"))
	case "message_stop":
		c.ended = true
		if c.Finish == "" {
			return fmt.Errorf("there was no stop_reason")
		}
	case "error":
		c.ended, c.Error, c.Finish = true, v.Get("error.message").Str, ""
		if c.Error == "" || v.Get("error.type").Str == "" {
			return fmt.Errorf("the error has no message or no type")
		}
	case "ping":
	default:
		return fmt.Errorf("there is no such event")
	}
	return nil
}

func (c *messagesChecker) start(v gjson.Result) error {
	block := v.Get("content_block")
	if c.open != "" || v.Get("index").Type != gjson.Number || v.Get("index").Int() != int64(c.blocks) {
		return fmt.Errorf("another block is open, or the index is not %d", c.blocks)
	}
	c.blocks++
	c.open, c.signed = block.Get("type").Str, false
	switch c.open {
	case "text":
		if block.Get("text").Raw != `""` {
			return fmt.Errorf("the block begins with text")
		}
	case "thinking":
		if block.Get("thinking").Raw != `""` || block.Get("signature").Raw != `""` {
			return fmt.Errorf("the block begins with thoughts")
		}
	case "tool_use":
		if block.Get("id").Str == "" || block.Get("name").Str == "" || block.Get("input").Raw != "{}" {
			return fmt.Errorf("the call lacks what it must have")
		}
		c.Calls = append(c.Calls, Call{ID: block.Get("id").Str, Name: block.Get("name").Str})
	case "server_tool_use":
		if c.hosted = block.Get("id").Str; !strings.HasPrefix(c.hosted, "srvtoolu_") || block.Get("name").Str == "" || block.Get("input").Raw != "{}" {
			return fmt.Errorf("the hosted call lacks what it must have")
		}
	case "web_search_tool_result", "code_execution_tool_result":
		if block.Get("tool_use_id").Str != c.hosted {
			return fmt.Errorf("the result is of no call")
		}
		c.Hosted = append(c.Hosted, block.Get("content").Raw)
	default:
		return fmt.Errorf("there is no block of type %q", c.open)
	}
	return nil
}

func (c *messagesChecker) delta(v gjson.Result) error {
	delta := v.Get("delta")
	kind := delta.Get("type").Str
	if v.Get("index").Int() != int64(c.blocks-1) {
		return fmt.Errorf("the block is not open")
	}
	switch {
	case c.open == "text" && kind == "text_delta":
		c.Text += delta.Get("text").Str
	case c.open == "text" && kind == "citations_delta":
		return c.citeBlock(delta.Get("citation"))
	case c.open == "thinking" && kind == "thinking_delta" && !c.signed:
		c.Reasoning += delta.Get("thinking").Str
	case c.open == "thinking" && kind == "signature_delta" && !c.signed && delta.Get("signature").Str != "":
		c.signed = true
	case c.open == "server_tool_use" && kind == "input_json_delta":
		c.Hosted = append(c.Hosted, delta.Get("partial_json").Str)
	case c.open == "tool_use" && kind == "input_json_delta":
		c.Calls[len(c.Calls)-1].Arguments += delta.Get("partial_json").Str
	default:
		return fmt.Errorf("a block of type %q has no such delta", c.open)
	}
	return nil
}

// stopReasons are the reasons to stop that the API has
// (https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons).
var stopReasons = []string{
	"end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal", "model_context_window_exceeded",
}

// citationMembers are the texts that a citation must have, by its type.
var citationMembers = map[string][]string{
	"char_location":              {"cited_text"},
	"page_location":              {"cited_text"},
	"content_block_location":     {"cited_text"},
	"search_result_location":     {"cited_text", "source"},
	"web_search_result_location": {"cited_text", "encrypted_index", "url"},
}

func (m *Message) citeBlock(citation gjson.Result) error {
	members, ok := citationMembers[citation.Get("type").Str]
	for _, member := range members {
		ok = ok && citation.Get(member).Type == gjson.String
	}
	if !ok {
		return fmt.Errorf("the citation lacks what it must have: %s", citation.Raw)
	}
	m.Citations = append(m.Citations, citation.Raw)
	return nil
}

// count reads usage. The input is in three parts.
func (c *Message) count(usage gjson.Result) error {
	c.Input, c.Output = 0, usage.Get("output_tokens").Int()
	for _, key := range []string{"input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"} {
		n := usage.Get(key)
		if n.Type != gjson.Number || n.Int() < 0 {
			return fmt.Errorf("usage.%s is %q", key, n.Raw)
		}
		if key != "output_tokens" {
			c.Input += n.Int()
		}
	}
	return nil
}

// ReadMessages reads a message that is one object.
func ReadMessages(object []byte) (*Message, error) {
	v := gjson.ParseBytes(object)
	if !gjson.ValidBytes(object) {
		return nil, fmt.Errorf("the message is not JSON")
	}
	if v.Get("type").Str == "error" {
		return &Message{Error: v.Get("error.message").Str}, nil
	}
	m := &Message{Finish: v.Get("stop_reason").Str}
	if v.Get("type").Str != "message" || v.Get("id").Str == "" || v.Get("role").Str != "assistant" || !v.Get("content").IsArray() || m.Finish == "" {
		return nil, fmt.Errorf("the message lacks what it must have")
	}
	if !slices.Contains(stopReasons, m.Finish) {
		return nil, errUnknownReason(m.Finish)
	}
	for _, block := range v.Get("content").Array() {
		switch block.Get("type").Str {
		case "text":
			m.Text += block.Get("text").Str
			for _, citation := range block.Get("citations").Array() {
				if err := m.citeBlock(citation); err != nil {
					return nil, err
				}
			}
		case "thinking":
			m.Reasoning += block.Get("thinking").Str
		case "tool_use":
			m.Calls = append(m.Calls, Call{block.Get("id").Str, block.Get("name").Str, inputOf(block.Get("input").Raw)})
		case "server_tool_use":
			m.Hosted = append(m.Hosted, block.Get("input").Raw)
		case "web_search_tool_result", "code_execution_tool_result":
			m.Hosted = append(m.Hosted, block.Get("content").Raw)
		}
	}
	return m, m.count(v.Get("usage"))
}

// inputOf is the input of a call. Arguments that are no object were cut off: an object holds them.
func inputOf(arguments string) string {
	var b bytes.Buffer
	if arguments == "" {
		return "{}"
	}
	if !gjson.Parse(arguments).IsObject() || json.Compact(&b, []byte(arguments)) != nil {
		return string(translate.InvalidArguments(arguments))
	}
	return b.String()
}
