package bedrock

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/anthropic"
	"github.com/weirhq/weir/plugins/translate"
)

// policy says what the Converse API has equivalents for.
var policy = translate.DefaultPolicy.With(translate.WebSearch).Translating(
	"metadata", "parallel_tool_calls", "prompt_cache_options", "prompt_cache_retention",
	"reasoning.effort", "reasoning.summary", "service_tier", "top_k",
	"input.citations", "input.input_audio", "input.input_file", "input.input_image",
	"tools.code_interpreter",
	"include.code_interpreter_call.outputs",
)

// request is the body of POST /model/{modelId}/converse and converse-stream.
type request struct {
	System          []block                   `json:"system,omitempty"`
	Messages        anthropic.Messages[block] `json:"messages"`
	InferenceConfig *inferenceConfig          `json:"inferenceConfig,omitempty"`
	ToolConfig      *toolConfig               `json:"toolConfig,omitempty"`
	OutputConfig    *outputConfig             `json:"outputConfig,omitempty"`
	ServiceTier     *serviceTier              `json:"serviceTier,omitempty"`
	RequestMetadata json.RawMessage           `json:"requestMetadata,omitempty"`
	ModelFields     *modelFields              `json:"additionalModelRequestFields,omitempty"`
	AnswerFields    []string                  `json:"additionalModelResponseFieldPaths,omitempty"`

	documents translate.NameSet // names, of which each must be one document's
}

type inferenceConfig struct {
	MaxTokens   int64    `json:"maxTokens,omitempty"`
	Temperature *float64 `json:"temperature,omitempty"`
	TopP        *float64 `json:"topP,omitempty"`
	Stop        []string `json:"stopSequences,omitempty"`
}

type serviceTier struct {
	Type string `json:"type"`
}

// modelFields are what Converse passes on to the model. Each maker has its own field for reasoning.
type modelFields struct {
	Thinking        *anthropic.Thinking   `json:"thinking,omitempty"`         // Anthropic
	OutputConfig    *effort               `json:"output_config,omitempty"`    // Anthropic
	ToolChoice      *anthropic.ToolChoice `json:"tool_choice,omitempty"`      // Anthropic
	ReasoningConfig *reasoningConfig      `json:"reasoningConfig,omitempty"`  // Amazon
	ReasoningEffort string                `json:"reasoning_effort,omitempty"` // OpenAI
	TopK            json.RawMessage       `json:"top_k,omitempty"`            // Anthropic
	InferenceConfig *topK                 `json:"inferenceConfig,omitempty"`  // Amazon
}

type topK struct {
	TopK json.RawMessage `json:"topK"`
}

// newRequest translates p. If the client is at fault, the error is a *plugins.Error.
func newRequest(p *translate.Request, t translate.Target) (*request, error) {
	if err := p.Apply(policy); err != nil {
		return nil, err
	}
	if err := p.FitCalls(translate.CallRules{ID: 64, Word: true, OneObject: true}); err != nil {
		return nil, err
	}
	r, m := new(request), modelOf(t)
	if p.MaxOutputTokens.Valid {
		r.inference().MaxTokens = p.MaxOutputTokens.N
	}
	for _, set := range []func(*translate.Request, *model) error{
		r.setMessages, r.setTools, r.setFormat, r.setReasoning, r.setSampling, r.setStop, r.setServiceTier,
	} {
		if err := set(p, m); err != nil {
			return nil, err
		}
	}
	if fitsMetadata(p.Metadata) {
		r.RequestMetadata = p.Metadata
	}
	return r, r.limitCachePoints(p)
}

func (r *request) inference() *inferenceConfig {
	if r.InferenceConfig == nil {
		r.InferenceConfig = new(inferenceConfig)
	}
	return r.InferenceConfig
}

func (r *request) fields() *modelFields {
	if r.ModelFields == nil {
		r.ModelFields = new(modelFields)
	}
	return r.ModelFields
}

// setSampling sends what Claude takes, which is also Converse's limit.
func (r *request) setSampling(p *translate.Request, m *model) error {
	refused := ""
	switch {
	case !m.Temperature:
		refused = translate.ModelRefuses
	case r.excludesSampling():
		refused = "not supported while the model thinks, left out"
	}
	temperature, topP, err := anthropic.Sampling(p, refused, m.maker != byAnthropic)
	if temperature != nil || topP != nil {
		r.inference().Temperature, r.inference().TopP = temperature, topP
	}
	if k := p.Field("top_k"); k != nil && err == nil {
		switch {
		case refused != "":
			return p.DropWithWarning("top_k", refused)
		case m.maker == byAnthropic:
			r.fields().TopK = k
		case m.maker == byAmazon:
			r.fields().InferenceConfig = &topK{k}
		default:
			return p.DropWithWarning("top_k", translate.ModelRefuses)
		}
	}
	return err
}

// novaStops is how many stop sequences Nova takes
// (https://docs.aws.amazon.com/nova/latest/userguide/complete-request-schema.html).
const novaStops = 4

// setStop sets the stop sequences, and asks Claude which of them it has written.
func (r *request) setStop(p *translate.Request, m *model) error {
	limit := translate.AnyStops
	if m.maker == byAmazon {
		limit = novaStops
	}
	stops, err := p.FitStop(limit, translate.IsNotBlank)
	if len(stops) > 0 {
		r.inference().Stop = stops
		if m.maker == byAnthropic {
			r.AnswerFields = []string{"/stop_sequence"}
		}
	}
	return err
}

func (r *request) setServiceTier(p *translate.Request, _ *model) error {
	switch p.ServiceTier {
	case "", "auto":
	case "default", "flex", "priority", "reserved":
		r.ServiceTier = &serviceTier{p.ServiceTier}
	default:
		return p.DropWithWarning("service_tier", translate.NotSupported)
	}
	return nil
}

// fitsMetadata reports whether metadata keeps to the pattern that Bedrock has for
// its own, [a-zA-Z0-9\s:_@$#=/+,-.]{0,256}. It is for accounting alone.
func fitsMetadata(metadata json.RawMessage) bool {
	fits := len(metadata) > 0
	gjson.ParseBytes(metadata).ForEach(func(key, v gjson.Result) bool {
		fits = fits && key.Str != "" && v.Type == gjson.String && fitsPattern(key.Str) && fitsPattern(v.Str)
		return fits
	})
	return fits
}

func fitsPattern(s string) bool {
	return len(s) <= 256 && strings.IndexFunc(s, func(c rune) bool {
		return !translate.IsAlphanumeric(c) && !strings.ContainsRune(" \t\r\n:_@$#=/+,-.", c)
	}) < 0
}
