package chat

import (
	"bytes"
	"net/http"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/openai"
	"github.com/weirhq/weir/plugins/streams"
	"github.com/weirhq/weir/plugins/translate"
)

// Decode implements translate.Provider.
func (p *Provider) Decode(resp *http.Response, a *translate.Assembler) error {
	if p.vendor.responds(a.Request()) {
		return openai.Provider{}.Decode(resp, a)
	}
	d := &decoder{a: a, vendor: p.vendor}
	defer d.flush()
	return translate.ReadAnswer(resp, a, func(body []byte) {
		d.complete = true
		d.event(nil, body)
	}, d.event)
}

// decoder reads one answer: a completion, or chunks, which differ in the key of the message.
type decoder struct {
	a        *translate.Assembler
	vendor   *vendor
	repeat   streams.Repeat
	plain    gjson.Result // the content of a chunk
	more     bool         // the chunk tells more than plain
	complete bool         // a completion, not a stream
	named    bool         // model and id are known
	finished bool         // a finish reason was given
	thinker  thinker
	calls    []string // ids of calls without an index
	answer   *int     // the key of the call that is the answer, nil if there is none
	cited    bool     // the text has annotations
	hasAudio bool     // there was sound
	sources  string   // URLs that xAI lists for the text, as a JSON array
	stop     string   // the stop sequence that the model has written, "" if it is not known
}

// event reads an event of a stream or a completion, and reports whether more may
// follow.
func (d *decoder) event(name, data []byte) bool {
	if text, ok := d.repeat.Text(data); ok && len(name) == 0 {
		d.text(text)
		return true
	}
	if bytes.Equal(data, []byte("[DONE]")) {
		if !d.finished && d.a.Info().Content { // a role alone is no answer
			d.a.Finish(translate.ReasonStop)
		}
		return false
	}
	body, ok := d.a.ParseJSON(data)
	if !ok {
		return false
	}
	c := parse(body)
	if c.reports {
		d.a.Observe(plugins.Chat, d.vendor.name, data)
	}
	fails := (c.failed || string(name) == "error") && !d.finished && !finishes(c.choices)
	d.start(&c)
	d.plain, d.more = gjson.Result{}, c.reports || fails
	more := true
	if c.choices.IsArray() {
		c.choices.ForEach(func(_, v gjson.Result) bool {
			more = d.choice(v)
			return more
		})
	}
	if fails {
		d.a.Fail(openai.NewError(0, body))
	}
	if d.plain.Type == gjson.String && !d.more {
		d.repeat.Learn(data, d.plain, gjson.Result{})
	}
	return more && !fails
}

// chunk has the top-level fields of an event or completion.
type chunk struct {
	model, id, choices, tier, citations gjson.Result

	reports bool // the event has usage
	failed  bool // the event is or has an error
}

func parse(body gjson.Result) chunk {
	var c chunk
	message := false
	body.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "model":
			c.model = v
		case "id":
			c.id = v
		case "choices":
			c.choices = v
			c.reports = c.reports || v.Get("0.usage").IsObject() // Moonshot
		case "usage":
			c.reports = c.reports || v.IsObject()
		case "x_groq":
			c.reports = c.reports || v.Get("usage").IsObject()
		case "service_tier":
			c.tier = v
		case "citations":
			c.citations = v
		case "error":
			c.failed = failed(v)
		case "message":
			message = true
		}
		return true
	})
	c.failed = c.failed || message && !c.choices.Exists() // Mistral, vLLM
	return c
}

// failed reports whether v, the member error, tells an error.
func failed(v gjson.Result) bool {
	return v.IsObject() || v.IsArray() || v.Type == gjson.String && v.Str != ""
}

// start reads what is the same in every chunk. Groq's Compound has another id in each: the
// first one counts.
func (d *decoder) start(c *chunk) {
	if !d.named {
		d.a.Start(c.model.Str, c.id.Str)
		d.named = c.model.Str != "" && c.id.Str != ""
	}
	switch c.tier.Str {
	case "":
	case "on_demand", "standard":
		d.a.ServiceTier("default") // as OpenAI names it
	default:
		d.a.ServiceTier(c.tier.Str)
	}
	if len(c.citations.Raw) > len("[]") && d.sources == "" {
		d.sources = c.citations.Raw
	}
}

// choice reads the first choice, for a response can have no others, and reports whether more
// may follow.
func (d *decoder) choice(v gjson.Result) bool {
	var index, delta, message, logprobs, finish, stop, failure gjson.Result
	v.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "index":
			index = v
		case "delta":
			delta = v
		case "message":
			message = v
		case "logprobs":
			logprobs = v
		case "finish_reason":
			finish = v
		case "stop_reason", "matched_stop": // vLLM, SGLang
			stop = v
		case "error":
			failure = v
		}
		return true
	})
	if index.Int() != 0 {
		return true
	}
	d.more = d.more || d.plain.Exists() || logprobs.IsObject() || failed(failure) || finish.Str != ""
	if d.complete && message.IsObject() || !delta.IsObject() { // a chunk may be all that comes
		delta = message
	}
	if logprobs.IsObject() {
		d.logprobs(logprobs)
	}
	if delta.IsObject() {
		d.message(delta)
	}
	if failed(failure) {
		d.a.Fail(openai.NewError(0, v))
		return false
	}
	if finish.Str != "" || d.complete {
		d.finish(finish.Str, stop.Str)
	}
	return true
}

// reasons are those to stop.
var reasons = translate.Reasons{
	"":                              translate.ReasonStop,
	"stop":                          translate.ReasonStop,
	"tool_calls":                    translate.ReasonStop,
	"function_call":                 translate.ReasonStop,
	"tool_call":                     translate.ReasonStop,
	"tool_use":                      translate.ReasonStop,
	"end_turn":                      translate.ReasonStop,
	"stop_sequence":                 translate.ReasonStop,
	"eos":                           translate.ReasonStop, // Together
	"eos_token":                     translate.ReasonStop, // TGI
	"end_of_text":                   translate.ReasonStop,
	"completed":                     translate.ReasonStop,
	"length":                        translate.ReasonMaxOutputTokens,
	"model_length":                  translate.ReasonMaxOutputTokens, // Mistral
	"max_tokens":                    translate.ReasonMaxOutputTokens,
	"model_context_window_exceeded": translate.ReasonContextFull, // Z.ai
	"content_filter":                translate.ReasonContentFilter,
	"error":                         translate.ReasonError,         // Mistral, OpenRouter
	"insufficient_system_resource":  translate.ReasonError,         // DeepSeek
	"network_error":                 translate.ReasonInterrupted,   // Z.ai
	"abort":                         translate.ReasonInterrupted,   // vLLM
	"sensitive":                     translate.ReasonContentFilter, // Z.ai
}

// finishes reports whether the model stopped by itself. A later error, such as OpenRouter's
// "Token limit reached", does not undo the answer.
func finishes(choices gjson.Result) bool {
	name := choices.Get("0.finish_reason").Str
	reason := reasons.Of(name)
	return name != "" && reason != translate.ReasonError && !reason.Interrupts()
}

// finish takes a finish reason, "" if the model stopped, and the stop sequence that the model has
// written, "" if it is not known.
func (d *decoder) finish(name, stop string) {
	d.finished = true
	reason := reasons.Of(name)
	d.a.Finish(reason)
	if reason == translate.ReasonStop && stop != "" {
		d.stop = stop
	}
}

// flush seals and cites what is left, notes what is missing, and names the stop sequence, after which
// reasoning is not sealed.
func (d *decoder) flush() {
	d.seal()
	d.citeSources()
	if d.hasAudio {
		d.a.Unplaced("audio")
	}
	d.a.StoppedAt(d.stop)
}
