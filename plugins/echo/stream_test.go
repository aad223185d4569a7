package echo

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidwall/sjson"
)

// shapes are requests that ask the same in each dialect.
var shapes = []struct{ name, chat, responses, messages string }{
	{"text", `{"messages":[{"role":"user","content":"hello  <wide>\n world "}]}`,
		`{"input":"hello  <wide>\n world "}`,
		`{"messages":[{"role":"user","content":"hello  <wide>\n world "}]}`},
	{"nothing", `{"messages":[{"role":"user","content":""}]}`, `{"input":[]}`, `{"messages":[{"role":"user","content":""}]}`},
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
	{"call", `{"tool_choice":"required","messages":[{"role":"user","content":""}],"tools":[{"type":"function","function":{"name":"a","parameters":{"required":["x","y"]}}}]}`,
		`{"tool_choice":"required","input":"","tools":[{"type":"function","name":"a","parameters":{"required":["x","y"]}}]}`,
		`{"tool_choice":{"type":"any"},"messages":[{"role":"user","content":""}],"tools":[{"name":"a","input_schema":{"required":["x","y"]}}]}`},
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
