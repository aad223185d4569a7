package plugintest

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"
)

// item is an item of the output of the Responses API, assembled from its events.
type item struct {
	id    string
	kind  string
	added gjson.Result // of response.output_item.added
	texts []*text      // in the order in which they open; only the last one may be open

	final []byte // the item of response.output_item.done, nil before that event
}

// text is a text that comes in deltas: of a part, or the arguments of a call.
type text struct {
	events      string // prefix of the types of its events, a key of textForms
	index       int64  // among the parts of its list
	text        strings.Builder
	annotations int64
	complete    bool // its .done came
	ended       bool // nothing may follow
}

// textForm says where a text stands in events and in the item.
type textForm struct {
	part  string // prefix of the types of its part's events, "" if the text is not a part
	index string // key of its index in events
	field string // key of the complete text in .done and in the part
	list  string // key of the list of parts in the item, "" if the text is a field of the item
}

// textForms are the forms of texts, by the prefix of the types of their events.
var textForms = map[string]textForm{
	"response.output_text":             {"response.content_part", "content_index", "text", "content"},
	"response.refusal":                 {"response.content_part", "content_index", "refusal", "content"},
	"response.reasoning_text":          {"response.content_part", "content_index", "text", "content"},
	"response.reasoning_summary_text":  {"response.reasoning_summary_part", "summary_index", "text", "summary"},
	"response.function_call_arguments": {field: "arguments"},
	"response.custom_tool_call_input":  {field: "input"},
	"response.mcp_call_arguments":      {field: "arguments"},
	"response.code_interpreter_call_code": {
		field: "code",
	},
}

// textEvents are the texts that an item of a type may have, as keys of textForms.
var textEvents = map[string][]string{
	"message":               {"response.output_text", "response.refusal"},
	"reasoning":             {"response.reasoning_summary_text", "response.reasoning_text"},
	"function_call":         {"response.function_call_arguments"},
	"custom_tool_call":      {"response.custom_tool_call_input"},
	"mcp_call":              {"response.mcp_call_arguments"},
	"code_interpreter_call": {"response.code_interpreter_call_code"},
}

// progress are the events without text that an item of a type may have.
var progress = map[string][]string{
	"web_search_call":       {"in_progress", "searching", "completed"},
	"file_search_call":      {"in_progress", "searching", "completed"},
	"code_interpreter_call": {"in_progress", "interpreting", "completed"},
	"image_generation_call": {"in_progress", "generating", "partial_image", "completed"},
	"mcp_call":              {"in_progress", "completed", "failed"},
	"mcp_list_tools":        {"in_progress", "completed", "failed"},
	"compaction":            {"compacting"},
}

// newItem returns the item that response.output_item.added begins.
func newItem(v gjson.Result) (*item, error) {
	i := &item{id: v.Get("id").Str, kind: v.Get("type").Str, added: v}
	if i.id == "" {
		return nil, fmt.Errorf("the item has no id")
	}
	if i.kind == "" {
		return nil, fmt.Errorf("the item has no type")
	}
	if s := v.Get("status"); s.Exists() && s.Str != "in_progress" && textEvents[i.kind] != nil {
		return nil, fmt.Errorf("the item begins as %s", s.Raw)
	}
	for _, key := range []string{"content", "summary"} {
		if len(v.Get(key).Array()) > 0 && textEvents[i.kind] != nil { // else it has no deltas
			return nil, fmt.Errorf("the item begins with %s", key)
		}
	}
	switch i.kind {
	case "function_call", "custom_tool_call":
		if v.Get("call_id").Str == "" || v.Get("name").Str == "" {
			return nil, fmt.Errorf("the call has no call_id or no name")
		}
		if v.Get("arguments").Str != "" || v.Get("input").Str != "" {
			return nil, fmt.Errorf("the call begins with arguments")
		}
	}
	return i, nil
}

// step checks the next event of the item, whose type is kind.
func (i *item) step(kind string, e gjson.Result) error {
	for _, name := range progress[i.kind] {
		if kind == "response."+i.kind+"."+name {
			return nil
		}
	}
	if base, ok := strings.CutSuffix(kind, ".added"); ok && base != "response.output_text.annotation" {
		return i.openPart(base, e)
	}
	if base, ok := strings.CutSuffix(kind, "_part.done"); ok {
		return i.closePart(base+"_part", e)
	}
	return i.checkText(kind, e)
}

// openPart checks the event that begins a part. base is the prefix of its type.
func (i *item) openPart(base string, e gjson.Result) error {
	if t := i.last(); t != nil && !t.ended {
		return fmt.Errorf("another part is open")
	}
	for _, events := range textEvents[i.kind] {
		f := textForms[events]
		if f.part != base || partType(events) != e.Get("part.type").Str {
			continue
		}
		want := int64(0)
		for _, t := range i.texts {
			if textForms[t.events].list == f.list {
				want++
			}
		}
		if n := e.Get(f.index); n.Type != gjson.Number || n.Int() != want {
			return fmt.Errorf("%s is %q, want %d", f.index, n.Raw, want)
		}
		if e.Get("part."+f.field).Str != "" {
			return fmt.Errorf("the part begins with text")
		}
		i.texts = append(i.texts, &text{events: events, index: want})
		return nil
	}
	return fmt.Errorf("an item of type %s has no part of type %q", i.kind, e.Get("part.type").Str)
}

// checkText checks an event of a text.
func (i *item) checkText(kind string, e gjson.Result) error {
	for _, events := range textEvents[i.kind] {
		what, ok := strings.CutPrefix(kind, events+".")
		if !ok {
			continue
		}
		f := textForms[events]
		t := i.last()
		if f.part == "" && t == nil { // it opens by itself
			t = &text{events: events}
			i.texts = append(i.texts, t)
		}
		switch {
		case t == nil || t.events != events || t.ended:
			return fmt.Errorf("no part of its kind is open")
		case f.part != "" && (e.Get(f.index).Type != gjson.Number || e.Get(f.index).Int() != t.index):
			return fmt.Errorf("%s is %q, want %d", f.index, e.Get(f.index).Raw, t.index)
		case t.complete:
			return fmt.Errorf("comes after the text's end")
		}
		return t.step(what, f, e)
	}
	return fmt.Errorf("no event of an item of type %s", i.kind)
}

// step checks the next event of the text. what is the end of its type.
func (t *text) step(what string, f textForm, e gjson.Result) error {
	switch what {
	case "delta":
		if e.Get("delta").Type != gjson.String {
			return fmt.Errorf("delta is no string")
		}
		t.text.WriteString(e.Get("delta").Str)
		return nil
	case "annotation.added":
		if n := e.Get("annotation_index"); n.Type != gjson.Number || n.Int() != t.annotations {
			return fmt.Errorf("annotation_index is %q, want %d", n.Raw, t.annotations)
		}
		t.annotations++
		return nil
	case "done":
		t.complete = true
		t.ended = f.part == ""
		return t.compare(e.Get(f.field))
	}
	return fmt.Errorf("unknown event")
}

// compare checks that v is the text that the deltas add up to.
func (t *text) compare(v gjson.Result) error {
	if v.Type != gjson.String || v.Str != t.text.String() {
		return fmt.Errorf("the text is %.80s, and its deltas said %.80q", v.Raw, t.text.String())
	}
	return nil
}

// closePart checks the event that ends a part. base is the prefix of its type.
func (i *item) closePart(base string, e gjson.Result) error {
	t := i.last()
	if t == nil || t.ended || textForms[t.events].part != base {
		return fmt.Errorf("no part of its kind is open")
	}
	f := textForms[t.events]
	if !t.complete {
		return fmt.Errorf("comes before %s.done", t.events)
	}
	if n := e.Get(f.index); n.Type != gjson.Number || n.Int() != t.index {
		return fmt.Errorf("%s is %q, want %d", f.index, n.Raw, t.index)
	}
	t.ended = true
	return t.comparePart(e.Get("part"))
}

// comparePart checks that p is the part of the text.
func (t *text) comparePart(p gjson.Result) error {
	if got := p.Get("type").Str; got != partType(t.events) {
		return fmt.Errorf("the part is of type %q", got)
	}
	if n := int64(len(p.Get("annotations").Array())); t.annotations > n {
		return fmt.Errorf("the part has %d annotations, and %d were streamed", n, t.annotations)
	}
	return t.compare(p.Get(textForms[t.events].field))
}

// partType returns the type of the part with a text.
func partType(events string) string {
	switch events {
	case "response.output_text":
		return "output_text"
	case "response.refusal":
		return "refusal"
	case "response.reasoning_text":
		return "reasoning_text"
	}
	return "summary_text"
}

// close checks response.output_item.done, with the complete item v.
func (i *item) close(v gjson.Result) error {
	if t := i.last(); t != nil && !t.ended {
		return fmt.Errorf("a part or text of the item is open")
	}
	if err := i.checkUnchanged(v); err != nil {
		return err
	}
	switch s := v.Get("status"); s.Str {
	case "completed", "incomplete", "failed", "":
	default:
		if textEvents[i.kind] != nil {
			return fmt.Errorf("the item ends as %s", s.Raw)
		}
	}
	if i.kind == "function_call" && len(i.texts) == 0 {
		return fmt.Errorf("the call has no arguments.done")
	}
	if err := i.compareTexts(v); err != nil {
		return err
	}
	i.final = []byte(v.Raw)
	return nil
}

// checkUnchanged compares the members that must not change.
func (i *item) checkUnchanged(v gjson.Result) error {
	for _, key := range []string{"id", "type", "call_id", "name", "namespace", "role"} {
		if got, want := v.Get(key).Raw, i.added.Get(key).Raw; got != want {
			return fmt.Errorf("the item's %s changes from %q to %q", key, want, got)
		}
	}
	return nil
}

// compareTexts checks that v has the texts that were streamed.
func (i *item) compareTexts(v gjson.Result) error {
	counts := map[string]int{}
	for _, t := range i.texts {
		f := textForms[t.events]
		if f.list == "" {
			if err := t.compare(v.Get(f.field)); err != nil {
				return err
			}
			continue
		}
		parts := v.Get(f.list).Array()
		n := counts[f.list]
		counts[f.list]++
		if n >= len(parts) {
			return fmt.Errorf("%s lacks part %d", f.list, n)
		}
		if err := t.comparePart(parts[n]); err != nil {
			return err
		}
	}
	if i.kind != "message" && i.kind != "reasoning" {
		return nil
	}
	for _, list := range []string{"content", "summary"} {
		if n := len(v.Get(list).Array()); n != counts[list] {
			return fmt.Errorf("%s has %d parts, and %d were streamed", list, n, counts[list])
		}
	}
	return nil
}

func (i *item) status() string { return gjson.GetBytes(i.final, "status").Str }

// last is the last text of the item, or nil. Only the last one may be open.
func (i *item) last() *text {
	if len(i.texts) == 0 {
		return nil
	}
	return i.texts[len(i.texts)-1]
}
