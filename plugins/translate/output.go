package translate

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// Output is an item of a response's output.
type Output struct {
	Kind OutputKind
	// Index is the item's position in the output, from 0.
	Index int
	// ID is the item's id in the Responses API.
	ID string
	// CallID and Name are those of a call. Name is the tool's name in Namespace, or the whole name if
	// Namespace is "". The Namespace of a call of an MCP tool is the label of the server.
	CallID, Name, Namespace string
	// Sealed is the encrypted_content of a reasoning item, "" if it has none yet.
	Sealed string
	// Refused is true if a message has a refusal of the model.
	Refused bool
	// Image is the image of ImageOutput in base64, and Format is png, jpeg or webp.
	Image, Format string
	// JSON is the whole item as the Responses API has it, nil until it closes.
	JSON json.RawMessage

	// output and failure are the result of the call of an MCP tool; one of them is "".
	output, failure string

	key     int          // the plugin's key of the item
	parts   []OutputPart // the last one is open while the item is
	summary int          // the plugin's index of the summary part that is open
	pending string       // arguments that came before the name
	unwrap  *unwrapper
	quoted  []byte // arguments so far that are a JSON string, of which the end says whether it has an object
}

// unopened is the Index of a call before the stream has the call.
const unopened = -1

// OutputKind is the type of an item.
type OutputKind uint8

const (
	MessageOutput    OutputKind = iota // message
	ReasoningOutput                    // reasoning
	CallOutput                         // function_call
	CustomCallOutput                   // custom_tool_call
	ImageOutput                        // image_generation_call
	HostedOutput                       // another, of a tool that the provider hosts
	MCPOutput                          // mcp_call, which the host makes
	ApprovalOutput                     // mcp_approval_request
	SearchOutput                       // tool_search_call, which the client answers
)

// IsCall reports whether the item is a call that the client answers. isCall counts the calls of MCP
// tools, too, which the host answers.
func (o *Output) IsCall() bool {
	return o.Kind == CallOutput || o.Kind == CustomCallOutput || o.Kind == SearchOutput
}

func (o *Output) isCall() bool { return o.IsCall() || o.Kind == MCPOutput || o.Kind == ApprovalOutput }

// FlatName returns the name of the tool that is called, with its namespace, as Tool.Name has it.
func (o *Output) FlatName() string { return flat(o.Namespace, o.Name) }

// Arguments returns the arguments of a call, in JSON.
func (o *Output) Arguments() string {
	return gjson.Parse(`"` + string(o.parts[0].Text) + `"`).Str
}

// OutputPart is a text that an item has: a content part, a part of a summary, the
// arguments of a call.
type OutputPart struct {
	Kind PartKind
	// Index is its position among the parts of the item, those of a summary apart.
	Index int
	// Text is the text so far, as the inside of a JSON string.
	Text []byte
	// Length is the length of the text in characters, which the positions of annotations count.
	Length int

	half string // the first half of a surrogate pair that ends the text so far; Text lacks it
	tail string // what ends the text so far and may begin a stop sequence; Text lacks it
	head []byte // of its delta events, up to the text

	annotations        []byte            // elements of the array, with commas
	annotationCount    int               // elements of annotations
	pendingAnnotations []json.RawMessage // annotations of a text with a tail, which may be cut off
	logprobs           []byte            // elements of the array, with commas
}

// isJSON reports whether the text is JSON. Arguments that are not JSON were cut off, whatever reason
// to stop the provider gives (https://github.com/vllm-project/vllm/issues/53269).
func (p *OutputPart) isJSON() bool {
	return plugins.ValidJSON([]byte(gjson.Parse(`"` + string(p.Text) + `"`).Str))
}

// PartKind is the type of a part.
type PartKind uint8

const (
	TextPart         PartKind = iota // output_text
	RefusalPart                      // refusal
	ReasoningPart                    // reasoning_text
	SummaryPart                      // summary_text
	ArgumentsPart                    // the arguments of a function_call
	InputPart                        // the input of a custom_tool_call
	MCPArgumentsPart                 // the arguments of an mcp_call
	ApprovalPart                     // the arguments of an mcp_approval_request, which no event has
	SearchPart                       // the arguments of a tool_search_call, which no event has
)

// forms are how the Responses API writes the kinds of parts.
var forms = [...]struct {
	text  string // events of its text
	part  string // events of the part, if it has any
	index string // key of its index, if it has any
	field string // key of its whole text
	open  string // the part as JSON up to its text
}{
	TextPart: {
		text: "response.output_text", part: "response.content_part", index: `,"content_index":`,
		field: `,"text":"`, open: `{"type":"output_text","text":"`,
	},
	RefusalPart: {
		text: "response.refusal", part: "response.content_part", index: `,"content_index":`,
		field: `,"refusal":"`, open: `{"type":"refusal","refusal":"`,
	},
	ReasoningPart: {
		text: "response.reasoning_text", part: "response.content_part", index: `,"content_index":`,
		field: `,"text":"`, open: `{"type":"reasoning_text","text":"`,
	},
	SummaryPart: {
		text: "response.reasoning_summary_text", part: "response.reasoning_summary_part", index: `,"summary_index":`,
		field: `,"text":"`, open: `{"type":"summary_text","text":"`,
	},
	ArgumentsPart:    {text: "response.function_call_arguments", field: `,"arguments":"`},
	InputPart:        {text: "response.custom_tool_call_input", field: `,"input":"`},
	MCPArgumentsPart: {text: "response.mcp_call_arguments", field: `,"arguments":"`},
	ApprovalPart:     {field: `,"arguments":"`},
	SearchPart:       {},
}

func (p *OutputPart) appendJSON(b []byte) []byte {
	b = append(b, forms[p.Kind].open...)
	b = append(b, p.Text...)
	b = append(b, '"')
	if p.Kind == TextPart {
		b = append(b, `,"annotations":[`...)
		b = append(b, p.annotations...)
		b = append(b, `],"logprobs":[`...)
		b = append(b, p.logprobs...)
		b = append(b, ']')
	}
	return append(b, '}')
}

// appendJSON appends the item as the Responses API has it when its stream has ended.
func (o *Output) appendJSON(b []byte, status string) []byte {
	b = append(b, `{"id":"`...)
	b = append(b, o.ID...)
	b = append(b, `","type":`...)
	switch o.Kind {
	case MessageOutput:
		b = append(b, `"message","role":"assistant","content":[`...)
		b = o.appendParts(b, TextPart, RefusalPart)
		b = append(b, ']')
	case ReasoningOutput:
		b = append(b, `"reasoning","summary":[`...)
		b = o.appendParts(b, SummaryPart, SummaryPart)
		b = append(b, ']')
		if o.count(ReasoningPart) > 0 {
			b = append(b, `,"content":[`...)
			b = o.appendParts(b, ReasoningPart, ReasoningPart)
			b = append(b, ']')
		}
		if o.Sealed != "" {
			b = plugins.AppendString(plugins.AppendKey(b, "encrypted_content"), o.Sealed)
		}
	case CallOutput:
		b = append(b, `"function_call"`...)
		b = o.appendCall(b)
	case CustomCallOutput:
		b = append(b, `"custom_tool_call"`...)
		b = o.appendCall(b)
	case ImageOutput:
		b = append(b, `"image_generation_call","output_format":`...)
		b = plugins.AppendString(b, o.Format)
		b = plugins.AppendStringOrNull(plugins.AppendKey(b, "result"), o.Image)
	case MCPOutput:
		b = append(o.appendMCP(append(b, `"mcp_call"`...)), `,"approval_request_id":null`...)
		b = plugins.AppendStringOrNull(plugins.AppendKey(b, "error"), o.failure)
		if b = plugins.AppendKey(b, "output"); o.failure != "" || status != statusCompleted {
			b = append(b, "null"...)
		} else {
			b = plugins.AppendString(b, o.output)
		}
	case SearchOutput:
		b = o.appendSearch(append(b, `"tool_search_call","execution":"client"`...))
	case ApprovalOutput:
		return append(o.appendMCP(append(b, `"mcp_approval_request"`...)), '}')
	}
	b = append(b, `,"status":"`...)
	b = append(b, status...)
	return append(b, `"}`...)
}

func (o *Output) appendCall(b []byte) []byte {
	b = plugins.AppendString(plugins.AppendKey(b, "call_id"), o.CallID)
	b = plugins.AppendString(plugins.AppendKey(b, "name"), o.Name)
	if o.Namespace != "" {
		b = plugins.AppendString(plugins.AppendKey(b, "namespace"), o.Namespace)
	}
	p := &o.parts[0]
	b = append(b, forms[p.Kind].field...)
	b = append(b, p.Text...)
	return append(b, '"')
}

// appendMCP appends the members that a call of an MCP tool and the request to approve it share.
func (o *Output) appendMCP(b []byte) []byte {
	b = append(b, forms[ApprovalPart].field...)
	b = append(append(b, o.parts[0].Text...), '"')
	b = plugins.AppendString(plugins.AppendKey(b, "name"), o.Name)
	return plugins.AppendString(plugins.AppendKey(b, "server_label"), o.Namespace)
}

// appendParts appends the parts whose kinds are first to last, with commas between them.
func (o *Output) appendParts(b []byte, first, last PartKind) []byte {
	from := len(b)
	for i := range o.parts {
		p := &o.parts[i]
		if p.Kind < first || p.Kind > last {
			continue
		}
		if len(b) > from {
			b = append(b, ',')
		}
		b = p.appendJSON(b)
	}
	return b
}

func (o *Output) count(kind PartKind) int {
	n := 0
	for i := range o.parts {
		if o.parts[i].Kind == kind {
			n++
		}
	}
	return n
}

// part returns the open part, nil if there is none.
func (o *Output) part() *OutputPart {
	if len(o.parts) == 0 {
		return nil
	}
	return &o.parts[len(o.parts)-1]
}

// addPart begins a part, and ends the one before.
func (a *Assembler) addPart(o *Output, kind PartKind) *OutputPart {
	a.closePart(o)
	a.grow(itemSize)
	index := len(o.parts)
	if o.Kind == ReasoningOutput { // its summary and its content count apart
		index = o.count(kind)
	}
	o.parts = append(o.parts, OutputPart{Kind: kind, Index: index})
	p := o.part()
	a.emit(Event{Type: PartOpened, Output: o, Part: p})
	return p
}

// closePart ends the open part, if there is one.
func (a *Assembler) closePart(o *Output) {
	p := o.part()
	if p == nil {
		return
	}
	if half := p.half; half != "" {
		p.half = ""
		a.appendText(o, p.Kind, plugins.JoinLastSurrogates(half))
	}
	tail := p.tail
	p.tail = ""
	a.write(o, p, tail)
	a.emit(Event{Type: PartClosed, Output: o, Part: p})
}

// resolve sets the kind and the names of a call by the tool that it is of: providers know tools by
// names that the request's plugin has made. It changes no call of an unknown tool.
func (o *Output) resolve(p *Request) {
	t := p.findTool(o.Name)
	if t == nil {
		return
	}
	o.Name = t.Name
	if t.MCP != nil {
		o.Kind, o.Namespace, o.Name = MCPOutput, t.MCP.Server, t.MCP.Name
		if t.MCP.NeedsApproval {
			o.Kind = ApprovalOutput
		}
		return
	}
	if t.searches {
		o.Kind = SearchOutput
		return
	}
	if t.given != "" {
		o.Name = t.given
	}
	if t.Namespace != "" {
		o.Namespace, o.Name = t.Namespace, strings.TrimPrefix(o.Name, t.Namespace+separator)
	}
	if t.Type == "custom" && o.Kind == CallOutput {
		o.Kind, o.unwrap = CustomCallOutput, new(unwrapper)
	}
}
