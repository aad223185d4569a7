package inbound

import (
	"cmp"
	"fmt"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// responseStream writes the stream that says the same as a response in one piece. Clients take the
// text from deltas, or the items from their ends, and of the last event the usage alone
// (https://platform.openai.com/docs/api-reference/responses-streaming).
type responseStream struct {
	events []byte
	next   int // sequence_number
}

// streamed are the members of items and parts that a stream says in deltas, by the type.
var streamed = map[string]struct{ member, event string }{
	"output_text":      {"text", "response.output_text"},
	"summary_text":     {"text", "response.reasoning_summary_text"},
	"reasoning_text":   {"text", "response.reasoning_text"},
	"refusal":          {"refusal", "response.refusal"},
	"function_call":    {"arguments", "response.function_call_arguments"},
	"custom_tool_call": {"input", "response.custom_tool_call_input"},
}

// partLists are the lists of parts in items, with the events of a part and the key of its position.
var partLists = []struct{ member, event, index string }{
	{"summary", "response.reasoning_summary_part", "summary_index"},
	{"content", "response.content_part", "content_index"},
}

func streamResponse(object gjson.Result) []byte {
	end := "response.completed"
	switch status := object.Get("status").Str; status {
	case "failed", "incomplete":
		end = "response." + status
	}
	begun := object.Raw
	for _, member := range [][2]string{
		{"status", `"in_progress"`}, {"output", "[]"}, {"completed_at", "null"}, {"error", "null"}, {"incomplete_details", "null"}, {"usage", "null"},
	} {
		begun = replaceMember(object, begun, member[0], member[1])
	}
	s := new(responseStream)
	s.add("response.created", `"response":`+begun)
	s.add("response.in_progress", `"response":`+begun)
	for i, item := range object.Get("output").Array() {
		s.item(fmt.Sprintf(`"output_index":%d`, i), item)
	}
	s.add(end, `"response":`+object.Raw)
	return s.events
}

// item adds the events of an item at an index.
func (s *responseStream) item(index string, item gjson.Result) {
	begun := replaceMember(item, item.Raw, "status", `"in_progress"`)
	begun = replaceMember(item, begun, streamed[item.Get("type").Str].member, `""`)
	for _, list := range partLists {
		begun = replaceMember(item, begun, list.member, "[]")
	}
	s.add("response.output_item.added", index+`,"item":`+begun)
	place := index
	if id := item.Get("id"); id.Exists() {
		place += `,"item_id":` + id.Raw
	}
	for _, list := range partLists {
		for i, part := range item.Get(list.member).Array() {
			at := fmt.Sprintf(`%s,"%s":%d`, place, list.index, i)
			begun := replaceMember(part, part.Raw, streamed[part.Get("type").Str].member, `""`)
			begun = replaceMember(part, begun, "annotations", "[]")
			s.add(list.event+".added", at+`,"part":`+replaceMember(part, begun, "logprobs", "[]"))
			s.text(at, part)
			s.add(list.event+".done", at+`,"part":`+part.Raw)
		}
	}
	s.text(place, item)
	s.add("response.output_item.done", index+`,"item":`+item.Raw)
}

// text adds what a stream says of an item or a part in deltas.
func (s *responseStream) text(place string, v gjson.Result) {
	kind := v.Get("type").Str
	form, ok := streamed[kind]
	text := v.Get(form.member)
	if !ok || text.Type != gjson.String {
		return
	}
	logprobs := ""
	if kind == "output_text" {
		logprobs = `,"logprobs":` + cmp.Or(v.Get("logprobs").Raw, "[]")
	}
	s.add(form.event+".delta", place+`,"delta":`+text.Raw+logprobs)
	for i, annotation := range v.Get("annotations").Array() {
		s.add("response.output_text.annotation.added", fmt.Sprintf(`%s,"annotation_index":%d,"annotation":%s`, place, i, annotation.Raw))
	}
	s.add(form.event+".done", place+`,"`+form.member+`":`+text.Raw+logprobs)
}

func (s *responseStream) add(kind, members string) {
	s.events = appendEvent(s.events, kind, fmt.Sprintf(`"sequence_number":%d,%s`, s.next, members))
	s.next++
}

// replaceMember returns an object with another value of a member that v has. A member that it lacks stays away.
func replaceMember(v gjson.Result, object, member, value string) string {
	if member != "" && v.Get(member).Exists() {
		object, _ = sjson.SetRaw(object, member, value) // an object, and a plain path
	}
	return object
}
