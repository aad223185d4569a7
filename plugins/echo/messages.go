package echo

import (
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// parseMessages reads Anthropic's Messages.
func parseMessages(body gjson.Result) (Request, *plugins.Error) {
	r := newRequest(body)
	conversation := body.Get("messages")
	if !conversation.IsArray() {
		return r, plugins.Invalid("messages", "messages must be an array")
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
