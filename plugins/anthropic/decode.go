package anthropic

import (
	"net/http"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/streams"
	"github.com/weirhq/weir/plugins/translate"
)

// Decode implements translate.Provider.
func (Provider) Decode(resp *http.Response, a *translate.Assembler) error {
	d := &decoder{a: a, usage: a.Observer(plugins.Messages, "anthropic")}
	return translate.ReadAnswer(resp, a, d.message, d.event)
}

// decoder reads one answer. A message and a stream are the same to it: blocks
// that start, in a message with all their content, and stop.
type decoder struct {
	a      *translate.Assembler
	repeat streams.Repeat // of deltas of text
	usage  plugins.Observer
	block  block
	calls  translate.PendingCalls // that have no result yet
	reason translate.Reason       // why the model stopped; the answer has ended only with message_stop
	stop   string                 // the stop sequence that it has written, "" if none
}

func (d *decoder) message(body []byte) {
	v, ok := d.a.ParseJSON(body)
	switch {
	case !ok:
		return
	case v.Get("type").Str == "error":
		d.a.Fail(newError(0, v))
		return
	}
	d.start(v)
	d.count(body)
	for i, content := range v.Get("content").Array() {
		d.startBlock(i, content)
		d.stopBlock()
	}
	d.finish(v)
	d.end()
}

func (d *decoder) event(_, data []byte) bool {
	if text, ok := d.repeat.Text(data); ok {
		d.a.Text(textKey, text)
		return true
	}
	e, ok := d.a.ParseJSON(data)
	if !ok {
		return false
	}
	switch e.Get("type").Str {
	case "message_start":
		d.start(e.Get("message"))
		d.count(data)
	case "content_block_start":
		d.startBlock(int(e.Get("index").Int()), e.Get("content_block"))
	case "content_block_delta":
		delta := e.Get("delta")
		d.delta(delta)
		if text := delta.Get("text"); delta.Get("type").Str == "text_delta" && text.Type == gjson.String {
			d.repeat.Learn(data, text, gjson.Result{})
		}
	case "content_block_stop":
		d.stopBlock()
	case "message_delta":
		d.count(data)
		d.finish(e.Get("delta"))
	case "message_stop":
		d.end()
		return false
	case "error":
		d.a.Fail(newError(0, e))
		return false
	}
	return true
}

func (d *decoder) start(message gjson.Result) {
	d.a.Start(message.Get("model").Str, message.Get("id").Str)
}

// reasons are the reasons to stop. pause_turn is none of them: the answer is not complete, the model continues
// if a client of Messages sends the turn again (https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons).
var reasons = translate.Reasons{
	"end_turn":                      translate.ReasonStop,
	"stop_sequence":                 translate.ReasonStopSequence,
	"tool_use":                      translate.ReasonStop,
	"max_tokens":                    translate.ReasonMaxOutputTokens,
	"model_context_window_exceeded": translate.ReasonContextFull,
	"refusal":                       translate.ReasonContentFilter,
}

func (d *decoder) finish(v gjson.Result) {
	stop := v.Get("stop_reason").Str
	if stop == "" {
		return
	}
	reason := reasons.Of(stop)
	if reason == translate.ReasonContentFilter {
		d.a.Refusal(textKey, v.Get("stop_details.explanation").Str)
	}
	d.reason, d.stop = reason, v.Get("stop_sequence").Str
}

func (d *decoder) end() {
	d.a.Finish(d.reason)
	d.a.StoppedAt(d.stop)
}
