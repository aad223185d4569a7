package cut

import (
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
	json   string // without the parts that events have added to its lists, until it is done
	done   bool
	parts  []*part // the item itself, and the parts of its lists, in the order of their beginning
	placed map[place]*part
}

// place is where a part is in an item: list is "" for the item itself.
type place struct {
	list  string
	index int64
}

// part is a part of an item, or the item itself, with the text that deltas add to it.
type part struct {
	place
	json   string // of the part, "" for the item itself
	kind   string // of the text's events, as in `response.output_text`; "" for no text
	field  string // of the text
	text   strings.Builder
	closed bool // there is an event for the end of the text
	ended  bool // and for that of the part
}

// indexes are the keys of events that tell the index of a part, by the list that has the part.
var indexes = map[string]string{"content": "content_index", "summary": "summary_index"}

// lists are the lists whose parts have texts of a kind. Other texts are the item's own.
var lists = map[string]string{
	"response.output_text": "content", "response.refusal": "content", "response.reasoning_text": "content",
	"response.reasoning_summary_text": "summary",
}

// placeIn returns the place in a list that an event is about.
func placeIn(list string, e gjson.Result) place {
	if list == "" {
		return place{}
	}
	return place{list, e.Get(indexes[list]).Int()}
}

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
		i := &item{json: strings.Clone(e.Get("item").Raw), placed: make(map[place]*part)}
		i.begin(place{}, e.Get("item"))
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
	i.begin(placeIn(list, e), e.Get("part")).json = strings.Clone(e.Get("part").Raw)
}

// begin adds a part, or the item itself.
func (i *item) begin(at place, of gjson.Result) *part {
	names := texts[of.Get("type").Str]
	p := &part{place: at, kind: names[0], field: names[1]}
	i.parts = append(i.parts, p)
	i.placed[at] = p
	return p
}

func (i *item) endPart(list string, e gjson.Result) {
	if p := i.placed[placeIn(list, e)]; p != nil {
		p.ended = true
	}
}

// add takes a delta, or the end of a text.
func (i *item) add(kind string, e gjson.Result) {
	kind, delta := strings.CutSuffix(kind, ".delta")
	kind, done := strings.CutSuffix(kind, ".done")
	p := i.placed[placeIn(lists[kind], e)]
	switch {
	case p == nil || p.kind != kind:
	case delta:
		p.text.WriteString(e.Get("delta").Str)
	case done:
		p.closed = true
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
	begin := func(kind string, at place) string {
		e := set(set(set("{}", "type", kind), "item_id", id), "output_index", n)
		if at.list != "" {
			e = set(e, indexes[at.list], at.index)
		}
		return e
	}
	added := make(map[string][]string) // parts, by their list
	for _, p := range i.parts {
		of := &i.json
		if p.list != "" {
			of = &p.json
		}
		if p.kind != "" {
			*of = set(*of, p.field, p.text.String())
		}
		if p.kind != "" && !p.closed {
			e := begin(p.kind+".done", p.place)
			if p.kind == "response.output_text" {
				e, _ = sjson.SetRaw(e, "logprobs", "[]")
			}
			b = r.event(b, p.kind+".done", e, p.field, gjson.Get(*of, p.field).Raw)
		}
		if p.list == "" {
			continue
		}
		added[p.list] = append(added[p.list], p.json)
		if p.kind != "" && !p.ended {
			b = r.event(b, partDone[p.list], begin(partDone[p.list], p.place), "part", p.json)
		}
	}
	for list, parts := range added {
		var all []string
		for _, part := range gjson.Get(i.json, list).Array() {
			all = append(all, part.Raw)
		}
		if changed, err := sjson.SetRaw(i.json, list, "["+strings.Join(append(all, parts...), ",")+"]"); err == nil {
			i.json = changed
		}
	}
	if gjson.Get(i.json, "status").Exists() {
		i.json = set(i.json, "status", "incomplete")
	}
	i.done = true
	return r.event(b, "response.output_item.done", set(set("{}", "type", "response.output_item.done"), "output_index", n), "item", i.json)
}
