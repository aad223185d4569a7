package translate

import (
	"strings"

	"github.com/weirhq/weir/plugins"
)

// output is an item of a response's output.
type output struct {
	kind  outputKind
	key   int
	index int // output_index, -1 until it opens
	id    string

	parts   []part // the last one is open while the item is
	summary int    // the plugin's index of the summary part that is open
	sealed  string // encrypted_content of a reasoning

	callID, name, namespace string
	held                    string // arguments that came before the name
	unwrap                  *unwrapper

	result, format string // of an image

	json []byte // once it is closed
}

// unopened is the index of a call that is not in the stream yet.
const unopened = -1

type outputKind uint8

const (
	messageOutput outputKind = iota
	reasoningOutput
	callOutput
	customCallOutput
	imageOutput
	nativeOutput
)

func (o *output) call() bool { return o.kind == callOutput || o.kind == customCallOutput }

// part is a text that an item has: a content part, a part of a summary, the
// arguments of a call.
type part struct {
	kind  partKind
	index int    // content_index or summary_index
	text  []byte // escaped
	head  []byte // of its delta events, up to the text

	annotations []byte // elements of the array
	annotated   int
	logprobs    []byte // elements of the array
}

type partKind uint8

const (
	textPart partKind = iota
	refusalPart
	reasoningPart
	summaryPart
	argumentsPart
	inputPart
)

// forms say how the kinds of parts look on the wire.
var forms = [...]struct {
	text  string // events of its text
	part  string // events of the part, if it has any
	index string // key of its index, if it has any
	field string // key of its whole text
	open  string // the part as JSON up to its text
}{
	textPart: {
		text: "response.output_text", part: "response.content_part", index: `,"content_index":`,
		field: `,"text":"`, open: `{"type":"output_text","text":"`,
	},
	refusalPart: {
		text: "response.refusal", part: "response.content_part", index: `,"content_index":`,
		field: `,"refusal":"`, open: `{"type":"refusal","refusal":"`,
	},
	reasoningPart: {
		text: "response.reasoning_text", part: "response.content_part", index: `,"content_index":`,
		field: `,"text":"`, open: `{"type":"reasoning_text","text":"`,
	},
	summaryPart: {
		text: "response.reasoning_summary_text", part: "response.reasoning_summary_part", index: `,"summary_index":`,
		field: `,"text":"`, open: `{"type":"summary_text","text":"`,
	},
	argumentsPart: {text: "response.function_call_arguments", field: `,"arguments":"`},
	inputPart:     {text: "response.custom_tool_call_input", field: `,"input":"`},
}

// appendJSON appends the content or summary part.
func (p *part) appendJSON(b []byte) []byte {
	b = append(b, forms[p.kind].open...)
	b = append(b, p.text...)
	b = append(b, '"')
	if p.kind == textPart {
		b = append(b, `,"annotations":[`...)
		b = append(b, p.annotations...)
		b = append(b, `],"logprobs":[`...)
		b = append(b, p.logprobs...)
		b = append(b, ']')
	}
	return append(b, '}')
}

// appendJSON appends the item with what it has so far.
func (o *output) appendJSON(b []byte, status string) []byte {
	b = append(b, `{"id":"`...)
	b = append(b, o.id...)
	b = append(b, `","type":`...)
	switch o.kind {
	case messageOutput:
		b = append(b, `"message","role":"assistant","content":[`...)
		b = o.appendParts(b, textPart, refusalPart)
		b = append(b, ']')
	case reasoningOutput:
		b = append(b, `"reasoning","summary":[`...)
		b = o.appendParts(b, summaryPart, summaryPart)
		b = append(b, ']')
		if o.count(reasoningPart) > 0 {
			b = append(b, `,"content":[`...)
			b = o.appendParts(b, reasoningPart, reasoningPart)
			b = append(b, ']')
		}
		if o.sealed != "" {
			b = plugins.AppendString(plugins.AppendKey(b, "encrypted_content"), o.sealed)
		}
	case callOutput:
		b = append(b, `"function_call"`...)
		b = o.appendCall(b)
	case customCallOutput:
		b = append(b, `"custom_tool_call"`...)
		b = o.appendCall(b)
	case imageOutput:
		b = append(b, `"image_generation_call","output_format":`...)
		b = plugins.AppendString(b, o.format)
		b = plugins.AppendStringOrNull(plugins.AppendKey(b, "result"), o.result)
	}
	b = append(b, `,"status":"`...)
	b = append(b, status...)
	return append(b, `"}`...)
}

func (o *output) appendCall(b []byte) []byte {
	b = plugins.AppendString(plugins.AppendKey(b, "call_id"), o.callID)
	b = plugins.AppendString(plugins.AppendKey(b, "name"), o.name)
	if o.namespace != "" {
		b = plugins.AppendString(plugins.AppendKey(b, "namespace"), o.namespace)
	}
	p := &o.parts[0]
	b = append(b, forms[p.kind].field...)
	b = append(b, p.text...)
	return append(b, '"')
}

// appendParts appends the parts of the kinds first to last, with commas.
func (o *output) appendParts(b []byte, first, last partKind) []byte {
	from := len(b)
	for i := range o.parts {
		p := &o.parts[i]
		if p.kind < first || p.kind > last {
			continue
		}
		if len(b) > from {
			b = append(b, ',')
		}
		b = p.appendJSON(b)
	}
	return b
}

func (o *output) count(kind partKind) int {
	n := 0
	for i := range o.parts {
		if o.parts[i].kind == kind {
			n++
		}
	}
	return n
}

// part is the open part, nil if there is none.
func (o *output) part() *part {
	if len(o.parts) == 0 {
		return nil
	}
	return &o.parts[len(o.parts)-1]
}

// addPart begins a part, which ends the one before.
func (o *output) addPart(kind partKind, e *events) *part {
	if p := o.part(); p != nil {
		e.closePart(o, p)
	}
	index := len(o.parts)
	if o.kind == reasoningOutput { // its summary and its content count apart
		index = o.count(kind)
	}
	o.parts = append(o.parts, part{kind: kind, index: index})
	p := o.part()
	e.openPart(o, p)
	return p
}

// resolve finds the tool of a call whose name is complete.
func (o *output) resolve(p *Request) {
	t := p.Tool(o.name)
	if t == nil {
		return
	}
	if t.Namespace != "" {
		o.namespace, o.name = t.Namespace, strings.TrimPrefix(o.name, t.Namespace+separator)
	}
	if t.Type == "custom" && o.kind == callOutput {
		o.kind, o.unwrap = customCallOutput, new(unwrapper)
	}
}
