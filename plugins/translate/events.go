package translate

import (
	"encoding/json"
	"io"
	"strconv"

	"github.com/weirhq/weir/plugins"
)

// events encodes the events of a stream and numbers them. A nil *events is for a
// response that is not streamed: its methods do nothing.
type events struct {
	sink io.Writer
	err  error // the first of sink
	buf  []byte
	next int // sequence_number
}

// startEvent opens an event, and finishEvent closes it.
func (e *events) startEvent(name string) {
	e.buf = append(e.buf, "event: "...)
	e.buf = append(e.buf, name...)
	e.buf = append(e.buf, "\ndata: {\"type\":\""...)
	e.buf = append(e.buf, name...)
	e.buf = append(e.buf, '"')
}

func (e *events) finishEvent() {
	e.buf = append(e.buf, `,"sequence_number":`...)
	e.buf = strconv.AppendInt(e.buf, int64(e.next), 10)
	e.buf = append(e.buf, "}\n\n"...)
	e.next++
}

// flush writes the buffer.
func (e *events) flush() {
	if e == nil || len(e.buf) == 0 {
		return
	}
	if e.err == nil {
		_, e.err = e.sink.Write(e.buf)
	}
	e.buf = e.buf[:0]
}

// lifecycle has the response, as JSON, in an event such as response.created.
func (e *events) lifecycle(name string, response []byte) {
	e.startEvent(name)
	e.buf = append(e.buf, `,"response":`...)
	e.buf = append(e.buf, response...)
	e.finishEvent()
}

// item has an item, as JSON, in an event such as response.output_item.added.
func (e *events) item(name string, index int, item []byte) {
	if e == nil {
		return
	}
	e.startEvent(name)
	e.buf = append(e.buf, `,"output_index":`...)
	e.buf = strconv.AppendInt(e.buf, int64(index), 10)
	e.buf = append(e.buf, `,"item":`...)
	e.buf = append(e.buf, item...)
	e.finishEvent()
}

// itemFields are the fields of an event that name its item.
func (e *events) itemFields(o *output) {
	e.buf = append(e.buf, `,"item_id":"`...)
	e.buf = append(e.buf, o.id...)
	e.buf = append(e.buf, `","output_index":`...)
	e.buf = strconv.AppendInt(e.buf, int64(o.index), 10)
}

// partFields are the fields of an event that name its part.
func (e *events) partFields(o *output, p *part) {
	e.itemFields(o)
	if f := forms[p.kind]; f.index != "" {
		e.buf = append(e.buf, f.index...)
		e.buf = strconv.AppendInt(e.buf, int64(p.index), 10)
	}
}

// progress reports the state of a hosted tool.
func (e *events) progress(name string, o *output) {
	if e == nil {
		return
	}
	e.startEvent(name)
	e.itemFields(o)
	e.finishEvent()
}

// openPart announces a part, and prepares what is the same in all its deltas.
func (e *events) openPart(o *output, p *part) {
	if e == nil {
		return
	}
	e.wholePart(".added", o, p)
	from := len(e.buf)
	e.startEvent(forms[p.kind].text + ".delta")
	e.partFields(o, p)
	e.buf = append(e.buf, `,"delta":"`...)
	p.head = append(p.head, e.buf[from:]...)
	e.buf = e.buf[:from]
}

// wholePart has the part as it is, where events of its kind have one.
func (e *events) wholePart(suffix string, o *output, p *part) {
	f := forms[p.kind]
	if f.part == "" {
		return
	}
	e.startEvent(f.part + suffix)
	e.partFields(o, p)
	e.buf = append(e.buf, `,"part":`...)
	e.buf = p.appendJSON(e.buf)
	e.finishEvent()
}

// delta has a piece of text, which is escaped.
func (e *events) delta(p *part, escaped, logprobs []byte) {
	if e == nil {
		return
	}
	e.buf = append(e.buf, p.head...)
	e.buf = append(e.buf, escaped...)
	e.buf = append(e.buf, '"')
	if p.kind == textPart {
		e.buf = append(e.buf, `,"logprobs":[`...)
		e.buf = append(e.buf, logprobs...)
		e.buf = append(e.buf, ']')
	}
	e.finishEvent()
}

func (e *events) annotation(o *output, p *part, raw []byte) {
	if e == nil {
		return
	}
	e.startEvent("response.output_text.annotation.added")
	e.partFields(o, p)
	e.buf = append(e.buf, `,"annotation_index":`...)
	e.buf = strconv.AppendInt(e.buf, int64(p.annotated), 10)
	e.buf = append(e.buf, `,"annotation":`...)
	e.buf = append(e.buf, raw...)
	e.finishEvent()
}

func (e *events) closePart(o *output, p *part) {
	if e == nil {
		return
	}
	f := forms[p.kind]
	e.startEvent(f.text + ".done")
	e.partFields(o, p)
	e.buf = append(e.buf, f.field...)
	e.buf = append(e.buf, p.text...)
	e.buf = append(e.buf, '"')
	if p.kind == textPart {
		e.buf = append(e.buf, `,"logprobs":[`...)
		e.buf = append(e.buf, p.logprobs...)
		e.buf = append(e.buf, ']')
	}
	e.finishEvent()
	e.wholePart(".done", o, p)
}

// fail is an error in the form that every client takes: flat as it is
// published, nested as OpenAI sends it.
func (e *events) fail(f *plugins.Error) {
	e.startEvent("error")
	e.buf = plugins.AppendStringOrNull(plugins.AppendKey(e.buf, "code"), f.Code)
	e.buf = plugins.AppendString(plugins.AppendKey(e.buf, "message"), f.Message)
	e.buf = plugins.AppendStringOrNull(plugins.AppendKey(e.buf, "param"), f.Param)
	e.buf = f.AppendObject(plugins.AppendKey(e.buf, "error"))
	e.finishEvent()
}

// terminal is what ends the stream, for the host to write: the error if there
// was one, the terminal event, and the [DONE] that Open Responses demands.
func (e *events) terminal(status string, f *plugins.Error, response []byte) []byte {
	if f != nil {
		e.fail(f)
	}
	e.lifecycle("response."+status, response)
	e.buf = append(e.buf, "data: [DONE]\n\n"...)
	b := e.buf
	e.buf = nil
	return b
}

// AppendFailure appends the events that end a stream which another writer began: an
// error, unless e is nil, and a failed response. sequence is the number of the first.
func AppendFailure(b []byte, sequence int, e *plugins.Error, response json.RawMessage) []byte {
	end := events{buf: b, next: sequence}
	if e != nil {
		end.fail(e)
	}
	end.lifecycle("response.failed", response)
	return end.buf
}
