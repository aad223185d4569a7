package echo

import (
	"encoding/json"

	"github.com/tidwall/gjson"
)

// chat is OpenAI's Chat Completions, with the reasoning_content of DeepSeek
// and others, as OpenAI shows no reasoning there.
var chat = dialect{parse: parseChat, object: chatObject, stream: streamChat}

func parseChat(body gjson.Result) (Request, *failure) {
	r := newRequest(body)
	conversation := body.Get("messages")
	if !conversation.IsArray() {
		return r, invalid("messages", "messages must be an array")
	}
	for m := range objects(conversation) {
		content := m.Get("content")
		switch m.Get("role").String() {
		case "user":
			r.user(contentOf(content))
		case "tool", "function":
			r.toolResult(content)
		case "assistant":
			r.assistant(content)
			for call := range objects(m.Get("tool_calls")) {
				r.InputBytes += len(call.Get("function.arguments").String())
			}
		default:
			r.count(content)
		}
	}

	for t := range objects(body.Get("tools")) {
		if f := t.Get("function"); f.IsObject() {
			r.offer(f, "parameters")
		}
	}
	r.SingleCall = body.Get("parallel_tool_calls").Type == gjson.False
	r.hold(body.Get("response_format"), "json_schema.schema")
	r.Reasoning = asksForReasoning(body, "reasoning_effort", "reasoning", "thinking")
	if f := r.choose(chatChoice(body.Get("tool_choice"))); f != nil {
		return r, f
	}
	return r, r.limit(body, "max_completion_tokens", "max_tokens")
}

func chatChoice(v gjson.Result) choice {
	if !v.IsObject() {
		return choice{mode: v.String()}
	}
	if v.Get("type").String() != "allowed_tools" {
		return choice{"required", []string{v.Get("function.name").String()}}
	}
	c := choice{mode: v.Get("allowed_tools.mode").String()}
	for t := range objects(v.Get("allowed_tools.tools")) {
		c.names = append(c.names, t.Get("function.name").String())
	}
	return c
}

// chatHead are the members that begin a completion and each of its chunks.
func chatHead(x *exchange, r Request, object string) json.RawMessage {
	return render(`"id":%s,"object":%s,"created":%d,"model":%s,"service_tier":"default","system_fingerprint":"fp_echo"`,
		x.id("chatcmpl-"), object, x.created.Unix(), r.Model)
}

func chatUsage(a Answer) json.RawMessage {
	return render(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,`+
		`"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},`+
		`"completion_tokens_details":{"reasoning_tokens":%d,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}`,
		a.Usage.Input.N, a.Usage.Output.N, a.Usage.Total().N, a.Usage.Reasoning.N)
}

func chatObject(x *exchange, r Request, a Answer) json.RawMessage {
	content := render(`%s`, a.Text)
	var reasoning, toolCalls json.RawMessage
	if a.Reasoning != "" {
		reasoning = render(`"reasoning_content":%s,`, a.Reasoning)
	}
	if len(a.Calls) > 0 {
		calls := make(list, len(a.Calls))
		for i, c := range a.Calls {
			calls[i] = render(`{"id":%s,"type":"function","function":{"name":%s,"arguments":%s}}`, x.itemID("call_", i), c.Name, c.Arguments)
		}
		content, toolCalls = json.RawMessage("null"), render(`,"tool_calls":%s`, calls)
	}
	return render(`{%s,"choices":[{"index":0,"message":{"role":"assistant","content":%s,%s"refusal":null,"annotations":[]%s},`+
		`"logprobs":null,"finish_reason":%s}],"usage":%s}`,
		chatHead(x, r, "chat.completion"), content, reasoning, toolCalls, string(a.Finish), chatUsage(a))
}

func streamChat(w *eventWriter, x *exchange, r Request, a Answer) {
	head := chatHead(x, r, "chat.completion.chunk")
	includeUsage := x.body.Get("stream_options.include_usage").Bool()
	var usage json.RawMessage // absent unless asked for, then null in all chunks but the last
	if includeUsage {
		usage = json.RawMessage(`,"usage":null`)
	}
	finish := json.RawMessage("null")
	send := func(delta string, values ...any) {
		w.event("", render(`{%s,"choices":[{"index":0,"delta":%s,"logprobs":null,"finish_reason":%s}]%s}`,
			head, render(delta, values...), finish, usage))
	}

	if len(a.Calls) == 0 {
		send(`{"role":"assistant","content":""}`)
	} else {
		send(`{"role":"assistant"}`)
	}
	for word := range words(a.Reasoning) {
		send(`{"reasoning_content":%s}`, word)
	}
	for word := range words(a.Text) {
		send(`{"content":%s}`, word)
	}
	for i, c := range a.Calls {
		send(`{"tool_calls":[{"index":%d,"id":%s,"type":"function","function":{"name":%s,"arguments":""}}]}`, i, x.itemID("call_", i), c.Name)
		for piece := range members(c.Arguments) {
			send(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, i, piece)
		}
	}
	finish = render(`%s`, string(a.Finish))
	send(`{}`)
	if includeUsage {
		w.event("", render(`{%s,"choices":[],"usage":%s}`, head, chatUsage(a)))
	}
	w.done()
}
