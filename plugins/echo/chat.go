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
	r.Reasoning = thinks(body, "reasoning_effort", "reasoning", "thinking")
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

// chatCompletion is the whole answer.
type chatCompletion struct {
	chatHead
	Choices []chatChoiceWhole `json:"choices"`
	Usage   chatUsage         `json:"usage"`
}

// chatChunk is one event of a stream.
type chatChunk struct {
	chatHead
	Choices []chatChoiceDelta `json:"choices"`
	// Usage is absent unless asked for, then null in all chunks but the last.
	Usage any `json:"usage,omitempty"`
}

type chatHead struct {
	ID                string `json:"id"`
	Object            string `json:"object"`
	Created           int64  `json:"created"`
	Model             string `json:"model"`
	ServiceTier       string `json:"service_tier"`
	SystemFingerprint string `json:"system_fingerprint"`
}

type chatChoiceWhole struct {
	Index        int             `json:"index"`
	Message      chatMessage     `json:"message"`
	Logprobs     json.RawMessage `json:"logprobs"`
	FinishReason Finish          `json:"finish_reason"`
}

type chatMessage struct {
	Role             string     `json:"role"`
	Content          *string    `json:"content"` // null beside calls
	ReasoningContent string     `json:"reasoning_content,omitempty"`
	Refusal          *string    `json:"refusal"`
	Annotations      []struct{} `json:"annotations"`
	ToolCalls        []chatCall `json:"tool_calls,omitempty"`
}

type chatChoiceDelta struct {
	Index        int             `json:"index"`
	Delta        chatDelta       `json:"delta"`
	Logprobs     json.RawMessage `json:"logprobs"`
	FinishReason *Finish         `json:"finish_reason"`
}

type chatDelta struct {
	Role             string     `json:"role,omitempty"`
	Content          *string    `json:"content,omitempty"`
	ReasoningContent string     `json:"reasoning_content,omitempty"`
	ToolCalls        []chatCall `json:"tool_calls,omitempty"`
}

// chatCall has an index in a delta only, and an id, a type and a name in all
// but the deltas that follow a call's first.
type chatCall struct {
	Index    *int   `json:"index,omitempty"`
	ID       string `json:"id,omitempty"`
	Type     string `json:"type,omitempty"`
	Function struct {
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type chatUsage struct {
	PromptTokens        int64 `json:"prompt_tokens"`
	CompletionTokens    int64 `json:"completion_tokens"`
	TotalTokens         int64 `json:"total_tokens"`
	PromptTokensDetails struct {
		CachedTokens int64 `json:"cached_tokens"`
		AudioTokens  int64 `json:"audio_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionTokensDetails struct {
		ReasoningTokens          int64 `json:"reasoning_tokens"`
		AudioTokens              int64 `json:"audio_tokens"`
		AcceptedPredictionTokens int64 `json:"accepted_prediction_tokens"`
		RejectedPredictionTokens int64 `json:"rejected_prediction_tokens"`
	} `json:"completion_tokens_details"`
}

func newChatHead(x *exchange, r Request, object string) chatHead {
	return chatHead{
		ID:                x.id("chatcmpl-"),
		Object:            object,
		Created:           x.created.Unix(),
		Model:             r.Model,
		ServiceTier:       "default",
		SystemFingerprint: "fp_echo",
	}
}

func newChatCall(x *exchange, n int, c Call) chatCall {
	call := chatCall{ID: x.itemID("call_", n), Type: "function"}
	call.Function.Name, call.Function.Arguments = c.Name, c.Arguments
	return call
}

func newChatUsage(a Answer) chatUsage {
	u := chatUsage{
		PromptTokens:     a.Usage.Input.N,
		CompletionTokens: a.Usage.Output.N,
		TotalTokens:      a.Usage.Total().N,
	}
	u.PromptTokensDetails.CachedTokens = a.Usage.CacheRead.N
	u.CompletionTokensDetails.ReasoningTokens = a.Usage.Reasoning.N
	return u
}

func chatObject(x *exchange, r Request, a Answer) any {
	m := chatMessage{Role: "assistant", ReasoningContent: a.Reasoning, Annotations: []struct{}{}}
	for i, c := range a.Calls {
		m.ToolCalls = append(m.ToolCalls, newChatCall(x, i, c))
	}
	if len(a.Calls) == 0 {
		m.Content = &a.Text
	}
	return chatCompletion{
		chatHead: newChatHead(x, r, "chat.completion"),
		Choices:  []chatChoiceWhole{{Message: m, FinishReason: a.Finish}},
		Usage:    newChatUsage(a),
	}
}

func streamChat(w *eventWriter, x *exchange, r Request, a Answer) {
	chunk := chatChunk{chatHead: newChatHead(x, r, "chat.completion.chunk")}
	includeUsage := x.body.Get("stream_options.include_usage").Bool()
	if includeUsage {
		chunk.Usage = json.RawMessage("null")
	}
	send := func(d chatDelta, finish *Finish) {
		chunk.Choices = []chatChoiceDelta{{Delta: d, FinishReason: finish}}
		w.event("", chunk)
	}

	first := chatDelta{Role: "assistant"}
	if len(a.Calls) == 0 {
		first.Content = new(string)
	}
	send(first, nil)
	for word := range words(a.Reasoning) {
		send(chatDelta{ReasoningContent: word}, nil)
	}
	for word := range words(a.Text) {
		send(chatDelta{Content: &word}, nil)
	}
	for i, c := range a.Calls {
		call := newChatCall(x, i, Call{Name: c.Name})
		call.Index = &i
		send(chatDelta{ToolCalls: []chatCall{call}}, nil)
		for piece := range members(c.Arguments) {
			call = chatCall{Index: &i}
			call.Function.Arguments = piece
			send(chatDelta{ToolCalls: []chatCall{call}}, nil)
		}
	}
	send(chatDelta{}, &a.Finish)
	if includeUsage {
		chunk.Choices, chunk.Usage = []chatChoiceDelta{}, newChatUsage(a)
		w.event("", chunk)
	}
	w.done()
}
