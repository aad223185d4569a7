package cut

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// responses ends streams of OpenAI's Responses.
type responses struct {
	response string // as the latest event has it
	sequence int64  // of the next event
	items    []*item
	added    int // bytes of what was added to items
}

// item is an item of the output.
type item struct {
	json  string
	done  bool
	texts []*text
}

// text is what deltas add to an item.
type text struct {
	kind   string // of its events, as in `response.output_text`
	list   string // of the parts in the item; "" for a field of the item itself
	field  string
	index  int64 // in the list
	text   strings.Builder
	closed bool // there is an event for its end
	ended  bool // and for that of its part
}

// indexes are the keys of events that tell the index of a part, by the list that has the part.
var indexes = map[string]string{"content": "content_index", "summary": "summary_index"}

// partDone are the events that end a part, by its list.
var partDone = map[string]string{"content": "response.content_part.done", "summary": "response.reasoning_summary_part.done"}

// texts are the texts that parts and items have, by their type: the kind of the events, and
// the field.
var texts = map[string][2]string{
	"output_text":           {"response.output_text", "text"},
	"refusal":               {"response.refusal", "refusal"},
	"reasoning_text":        {"response.reasoning_text", "text"},
	"summary_text":          {"response.reasoning_summary_text", "text"},
	"function_call":         {"response.function_call_arguments", "arguments"},
	"mcp_call":              {"response.mcp_call_arguments", "arguments"},
	"custom_tool_call":      {"response.custom_tool_call_input", "input"},
	"code_interpreter_call": {"response.code_interpreter_call_code", "code"},
}

func (*responses) read(e gjson.Result) int64 {
	if delta := e.Get("delta"); delta.Type == gjson.String {
		return int64(len(delta.Raw) - len(`""`))
	}
	return int64(len(e.Get("item.name").Str))
}

func (r *responses) keep(e gjson.Result) {
	kind := e.Get("type").Str
	r.sequence = e.Get("sequence_number").Int() + 1
	if response := e.Get("response"); response.IsObject() {
		r.response = strings.Clone(response.Raw)
		return
	}
	index := e.Get("output_index").Int()
	if delta := e.Get("delta"); delta.Type == gjson.String {
		r.added += len(delta.Raw)
	} else {
		r.added += len(e.Raw)
	}
	if kind == "response.output_item.added" && index == int64(len(r.items)) {
		i := &item{json: strings.Clone(e.Get("item").Raw)}
		i.begin("", 0, e.Get("item"))
		r.items = append(r.items, i)
	}
	if index < 0 || index >= int64(len(r.items)) {
		return
	}
	switch i := r.items[index]; kind {
	case "response.output_item.done":
		i.json, i.done = strings.Clone(e.Get("item").Raw), true
	case "response.content_part.added":
		i.addPart("content", e)
	case "response.reasoning_summary_part.added":
		i.addPart("summary", e)
	case "response.content_part.done":
		i.endPart("content", e)
	case "response.reasoning_summary_part.done":
		i.endPart("summary", e)
	default:
		i.add(kind, e)
	}
}

func (r *responses) size() int { return r.added }

func (i *item) addPart(list string, e gjson.Result) {
	part := e.Get("part")
	if changed, err := sjson.SetRaw(i.json, list+".-1", part.Raw); err == nil {
		i.json = changed
	}
	i.begin(list, e.Get(indexes[list]).Int(), part)
}

// begin adds the text of an item or of its part.
func (i *item) begin(list string, index int64, of gjson.Result) {
	if names, ok := texts[of.Get("type").Str]; ok {
		i.texts = append(i.texts, &text{kind: names[0], list: list, field: names[1], index: index})
	}
}

func (i *item) endPart(list string, e gjson.Result) {
	for _, t := range i.texts {
		t.ended = t.ended || t.list == list && t.index == e.Get(indexes[list]).Int()
	}
}

// add takes a delta, or the end of a text.
func (i *item) add(kind string, e gjson.Result) {
	for _, t := range i.texts {
		if end, ok := strings.CutPrefix(kind, t.kind); ok && (t.list == "" || t.index == e.Get(indexes[t.list]).Int()) {
			switch end {
			case ".delta":
				t.text.WriteString(e.Get("delta").Str)
			case ".done":
				t.closed = true
			}
		}
	}
}

func (r *responses) end(b []byte, _ gjson.Result) []byte {
	output := make([]string, len(r.items))
	for n, i := range r.items {
		if !i.done {
			b = r.close(b, n, i)
		}
		output[n] = i.json
	}
	response := set(set(r.response, "status", "incomplete"), "incomplete_details.reason", "max_output_tokens")
	response, err := sjson.SetRaw(response, "output", "["+strings.Join(output, ",")+"]")
	if err != nil {
		return b
	}
	return r.event(b, "response.incomplete", set("{}", "type", "response.incomplete"), "response", response)
}

// event appends an event with one more field.
func (r *responses) event(b []byte, kind, e, field, value string) []byte {
	e = set(e, "sequence_number", r.sequence)
	if changed, err := sjson.SetRaw(e, field, value); err == nil {
		e = changed
	}
	r.sequence++
	return appendEvent(b, kind, e)
}

// close ends an item that is open, with its texts and parts.
func (r *responses) close(b []byte, n int, i *item) []byte {
	id := gjson.Get(i.json, "id").Str
	begin := func(kind string) string {
		return set(set(set("{}", "type", kind), "item_id", id), "output_index", n)
	}
	for _, t := range i.texts {
		path := t.field
		if t.list != "" {
			path = fmt.Sprintf("%s.%d.%s", t.list, t.index, t.field)
		}
		i.json = set(i.json, path, t.text.String())
		e, part := begin(t.kind+".done"), begin(partDone[t.list])
		if t.list != "" {
			e, part = set(e, indexes[t.list], t.index), set(part, indexes[t.list], t.index)
		}
		if t.kind == "response.output_text" {
			e, _ = sjson.SetRaw(e, "logprobs", "[]")
		}
		if !t.closed {
			b = r.event(b, t.kind+".done", e, t.field, gjson.Get(i.json, path).Raw)
		}
		if t.list != "" && !t.ended {
			b = r.event(b, partDone[t.list], part, "part", gjson.Get(i.json, fmt.Sprintf("%s.%d", t.list, t.index)).Raw)
		}
	}
	if gjson.Get(i.json, "status").Exists() {
		i.json = set(i.json, "status", "incomplete")
	}
	i.done = true
	return r.event(b, "response.output_item.done", set(set("{}", "type", "response.output_item.done"), "output_index", n), "item", i.json)
}
