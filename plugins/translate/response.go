package translate

import (
	"cmp"
	"encoding/json"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// appendResponse appends the response object. Each event has the keys of OpenAI and of Open Responses.
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
		b = plugins.AppendString(plugins.AppendKey(b, "message"), a.failure.Message)
		b = append(b, '}')
	} else {
		b = append(b, "null"...)
	}
	b = append(b, `,"incomplete_details":`...)
	if status == statusIncomplete {
		b = plugins.AppendString(append(b, `{"reason":`...), a.reason.finish)
		b = append(b, '}')
	} else {
		b = append(b, "null"...)
	}
	b = plugins.AppendString(plugins.AppendKey(b, "model"), a.Model())
	b = append(b, `,"output":[`...)
	for i, o := range a.items {
		if i > 0 {
			b = append(b, ',')
		}
		if o.JSON == nil { // it was open when the response failed
			b = o.appendJSON(b, statusIncomplete)
			continue
		}
		b = append(b, o.JSON...)
	}
	b = append(b, `],"usage":`...)
	if status == statusInProgress {
		b = append(b, "null"...)
	} else {
		b = a.AppendUsage(b)
	}
	b = plugins.AppendString(plugins.AppendKey(b, "service_tier"), a.UsedServiceTier())
	b = append(b, a.echo...)
	return append(b, '}')
}

// Model is the model that answers.
func (a *Assembler) Model() string {
	if a.seen.Model != "" {
		return a.seen.Model
	}
	return a.request.Model
}

// UsedServiceTier is the tier that served the response. The word auto names no tier.
func (a *Assembler) UsedServiceTier() string {
	for _, tier := range []string{a.seen.ServiceTier, a.request.ServiceTier} {
		if tier != "" && tier != "auto" {
			return tier
		}
	}
	return "default"
}

const noToolUsage = `{"image_gen":{"input_tokens":0,"input_tokens_details":{"image_tokens":0,"text_tokens":0},` +
	`"output_tokens":0,"output_tokens_details":{"image_tokens":0,"text_tokens":0},"total_tokens":0},` +
	`"web_search":{"num_requests":0}}`

// appendEcho appends the fields of the request that a response repeats: the values
// that were used, or else OpenAI's defaults.
func (p *Request) appendEcho(b []byte) []byte {
	b = strconv.AppendBool(append(b, `,"access_programs":null,"background":`...), p.State.Background)
	b = append(b, `,"moderation":null`...)
	b = plugins.AppendStringOrNull(plugins.AppendKey(b, "previous_response_id"), p.State.PreviousResponseID)
	if p.State.ConversationID != "" {
		b = append(plugins.AppendString(append(b, `,"conversation":{"id":`...), p.State.ConversationID), '}')
	}
	b = strconv.AppendBool(plugins.AppendKey(b, "store"), p.State.Stored)
	b = append(b, `,"tool_usage":`+noToolUsage+`,"truncation":"disabled"`...)
	b = appendNumber(plugins.AppendKey(b, "frequency_penalty"), p.FrequencyPenalty, 0)
	b = p.appendField(plugins.AppendKey(b, "instructions"), "instructions", "null")
	b = p.MaxOutputTokens.AppendJSON(plugins.AppendKey(b, "max_output_tokens"))
	b = p.MaxToolCalls.AppendJSON(plugins.AppendKey(b, "max_tool_calls"))
	b = p.appendField(plugins.AppendKey(b, "metadata"), "metadata", "{}")
	b = strconv.AppendBool(plugins.AppendKey(b, "parallel_tool_calls"), p.ParallelToolCalls == nil || *p.ParallelToolCalls)
	b = appendNumber(plugins.AppendKey(b, "presence_penalty"), p.PresencePenalty, 0)
	b = plugins.AppendStringOrNull(plugins.AppendKey(b, "prompt_cache_key"), p.PromptCacheKey)
	b = p.appendField(plugins.AppendKey(b, "prompt_cache_retention"), "prompt_cache_retention", "null")
	b = append(b, `,"reasoning":{"effort":`...)
	b = plugins.AppendStringOrNull(b, p.Reasoning.Effort)
	b = plugins.AppendStringOrNull(plugins.AppendKey(b, "summary"), p.Reasoning.Summary)
	b = append(b, `},"safety_identifier":`...)
	b = plugins.AppendStringOrNull(b, p.SafetyIdentifier)
	b = appendNumber(plugins.AppendKey(b, "temperature"), p.Temperature, 1)
	b = append(b, `,"text":{"format":`...)
	if p.Format.Type == "" {
		b = append(b, `{"type":"text"}`...)
	} else {
		b = p.appendField(b, "text.format", `{"type":"text"}`)
	}
	b = plugins.AppendString(plugins.AppendKey(b, "verbosity"), cmp.Or(p.Verbosity, "medium"))
	b = append(b, `},"tool_choice":`...)
	b = p.appendField(b, "tool_choice", `"auto"`)
	b = p.appendTools(plugins.AppendKey(b, "tools"))
	b = p.TopLogprobs.Or(plugins.Known(0)).AppendJSON(plugins.AppendKey(b, "top_logprobs"))
	b = appendNumber(plugins.AppendKey(b, "top_p"), p.TopP, 1)
	return plugins.AppendStringOrNull(plugins.AppendKey(b, "user"), p.User)
}

// appendField appends a field of the body on one line, as events need it.
func (p *Request) appendField(b []byte, path, absent string) []byte {
	raw := p.Field(path)
	if raw == nil {
		return append(b, absent...)
	}
	return appendCompact(b, raw)
}

// appendTools appends the tools as the client sent them. Functions get the keys that Open Responses requires.
func (p *Request) appendTools(b []byte) []byte {
	b = append(b, '[')
	for i, t := range gjson.GetBytes(p.Raw, "tools").Array() {
		if i > 0 {
			b = append(b, ',')
		}
		if t.Get("type").Str != "function" {
			b = appendCompact(b, json.RawMessage(withoutMCPSecrets(t.Raw)))
			continue
		}
		b = append(b, `{"type":"function","name":`...)
		b = appendRaw(b, t.Get("name"))
		b = appendRaw(plugins.AppendKey(b, "description"), t.Get("description"))
		b = appendRaw(plugins.AppendKey(b, "parameters"), t.Get("parameters"))
		b = appendRaw(plugins.AppendKey(b, "strict"), t.Get("strict"))
		b = append(b, '}')
	}
	return append(b, ']')
}

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
