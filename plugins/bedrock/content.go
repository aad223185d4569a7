package bedrock

import (
	"encoding/base64"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// textKey is the key of all texts. Citations split a text into blocks, which are one message. Other
// blocks have their index as key.
const textKey = -1

// openBlock is the block that is open, or was last. In a stream, a block of text or reasoning opens with
// its first delta.
type openBlock struct {
	open bool
	kind blockKind
	key  int

	from      int64 // where in its message a text begins, in characters
	citations []gjson.Result

	thoughts, redacted []byte
	signature          string

	call   translate.PendingCall // of a tool that Bedrock hosts
	result string                // the id of the call that the block answers
}

type blockKind uint8

const (
	unknownBlock blockKind = iota
	textBlock
	reasoningBlock
	toolUseBlock
	answerBlock
	serverToolUseBlock
	toolResultBlock
)

// startBlock opens a block, unless it is open. The block before is complete: only the last one may be cut
// short.
func (d *decoder) startBlock(index int) {
	if d.block.open && d.block.key == index {
		return
	}
	d.stopBlock()
	if d.block.kind == toolUseBlock {
		d.a.Close(d.block.key)
	}
	d.block = openBlock{open: true, key: index, from: d.a.Length(textKey)}
}

// setBlockKind sets the kind of the block. A block that is not text ends the text before
// it.
func (d *decoder) setBlockKind(kind blockKind) {
	if d.block.kind == kind {
		return
	}
	if kind != textBlock && kind != answerBlock {
		d.a.Close(textKey)
	}
	d.block.kind = kind
}

func (d *decoder) content(index int, v gjson.Result) {
	d.startBlock(index)
	v.ForEach(func(key, content gjson.Result) bool {
		switch key.Str {
		case "text":
			d.text(plugins.Text(content))
		case "reasoningContent":
			text := content.Get("reasoningText")
			d.think(plugins.Text(text.Get("text")))
			d.block.signature = text.Get("signature").Str
			d.redact(content.Get("redactedContent").Str)
		case "toolUse":
			d.start(v)
			if input := content.Get("input"); len(input.Map()) > 0 {
				d.input(input.Raw)
			}
		case "toolResult":
			d.start(v)
			d.result(content.Get("content"))
		case "citationsContent":
			for _, part := range content.Get("content").Array() {
				d.text(plugins.Text(part.Get("text")))
			}
			d.block.citations = content.Get("citations").Array()
		case "image":
			d.image(content)
		case "audio", "video":
			d.a.Unplaced(key.Str + "/" + content.Get("format").Str)
		}
		return true
	})
	d.stopBlock()
}

func (d *decoder) start(v gjson.Result) {
	call := v.Get("toolUse")
	id, name := call.Get("toolUseId").Str, call.Get("name").Str
	switch {
	case !call.Exists():
		if id := v.Get("toolResult.toolUseId").Str; id != "" {
			d.setBlockKind(toolResultBlock)
			d.block.result = id
		}
	case call.Get("type").Str == "server_tool_use":
		d.setBlockKind(serverToolUseBlock)
		d.block.call = translate.PendingCall{ID: id, Name: name}
	case d.a.Request().IsAnswerTool(name):
		d.setBlockKind(answerBlock)
	default:
		d.setBlockKind(toolUseBlock)
		d.a.Call(d.block.key, id, name)
	}
}

func (d *decoder) delta(v gjson.Result) {
	v.ForEach(func(key, content gjson.Result) bool {
		switch key.Str {
		case "text":
			d.text(plugins.Text(content))
		case "toolUse":
			d.input(plugins.Text(content.Get("input")))
		case "reasoningContent":
			d.think(plugins.Text(content.Get("text")))
			d.block.signature += content.Get("signature").Str
			d.redact(content.Get("redactedContent").Str)
		case "citation":
			d.block.citations = append(d.block.citations, content)
		case "toolResult":
			d.result(content)
		case "image":
			d.image(content)
		}
		return true
	})
}

func (d *decoder) stopBlock() {
	b := &d.block
	if !b.open {
		return
	}
	b.open = false
	switch b.kind {
	case textBlock:
		for _, c := range b.citations {
			d.cite(c)
		}
	case reasoningBlock:
		switch {
		case len(b.redacted) > 0:
			d.a.Seal(b.key, encodeReasoning(reasoningContent{RedactedContent: b.redacted}))
		case b.signature != "":
			d.a.Seal(b.key, encodeReasoning(reasoningContent{ReasoningText: &reasoningText{plugins.JoinLastSurrogates(string(b.thoughts)), b.signature}}))
		}
	case serverToolUseBlock:
		d.calls = append(d.calls, b.call)
	case toolResultBlock:
		d.result(gjson.Result{}) // in case that it said nothing
	}
}

func (d *decoder) text(s string) {
	if s == "" {
		return
	}
	d.setBlockKind(textBlock)
	d.a.Text(textKey, s)
}

func (d *decoder) think(s string) {
	d.setBlockKind(reasoningBlock)
	d.a.Summary(d.block.key, 0, s)
	d.block.thoughts = append(d.block.thoughts, s...)
}

// redact reads encrypted thoughts. Each piece is base64 by itself.
func (d *decoder) redact(s string) {
	data, _ := base64.StdEncoding.DecodeString(s) // broken base64 is dropped
	d.block.redacted = append(d.block.redacted, data...)
}

func (d *decoder) image(v gjson.Result) {
	d.a.Image("image/"+v.Get("format").Str, v.Get("source.bytes").Str)
}

func (d *decoder) input(s string) {
	switch d.block.kind {
	case answerBlock:
		d.a.Text(textKey, s)
	case serverToolUseBlock:
		d.block.call.Input = append(d.block.call.Input, s...)
	default:
		d.a.Args(d.block.key, s)
	}
}
