package openai

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins/plugintest"
)

// A provider may leave deltas out, and say at the end what they would have said. It may also split
// a character, or go on at another index.
func TestWhatDeltasLeaveOut(t *testing.T) {
	const (
		added    = `{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"a","name":"f","arguments":""}}`
		begun    = `{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"path\":"}`
		item     = `{"type":"function_call","call_id":"a","name":"f","arguments":"{\"path\":\"/x\"}","status":"completed"}`
		message  = `{"type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Half of it."}]}`
		half     = `{"type":"response.output_text.delta","output_index":0,"delta":"Half "}`
		thinking = `{"type":"reasoning","summary":[{"type":"summary_text","text":"One."},{"type":"summary_text","text":"Two."}]}`
	)
	end := func(output string) string {
		return `{"type":"response.completed","response":{"id":"r","model":"m","status":"completed","output":[` + output + `]}}`
	}
	done := func(index, item string) string {
		return `{"type":"response.output_item.done","output_index":` + index + `,"item":` + item + `}`
	}
	call := []string{"{\"path\":\"/x\"}"}
	for name, c := range map[string]struct {
		events []string
		path   string // of what is looked at in the response
		want   []string
	}{
		"arguments, at their end":           {[]string{added, begun, `{"type":"response.function_call_arguments.done","output_index":0,"arguments":"{\"path\":\"/x\"}"}`, end("")}, "output.#.arguments", call},
		"arguments, at their end and again": {[]string{added, begun, `{"type":"response.function_call_arguments.done","output_index":0,"arguments":"{\"path\":\"/x\"}"}`, done("0", item), end(item)}, "output.#.arguments", call},
		"arguments, with the item":          {[]string{added, begun, done("0", item), end("")}, "output.#.arguments", call},
		"arguments, in the response":        {[]string{added, begun, end(item)}, "output.#.arguments", call},
		"arguments, all at another index":   {[]string{added, begun, `{"type":"response.function_call_arguments.delta","output_index":3,"delta":"\"/x\"}"}`, done("3", item), end(item)}, "output.#.arguments", call},
		"an item":                           {[]string{end(item)}, "output.#.arguments", call},
		"the second item":                   {[]string{done("0", message), end(message + "," + item)}, "output.#.arguments", call},
		"text, at its end":                  {[]string{half, `{"type":"response.output_text.done","output_index":0,"content_index":0,"text":"Half of it."}`, end("")}, "output.#.content.0.text", []string{"Half of it."}},
		"text, with the item":               {[]string{half, done("0", message), end(message)}, "output.#.content.0.text", []string{"Half of it."}},
		"a part of the summary":             {[]string{`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"One."}`, done("0", thinking), end(thinking)}, "output.0.summary.#.text", []string{"One.", "Two."}},
		"half a character":                  {[]string{strings.Replace(half, "Half ", `a \ud83d`, 1), strings.Replace(half, "Half ", `\ude00 b`, 1), done("0", strings.Replace(message, "Half of it.", "a 😀 b!", 1)), end("")}, "output.#.content.0.text", []string{"a 😀 b!"}},
	} {
		var got []string
		r := plugintest.Answer(t, Provider{}, `{"model":"m","input":"hi","stream":true,"tools":[{"type":"function","name":"f","parameters":{"type":"object"}}]}`, "data: "+strings.Join(c.events, "\n\ndata: ")+"\n\n")
		for _, v := range r.Get(c.path).Array() {
			got = append(got, v.Str)
		}
		if strings.Join(got, ";") != strings.Join(c.want, ";") || r.Get("status").Str != "completed" {
			t.Errorf("%s: %q, want %q: %s", name, got, c.want, r)
		}
	}
}

// What a model tells while it works is no part of the JSON that a client wants.
func TestCommentsBesideJSON(t *testing.T) {
	const (
		comment = `{"type":"message","id":"a","role":"assistant","phase":"commentary","status":"completed","content":[{"type":"output_text","text":"I plan.","logprobs":[{"token":"I"}]}]}`
		answer  = `{"type":"message","id":"b","role":"assistant","phase":"final_answer","status":"completed","content":[{"type":"output_text","text":"{\"a\":1}"}]}`
		whole   = `{"id":"r","model":"m","status":"completed","output":[` + comment + `,` + answer + `]}`
	)
	stream := strings.Join([]string{
		`{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"a","role":"assistant","phase":"commentary","content":[]}}`,
		`{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"I "}`,
		`{"type":"response.output_text.done","output_index":0,"content_index":0,"text":"I plan."}`,
		`{"type":"response.output_item.done","output_index":0,"item":` + comment + `}`,
		`{"type":"response.output_item.added","output_index":1,"item":{"type":"message","id":"b","role":"assistant","phase":"final_answer","content":[]}}`,
		`{"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"{\"a\":1}"}`,
		`{"type":"response.completed","response":` + whole + `}`,
	}, "\n\ndata: ")
	for format, want := range map[string]string{
		"":                                   "message message I plan. {\"a\":1}",
		`,"text":{"format":{"type":"text"}}`: "message message I plan. {\"a\":1}",
		`,"text":{"format":{"type":"json_object"}}`:                                       "reasoning message I plan. {\"a\":1}",
		`,"text":{"format":{"type":"json_schema","name":"a","schema":{"type":"object"}}}`: "reasoning message I plan. {\"a\":1}",
	} {
		for _, c := range [][2]string{{"true", "data: " + stream + "\n\n"}, {"false", whole}} {
			r := plugintest.Answer(t, Provider{}, `{"model":"m","input":"hi","stream":`+c[0]+format+`}`, c[1])
			o := r.Get("output")
			if got := strings.Join([]string{o.Get("0.type").Str, o.Get("1.type").Str, o.Get("0.content.0.text").Str, o.Get("1.content.0.text").Str}, " "); got != want {
				t.Errorf("%s: got %s, want %s: %s", format, got, want, r)
			}
		}
	}
}
