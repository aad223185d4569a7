package inbound

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

type chatEncoder struct {
	head, tail []byte // of each chunk, around its delta
	calls      []*translate.Output
	members    map[string]bool // of the message, that have begun
	usage      bool

	annotations, images int // so far
	before              int // the characters of the content before the text that is open
}

func newChatEncoder(p *translate.Request) translate.Encoder {
	return &chatEncoder{members: make(map[string]bool), usage: string(p.Field("stream_options.include_usage")) == "true"}
}

// Append implements translate.Encoder.
func (c *chatEncoder) Append(b []byte, a *translate.Assembler, e translate.Event) []byte {
	switch e.Type {
	case translate.Began:
		c.begin(a)
		return c.chunk(b, `"role":"assistant","content":""`)
	case translate.PartOpened:
		return c.openPart(b, e)
	case translate.TextAdded:
		return c.text(b, e)
	case translate.PartClosed:
		if e.Part.Kind == translate.TextPart {
			c.before += e.Part.Length + blankLength
		}
	case translate.Annotated:
		c.annotations++
		return c.chunk(b, `"annotations":[`+indexed(chatCitation(nil, e.Annotation, c.before, e.Part.Length), c.annotations-1)+`]`)
	case translate.ItemClosed:
		if hasImage(e.Output) {
			c.images++
			return c.chunk(b, `"images":[`+indexed(chatImage(e.Output.JSON), c.images-1)+`]`)
		}
	case translate.Idle:
		return append(b, ": ping\n\n"...)
	case translate.Ended:
		return c.end(b, a)
	}
	return b
}

// indexed is an element of a list with its index, by which OpenAI's Python client
// puts a list together from its chunks.
func indexed(object []byte, index int) string {
	return `{"index":` + strconv.Itoa(index) + `,` + string(object[1:])
}

func (c *chatEncoder) begin(a *translate.Assembler) {
	c.head = append([]byte(`data: `), chatHead(a, "chat.completion.chunk")...)
	c.tail = append(c.tail, "}\n\n"...)
	if c.usage {
		c.tail = append([]byte(`,"usage":null`), c.tail...)
	}
}

// chatHead opens a completion or a chunk, up to its choices.
func chatHead(a *translate.Assembler, object string) []byte {
	b := append([]byte(`{"id":"chatcmpl-`), strings.TrimPrefix(a.ID(), "resp_")...)
	b = append(b, `","object":"`...)
	b = append(b, object...)
	b = strconv.AppendInt(append(b, `","created":`...), a.Created(), 10)
	b = plugins.AppendString(plugins.AppendKey(b, "model"), a.Model())
	return plugins.AppendString(plugins.AppendKey(b, "service_tier"), a.UsedServiceTier())
}

func (c *chatEncoder) startChunk(b []byte) []byte {
	b = append(b, c.head...)
	return append(b, `,"choices":[{"index":0,"delta":{`...)
}

func (c *chatEncoder) finishChunk(b []byte, logprobs []byte) []byte {
	b = append(b, `},"logprobs":`...)
	b = appendChatLogprobs(b, logprobs)
	b = append(b, `,"finish_reason":null}]`...)
	return append(b, c.tail...)
}

func (c *chatEncoder) chunk(b []byte, members string) []byte {
	return c.finishChunk(append(c.startChunk(b), members...), nil)
}

// appendChatFinish appends why an answer ended, and the end of its choice.
func appendChatFinish(b []byte, a *translate.Assembler) []byte {
	finish, native := chatEndings.name(a)
	b = plugins.AppendString(append(b, `,"finish_reason":`...), finish)
	return append(appendNative(b, "native_finish_reason", native), `}]`...)
}

var chatTexts = map[translate.PartKind]string{
	translate.TextPart:      `"content":"`,
	translate.RefusalPart:   `"refusal":"`,
	translate.ReasoningPart: `"reasoning_content":"`,
	translate.SummaryPart:   `"reasoning_content":"`,
}

// blankLine separates two parts that are one text to the client. It is the inside of a JSON string of
// blankLength characters.
const (
	blankLine   = `\n\n`
	blankLength = 2
)

// openPart begins a call, or separates a text from the one before.
func (c *chatEncoder) openPart(b []byte, e translate.Event) []byte {
	if e.Output.IsCall() {
		c.calls = append(c.calls, e.Output)
		b = appendChatCall(append(c.startCall(c.startChunk(b), e.Output), ','), e.Output.Kind, rawString(e.Output.CallID), rawString(e.Output.FlatName()), "")
		return c.finishChunk(append(b, ']'), nil)
	}
	member := chatTexts[e.Part.Kind]
	if !c.members[member] {
		c.members[member] = true
		return b
	}
	return c.chunk(b, member+blankLine+`"`)
}

// startCall opens a list of one call, whose members follow.
func (c *chatEncoder) startCall(b []byte, call *translate.Output) []byte {
	return strconv.AppendInt(append(b, `"tool_calls":[{"index":`...), int64(slices.Index(c.calls, call)), 10)
}

// appendChatCalls appends the calls of a message that is whole.
func appendChatCalls(b, calls []byte) []byte { return appendList(b, "tool_calls", calls) }

// appendChatCall appends the members of a call, and its end. id and name are JSON,
// input is the inside of a string.
func appendChatCall(b []byte, kind translate.OutputKind, id, name, input string) []byte {
	b = append(append(b, `"id":`...), id...)
	field := `"arguments":"`
	if kind == translate.CustomCallOutput {
		b = append(b, `,"type":"custom","custom":{"name":`...)
		field = `"input":"`
	} else {
		b = append(b, `,"type":"function","function":{"name":`...)
	}
	b = append(append(append(b, name...), ','), field...)
	return append(append(b, input...), `"}}`...)
}

func (c *chatEncoder) text(b []byte, e translate.Event) []byte {
	b = c.startChunk(b)
	switch kind := e.Part.Kind; kind {
	case translate.ArgumentsPart, translate.InputPart:
		b = c.startCall(b, e.Output)
		if kind == translate.InputPart {
			b = append(b, `,"custom":{"input":"`...)
		} else {
			b = append(b, `,"function":{"arguments":"`...)
		}
		b = append(b, e.Text...)
		b = append(b, `"}}]`...)
	default:
		b = append(b, chatTexts[kind]...)
		b = append(b, e.Text...)
		b = append(b, '"')
	}
	return c.finishChunk(b, e.Logprobs)
}

// end appends the error, or the reason to stop and the usage if the client asked for it.
func (c *chatEncoder) end(b []byte, a *translate.Assembler) []byte {
	if e := a.Failure(); e != nil {
		b = e.AppendObject(append(b, `data: {"error":`...))
		return append(b, "}\n\n"...)
	}
	b = appendChatFinish(append(c.startChunk(b), `},"logprobs":null`...), a)
	b = append(b, c.tail...)
	if c.usage {
		b = append(append(b, c.head...), `,"choices":[]`...)
		b = append(appendChatUsage(b, a), "}\n\n"...)
	}
	return append(b, "data: [DONE]\n\n"...)
}

var chatEndings = endings{limit: "length", context: "length", filter: "content_filter", sequence: "stop", call: "tool_calls", stop: "stop"}

// streamCompletion makes one chunk of a completion: each message is a delta.
func streamCompletion(object gjson.Result) []byte {
	var choices []string
	for _, choice := range object.Get("choices").Array() {
		message := choice.Get("message").Raw
		calls, changed := plugins.MapElements(choice.Get("message.tool_calls"), func(i int, call gjson.Result) string {
			numbered, _ := sjson.Set(call.Raw, "index", i) // of an object, like the next ones
			return numbered
		})
		if changed {
			message, _ = sjson.SetRaw(message, "tool_calls", calls)
		}
		delta, _ := sjson.SetRaw(choice.Raw, "delta", message)
		delta, _ = sjson.Delete(delta, "message")
		choices = append(choices, delta)
	}
	chunk, _ := sjson.Set(object.Raw, "object", "chat.completion.chunk")
	chunk, _ = sjson.SetRaw(chunk, "choices", "["+strings.Join(choices, ",")+"]")
	return fmt.Appendf(nil, "data: %s\n\ndata: [DONE]\n\n", compact(chunk))
}
