package cohere

import (
	"net/http"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/chat"
	"github.com/weirhq/weir/plugins/translate"
)

// Decode implements translate.Provider.
func (Provider) Decode(resp *http.Response, a *translate.Assembler) error {
	d := &decoder{a: a}
	return translate.ReadAnswer(resp, a, d.message, d.event)
}

// The Assembler's keys. Calls have their index.
const (
	textKey = -1 - iota
	thinkingKey
	planKey
)

type decoder struct {
	a              *translate.Assembler
	thinking, plan []byte // that are not sealed yet
	answer         bool   // the call that is open is the answer
}

func (d *decoder) message(body []byte) {
	v, ok := d.a.ParseJSON(body)
	if !ok {
		return
	}
	d.a.Start("", v.Get("id").Str)
	m := v.Get("message")
	if m.Type == gjson.String { // an error alone
		d.a.Fail(plugins.Refused(http.StatusInternalServerError, m.Str))
		return
	}
	for _, content := range m.Get("content").Array() {
		d.content(content)
	}
	for _, c := range m.Get("citations").Array() {
		d.cite(c)
	}
	d.toolPlan(plugins.Text(m.Get("tool_plan")))
	for i, call := range chat.CallsOf(m) {
		d.call(i, chat.ReadCall(call))
	}
	d.complete(v, body)
}

func (d *decoder) event(_, data []byte) bool {
	e, ok := d.a.ParseEvent(data)
	if !ok {
		return false
	}
	index := int(e.Get("index").Int())
	switch e.Get("type").Str {
	case "message-start":
		d.a.Start("", e.Get("id").Str)
	case "content-start", "content-delta":
		d.content(e.Get("delta.message.content"))
	case "tool-plan-delta":
		d.toolPlan(plugins.Text(e.Get("delta.message.tool_plan")))
	case "tool-call-start":
		for _, call := range chat.CallsOf(e.Get("delta.message")) {
			d.call(index, chat.ReadCall(call))
		}
	case "tool-call-delta":
		for _, call := range chat.CallsOf(e.Get("delta.message")) {
			d.arguments(index, chat.ReadCall(call).Input)
		}
	case "citation-start":
		d.cite(e.Get("delta.message.citations"))
	case "message-end":
		d.complete(e.Get("delta"), data)
		return false
	case "": // an error alone
		if message := e.Get("message"); message.Type == gjson.String {
			d.a.Fail(plugins.Refused(http.StatusInternalServerError, message.Str))
			return false
		}
	}
	return true
}

func (d *decoder) content(v gjson.Result) {
	if s := plugins.Text(v.Get("thinking")); s != "" {
		d.thinking = append(d.thinking, s...)
		d.a.ReasoningText(thinkingKey, s)
	}
	if s := plugins.Text(v.Get("text")); s != "" {
		d.seal()
		d.a.Text(textKey, s)
	}
}

// toolPlan reads what the model says before it makes calls.
func (d *decoder) toolPlan(s string) {
	if s == "" {
		return
	}
	if len(d.thinking) > 0 {
		d.seal()
	}
	d.plan = append(d.plan, s...)
	d.a.Summary(planKey, 0, s)
}

// seal ends the open thoughts, with what the provider wants back of them.
func (d *decoder) seal() {
	switch {
	case len(d.thinking) > 0:
		d.a.Seal(thinkingKey, thoughts{Thinking: plugins.JoinLastSurrogates(string(d.thinking))}.encode())
	case len(d.plan) > 0:
		d.a.Seal(planKey, thoughts{ToolPlan: plugins.JoinLastSurrogates(string(d.plan))}.encode())
	}
	d.thinking, d.plan = nil, nil
}

// call reads the start of a call. In a message, that is the whole call. The call before is complete: only the
// last one may be cut short.
func (d *decoder) call(index int, c chat.CallPiece) {
	d.seal()
	d.a.Close(index - 1)
	if d.answer = d.a.Request().IsAnswerTool(c.Name); !d.answer {
		d.a.Call(index, c.ID, c.Name)
	}
	d.arguments(index, c.Input)
}

func (d *decoder) arguments(index int, s string) {
	if d.answer {
		d.a.Text(textKey, s)
	} else {
		d.a.Args(index, s)
	}
}

var reasons = translate.Reasons{
	"COMPLETE":      translate.ReasonStop,
	"STOP_SEQUENCE": translate.ReasonStopSequence,
	"TOOL_CALL":     translate.ReasonStop,
	"MAX_TOKENS":    translate.ReasonMaxOutputTokens,
	"ERROR":         translate.ReasonError,
	"ERROR_TOXIC":   translate.ReasonContentFilter,
	"TIMEOUT":       translate.ReasonInterrupted,
}

func (d *decoder) complete(v gjson.Result, body []byte) {
	d.seal()
	d.a.Observe(plugins.CohereChat, "cohere", body)
	stop := v.Get("finish_reason").Str
	if stop == "" {
		return
	}
	d.a.Finish(reasons.Of(stop))
	if message := v.Get("error").Str; message != "" {
		d.a.Fail(plugins.Refused(http.StatusInternalServerError, message))
	}
}
