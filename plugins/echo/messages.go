package echo

import (
	"encoding/json"
	"iter"

	"github.com/tidwall/gjson"
)

// messages is Anthropic's Messages.
var messages = dialect{parse: parseMessages, object: messageObject, stream: streamMessage}

func parseMessages(body gjson.Result) (Request, *failure) {
	r := newRequest(body)
	conversation := body.Get("messages")
	if !conversation.IsArray() {
		return r, invalid("messages", "messages must be an array")
	}
	r.count(body.Get("system"))
	for m := range objects(conversation) {
		content := m.Get("content")
		switch m.Get("role").String() {
		case "user":
			r.userBlocks(content)
		case "assistant":
			r.assistant(content)
			for block := range objects(content) {
				r.InputBytes += len(block.Get("input").Raw)
			}
		default:
			r.count(content)
		}
	}

	for t := range objects(body.Get("tools")) {
		if t.Get("input_schema").Exists() { // else it is one of the server's own
			r.offer(t, "input_schema")
		}
	}
	r.SingleCall = body.Get("tool_choice.disable_parallel_tool_use").Bool()
	r.hold(body.Get("output_format"), "schema") // as betas have it
	r.hold(body.Get("output_config.format"), "schema")
	r.Reasoning = asksForReasoning(body, "thinking")
	if f := r.choose(messagesChoice(body.Get("tool_choice"))); f != nil {
		return r, f
	}
	return r, r.limit(body, "max_tokens")
}

// userBlocks reads a user message, in which tool results come before the text.
func (r *Request) userBlocks(content gjson.Result) {
	r.ToolResults = nil
	for block := range objects(content) {
		if block.Get("type").String() == "tool_result" {
			r.toolResult(block.Get("content"))
		}
	}
	text, images := contentOf(content)
	if text != "" || images > 0 || len(r.ToolResults) == 0 {
		r.user(text, images)
	}
}

func messagesChoice(v gjson.Result) choice {
	if !v.IsObject() {
		return choice{}
	}
	switch mode := v.Get("type").String(); mode {
	case "any":
		return choice{mode: "required"}
	case "tool":
		return choice{"required", []string{v.Get("name").String()}}
	default:
		return choice{mode: mode}
	}
}

func newMessage(x *exchange, r Request, content list, stopReason, usage json.RawMessage) json.RawMessage {
	return render(`{"id":%s,"type":"message","role":"assistant","model":%s,"content":%s,"stop_reason":%s,"stop_sequence":null,"usage":%s}`,
		x.id("msg_"), r.Model, content, stopReason, usage)
}

// messageUsage returns the usage after so many tokens of output and thinking. Nothing is
// cached.
func messageUsage(a Answer, output, thinking int64) json.RawMessage {
	return render(`{"input_tokens":%d,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,`+
		`"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0},`+
		`"output_tokens":%d,"output_tokens_details":{"thinking_tokens":%d},"service_tier":"standard"}`, a.Usage.Input.N, output, thinking)
}

func finalUsage(a Answer) json.RawMessage {
	return messageUsage(a, a.Usage.Output.N, a.Usage.Reasoning.N)
}

func stopReason(f Finish) json.RawMessage {
	return render(`%s`, map[Finish]string{
		FinishStop:      "end_turn",
		FinishToolCalls: "tool_use",
		FinishLength:    "max_tokens",
	}[f])
}

// block is a content block of the answer: empty as its stream opens it, the
// deltas that fill it, and whole.
type block struct {
	empty  json.RawMessage
	deltas []json.RawMessage
	whole  json.RawMessage
}

func contentBlocks(x *exchange, a Answer) (blocks []block) {
	if a.Reasoning != "" {
		const format = `{"type":"thinking","thinking":%s,"signature":%s}`
		blocks = append(blocks, block{
			render(format, "", ""),
			append(deltas(`{"type":"thinking_delta","thinking":%s}`, words(a.Reasoning)),
				render(`{"type":"signature_delta","signature":%s}`, sealed(a.Reasoning))),
			render(format, a.Reasoning, sealed(a.Reasoning)),
		})
	}
	if a.Text != "" {
		const format = `{"type":"text","text":%s}`
		blocks = append(blocks, block{
			render(format, ""),
			deltas(`{"type":"text_delta","text":%s}`, words(a.Text)),
			render(format, a.Text),
		})
	}
	for i, c := range a.Calls {
		const format = `{"type":"tool_use","id":%s,"name":%s,"input":%s}`
		id := x.itemID("toolu_", i)
		blocks = append(blocks, block{
			render(format, id, c.Name, json.RawMessage("{}")),
			deltas(`{"type":"input_json_delta","partial_json":%s}`, members(c.Arguments)),
			render(format, id, c.Name, json.RawMessage(c.Arguments)),
		})
	}
	return blocks
}

// deltas renders each piece with the format.
func deltas(format string, pieces iter.Seq[string]) (all []json.RawMessage) {
	for piece := range pieces {
		all = append(all, render(format, piece))
	}
	return all
}

func messageObject(x *exchange, r Request, a Answer) json.RawMessage {
	var content list
	for _, b := range contentBlocks(x, a) {
		content = append(content, b.whole)
	}
	return newMessage(x, r, content, stopReason(a.Finish), finalUsage(a))
}

func streamMessage(w *eventWriter, x *exchange, r Request, a Answer) {
	send := func(event, format string, values ...any) {
		w.event(event, render(`{"type":%s%s}`, event, render(format, values...)))
	}
	send("message_start", `,"message":%s`, newMessage(x, r, nil, json.RawMessage("null"), messageUsage(a, 0, 0)))
	for i, b := range contentBlocks(x, a) {
		send("content_block_start", `,"index":%d,"content_block":%s`, i, b.empty)
		if i == 0 {
			send("ping", "")
		}
		for _, delta := range b.deltas {
			send("content_block_delta", `,"index":%d,"delta":%s`, i, delta)
		}
		send("content_block_stop", `,"index":%d`, i)
	}
	send("message_delta", `,"delta":{"stop_reason":%s,"stop_sequence":null},"usage":%s`, stopReason(a.Finish), finalUsage(a))
	send("message_stop", "")
}
