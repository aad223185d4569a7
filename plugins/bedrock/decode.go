package bedrock

import (
	"net/http"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/streams"
	"github.com/weirhq/weir/plugins/translate"
)

// Decode implements translate.Provider.
func (*Provider) Decode(resp *http.Response, a *translate.Assembler) error {
	d := &decoder{a: a, usage: a.Observer(plugins.Converse, "bedrock")}
	a.Start("", resp.Header.Get("X-Amzn-Requestid"))
	kind, body := streams.Detect(resp.Body)
	if kind != streams.Binary {
		object, err := translate.ReadObject(body, resp.ContentLength)
		if err == nil {
			d.message(object)
			a.FailAsStated(object)
		}
		return err
	}
	for f, err := range streams.ReadFrames(body) {
		if err != nil {
			return err
		}
		if !d.frame(f) {
			return nil
		}
	}
	return nil
}

// decoder reads one answer. A message and a stream are the same to it: blocks
// that start, in a message with all their content, and stop.
type decoder struct {
	a     *translate.Assembler
	usage plugins.Observer
	block openBlock
	calls translate.PendingCalls // that have no result yet
}

func (d *decoder) message(body []byte) {
	v, ok := d.a.ParseJSON(body)
	if !ok {
		return
	}
	for i, content := range v.Get("output.message.content").Array() {
		d.content(i, content)
	}
	d.count(body)
	d.finish(v)
}

func (d *decoder) frame(f streams.Frame) bool {
	kind := string(f.Header(":message-type"))
	if kind == "error" {
		d.a.Fail(newError(0, string(f.Header(":error-code")), string(f.Header(":error-message"))))
		return false
	}
	e, ok := d.a.ParseJSON(f.Payload)
	if !ok {
		return false
	}
	if kind == "exception" {
		d.a.Fail(newError(0, string(f.Header(":exception-type")), e.Get("message").Str))
		return false
	}
	switch string(f.Header(":event-type")) {
	case "contentBlockStart":
		d.startBlock(int(e.Get("contentBlockIndex").Int()))
		d.start(e.Get("start"))
		d.usage.Write(f.Payload) // calls of tools that are billed
	case "contentBlockDelta":
		d.startBlock(int(e.Get("contentBlockIndex").Int()))
		d.delta(e.Get("delta"))
	case "contentBlockStop":
		d.stopBlock()
	case "messageStop":
		d.stopBlock()
		d.finish(e)
	case "metadata":
		d.count(f.Payload)
		return false
	}
	return true
}

var reasons = translate.Reasons{
	"end_turn":                      translate.ReasonStop,
	"stop_sequence":                 translate.ReasonStopSequence,
	"tool_use":                      translate.ReasonStop,
	"max_tokens":                    translate.ReasonMaxOutputTokens,
	"model_context_window_exceeded": translate.ReasonContextFull,
	"guardrail_intervened":          translate.ReasonContentFilter,
	"content_filtered":              translate.ReasonContentFilter,
	"malformed_model_output":        translate.ReasonInterrupted,
	"malformed_tool_use":            translate.ReasonInterrupted,
}

func (d *decoder) finish(v gjson.Result) {
	if stop := v.Get("stopReason").Str; stop != "" {
		d.a.Finish(reasons.Of(stop))
		d.a.StoppedAt(v.Get("additionalModelResponseFields.stop_sequence").Str)
	}
}

func (d *decoder) count(body []byte) {
	d.usage.Write(body)
	info := d.usage.Info()
	d.a.Report(info)
	d.a.ServiceTier(info.ServiceTier)
}
