package echo

import (
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// parseChat reads OpenAI's Chat Completions.
func parseChat(body gjson.Result) (Request, *plugins.Error) {
	r := newRequest(body)
	conversation := body.Get("messages")
	if !conversation.IsArray() {
		return r, plugins.Invalid("messages", "messages must be an array")
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
