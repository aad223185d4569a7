package translate

import (
	"cmp"
	"encoding/json"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// appendResponse appends the response object, whose keys are the same from the
// first event to the last: those of OpenAI and those that Open Responses
// demands.
func (a *Assembler) appendResponse(b []byte, status string) []byte {
	if a.echo == nil {
		a.echo = a.request.appendEcho(nil)
	}
	b = append(b, `{"id":`...)
	b = plugins.AppendString(b, a.id) // which may be a provider's
	b = append(b, `,"object":"response","created_at":`...)
	b = strconv.AppendInt(b, a.created, 10)
	b = append(b, `,"status":"`...)
	b = append(b, status...)
	b = append(b, `","completed_at":`...)
	if status == statusCompleted {
		b = strconv.AppendInt(b, a.opts.Now().Unix(), 10)
	} else {
		b = append(b, "null"...)
	}
	b = append(b, `,"error":`...)
	if status == statusFailed {
		b = append(b, `{"code":`...)
		b = plugins.AppendString(b, cmp.Or(a.failure.Code, "server_error"))
		b = append(b, `,"message":`...)
		b = plugins.AppendString(b, a.failure.Message)
		b = append(b, '}')
	} else {
		b = append(b, "null"...)
	}
	b = append(b, `,"incomplete_details":`...)
	if status == statusIncomplete {
		b = append(b, `{"reason":"`...)
		b = append(b, outcomes[a.reason].finish...)
		b = append(b, `"}`...)
	} else {
		b = append(b, "null"...)
	}
	b = append(b, `,"model":`...)
	b = plugins.AppendString(b, a.model())
	b = append(b, `,"output":[`...)
	for i, o := range a.items {
		if i > 0 {
			b = append(b, ',')
		}
		if o.json == nil { // it was open when the response failed
			b = o.appendJSON(b, statusIncomplete)
			continue
		}
		b = append(b, o.json...)
	}
	b = append(b, `],"usage":`...)
	if status == statusInProgress {
		b = append(b, "null"...)
	} else {
		b = appendUsage(b, a.seen.Usage)
	}
	b = append(b, `,"service_tier":`...)
	b = plugins.AppendString(b, a.serviceTier())
	b = append(b, a.echo...)
	return append(b, '}')
}

func (a *Assembler) model() string {
	if a.seen.Model != "" {
		return a.seen.Model
	}
	return a.request.Model
}

// serviceTier is the one that served: auto is none.
func (a *Assembler) serviceTier() string {
	for _, tier := range []string{a.seen.ServiceTier, a.request.ServiceTier} {
		if tier != "" && tier != "auto" {
			return tier
		}
	}
	return "default"
}

// noToolUsage is the usage of hosted tools where there was none.
const noToolUsage = `{"image_gen":{"input_tokens":0,"input_tokens_details":{"image_tokens":0,"text_tokens":0},` +
	`"output_tokens":0,"output_tokens_details":{"image_tokens":0,"text_tokens":0},"total_tokens":0},` +
	`"web_search":{"num_requests":0}}`

// appendEcho appends the fields of the request that a response repeats: the values
// that were used, or else OpenAI's defaults.
func (p *Request) appendEcho(b []byte) []byte {
	b = append(b, `,"access_programs":null,"background":false,"moderation":null,"previous_response_id":null,"store":false`...)
	b = append(b, `,"tool_usage":`+noToolUsage+`,"truncation":"disabled"`...)
	b = append(b, `,"frequency_penalty":`...)
	b = appendNumber(b, p.FrequencyPenalty, 0)
	b = append(b, `,"instructions":`...)
	b = p.appendField(b, "instructions", "null")
	b = append(b, `,"max_output_tokens":`...)
	b = p.MaxOutputTokens.AppendJSON(b)
	b = append(b, `,"max_tool_calls":`...)
	b = p.MaxToolCalls.AppendJSON(b)
	b = append(b, `,"metadata":`...)
	b = p.appendField(b, "metadata", "{}")
	b = append(b, `,"parallel_tool_calls":`...)
	b = strconv.AppendBool(b, p.ParallelToolCalls == nil || *p.ParallelToolCalls)
	b = append(b, `,"presence_penalty":`...)
	b = appendNumber(b, p.PresencePenalty, 0)
	b = append(b, `,"prompt_cache_key":`...)
	b = plugins.AppendStringOrNull(b, p.PromptCacheKey)
	b = append(b, `,"prompt_cache_retention":`...)
	b = p.appendField(b, "prompt_cache_retention", "null")
	b = append(b, `,"reasoning":{"effort":`...)
	b = plugins.AppendStringOrNull(b, p.Reasoning.Effort)
	b = append(b, `,"summary":`...)
	b = plugins.AppendStringOrNull(b, p.Reasoning.Summary)
	b = append(b, `},"safety_identifier":`...)
	b = plugins.AppendStringOrNull(b, p.SafetyIdentifier)
	b = append(b, `,"temperature":`...)
	b = appendNumber(b, p.Temperature, 1)
	b = append(b, `,"text":{"format":`...)
	if p.Format.Type == "" {
		b = append(b, `{"type":"text"}`...)
	} else {
		b = p.appendField(b, "text.format", `{"type":"text"}`)
	}
	b = append(b, `,"verbosity":`...)
	if p.Verbosity == "" {
		b = append(b, `"medium"`...)
	} else {
		b = plugins.AppendString(b, p.Verbosity)
	}
	b = append(b, `},"tool_choice":`...)
	b = p.appendField(b, "tool_choice", `"auto"`)
	b = append(b, `,"tools":`...)
	b = p.appendTools(b)
	b = append(b, `,"top_logprobs":`...)
	b = p.TopLogprobs.Or(plugins.Known(0)).AppendJSON(b)
	b = append(b, `,"top_p":`...)
	b = appendNumber(b, p.TopP, 1)
	b = append(b, `,"user":`...)
	return plugins.AppendStringOrNull(b, p.User)
}

// appendField appends a field of the body as the client wrote it, but on one
// line, for the events of a stream are lines.
func (p *Request) appendField(b []byte, path, absent string) []byte {
	raw := p.Field(path)
	if raw == nil {
		return append(b, absent...)
	}
	return appendCompact(b, raw)
}

// appendTools appends the tools as the client sent them, functions with the
// keys that Open Responses requires.
func (p *Request) appendTools(b []byte) []byte {
	b = append(b, '[')
	for i, t := range gjson.GetBytes(p.Raw, "tools").Array() {
		if i > 0 {
			b = append(b, ',')
		}
		if t.Get("type").Str != "function" {
			b = appendCompact(b, json.RawMessage(t.Raw))
			continue
		}
		b = append(b, `{"type":"function","name":`...)
		b = appendRaw(b, t.Get("name"))
		b = append(b, `,"description":`...)
		b = appendRaw(b, t.Get("description"))
		b = append(b, `,"parameters":`...)
		b = appendRaw(b, t.Get("parameters"))
		b = append(b, `,"strict":`...)
		b = appendRaw(b, t.Get("strict"))
		b = append(b, '}')
	}
	return append(b, ']')
}

// appendRaw appends a value, or null where there is none.
func appendRaw(b []byte, v gjson.Result) []byte {
	if v.Raw == "" {
		return append(b, "null"...)
	}
	return appendCompact(b, json.RawMessage(v.Raw))
}

func appendNumber(b []byte, n *float64, absent float64) []byte {
	if n == nil {
		n = &absent
	}
	return strconv.AppendFloat(b, *n, 'g', -1, 64)
}
