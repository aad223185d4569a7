package translate

import (
	"encoding/json"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// responses is the Encoder of POST /v1/responses. It numbers its events.
type responses struct {
	next int // sequence_number
}

// Append implements Encoder.
func (r *responses) Append(b []byte, a *Assembler, e Event) []byte {
	if e.Part != nil && forms[e.Part.Kind].text == "" {
		return b
	}
	switch o := e.Output; e.Type {
	case Began:
		response := a.appendResponse(nil, statusInProgress)
		b = r.lifecycle(b, "response.created", response)
		return r.lifecycle(b, "response.in_progress", response)
	case ItemOpened:
		return r.openItem(b, o)
	case PartOpened:
		return r.openPart(b, o, e.Part)
	case TextAdded:
		return r.delta(b, e)
	case Annotated:
		return r.annotation(b, e)
	case PartClosed:
		return r.closePart(b, o, e.Part)
	case ItemClosed:
		if kind := reportedKind(o); kind != "" {
			outcome := statusCompleted
			if o.Kind != ImageOutput && gjson.GetBytes(o.JSON, "error").Type != gjson.Null {
				outcome = statusFailed
			}
			b = r.progress(b, "response."+kind+"."+outcome, o)
		}
		return r.item(b, "response.output_item.done", o.Index, o.JSON)
	case Idle:
		return append(b, ": ping\n\n"...)
	case Ended:
		return r.end(b, a)
	}
	return b
}

// Object implements Encoder.
func (*responses) Object(a *Assembler) json.RawMessage { return a.appendResponse(nil, a.status()) }

func (*responses) startEvent(b []byte, name string) []byte {
	b = append(b, "event: "...)
	b = append(b, name...)
	b = append(b, "\ndata: {\"type\":\""...)
	b = append(b, name...)
	return append(b, '"')
}

func (r *responses) finishEvent(b []byte) []byte {
	b = append(b, `,"sequence_number":`...)
	b = strconv.AppendInt(b, int64(r.next), 10)
	r.next++
	return append(b, "}\n\n"...)
}

// lifecycle appends an event such as response.created, which has the response.
func (r *responses) lifecycle(b []byte, name string, response []byte) []byte {
	b = r.startEvent(b, name)
	b = append(b, `,"response":`...)
	b = append(b, response...)
	return r.finishEvent(b)
}

// item appends an event such as response.output_item.added, which has an item.
func (r *responses) item(b []byte, name string, index int, item []byte) []byte {
	b = r.startEvent(b, name)
	b = append(b, `,"output_index":`...)
	b = strconv.AppendInt(b, int64(index), 10)
	b = append(b, `,"item":`...)
	b = append(b, item...)
	return r.finishEvent(b)
}

func (r *responses) openItem(b []byte, o *Output) []byte {
	item := inProgress(o.JSON)
	if o.Kind != HostedOutput {
		item = o.appendJSON(nil, statusInProgress)
	}
	b = r.item(b, "response.output_item.added", o.Index, item)
	if kind := reportedKind(o); kind != "" {
		b = r.progress(b, "response."+kind+".in_progress", o)
	}
	if o.Kind == ImageOutput {
		b = r.progress(b, "response.image_generation_call.generating", o)
	}
	return b
}

// reportedKind is the type of an item that has events of its progress, "" for other items.
func reportedKind(o *Output) string {
	switch o.Kind {
	case ImageOutput:
		return "image_generation_call"
	case MCPOutput:
		return "mcp_call"
	case HostedOutput:
		if kind := gjson.GetBytes(o.JSON, "type").Str; kind == "mcp_call" || kind == "mcp_list_tools" {
			return kind
		}
	}
	return ""
}

func appendItem(b []byte, o *Output) []byte {
	b = append(b, `,"item_id":"`...)
	b = append(b, o.ID...)
	b = append(b, `","output_index":`...)
	return strconv.AppendInt(b, int64(o.Index), 10)
}

func appendPart(b []byte, o *Output, p *OutputPart) []byte {
	b = appendItem(b, o)
	if f := forms[p.Kind]; f.index != "" {
		b = append(b, f.index...)
		b = strconv.AppendInt(b, int64(p.Index), 10)
	}
	return b
}

// progress appends the state of a hosted tool.
func (r *responses) progress(b []byte, name string, o *Output) []byte {
	return r.finishEvent(appendItem(r.startEvent(b, name), o))
}

// openPart announces a part, and prepares the beginning that all its deltas share.
func (r *responses) openPart(b []byte, o *Output, p *OutputPart) []byte {
	b = r.wholePart(b, ".added", o, p)
	p.head = appendPart(r.startEvent(nil, forms[p.Kind].text+".delta"), o, p)
	p.head = append(p.head, `,"delta":"`...)
	return b
}

// wholePart appends an event with the part so far. Only content and summaries have such events.
func (r *responses) wholePart(b []byte, suffix string, o *Output, p *OutputPart) []byte {
	f := forms[p.Kind]
	if f.part == "" {
		return b
	}
	b = appendPart(r.startEvent(b, f.part+suffix), o, p)
	b = append(b, `,"part":`...)
	return r.finishEvent(p.appendJSON(b))
}

func (r *responses) delta(b []byte, e Event) []byte {
	b = append(b, e.Part.head...)
	b = append(b, e.Text...)
	b = append(b, '"')
	if e.Part.Kind == TextPart {
		b = append(b, `,"logprobs":[`...)
		b = append(b, e.Logprobs...)
		b = append(b, ']')
	}
	return r.finishEvent(b)
}

func (r *responses) annotation(b []byte, e Event) []byte {
	b = appendPart(r.startEvent(b, "response.output_text.annotation.added"), e.Output, e.Part)
	b = append(b, `,"annotation_index":`...)
	b = strconv.AppendInt(b, int64(e.Part.annotationCount), 10)
	b = append(b, `,"annotation":`...)
	return r.finishEvent(append(b, e.Annotation...))
}

func (r *responses) closePart(b []byte, o *Output, p *OutputPart) []byte {
	f := forms[p.Kind]
	b = appendPart(r.startEvent(b, f.text+".done"), o, p)
	b = append(b, f.field...)
	b = append(b, p.Text...)
	b = append(b, '"')
	if p.Kind == TextPart {
		b = append(b, `,"logprobs":[`...)
		b = append(b, p.logprobs...)
		b = append(b, ']')
	}
	return r.wholePart(r.finishEvent(b), ".done", o, p)
}

// fail appends an error in the form that every client takes: flat as OpenAI documents it, nested as OpenAI sends it.
func (r *responses) fail(b []byte, f *plugins.Error) []byte {
	b = r.startEvent(b, "error")
	b = plugins.AppendStringOrNull(plugins.AppendKey(b, "code"), f.Code)
	b = plugins.AppendString(plugins.AppendKey(b, "message"), f.Message)
	b = plugins.AppendStringOrNull(plugins.AppendKey(b, "param"), f.Param)
	b = f.AppendObject(plugins.AppendKey(b, "error"))
	return r.finishEvent(b)
}

// end appends the error if there is one, the terminal event, and the [DONE] that Open Responses demands.
func (r *responses) end(b []byte, a *Assembler) []byte {
	if a.failure != nil {
		b = r.fail(b, a.failure)
	}
	b = r.lifecycle(b, "response."+a.status(), a.response)
	return append(b, "data: [DONE]\n\n"...)
}

// AppendFailure appends the events that end a stream which another writer began: an
// error, unless e is nil, and a failed response. sequence is the number of the first.
func AppendFailure(b []byte, sequence int, e *plugins.Error, response json.RawMessage) []byte {
	r := responses{next: sequence}
	if e != nil {
		b = r.fail(b, e)
	}
	return r.lifecycle(b, "response.failed", response)
}
