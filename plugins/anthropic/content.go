package anthropic

import (
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// textKey is the key of all texts. Citations split a text into blocks, which are one message. Other blocks have
// their index as key.
const textKey = -1

// answerBlock is the kind of a block that calls the tool by which the model
// answers.
const answerBlock = "answer"

type block struct {
	kind string
	key  int

	from      int64 // where in its message a text begins, in characters
	citations []gjson.Result

	thinking  []byte
	signature string

	call translate.PendingCall // of a tool that the provider hosts
}

// startBlock reads the start of a block. In a message, that is the whole block. The block before is complete:
// only the last one may be cut short.
func (d *decoder) startBlock(index int, v gjson.Result) {
	if d.block.kind != "text" {
		d.a.Close(d.block.key)
	}
	d.block = block{kind: v.Get("type").Str, key: index}
	if d.block.kind != "text" {
		d.a.Close(textKey)
	}
	switch d.block.kind {
	case "text":
		d.block.from = d.a.Length(textKey)
		d.a.Text(textKey, plugins.Text(v.Get("text")))
		d.block.citations = v.Get("citations").Array()
	case "thinking":
		d.think(plugins.Text(v.Get("thinking")))
		d.block.signature = v.Get("signature").Str
	case "redacted_thinking":
		if data := v.Get("data").Str; data != "" {
			d.a.Seal(index, encodeReasoning(redactedBlock{"redacted_thinking", data}))
		}
	case "tool_use":
		if name := v.Get("name").Str; d.a.Request().IsAnswerTool(name) {
			d.block.kind = answerBlock
		} else {
			d.a.Call(index, v.Get("id").Str, name)
		}
		if input := v.Get("input"); len(input.Map()) > 0 {
			d.input(input.Raw)
		}
	case "server_tool_use":
		d.block.call = translate.PendingCall{ID: v.Get("id").Str, Name: v.Get("name").Str}
		if input := v.Get("input"); len(input.Map()) > 0 {
			d.input(input.Raw)
		}
	default:
		d.result(v)
	}
}

func (d *decoder) delta(v gjson.Result) {
	switch v.Get("type").Str {
	case "text_delta":
		d.a.Text(textKey, plugins.Text(v.Get("text")))
	case "citations_delta":
		d.block.citations = append(d.block.citations, v.Get("citation"))
	case "thinking_delta":
		d.think(plugins.Text(v.Get("thinking")))
	case "signature_delta":
		d.block.signature += v.Get("signature").Str
	case "input_json_delta":
		d.input(plugins.Text(v.Get("partial_json")))
	}
}

func (d *decoder) stopBlock() {
	b := &d.block
	switch b.kind {
	case "text":
		for _, c := range b.citations { // those that are no web page have no URL
			d.a.Cite(textKey, translate.Citation{
				Start: b.from, End: d.a.Length(textKey), URL: c.Get("url").Str, Title: c.Get("title").Str,
			})
		}
		b.citations = nil
	case "thinking":
		if b.signature != "" {
			d.a.Seal(b.key, encodeReasoning(thinkingBlock{"thinking", plugins.JoinLastSurrogates(string(b.thinking)), b.signature}))
		}
	case "server_tool_use":
		if b.call.ID != "" {
			d.calls = append(d.calls, b.call)
			b.call = translate.PendingCall{}
		}
	}
}

func (d *decoder) think(s string) {
	d.a.Summary(d.block.key, 0, s)
	d.block.thinking = append(d.block.thinking, s...)
}

func (d *decoder) input(s string) {
	switch d.block.kind {
	case answerBlock:
		d.a.Text(textKey, s)
	case "tool_use":
		d.a.Args(d.block.key, s)
	default:
		d.block.call.Input = append(d.block.call.Input, s...)
	}
}
