package perplexity

import (
	"net/http"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/openai"
	"github.com/weirhq/weir/plugins/translate"
)

// Decode implements translate.Provider.
func (Provider) Decode(resp *http.Response, a *translate.Assembler) error {
	d := &decoder{a: a, seen: make(map[string]bool)}
	return translate.ReadAnswer(resp, a, d.object, d.event)
}

const textKey = -1

// decoder reads one answer. The whole response at the end of a stream has what the
// stream left out.
type decoder struct {
	a        *translate.Assembler
	seen     map[string]bool // ids of messages and calls that were read
	open     string          // the id of the message that is open
	text     []byte          // of this message
	searches int             // that were read
	calls    int
	sources  []translate.Citation // of all searches so far
	numbers  map[string]int       // of the sources, by the numbers that texts name
}

func (d *decoder) object(body []byte) {
	if v, ok := openai.ParseObject(d.a, body); ok {
		d.start(v)
		d.complete(v, body)
	}
}

func (d *decoder) event(_, data []byte) bool {
	e, ok := d.a.ParseEvent(data)
	if !ok {
		return false
	}
	switch e.Get("type").Str {
	case "response.created", "response.in_progress":
		d.start(e.Get("response"))
	case "response.output_text.delta":
		d.addText(e.Get("item_id").Str, e.Get("delta").Str)
	case "response.output_item.done": // where a search begins, it is announced as a call of a function
		d.item(e.Get("item"))
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		response := e.Get("response")
		d.start(response)
		if failure := e.Get("error"); failure.IsObject() {
			d.a.Fail(openai.NewError(0, e))
		}
		d.complete(response, data)
		return false
	case "error":
		d.a.Fail(openai.NewError(0, e))
		return false
	}
	return true
}

func (d *decoder) start(response gjson.Result) {
	d.a.Start(response.Get("model").Str, response.Get("id").Str)
}

func (d *decoder) addText(id, s string) {
	if id != d.open {
		d.endText(gjson.Result{})
		d.open = id
	}
	d.seen[id] = true
	d.a.Text(textKey, s)
	d.text = append(d.text, s...)
}

// endText ends the open message.
func (d *decoder) endText(message gjson.Result) {
	if len(d.text) > 0 {
		d.cite(message)
		d.a.Close(textKey)
	}
	d.open, d.text = "", d.text[:0]
}

// item reads a whole item, unless it was read before.
func (d *decoder) item(v gjson.Result) {
	id := v.Get("id").Str
	switch v.Get("type").Str {
	case "message":
		if !d.seen[id] || id == "" {
			for _, part := range v.Get("content").Array() {
				d.addText(id, part.Get("text").Str)
			}
		}
		if id == d.open && v.Get("status").Str != "incomplete" { // or else the end of the response says so
			d.endText(v)
		}
	case "search_results":
		d.endText(gjson.Result{})
		d.search(v)
	case "function_call":
		// The API's own tools are called in the same way, and are not the client's.
		name := v.Get("name").Str
		if callID := v.Get("call_id").Str; !d.seen[callID] && d.a.Request().Tool(name) != nil {
			d.seen[callID] = callID != ""
			d.endText(gjson.Result{})
			d.call(callID, name, v)
		}
	}
}

func (d *decoder) call(id, name string, v gjson.Result) {
	if signature := v.Get("thought_signature").Str; signature != "" {
		content, _ := translate.Encode(sealedReasoning{signature}) // a string
		d.a.Seal(textKey, string(content))
		d.a.Close(textKey)
	}
	d.a.Call(d.calls, id, name)
	d.a.Args(d.calls, v.Get("arguments").Str)
	d.a.Close(d.calls)
	d.calls++
}

// complete reads the whole response: what the stream left out, the usage, and the reason to stop.
func (d *decoder) complete(response gjson.Result, body []byte) {
	read := d.searches
	for _, v := range response.Get("output").Array() {
		if v.Get("type").Str == "search_results" && read > 0 {
			read--
			continue
		}
		d.item(v)
	}
	d.a.Observe(plugins.Responses, "perplexity", body)
	if response.Get("status").Str == "completed" {
		d.endText(gjson.Result{})
	}
	openai.Finish(d.a, response)
}
