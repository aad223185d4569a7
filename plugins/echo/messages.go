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
	r.Reasoning = thinks(body, "thinking")
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

type message struct {
	ID           string       `json:"id"`
	Type         string       `json:"type"`
	Role         string       `json:"role"`
	Model        string       `json:"model"`
	Content      []block      `json:"content"`
	StopReason   *string      `json:"stop_reason"`
	StopSequence *string      `json:"stop_sequence"`
	Usage        messageUsage `json:"usage"`
}

type messageUsage struct {
	InputTokens              int64 `json:"input_tokens"`
	CacheCreationInputTokens int64 `json:"cache_creation_input_tokens"`
	CacheReadInputTokens     int64 `json:"cache_read_input_tokens"`
	CacheCreation            struct {
		Ephemeral5mInputTokens int64 `json:"ephemeral_5m_input_tokens"`
		Ephemeral1hInputTokens int64 `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
	OutputTokens        int64 `json:"output_tokens"`
	OutputTokensDetails struct {
		ThinkingTokens int64 `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
	ServiceTier string `json:"service_tier"`
}

// block is a content block of the answer.
type block interface {
	// opening is the block as its stream begins: empty.
	opening() block
	// deltas are what fills it.
	deltas() iter.Seq[blockDelta]
}

// blockDelta is a piece of a block; its type determines which other field is set.
type blockDelta struct {
	Type        string `json:"type"`
	Text        string `json:"text,omitempty"`
	Thinking    string `json:"thinking,omitempty"`
	Signature   string `json:"signature,omitempty"`
	PartialJSON string `json:"partial_json,omitempty"`
}

// deltasOf makes a delta of each piece, and adds those that come last.
func deltasOf(pieces iter.Seq[string], delta func(string) blockDelta, last ...blockDelta) iter.Seq[blockDelta] {
	return func(yield func(blockDelta) bool) {
		for piece := range pieces {
			if !yield(delta(piece)) {
				return
			}
		}
		for _, d := range last {
			if !yield(d) {
				return
			}
		}
	}
}

type thinkingBlock struct {
	Type      string `json:"type"`
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
}

func (b thinkingBlock) opening() block { return thinkingBlock{Type: b.Type} }

func (b thinkingBlock) deltas() iter.Seq[blockDelta] {
	return deltasOf(words(b.Thinking), func(word string) blockDelta { return blockDelta{Type: "thinking_delta", Thinking: word} },
		blockDelta{Type: "signature_delta", Signature: b.Signature})
}

type textBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func (b textBlock) opening() block { return textBlock{Type: b.Type} }

func (b textBlock) deltas() iter.Seq[blockDelta] {
	return deltasOf(words(b.Text), func(word string) blockDelta { return blockDelta{Type: "text_delta", Text: word} })
}

type toolUseBlock struct {
	Type  string          `json:"type"`
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

func (b toolUseBlock) opening() block {
	b.Input = json.RawMessage("{}")
	return b
}

func (b toolUseBlock) deltas() iter.Seq[blockDelta] {
	return deltasOf(members(string(b.Input)), func(piece string) blockDelta {
		return blockDelta{Type: "input_json_delta", PartialJSON: piece}
	})
}

// newMessage is the message before it has any content.
func newMessage(x *exchange, r Request, a Answer) message {
	m := message{
		ID:      x.id("msg_"),
		Type:    "message",
		Role:    "assistant",
		Model:   r.Model,
		Content: []block{},
	}
	// Anthropic counts cached input apart from input_tokens; here there is none.
	m.Usage.InputTokens = a.Usage.Input.N
	m.Usage.ServiceTier = "standard"
	return m
}

// finish turns m into the message that ends the exchange.
func (m *message) finish(content []block, a Answer) {
	reason := map[Finish]string{
		FinishStop:      "end_turn",
		FinishToolCalls: "tool_use",
		FinishLength:    "max_tokens",
	}[a.Finish]
	m.StopReason = &reason
	m.Content = content
	m.Usage.OutputTokens = a.Usage.Output.N
	m.Usage.OutputTokensDetails.ThinkingTokens = a.Usage.Reasoning.N
}

func contentBlocks(x *exchange, a Answer) []block {
	blocks := []block{}
	if a.Reasoning != "" {
		blocks = append(blocks, thinkingBlock{"thinking", a.Reasoning, sealed(a.Reasoning)})
	}
	if a.Text != "" {
		blocks = append(blocks, textBlock{"text", a.Text})
	}
	for i, c := range a.Calls {
		blocks = append(blocks, toolUseBlock{"tool_use", x.itemID("toolu_", i), c.Name, json.RawMessage(c.Arguments)})
	}
	return blocks
}

func messageObject(x *exchange, r Request, a Answer) any {
	m := newMessage(x, r, a)
	m.finish(contentBlocks(x, a), a)
	return m
}

type messageStartEvent struct {
	Type    string  `json:"type"`
	Message message `json:"message"`
}

type blockStartEvent struct {
	Type         string `json:"type"`
	Index        int    `json:"index"`
	ContentBlock block  `json:"content_block"`
}

type blockDeltaEvent struct {
	Type  string     `json:"type"`
	Index int        `json:"index"`
	Delta blockDelta `json:"delta"`
}

type blockStopEvent struct {
	Type  string `json:"type"`
	Index int    `json:"index"`
}

type messageDeltaEvent struct {
	Type  string `json:"type"`
	Delta struct {
		StopReason   *string `json:"stop_reason"`
		StopSequence *string `json:"stop_sequence"`
	} `json:"delta"`
	Usage messageUsage `json:"usage"`
}

type bareEvent struct {
	Type string `json:"type"`
}

func streamMessage(w *eventWriter, x *exchange, r Request, a Answer) {
	m := newMessage(x, r, a)
	blocks := contentBlocks(x, a)
	w.event("message_start", messageStartEvent{"message_start", m})
	for i, b := range blocks {
		w.event("content_block_start", blockStartEvent{"content_block_start", i, b.opening()})
		if i == 0 {
			w.event("ping", bareEvent{"ping"})
		}
		for d := range b.deltas() {
			w.event("content_block_delta", blockDeltaEvent{"content_block_delta", i, d})
		}
		w.event("content_block_stop", blockStopEvent{"content_block_stop", i})
	}
	m.finish(blocks, a)
	end := messageDeltaEvent{Type: "message_delta", Usage: m.Usage}
	end.Delta.StopReason = m.StopReason
	w.event("message_delta", end)
	w.event("message_stop", bareEvent{"message_stop"})
}

// Interface guards
var (
	_ block = thinkingBlock{}
	_ block = textBlock{}
	_ block = toolUseBlock{}
)
