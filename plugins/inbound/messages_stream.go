package inbound

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

type messagesEncoder struct {
	hides   bool              // reasoning, for which the client has not asked
	hosted  bool              // tools that the provider ran are shown
	blocks  int               // that have begun
	open    *translate.Output // whose block is open, and not of text
	thought bool              // the block of thinking that is open has text
	cited   bool              // the block of text that is open has citations
	waiting []*waitingCall    // for the call that is open: blocks come one after the other
}

// waitingCall is a call that has begun while another was open.
type waitingCall struct {
	*translate.Output
	arguments []byte // the inside of a JSON string
	closed    bool
}

func newMessagesEncoder(p *translate.Request) translate.Encoder {
	return &messagesEncoder{hides: p.HidesReasoning, hosted: showsHosted(p)}
}

// Append implements translate.Encoder.
func (m *messagesEncoder) Append(b []byte, a *translate.Assembler, e translate.Event) []byte {
	if m.hides && e.Output != nil && e.Output.Kind == translate.ReasoningOutput {
		return b
	}
	switch e.Type {
	case translate.Began:
		b = append(b, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":"...)
		b = append(appendMessage(b, a, nil, []byte(`"stop_reason":null,"stop_sequence":null`)), "}\n\n"...)
	case translate.ItemOpened:
		return m.openItem(b, e.Output)
	case translate.PartOpened:
		return m.openPart(b, e)
	case translate.TextAdded:
		return m.text(b, e)
	case translate.Annotated:
		m.cited = true
		return m.delta(b, `{"type":"citations_delta","citation":`, appendCitation(nil, gjson.ParseBytes(e.Annotation)), "")
	case translate.PartClosed:
		if e.Output.Kind == translate.MessageOutput {
			return m.stopBlock(b)
		}
	case translate.ItemClosed:
		return m.closeItem(b, e.Output)
	case translate.Idle:
		return append(b, "event: ping\ndata: {\"type\":\"ping\"}\n\n"...)
	case translate.Ended:
		return m.end(b, a)
	}
	return b
}

func (m *messagesEncoder) startBlock(b []byte, block string) []byte {
	b = append(b, "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":"...)
	b = strconv.AppendInt(b, int64(m.blocks), 10)
	m.blocks++
	b = append(append(b, `,"content_block":`...), block...)
	return append(b, "}\n\n"...)
}

// addText adds to the open block. text is the inside of a JSON string.
func (m *messagesEncoder) addText(b []byte, open string, text []byte) []byte {
	return m.delta(b, open, text, `"`)
}

// delta adds to the open block. open, value and end are the JSON of the delta without its last brace.
func (m *messagesEncoder) delta(b []byte, open string, value []byte, end string) []byte {
	b = append(b, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":"...)
	b = strconv.AppendInt(b, int64(m.blocks-1), 10)
	b = append(append(append(append(b, `,"delta":`...), open...), value...), end...)
	return append(b, "}}\n\n"...)
}

// The deltas, up to their texts.
const (
	textDelta      = `{"type":"text_delta","text":"`
	thinkingDelta  = `{"type":"thinking_delta","thinking":"`
	signatureDelta = `{"type":"signature_delta","signature":"`
	inputDelta     = `{"type":"input_json_delta","partial_json":"`
)

func (m *messagesEncoder) stopBlock(b []byte) []byte {
	b = append(b, "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":"...)
	b = strconv.AppendInt(b, int64(m.blocks-1), 10)
	return append(b, "}\n\n"...)
}

func (m *messagesEncoder) openItem(b []byte, o *translate.Output) []byte {
	switch {
	case o.Kind == translate.ReasoningOutput:
		m.thought = false
		return m.startBlock(b, `{"type":"thinking","thinking":"","signature":""}`)
	case o.Kind == translate.HostedOutput && m.hosted:
		return m.appendHosted(b, o)
	case o.IsCall() && m.open != nil:
		m.waiting = append(m.waiting, &waitingCall{Output: o})
	case o.IsCall():
		return m.startCall(b, o)
	}
	return b
}

func (m *messagesEncoder) startCall(b []byte, o *translate.Output) []byte {
	m.open = o
	b = m.startBlock(b, `{"type":"tool_use","id":`+rawString(o.CallID)+`,"name":`+rawString(o.FlatName())+`,"input":{}}`)
	if o.Kind == translate.CustomCallOutput { // its input is a member of an object
		b = m.addText(b, inputDelta, []byte(`{\"input\":\"`))
	}
	return b
}

func (m *messagesEncoder) stopCall(b []byte) []byte {
	if m.open.Kind == translate.CustomCallOutput {
		b = m.addText(b, inputDelta, []byte(`\"}`))
	}
	m.open = nil
	return m.stopBlock(b)
}

// openPart begins a block of text, or separates a thought from the thought before.
func (m *messagesEncoder) openPart(b []byte, e translate.Event) []byte {
	switch e.Output.Kind {
	case translate.MessageOutput:
		return m.startText(b)
	case translate.ReasoningOutput:
		if m.thought {
			return m.addText(b, thinkingDelta, []byte(blankLine))
		}
		m.thought = true
	}
	return b
}

func (m *messagesEncoder) startText(b []byte) []byte {
	m.cited = false
	return m.startBlock(b, `{"type":"text","text":""}`)
}

func (m *messagesEncoder) text(b []byte, e translate.Event) []byte {
	switch e.Output.Kind {
	case translate.MessageOutput:
		if m.cited { // citations are about their block
			b = m.startText(m.stopBlock(b))
		}
		return m.addText(b, textDelta, e.Text)
	case translate.ReasoningOutput:
		return m.addText(b, thinkingDelta, e.Text)
	}
	text := e.Text
	if e.Part.Kind == translate.InputPart { // a string within the string
		text = plugins.AppendEscaped(nil, string(text))
	}
	if e.Output == m.open {
		return m.addText(b, inputDelta, text)
	}
	call := m.waits(e.Output)
	call.arguments = append(call.arguments, text...)
	return b
}

func (m *messagesEncoder) waits(o *translate.Output) *waitingCall {
	return m.waiting[slices.IndexFunc(m.waiting, func(c *waitingCall) bool { return c.Output == o })]
}

func (m *messagesEncoder) closeItem(b []byte, o *translate.Output) []byte {
	switch {
	case o.Kind == translate.ReasoningOutput:
		if o.Sealed != "" {
			b = m.addText(b, signatureDelta, plugins.AppendEscaped(nil, o.Sealed))
		}
		return m.stopBlock(b)
	case o == m.open:
		return m.nextCall(m.stopCall(b))
	case o.IsCall():
		m.waits(o).closed = true
	case o.Kind == translate.ImageOutput || o.Kind == translate.HostedOutput:
		if name := unplacedImage(gjson.ParseBytes(o.JSON)); name != "" {
			b = m.stopBlock(m.addText(m.startText(b), textDelta, plugins.AppendEscaped(nil, name)))
		}
	}
	return b
}

// nextCall begins the calls that wait, until one is not closed.
func (m *messagesEncoder) nextCall(b []byte) []byte {
	for len(m.waiting) > 0 && m.open == nil {
		call := m.waiting[0]
		m.waiting = m.waiting[1:]
		b = m.startCall(b, call.Output)
		if len(call.arguments) > 0 {
			b = m.addText(b, inputDelta, call.arguments)
		}
		if call.closed {
			b = m.stopCall(b)
		}
	}
	return b
}

func (m *messagesEncoder) end(b []byte, a *translate.Assembler) []byte {
	if e := a.Failure(); e != nil {
		b = append(b, "event: error\ndata: "...)
		return append(appendMessagesError(b, e), "\n\n"...)
	}
	b = append(b, "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{"...)
	b = append(appendStop(b, a), `},"usage":`...)
	b = append(appendMessagesUsage(b, a), "}\n\n"...)
	return append(b, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"...)
}

// appendStop appends the members of why a message ended. OpenAI's models refuse in a part of their own, with
// the finish reason `stop` (https://platform.openai.com/docs/guides/structured-outputs#refusals).
func appendStop(b []byte, a *translate.Assembler) []byte {
	reason, native := messagesEndings.name(a)
	switch {
	case reason == messagesEndings.stop && slices.ContainsFunc(a.Outputs(), func(o *translate.Output) bool { return o.Refused }):
		reason = messagesEndings.filter
	case native == pauseTurn:
		reason, native = pauseTurn, ""
	}
	b = plugins.AppendString(append(b, `"stop_reason":`...), reason)
	b = plugins.AppendStringOrNull(append(b, `,"stop_sequence":`...), a.StopSequence())
	return appendNative(b, nativeStop, native)
}

// pauseTurn is a reason that Anthropic alone has: the model continues if the client sends the turn again.
const pauseTurn = "pause_turn"

// nativeStop is the member for the provider's own reason, as OpenRouter has native_finish_reason.
const nativeStop = "native_stop_reason"

var messagesEndings = endings{limit: "max_tokens", context: "model_context_window_exceeded", filter: "refusal", sequence: "stop_sequence", call: "tool_use", stop: "end_turn"}

// blockDeltas are the members of blocks that a stream says in deltas, in their order. Other
// members stand where the block begins.
var blockDeltas = []struct{ kind, member, empty, delta string }{
	{"text", "text", `""`, `{"type":"text_delta","text":`},
	{"thinking", "thinking", `""`, `{"type":"thinking_delta","thinking":`},
	{"thinking", "signature", `""`, `{"type":"signature_delta","signature":`},
	{"tool_use", "input", `{}`, `{"type":"input_json_delta","partial_json":`},
}

// streamMessage makes a stream of a message.
func streamMessage(object gjson.Result) []byte {
	head, _ := sjson.SetRaw(object.Raw, "content", "[]") // of an object, like the next
	head, _ = sjson.SetRaw(head, "stop_reason", "null")
	head, _ = sjson.Delete(head, nativeStop)
	b := appendEvent(nil, "message_start", `"message":`+head)
	for i, block := range object.Get("content").Array() {
		start, deltas := block.Raw, []string(nil)
		for _, d := range blockDeltas {
			v := block.Get(d.member)
			if block.Get("type").Str != d.kind || !v.Exists() {
				continue
			}
			start, _ = sjson.SetRaw(start, d.member, d.empty)
			if value := v.Raw; v.IsObject() {
				deltas = append(deltas, d.delta+rawString(value)+"}")
			} else {
				deltas = append(deltas, d.delta+value+"}")
			}
		}
		index := fmt.Sprintf(`"index":%d`, i)
		b = appendEvent(b, "content_block_start", index+`,"content_block":`+start)
		for _, delta := range deltas {
			b = appendEvent(b, "content_block_delta", index+`,"delta":`+delta)
		}
		b = appendEvent(b, "content_block_stop", index)
	}
	end := member([]byte(`"delta":{"stop_reason":`+cmp.Or(object.Get("stop_reason").Raw, "null")), "stop_sequence", object.Get("stop_sequence"))
	end = append(member(end, nativeStop, object.Get(nativeStop)), '}')
	b = appendEvent(b, "message_delta", string(member(end, "usage", object.Get("usage"))))
	return append(b, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"...)
}
