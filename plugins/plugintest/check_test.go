package plugintest

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// legal is a stream with an item of every kind, as events of JSON.
func legal(t testing.TB) []string {
	p, err := translate.ParseRequest([]byte(`{"model":"m","input":"x","stream":true,"tools":[{"type":"custom","name":"patch"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	a := translate.NewAssembler(p, &b, options())
	a.Summary(0, 0, "think")
	a.Summary(0, 0, "ing")
	a.Text(1, "Hello")
	a.Text(1, " world")
	a.Annotation(1, []byte(`{"type":"url_citation","url":"u","title":"t","start_index":0,"end_index":1}`))
	a.Call(2, "c1", "f")
	a.Args(2, `{"a":`)
	a.Call(3, "c2", "patch")
	a.Args(3, `{"input":"x"}`)
	a.Args(2, `1}`)
	a.Usage(plugins.Usage{Input: plugins.Known(3), Output: plugins.Known(4), Reasoning: plugins.Known(1)})
	a.Finish(translate.ReasonStop)
	end := a.End()
	b.Write(end)
	var events []string
	for _, e := range strings.Split(b.String(), "\n\n") {
		if _, data, ok := strings.Cut(e, "data: "); ok {
			events = append(events, data)
		}
	}
	return events
}

// join makes a stream of events, numbered anew.
func join(events []string) []byte {
	var b bytes.Buffer
	n := 0
	for _, e := range events {
		if gjson.Get(e, "sequence_number").Exists() {
			e, _ = sjson.Set(e, "sequence_number", n)
			n++
		}
		b.WriteString("data: " + e + "\n\n")
	}
	return b.Bytes()
}

func without(part string) func([]string) []string {
	return func(events []string) []string {
		return slices.DeleteFunc(events, func(e string) bool {
			kind := gjson.Get(e, "type").Str
			return strings.HasPrefix(kind, "response.") && strings.Contains(kind, part)
		})
	}
}

// set changes a value in the events whose type has a part.
func set(kind, path string, value any) func([]string) []string {
	return func(events []string) []string {
		for i, e := range events {
			if strings.Contains(gjson.Get(e, "type").Str, kind) && gjson.Get(e, path).Exists() {
				events[i], _ = sjson.Set(e, path, value)
			}
		}
		return events
	}
}

func insert(at int, event string) func([]string) []string {
	return func(events []string) []string { return slices.Insert(events, at, event) }
}

func TestCheckTakesLegalStreams(t *testing.T) {
	events := legal(t)
	tests := []struct {
		name   string
		mutate func([]string) []string
	}{
		{"whole", func(e []string) []string { return e }},
		{"without [DONE]", func(e []string) []string { return e[:len(e)-1] }},
		{"usage null", set("completed", "response.usage", nil)},
		{"cached all of it", set("completed", "response.usage.input_tokens_details.cached_tokens", 3)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if _, err := Check(join(test.mutate(slices.Clone(events)))); err != nil {
				t.Error(err)
			}
		})
	}
	comments := bytes.ReplaceAll(join(events), []byte("data: "), []byte(": ping\r\ndata: "))
	if r, err := Check(comments); err != nil || r.Status != "completed" || !r.Done || r.Events != len(events)-1 {
		t.Errorf("with comments: %+v, %v", r, err)
	}
}

func TestCheckRefusesMutants(t *testing.T) {
	events := legal(t)
	const delta = "output_text.delta"
	tests := []struct {
		name   string
		mutate func([]string) []string
		want   string
	}{
		{"vendor event", insert(5, `{"type":"acme:trace","sequence_number":5}`), "output_index"},
		{"keepalive", insert(5, `{"type":"keepalive","sequence_number":5}`), "output_index"},
		{"vendor event of an item", insert(3, `{"type":"response.acme","sequence_number":3,"output_index":0}`), "item_id"},
		{"no content_part.added", without("content_part.added"), "no part"},
		{"no content_part.done", without("content_part.done"), "is open"},
		{"no reasoning_summary_part.added", without("summary_part.added"), "no part"},
		{"no output_item.added", without("output_item.added"), "was not announced"},
		{"no output_item.done", without("output_item.done"), "was not closed"},
		{"no output_text.done", without("output_text.done"), "comes before"},
		{"no arguments.done", without("function_call_arguments.done"), "is open"},
		{"no arguments at all", without("function_call_arguments"), "no arguments.done"},
		{"no created", without("created"), "out of order"},
		{"no in_progress", without("in_progress"), "before response.in_progress"},
		{"no terminal event", func(e []string) []string { return e[:len(e)-2] }, "no terminal event"},
		{"two terminal events", func(e []string) []string { return append(e[:len(e)-1], e[len(e)-2]) }, "after the terminal"},
		{"[DONE] first", func(e []string) []string { return append([]string{"[DONE]"}, e...) }, "[DONE] before"},
		{"[DONE] twice", func(e []string) []string { return append(e, "[DONE]") }, "[DONE]"},
		{"call without id", set("output_item.added", "item.id", ""), "no id"},
		{"call without call_id", set("output_item.added", "item.call_id", ""), "no call_id"},
		{"other ids at the end", set("completed", "response.output.0.id", "other"), "differs"},
		{"other call_id at the end", set("completed", "response.output.2.call_id", "other"), "differs"},
		{"other call_id in done", set("output_item.done", "item.call_id", "other"), "call_id changes"},
		{"other item_id", set(delta, "item_id", "other"), "item_id"},
		{"empty output", set("completed", "response.output", []string{}), "0 items"},
		{"same output_index", set("output_item.added", "output_index", 0), "output_index"},
		{"content_index", set(delta, "content_index", 1), "content_index"},
		{"no content_index", set(delta, "content_index", nil), "content_index"},
		{"delta lost", set(delta, "delta", "x"), "deltas said"},
		{"text lost at the end", set("completed", "response.output.1.content.0.text", "x"), "differs"},
		{"annotation lost", set("content_part.done", "part.annotations", []string{}), "annotations"},
		{"id rotates", set("completed", "response.id", "resp_other"), "response.id changes"},
		{"status too early", set("created", "response.status", "completed"), "status"},
		{"status too late", set("completed", "response.status", "in_progress"), "status"},
		{"incomplete item", set("output_item.done", "item.status", "incomplete"), "incomplete"},
		{"total", set("completed", "response.usage.total_tokens", 8), "total_tokens"},
		{"cached", set("completed", "response.usage.input_tokens_details.cached_tokens", 4), "cached"},
		{"reasoning", set("completed", "response.usage.output_tokens_details.reasoning_tokens", 5), "reasoning tokens"},
		{"usage without details", set("completed", "response.usage", map[string]int{"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}), "details"},
		{"no JSON", insert(4, `{`), "not JSON"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Check(join(test.mutate(slices.Clone(events))))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
	t.Run("sequence_number", func(t *testing.T) {
		stream := bytes.Replace(join(events), []byte(`"sequence_number":7`), []byte(`"sequence_number":8`), 1)
		if _, err := Check(stream); err == nil {
			t.Error("a gap is no legal stream")
		}
	})
	t.Run("event name", func(t *testing.T) {
		stream := append([]byte("event: response.completed\n"), join(events)...)
		if _, err := Check(stream); err == nil {
			t.Error("an event must have the name of its type")
		}
	})
}

// Cut anywhere, a stream has no terminal event.
func TestCheckRefusesTruncation(t *testing.T) {
	stream := join(legal(t))
	last := bytes.Index(stream, []byte(`data: {"type":"response.completed"`))
	for n := range stream[:last] {
		if _, err := Check(stream[:n]); err == nil {
			t.Fatalf("legal after %d bytes", n)
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add(join(legal(f)))
	f.Fuzz(func(t *testing.T, stream []byte) {
		if r, err := Check(stream); err == nil && r.Status == "" {
			t.Error("a legal stream has a status")
		}
	})
}
