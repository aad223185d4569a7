package gemini

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"
)

// part reads a part of the content. Calls come whole.
func (d *decoder) part(v gjson.Result) {
	var kind, signature string
	var value gjson.Result
	thought := false
	v.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "thoughtSignature":
			signature = v.Str
		case "thought":
			thought = v.Bool()
		case "text", "functionCall", "inlineData", "toolCall", "toolResponse", "executableCode", "codeExecutionResult":
			kind, value = key.Str, v
		}
		return true
	})
	d.more = d.more || kind != "text" || thought || signature != "" || d.plain.Raw != ""
	d.plain = value
	switch kind {
	case "text", "":
		d.addText(value.Str, signature, thought)
	case "functionCall":
		d.call(value, signature)
	case "inlineData":
		if media := value.Get("mimeType").Str; !thought && strings.HasPrefix(media, "image/") {
			d.seal()
			d.text = d.text[:0]
			d.a.Image(media, value.Get("data").Str)
		}
	default:
		d.held.Parts = append(d.held.Parts, json.RawMessage(v.Raw))
		d.hosted(kind, value)
	}
}

// addText reads text. Its signature comes with its first piece, its last, or by
// itself, and belongs to all of it.
func (d *decoder) addText(s, signature string, thought bool) {
	switch {
	case s == "":
	case thought:
		d.seal()
		d.text = d.text[:0]
		d.a.Summary(reasoningKey, 0, s)
	default:
		if len(d.held.Parts) > 0 {
			d.seal()
		}
		d.a.Text(textKey, s)
		if d.cites {
			d.text = append(d.text, s...)
		}
	}
	switch {
	case signature == "":
	case len(d.held.Parts) > 0:
		d.held.Parts = append(d.held.Parts, signedText(signature))
	default:
		d.signature = signature
	}
}

func (d *decoder) call(v gjson.Result, signature string) {
	name := v.Get("name").Str
	if name == "" {
		return
	}
	d.held.Call = signature
	d.seal()
	d.text = d.text[:0]
	d.a.Call(d.calls, v.Get("id").Str, name)
	if args := v.Get("args"); args.IsObject() {
		d.a.Args(d.calls, args.Get("@ugly").Raw) // answers that are no streams are indented
	}
	d.a.Close(d.calls)
	d.calls++
}

// codeInterpreterCall is the item of code that was run.
type codeInterpreterCall struct {
	ID          string      `json:"id,omitempty"`
	Type        string      `json:"type"`
	Status      string      `json:"status"`
	Code        string      `json:"code"`
	ContainerID string      `json:"container_id"`
	Outputs     []logOutput `json:"outputs"`
}

type logOutput struct {
	Type string `json:"type"`
	Logs string `json:"logs"`
}

// hosted reads a call of a tool that the provider hosts, or its result. Code and
// its result are one item.
func (d *decoder) hosted(kind string, v gjson.Result) {
	switch kind {
	case "toolCall":
		for _, query := range v.Get("args.queries").Array() {
			d.queries = append(d.queries, query.Str)
		}
	case "executableCode":
		d.code = codeInterpreterCall{ID: v.Get("id").Str, Type: "code_interpreter_call", Code: v.Get("code").Str}
	case "codeExecutionResult":
		if d.code.Type == "" {
			return
		}
		d.code.Status = "completed"
		if v.Get("outcome").Str != "OUTCOME_OK" {
			d.code.Status = "failed"
		}
		d.code.Outputs = []logOutput{{"logs", v.Get("output").Str}}
		item, _ := json.Marshal(d.code) // strings
		d.code = codeInterpreterCall{}
		d.seal()
		d.a.Item(item)
		d.text = d.text[:0]
	}
}
