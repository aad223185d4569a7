package gemini

import (
	"net/http"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/streams"
	"github.com/weirhq/weir/plugins/translate"
)

// generateContent reads the answers and errors of the Gemini API and of Vertex AI.
type generateContent struct{}

// Decode implements translate.Provider.
func (generateContent) Decode(resp *http.Response, a *translate.Assembler) error {
	p := a.Request()
	d := &decoder{a: a}
	for i := range p.Tools {
		d.cites = d.cites || p.Tools[i].Hosted()
	}
	defer d.flush()
	err := translate.ReadAnswer(resp, a, func(body []byte) { d.response(nil, body) }, d.response)
	if d.reason != translate.ReasonNone { // the answer is over, however the connection ends
		return nil
	}
	return err
}

// The Assembler's keys: that of all texts, that of all reasoning; calls have
// their number.
const (
	textKey      = -1
	reasoningKey = -2
)

// decoder reads one answer. A whole answer is a stream of one response.
type decoder struct {
	a      *translate.Assembler
	reason translate.Reason
	usage  []byte // the usageMetadata that counts

	repeat   streams.Repeat
	plain    gjson.Result // the text of a piece
	more     bool         // that is not all which the piece tells
	repeated []byte       // the last piece, where it repeats

	started   bool // the model is known
	calls     int
	signature string        // of the text
	pending   reasoningSeal // to be sealed before the next item
	runs      bool          // an interpreter runs code
	code      string

	cites     bool   // the answer may have sources
	text      []byte // of the message that is open, if it may have sources
	grounding []byte // the last groundingMetadata
	queries   []string
}

// response reads a response, or a piece of a stream. It reports whether more may follow.
func (d *decoder) response(_, body []byte) bool {
	if text, ok := d.repeat.Text(body); ok {
		d.addText(text, "", false)
		d.repeated = append(d.repeated[:0], body...)
		return true
	}
	d.reportRepeated()
	v, ok := d.a.ParseJSON(body)
	if !ok {
		return false
	}
	if !d.started { // before the content, which comes first in the piece
		model := v.Get("modelVersion").Str
		d.a.Start(model, v.Get("responseId").Str)
		d.started = model != ""
	}
	d.plain, d.more = gjson.Result{}, false
	var usage gjson.Result
	v.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "candidates":
			v.ForEach(func(_, first gjson.Result) bool {
				d.candidate(first)
				return false
			})
		case "promptFeedback":
			d.more = true
			if v.Get("blockReason").Str != "" {
				d.a.Refusal(textKey, v.Get("blockReasonMessage").Str)
				d.reason = translate.ReasonContentFilter
			}
		case "usageMetadata":
			usage = v
			d.report(v)
		case "error":
			d.a.Fail(newError(0, gjson.ParseBytes(body)))
			ok = false
		}
		return ok
	})
	if ok && d.started && d.plain.Type == gjson.String && !d.more {
		d.repeat.Learn(body, d.plain, usage)
	}
	return ok
}

func (d *decoder) reportRepeated() {
	if len(d.repeated) > 0 {
		if usage := gjson.GetBytes(d.repeated, "usageMetadata"); usage.Exists() {
			d.report(usage)
		}
		d.repeated = d.repeated[:0]
	}
}

func (d *decoder) candidate(v gjson.Result) {
	var parts, finish, message gjson.Result
	v.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "content":
			parts = v.Get("parts")
		case "finishReason":
			finish, d.more = v, true
		case "finishMessage":
			message, d.more = v, true
		case "groundingMetadata":
			d.more = true
			d.grounding = append(d.grounding[:0], v.Raw...)
		case "logprobsResult":
			d.more = true
			d.logprobs(v)
		}
		return true
	})
	parts.ForEach(func(_, part gjson.Result) bool {
		d.part(part)
		return true
	})
	if finish.Str != "" {
		d.finish(finish.Str, message.Str)
	}
}

var reasons = translate.Reasons{
	"STOP":                      translate.ReasonStop,
	"MAX_TOKENS":                translate.ReasonMaxOutputTokens,
	"CONTINUATION":              translate.ReasonMaxOutputTokens,
	"SAFETY":                    translate.ReasonContentFilter,
	"RECITATION":                translate.ReasonContentFilter,
	"BLOCKLIST":                 translate.ReasonContentFilter,
	"PROHIBITED_CONTENT":        translate.ReasonContentFilter,
	"SPII":                      translate.ReasonContentFilter,
	"LANGUAGE":                  translate.ReasonContentFilter,
	"MODEL_ARMOR":               translate.ReasonContentFilter,
	"IMAGE_SAFETY":              translate.ReasonContentFilter,
	"IMAGE_PROHIBITED_CONTENT":  translate.ReasonContentFilter,
	"IMAGE_RECITATION":          translate.ReasonContentFilter,
	"IMAGE_OTHER":               translate.ReasonContentFilter,
	"NO_IMAGE":                  translate.ReasonInterrupted,
	"MALFORMED_FUNCTION_CALL":   translate.ReasonInterrupted,
	"MALFORMED_RESPONSE":        translate.ReasonInterrupted,
	"MISSING_THOUGHT_SIGNATURE": translate.ReasonInterrupted,
	"UNEXPECTED_TOOL_CALL":      translate.ReasonInterrupted,
	"TOO_MANY_TOOL_CALLS":       translate.ReasonInterrupted,
	"OTHER":                     translate.ReasonInterrupted,
	"FINISH_REASON_UNSPECIFIED": translate.ReasonNone,
}

func (d *decoder) finish(finish, message string) {
	reason := reasons.Of(finish)
	switch {
	case reason == translate.ReasonNone:
		return
	case reason == translate.ReasonContentFilter:
		d.a.Refusal(textKey, message)
	case reason.Interrupts() && !d.a.Info().Content:
		if message == "" {
			message = "The model gave no answer."
		}
		e := plugins.Upstream("%s: %s", finish, message)
		e.Status = http.StatusUnprocessableEntity // clients ask again after a 502, and the provider has charged this answer
		d.a.Fail(e)
	}
	d.reason = reason
}

// flush adds what is known only at the end of the answer.
func (d *decoder) flush() {
	d.reportRepeated()
	d.count()
	if d.reason == translate.ReasonStop { // else what is open is incomplete, and stays last
		d.cite()
		d.seal()
		d.search()
	}
	if d.reason != translate.ReasonNone {
		d.a.Finish(d.reason)
	}
}

// seal gives the client what the provider wants to see again: in the open reasoning, or in a new one.
func (d *decoder) seal() {
	if d.signature != "" {
		d.pending.Parts = slices.Insert(d.pending.Parts, 0, signedText(d.signature))
		d.signature = ""
	}
	if len(d.pending.Parts) == 0 && d.pending.Call == "" {
		return
	}
	content, _ := translate.Encode(d.pending) // valid JSON, and a string
	d.pending = reasoningSeal{}
	d.a.Seal(reasoningKey, string(content))
	d.a.Close(reasoningKey)
	d.text = d.text[:0]
}
