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
