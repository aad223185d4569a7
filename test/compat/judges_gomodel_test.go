package compat

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/plugintest"
)

// goModelCase is an answer of a provider, and what GoModel makes of it.
type goModelCase struct {
	label             string // of the provider
	golden, answer    string // files
	kind              string // of the provider
	responses, stream bool   // what the client asks for
	want              plugintest.Message
}

// goModelCases are the cases of GoModel's contract, without lists of models, which the gateway
// makes of its catalogue.
func goModelCases(t *testing.T, folder string) []*goModelCase {
	t.Helper()
	goldens, err := filepath.Glob(filepath.Join(folder, "golden/*/*.golden.json"))
	if err != nil || len(goldens) == 0 {
		t.Fatalf("there are no cases in %s: %v", folder, err)
	}
	var cases []*goModelCase
	for i, file := range goldens {
		vendor := filepath.Base(filepath.Dir(file))
		name := strings.TrimSuffix(filepath.Base(file), ".golden.json")
		if name == "models" {
			continue
		}
		c := &goModelCase{golden: vendor + "/" + name, responses: strings.HasPrefix(name, "responses"), stream: strings.HasSuffix(name, "_stream")}
		c.answer = c.golden + map[bool]string{false: ".json", true: ".txt"}[c.stream]
		if _, err := os.Stat(filepath.Join(folder, c.answer)); err != nil { // it is translated from another API
			other := map[bool]string{false: "chat_completion", true: "messages"}[vendor == "anthropic"]
			c.answer = vendor + "/" + strings.Replace(filepath.Base(c.answer), "responses", other, 1)
		}
		c.label, c.kind = fmt.Sprint("case", i), vendor
		switch {
		case vendor == "gemini": // which GoModel calls by its API for OpenAI's clients
			c.kind = "compatible"
		case c.answer == c.golden+filepath.Ext(c.answer) && c.responses: // the provider's own Responses
			c.label, c.kind = vendor, "openai"
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c.want = meaning(gjson.ParseBytes(text))
		cases = append(cases, c)
	}
	return cases
}

// meaning is what an answer says to a client: a completion, its chunks, a response or its
// events. Texts, calls and tokens count, ids and the cut of a stream do not.
func meaning(v gjson.Result) (m plugintest.Message) {
	usage, finish := v.Get("usage"), v.Get("choices.0.finish_reason").Str
	said := v.Get("choices.0.message")
	m.Text = v.Get("text").Str + said.Get("content").Str
	switch {
	case v.Get("events").Exists():
		usage = v.Get(`events.#(Name=="response.completed").Payload.response.usage`)
	case v.Get("output").Exists():
		for _, part := range v.Get(`output.#.content|@flatten|#(type=="output_text")#.text`).Array() {
			m.Text += part.Str
		}
	}
	for _, chunk := range v.Get("chunks").Array() {
		finish += chunk.Get("choices.0.finish_reason").Str
		if u := chunk.Get("usage"); u.IsObject() {
			usage = u
		}
	}
	for _, call := range said.Get("tool_calls").Array() {
		m.Calls = append(m.Calls, plugintest.Call{
			ID: call.Get("id").Str, Name: call.Get("function.name").Str, Arguments: gjson.Get(call.Get("function.arguments").Str, "@ugly").Raw,
		})
	}
	m.Finish = finish
	m.Input = usage.Get("prompt_tokens").Int() + usage.Get("input_tokens").Int()
	m.Output = usage.Get("completion_tokens").Int() + usage.Get("output_tokens").Int()
	return m
}

// answered is an answer of the gateway in the form that [meaning] reads: GoModel keeps a stream
// as the object of its chunks and its text.
func (c *goModelCase) answered(body []byte) gjson.Result {
	if !c.stream {
		return gjson.ParseBytes(body)
	}
	var chunks []any
	var text strings.Builder
	for line := range strings.Lines(string(body)) {
		event := gjson.Parse(strings.TrimPrefix(line, "data: "))
		if event.Get("type").Str == "response.completed" {
			return event.Get("response")
		}
		if event.IsObject() {
			chunks = append(chunks, event.Value())
			text.WriteString(event.Get("choices.0.delta.content").Str)
		}
	}
	return gjson.ParseBytes(mustJSON(object{"chunks": chunks, "text": text.String()}))
}
