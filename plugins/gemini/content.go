package gemini

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// part reads a part of the content. A call is in one part.
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
		case "text", "functionCall", "inlineData", "fileData", "toolCall", "toolResponse", "executableCode", "codeExecutionResult":
			kind, value = key.Str, v
		}
		return true
	})
	d.more = d.more || kind != "text" || thought || signature != "" || d.plain.Raw != ""
	d.plain = value
	switch kind {
	case "text", "":
		d.addText(plugins.Text(value), signature, thought)
	case "functionCall":
		d.call(value, signature)
	case "inlineData", "fileData":
		if thought { // a draft
			return
		}
		d.seal()
		d.text = d.text[:0]
		if media := value.Get("mimeType").Str; kind == "inlineData" && strings.HasPrefix(media, "image/") {
			d.a.Image(media, value.Get("data").Str)
		} else {
			d.a.Unplaced(media)
		}
	default:
		d.pending.Parts = append(d.pending.Parts, json.RawMessage(v.Raw))
		d.hosted(kind, value)
	}
}

// addText reads text. The signature of a text comes with its first piece, with its last, or alone.
func (d *decoder) addText(s, signature string, thought bool) {
	switch {
	case s == "":
	case thought:
		d.seal()
		d.text = d.text[:0]
		d.a.Summary(reasoningKey, 0, s)
	default:
		if len(d.pending.Parts) > 0 {
			d.seal()
		}
		d.a.Text(textKey, s)
		if d.cites {
			d.text = append(d.text, s...)
		}
	}
	switch {
	case signature == "":
	case len(d.pending.Parts) > 0:
		d.pending.Parts = append(d.pending.Parts, signedText(signature))
	default:
		d.signature = signature
	}
}

func (d *decoder) call(v gjson.Result, signature string) {
	name := v.Get("name").Str
	if name == "" {
		return
	}
	if d.a.Request().IsAnswerTool(name) {
		d.addText(v.Get("args").Get("@ugly").Raw, signature, false)
		return
	}
	d.pending.Call = signature
	d.seal()
	d.text = d.text[:0]
	d.a.Call(d.calls, v.Get("id").Str, name)
	if args := v.Get("args"); args.IsObject() {
		d.a.Args(d.calls, args.Get("@ugly").Raw) // answers that are no streams are indented
	}
	d.a.Close(d.calls)
	d.calls++
}

// hosted reads a call of a tool that the provider hosts, or its result. Code and its result are one item.
func (d *decoder) hosted(kind string, v gjson.Result) {
	switch kind {
	case "toolCall":
		for _, query := range v.Get("args.queries").Array() {
			d.queries = append(d.queries, query.Str)
		}
	case "executableCode":
		d.code, d.runs = v.Get("code").Str, true
	case "codeExecutionResult":
		if !d.runs {
			return
		}
		d.runs = false
		d.seal()
		d.a.CodeInterpreter(translate.HostedCall{
			Failed: v.Get("outcome").Str != "OUTCOME_OK", Code: d.code, Logs: v.Get("output").Str,
		})
		d.text = d.text[:0]
	}
}
