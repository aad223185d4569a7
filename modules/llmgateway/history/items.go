package history

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// items returns the items of a response by their ids, those of its input and of its output, or
// ErrNotFound.
func (s *Store) items(ctx context.Context, id uuid.UUID) (map[string]string, error) {
	record, err := s.Journal.Request(ctx, storage.RecordKey{Org: s.Org, ID: id})
	r, err := s.load(ctx, record, err)
	if err != nil {
		return nil, err
	}
	items := make(map[string]string)
	for _, item := range append(r.Input(), Output(r.Body)...) {
		items[gjson.Get(item, "id").Str] = item
	}
	return items, nil
}

// Input returns the items of the request in full, as the API lists them.
func (r *Response) Input() []string {
	return Completed(InputOf(r.Request), strings.TrimPrefix(r.ID, "resp_"))
}

// Completed gives items what clients may leave out. The ids of the items are made of the id of
// their response.
func Completed(items []string, response string) []string {
	completed := make([]string, len(items))
	for i, item := range items {
		completed[i] = complete(item, fmt.Sprintf("%s_%d", response, i))
	}
	return completed
}

// InputOf returns the items of a request as the client wrote them; a string is a message.
func InputOf(request []byte) []string {
	input := gjson.GetBytes(request, "input")
	if input.Type != gjson.String {
		return elements(request, "input")
	}
	return []string{`{"type":"message","role":"user","content":` + input.Raw + `}`}
}

// ConversationOf returns the id of the conversation that a request names, "" if it names none.
func ConversationOf(request []byte) string {
	v := gjson.Get(plugins.View(request), "conversation")
	if v.IsObject() {
		v = v.Get("id")
	}
	return v.Str
}

// EndsWithTrigger reports whether the input of a request ends with a compaction_trigger,
// which asks for a compaction of the conversation in place of an answer.
func EndsWithTrigger(request []byte) bool {
	if !bytes.Contains(request, []byte(`"compaction_trigger"`)) {
		return false
	}
	input := gjson.GetBytes(request, "input").Array()
	return len(input) > 0 && input[len(input)-1].Get("type").Str == "compaction_trigger"
}

// Output returns the items of the output of a response.
func Output(response []byte) []string { return elements(response, "output") }

func elements(body []byte, field string) []string {
	var raw []string
	for _, v := range gjson.GetBytes(body, field).Array() {
		raw = append(raw, v.Raw)
	}
	return raw
}

// EditArray replaces elements of an array of the body, and leaves out elements that become "".
// If nothing changes, the body is the same byte for byte.
func EditArray(body []byte, field string, edit func(i int, item gjson.Result) string) []byte {
	array := gjson.Get(plugins.View(body), field)
	if !array.IsArray() {
		return body
	}
	var items []string
	edited := false
	for i, item := range array.Array() {
		raw := edit(i, item)
		edited = edited || raw != item.Raw
		if raw != "" {
			items = append(items, raw)
		}
	}
	if !edited {
		return body
	}
	result, err := SetItems(body, field, items)
	if err != nil { // cannot happen: the body is an object
		return body
	}
	return result
}

// SetItems makes an array of items a field of the body.
func SetItems(body []byte, field string, items []string) ([]byte, error) {
	return sjson.SetRawBytes(body, field, []byte("["+strings.Join(items, ",")+"]"))
}

// prefixes are the prefixes of the ids of items, by the type of the item.
var prefixes = map[string]string{
	"message": "msg_", "reasoning": "rs_", "function_call": "fc_", "function_call_output": "fco_",
	"custom_tool_call": "ctc_", "custom_tool_call_output": "ctco_",
	"tool_search_call": "tsc_", "tool_search_output": "tso_",
}

// complete gives an item what clients may leave out. Its id is made of suffix.
func complete(item, suffix string) string {
	v := gjson.Parse(item)
	kind := v.Get("type").Str
	if kind == "" {
		kind = "message"
		item = set(item, "type", kind)
	}
	if content := v.Get("content"); kind == "message" && content.Type == gjson.String {
		part := `[{"type":"input_text","text":` + content.Raw + `}]`
		if v.Get("role").Str == "assistant" {
			part = `[{"type":"output_text","text":` + content.Raw + `,"annotations":[],"logprobs":[]}]`
		}
		item, _ = sjson.SetRaw(item, "content", part) // of an object
	}
	if v.Get("id").Str == "" {
		prefix, ok := prefixes[kind]
		if !ok {
			prefix = "item_"
		}
		item = set(item, "id", prefix+suffix)
	}
	if kind != "reasoning" && v.Get("status").Type == gjson.Null && kind != "item_reference" {
		item = set(item, "status", "completed")
	}
	return item
}

func set(item, field, value string) string {
	edited, err := sjson.Set(item, field, value)
	if err != nil { // cannot happen: the item is an object
		return item
	}
	return edited
}

// Page is a part of a list, as the API answers it.
type Page struct {
	Object  string            `json:"object"`
	Data    []json.RawMessage `json:"data"`
	FirstID *string           `json:"first_id"`
	LastID  *string           `json:"last_id"`
	HasMore bool              `json:"has_more"`
}

// List returns a page of items. found is false if the item after which the page begins does
// not exist.
func List(items []string, page storage.ItemPage) (p Page, found bool) {
	p = Page{Object: "list", Data: []json.RawMessage{}}
	begun := page.After == ""
	for i := range items {
		item := items[i]
		if page.Descending {
			item = items[len(items)-1-i]
		}
		id := gjson.Get(item, "id").Str
		if !begun {
			begun = id == page.After
			continue
		}
		if len(p.Data) == page.Limit {
			p.HasMore = true
			break
		}
		if p.FirstID == nil {
			p.FirstID = &id
		}
		p.LastID = &id
		p.Data = append(p.Data, json.RawMessage(item))
	}
	return p, begun
}
