package echo

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// shapes are requests that ask the same in each dialect.
var shapes = []struct{ name, chat, responses, messages string }{
	{"text", `{"messages":[{"role":"user","content":"hello  <wide>\n world "}]}`,
		`{"input":"hello  <wide>\n world "}`,
		`{"messages":[{"role":"user","content":"hello  <wide>\n world "}]}`},
	{"nothing", `{"messages":[]}`, `{"input":[]}`, `{"messages":[]}`},
	{"reasoning", `{"reasoning_effort":"low","messages":[{"role":"user","content":"why"}]}`,
		`{"reasoning":{"effort":"low","summary":"auto"},"input":"why"}`,
		`{"thinking":{"type":"adaptive"},"messages":[{"role":"user","content":"why"}]}`},
	{"cut text", `{"max_tokens":4,"messages":[{"role":"user","content":"日本 and more"}]}`,
		`{"max_output_tokens":4,"input":"日本 and more"}`,
		`{"max_tokens":4,"messages":[{"role":"user","content":"日本 and more"}]}`},
	{"cut text after reasoning", `{"max_tokens":16,"reasoning_effort":"low","messages":[{"role":"user","content":"many more words"}]}`,
		`{"max_output_tokens":16,"reasoning":{},"input":"many more words"}`,
		`{"max_tokens":16,"thinking":{"type":"enabled"},"messages":[{"role":"user","content":"many more words"}]}`},
	{"cut reasoning", `{"max_tokens":4,"reasoning":{"effort":"high"},"messages":[{"role":"user","content":"why"}]}`,
		`{"max_output_tokens":4,"reasoning":{},"input":"why"}`,
		`{"max_tokens":4,"thinking":{"type":"enabled"},"messages":[{"role":"user","content":"why"}]}`},
	{"call", `{"tool_choice":"required","messages":[],"tools":[{"type":"function","function":{"name":"a","parameters":{"required":["x","y"]}}}]}`,
		`{"tool_choice":"required","input":"","tools":[{"type":"function","name":"a","parameters":{"required":["x","y"]}}]}`,
		`{"tool_choice":{"type":"any"},"messages":[],"tools":[{"name":"a","input_schema":{"required":["x","y"]}}]}`},
	{"calls", `{"messages":[{"role":"user","content":"a() b()"}],"tools":[{"type":"function","function":{"name":"a"}},{"type":"function","function":{"name":"b"}}]}`,
		`{"input":"a() b()","reasoning":{},"tools":[{"type":"function","name":"a"},{"type":"function","name":"b"},{"type":"web_search"}]}`,
		`{"thinking":{"type":"enabled"},"messages":[{"role":"user","content":"a() b()"}],"tools":[{"name":"a","input_schema":{}},{"name":"b","input_schema":{}}]}`},
	{"cut call", `{"max_tokens":1,"messages":[{"role":"user","content":"a()"}],"tools":[{"type":"function","function":{"name":"a","parameters":{"required":["x"]}}}]}`,
		`{"max_output_tokens":1,"input":"a()","tools":[{"type":"function","name":"a","parameters":{"required":["x"]}}]}`,
		`{"max_tokens":1,"messages":[{"role":"user","content":"a()"}],"tools":[{"name":"a","input_schema":{"required":["x"]}}]}`},
}

// event is one of a stream; its data is JSON, or "[DONE]".
type event struct{ name, data string }

// events parses a stream that has nothing but events of one data line each.
func events(t *testing.T, stream string) []event {
	t.Helper()
	if !utf8.ValidString(stream) || !strings.HasSuffix(stream, "\n\n") {
		t.Fatalf("no event stream: %q", stream)
	}
	var all []event
	for block := range strings.SplitSeq(strings.TrimSuffix(stream, "\n\n"), "\n\n") {
		var e event
		if name, rest, ok := strings.Cut(block, "\n"); ok {
			e.name, block = strings.TrimPrefix(name, "event: "), rest
		}
		data, ok := strings.CutPrefix(block, "data: ")
		if !ok || data != "[DONE]" && !json.Valid([]byte(data)) {
			t.Fatalf("no event: %q", block)
		}
		e.data = data
		all = append(all, e)
	}
	return all
}

// stream asks for body as a stream.
func stream(t *testing.T, path, body string) []event {
	t.Helper()
	streamed, err := sjson.Set(body, "stream", true)
	if err != nil {
		t.Fatal(err)
	}
	w := post(t, path, streamed)
	if got := w.Header().Get("Content-Type"); got != "text/event-stream; charset=utf-8" {
		t.Fatalf("content type %q: %s", got, w.Body)
	}
	return events(t, w.Body.String())
}

var (
	seeds = regexp.MustCompile(`[0-9a-f]{24}`)
	times = regexp.MustCompile(`"(created|created_at|completed_at)":\d+`)
)

// timeless is an object without what differs from one answer to the next.
func timeless(object string) string {
	return times.ReplaceAllString(seeds.ReplaceAllString(strings.TrimSpace(object), "ID"), `"$1":0`)
}

func TestResponsesStream(t *testing.T) {
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			all := stream(t, "/v1/responses", s.responses)
			if last := all[len(all)-1]; last.data != "[DONE]" {
				t.Errorf("ends with %v", last)
			}
			final := checkResponsesGrammar(t, all[:len(all)-1])
			if whole := post(t, "/v1/responses", s.responses).Body.String(); timeless(whole) != timeless(final.Raw) {
				t.Errorf("the stream ends in\n%s\nbut without one it is\n%s", final.Raw, whole)
			}
			u := final.Get("usage")
			if u.Get("input_tokens").Int()+u.Get("output_tokens").Int() != u.Get("total_tokens").Int() {
				t.Errorf("usage does not sum up: %s", u.Raw)
			}
		})
	}
}

// checkResponsesGrammar holds events against the order that OpenAI's streams
// keep to, and returns the final response.
func checkResponsesGrammar(t *testing.T, all []event) gjson.Result {
	t.Helper()
	var types []string
	for i, e := range all {
		v := gjson.Parse(e.data)
		if v.Get("type").String() != e.name || v.Get("sequence_number").Int() != int64(i) {
			t.Fatalf("event %d is %q: %s", i, e.name, e.data)
		}
		types = append(types, strings.TrimPrefix(e.name, "response."))
	}
	const (
		summary  = `(reasoning_summary_part.added (reasoning_summary_text.delta )+reasoning_summary_text.done reasoning_summary_part.done )`
		part     = `(content_part.added (output_text.delta )+output_text.done content_part.done )`
		call     = `((function_call_arguments.delta )+function_call_arguments.done )`
		terminal = `(completed|incomplete|failed)`
	)
	grammar := regexp.MustCompile(`^created in_progress (output_item.added (` + summary + `+|` + part + `+|` + call + `)output_item.done )*` + terminal + `$`)
	if line := strings.Join(types, " "); !grammar.MatchString(line) {
		t.Fatalf("not the order of OpenAI's: %s", line)
	}

	created := gjson.Get(all[0].data, "response")
	final := gjson.Get(all[len(all)-1].data, "response")
	if !slices.Equal(keys(created), keys(final)) {
		t.Errorf("keys of the first and the last response:\n%v\n%v", keys(created), keys(final))
	}
	if created.Get("id").Str != final.Get("id").Str {
		t.Errorf("the response changed its id from %s to %s", created.Get("id"), final.Get("id"))
	}
	if got := created.Get("status").Str + created.Get("output").Raw + created.Get("usage").Raw; got != "in_progress[]null" {
		t.Errorf("the response begins as %s", created.Raw)
	}
	if want := "response." + final.Get("status").Str; all[len(all)-1].name != want {
		t.Errorf("the response ends with %s, its status is %s", all[len(all)-1].name, want)
	}
	items := final.Get("output").Array()
	for i, item := range items {
		if item.Get("status").Str == "incomplete" && (i < len(items)-1 || final.Get("status").Str != "incomplete") {
			t.Errorf("item %d is incomplete in %s", i, final.Raw)
		}
	}
	checkItems(t, all, items)
	return final
}

// checkItems holds every item's events against the item as it is in the end.
func checkItems(t *testing.T, all []event, items []gjson.Result) {
	t.Helper()
	open, next := gjson.Result{}, 0
	var text string
	for _, e := range all {
		v := gjson.Parse(e.data)
		if !v.Get("output_index").Exists() {
			continue
		}
		if e.name == "response.output_item.added" {
			if next == len(items) {
				t.Fatalf("more items than the %d at the end", len(items))
			}
			open, text = items[next], ""
			next++
		}
		if got := v.Get("output_index").Int(); got != int64(next-1) {
			t.Errorf("output index %d of item %d: %s", got, next-1, e.data)
		}
		id := v.Get("item_id").Str + v.Get("item.id").Str
		if id != open.Get("id").Str {
			t.Errorf("id %s in an event of %s", id, open.Get("id"))
		}
		content := open.Get("content.0.text").Str + open.Get("summary.0.text").Str + open.Get("arguments").Str
		switch {
		case strings.HasSuffix(e.name, ".delta"):
			if v.Get("delta").Str == "" {
				t.Errorf("an empty delta: %s", e.data)
			}
			text += v.Get("delta").Str
		case e.name == "response.output_item.added":
			if v.Get("item.status").Str != "in_progress" || v.Get("item.content.0").Exists() ||
				v.Get("item.summary.0").Exists() || v.Get("item.arguments").Str != "" {
				t.Errorf("an item that begins as %s", e.data)
			}
		case e.name == "response.output_item.done":
			if v.Get("item").Raw != open.Raw {
				t.Errorf("item %s is in the end %s", v.Get("item").Raw, open.Raw)
			}
		case strings.HasSuffix(e.name, "part.added"):
			if v.Get("part.text").Str != "" {
				t.Errorf("a part that begins as %s", e.data)
			}
		case strings.HasSuffix(e.name, ".done"):
			if got := v.Get("text").Str + v.Get("part.text").Str + v.Get("arguments").Str; got != text || got != content {
				t.Errorf("done with %q after deltas of %q for %q", got, text, content)
			}
		}
	}
	if next != len(items) {
		t.Errorf("%d items streamed, %d in the end", next, len(items))
	}
}

func keys(object gjson.Result) []string {
	var names []string
	object.ForEach(func(key, _ gjson.Result) bool {
		names = append(names, key.Str)
		return true
	})
	return names
}

func TestResponseHasTheKeysOfOpenResponses(t *testing.T) {
	whole := gjson.Parse(post(t, "/v1/responses", `{"input":"hi"}`).Body.String())
	for _, key := range []string{
		"id", "object", "created_at", "completed_at", "status", "incomplete_details", "model", "previous_response_id",
		"instructions", "output", "error", "tools", "tool_choice", "truncation", "parallel_tool_calls", "text", "top_p",
		"presence_penalty", "frequency_penalty", "top_logprobs", "temperature", "reasoning", "usage",
		"max_output_tokens", "max_tool_calls", "store", "background", "service_tier", "metadata", "safety_identifier",
		"prompt_cache_key",
	} {
		if !whole.Get(key).Exists() {
			t.Errorf("no %s in %s", key, whole.Raw)
		}
	}
	for _, number := range []string{"top_p", "presence_penalty", "frequency_penalty", "top_logprobs", "temperature"} {
		if whole.Get(number).Type != gjson.Number {
			t.Errorf("%s is %s, not a number", number, whole.Get(number).Raw)
		}
	}
}

func TestChatStream(t *testing.T) {
	for _, s := range shapes {
		for _, includeUsage := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, usage %v", s.name, includeUsage), func(t *testing.T) {
				body, err := sjson.Set(s.chat, "stream_options.include_usage", includeUsage)
				if err != nil {
					t.Fatal(err)
				}
				whole := post(t, "/v1/chat/completions", s.chat).Body.String()
				got := accumulateChat(t, stream(t, "/v1/chat/completions", body), includeUsage)
				if !includeUsage {
					whole, _ = sjson.Delete(whole, "usage")
				}
				same(t, got, whole)

				u := gjson.Get(whole, "usage")
				if u.Get("prompt_tokens").Int()+u.Get("completion_tokens").Int() != u.Get("total_tokens").Int() {
					t.Errorf("usage does not sum up: %s", u.Raw)
				}
			})
		}
	}
}

// accumulateChat makes of a stream's chunks what would have come without one.
func accumulateChat(t *testing.T, all []event, includeUsage bool) string {
	t.Helper()
	if last := all[len(all)-1]; last.data != "[DONE]" {
		t.Errorf("ends with %v", last)
	}
	all = all[:len(all)-1]
	var c chatCompletion
	var m chatMessage
	m.Annotations = []struct{}{}
	for i, e := range all {
		var chunk struct {
			chatHead
			Choices []chatChoiceDelta
			Usage   *chatUsage
		}
		if err := json.Unmarshal([]byte(e.data), &chunk); err != nil {
			t.Fatal(err)
		}
		if e.name != "" || chunk.Object != "chat.completion.chunk" {
			t.Errorf("event %d: %v", i, e)
		}
		if i > 0 && chunk.chatHead != c.chatHead {
			t.Errorf("event %d changes the head: %s", i, e.data)
		}
		c.chatHead = chunk.chatHead
		if gjson.Get(e.data, "usage").Exists() != includeUsage {
			t.Errorf("usage in event %d: %s", i, e.data)
		}
		if includeUsage && i == len(all)-1 {
			if len(chunk.Choices) != 0 || chunk.Usage == nil {
				t.Fatalf("the last event is not the usage: %s", e.data)
			}
			c.Usage = *chunk.Usage
			continue
		}
		if len(chunk.Choices) != 1 || chunk.Usage != nil {
			t.Fatalf("event %d: %s", i, e.data)
		}
		choice := chunk.Choices[0]
		if (choice.Delta.Role != "") != (i == 0) {
			t.Errorf("role in event %d: %s", i, e.data)
		}
		m.add(t, choice.Delta)
		if finished := choice.FinishReason != nil; finished {
			if !reflect.DeepEqual(choice.Delta, chatDelta{}) {
				t.Errorf("content beside the finish reason: %s", e.data)
			}
			c.Choices = []chatChoiceWhole{{Message: m, FinishReason: *choice.FinishReason}}
		} else if c.Choices != nil {
			t.Errorf("event %d after the finish reason: %s", i, e.data)
		}
	}
	c.Object = "chat.completion"
	whole, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if !includeUsage {
		whole, _ = sjson.DeleteBytes(whole, "usage")
	}
	return string(whole)
}

func (m *chatMessage) add(t *testing.T, d chatDelta) {
	t.Helper()
	m.Role += d.Role
	m.ReasoningContent += d.ReasoningContent
	if d.Content != nil {
		text := *d.Content
		if m.Content != nil {
			text = *m.Content + text
		}
		m.Content = &text
	}
	for _, call := range d.ToolCalls {
		switch {
		case call.Index != nil && *call.Index == len(m.ToolCalls) && call.ID != "":
			call.Index = nil
			m.ToolCalls = append(m.ToolCalls, call)
		case call.Index != nil && *call.Index == len(m.ToolCalls)-1 && call.ID == "":
			m.ToolCalls[*call.Index].Function.Arguments += call.Function.Arguments
		default:
			t.Errorf("a call out of order: %+v", call)
		}
	}
}

func TestMessagesStream(t *testing.T) {
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			whole := post(t, "/v1/messages", s.messages).Body.String()
			same(t, accumulateMessage(t, stream(t, "/v1/messages", s.messages)), whole)
		})
	}
}

// accumulateMessage makes of a stream's events what would have come without one.
func accumulateMessage(t *testing.T, all []event) string {
	t.Helper()
	var types []string
	var blocks []string
	var m, input string
	set := func(object *string, path string, value any) {
		changed, err := sjson.Set(*object, path, value)
		if err != nil {
			t.Fatal(err)
		}
		*object = changed
	}
	for _, e := range all {
		v := gjson.Parse(e.data)
		if v.Get("type").Str != e.name {
			t.Errorf("event %q: %s", e.name, e.data)
		}
		types = append(types, e.name)
		if e.name == "content_block_start" {
			input = ""
			blocks = append(blocks, v.Get("content_block").Raw)
		}
		if i := v.Get("index"); i.Exists() && i.Int() != int64(len(blocks)-1) {
			t.Errorf("index in block %d: %s", len(blocks)-1, e.data)
		}
		switch e.name {
		case "message_start":
			m = v.Get("message").Raw
			if v.Get("message.content").Raw != "[]" || v.Get("message.stop_reason").Type != gjson.Null {
				t.Errorf("the message begins as %s", e.data)
			}
		case "content_block_delta":
			block := &blocks[len(blocks)-1]
			switch v.Get("delta.type").Str {
			case "text_delta":
				set(block, "text", gjson.Get(*block, "text").Str+v.Get("delta.text").Str)
			case "thinking_delta":
				set(block, "thinking", gjson.Get(*block, "thinking").Str+v.Get("delta.thinking").Str)
			case "signature_delta":
				set(block, "signature", v.Get("delta.signature").Str)
			case "input_json_delta":
				input += v.Get("delta.partial_json").Str
				if json.Valid([]byte(input)) {
					set(block, "input", json.RawMessage(input))
				}
			default:
				t.Errorf("unknown delta: %s", e.data)
			}
		case "message_delta":
			set(&m, "stop_reason", v.Get("delta.stop_reason").Str)
			set(&m, "usage", json.RawMessage(v.Get("usage").Raw))
		}
	}
	grammar := regexp.MustCompile(`^message_start (content_block_start ping (content_block_delta )+content_block_stop ` +
		`(content_block_start (content_block_delta )+content_block_stop )*)?message_delta message_stop$`)
	if line := strings.Join(types, " "); !grammar.MatchString(line) {
		t.Fatalf("not the order of Anthropic's: %s", line)
	}
	set(&m, "content", json.RawMessage("["+strings.Join(blocks, ",")+"]"))
	return m
}

// same compares objects whatever the order of their keys.
func same(t *testing.T, streamed, whole string) {
	t.Helper()
	var a, b any
	if err := json.Unmarshal([]byte(timeless(streamed)), &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(timeless(whole)), &b); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(a, b) {
		t.Errorf("streamed:\n%s\nnot streamed:\n%s", streamed, whole)
	}
}
