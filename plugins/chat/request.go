package chat

import (
	"encoding/json"

	"github.com/weirhq/weir/plugins/translate"
)

// request is the body of POST /chat/completions. No vendor takes all of it.
type request struct {
	Model    string    `json:"model"`
	Messages []Message `json:"messages"`

	Tools             []Tool `json:"tools,omitempty"`
	ToolChoice        any    `json:"tool_choice,omitempty"` // a word or a toolChoice
	ParallelToolCalls *bool  `json:"parallel_tool_calls,omitempty"`

	ResponseFormat *ResponseFormat `json:"response_format,omitempty"`
	Verbosity      string          `json:"verbosity,omitempty"`

	ReasoningEffort    string                 `json:"reasoning_effort,omitempty"`
	Reasoning          *reasoningEffortObject `json:"reasoning,omitempty"`
	Thinking           *thinking              `json:"thinking,omitempty"`
	ChatTemplateKwargs *templateOptions       `json:"chat_template_kwargs,omitempty"`

	MaxTokens           *int64 `json:"max_tokens,omitempty"`
	MaxCompletionTokens *int64 `json:"max_completion_tokens,omitempty"`

	Temperature      *float64        `json:"temperature,omitempty"`
	TopP             *float64        `json:"top_p,omitempty"`
	TopK             json.RawMessage `json:"top_k,omitempty"`
	PresencePenalty  *float64        `json:"presence_penalty,omitempty"`
	FrequencyPenalty *float64        `json:"frequency_penalty,omitempty"`
	Stop             []string        `json:"stop,omitempty"`
	Logprobs         bool            `json:"logprobs,omitempty"`
	TopLogprobs      *int64          `json:"top_logprobs,omitempty"`

	webSearch

	ServiceTier          string          `json:"service_tier,omitempty"`
	User                 string          `json:"user,omitempty"`
	SafetyIdentifier     string          `json:"safety_identifier,omitempty"`
	PromptCacheKey       string          `json:"prompt_cache_key,omitempty"`
	PromptCacheRetention json.RawMessage `json:"prompt_cache_retention,omitempty"`
	Store                bool            `json:"store,omitempty"`
	Metadata             json.RawMessage `json:"metadata,omitempty"`

	Stream        bool           `json:"stream,omitempty"`
	StreamOptions *streamOptions `json:"stream_options,omitempty"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// attempt is what there is to know while a request is made.
type attempt struct {
	vendor  *vendor
	request *translate.Request
	target  translate.Target
}

// newRequest translates p. An error that the client caused is a *plugins.Error.
func newRequest(v *vendor, p *translate.Request, t translate.Target) (*request, error) {
	if err := p.Apply(v.policy); err != nil {
		return nil, err
	}
	if err := p.FitCalls(v.tools.calls); err != nil {
		return nil, err
	}
	a := attempt{v, p, t}
	r := &request{Model: t.Model, Stream: p.Stream}
	if p.Stream && !v.closed {
		r.StreamOptions = &streamOptions{IncludeUsage: true}
	}
	for _, set := range []func(attempt) error{
		r.setMessages, r.setTools, r.setFormat, r.setReasoning, r.setSampling,
	} {
		if err := set(a); err != nil {
			return nil, err
		}
	}
	r.setLimit(a)
	r.setHints(a)
	return r, nil
}

func (r *request) setLimit(a attempt) {
	switch {
	case !a.request.MaxOutputTokens.Valid:
	case a.vendor.completionTokens:
		r.MaxCompletionTokens = &a.request.MaxOutputTokens.N
	default:
		r.MaxTokens = &a.request.MaxOutputTokens.N
	}
}

func (r *request) setSampling(a attempt) error {
	if err := a.request.Fit(a.target.Capabilities, a.vendor.limits); err != nil {
		return err
	}
	r.Temperature, r.TopP = a.request.Temperature, a.request.TopP
	if a.vendor.translates("presence_penalty") {
		r.PresencePenalty = a.request.PresencePenalty
	}
	if a.vendor.translates("frequency_penalty") {
		r.FrequencyPenalty = a.request.FrequencyPenalty
	}
	if a.vendor.translates("top_k") {
		r.TopK = a.request.Field("top_k")
	}
	r.setLogprobs(a)
	var err error
	r.Stop, err = a.request.FitStop(a.vendor.stops(a.target.Capabilities), nil)
	return err
}

func (r *request) setLogprobs(a attempt) {
	for _, value := range a.request.Include {
		r.Logprobs = r.Logprobs || value == "message.output_text.logprobs" && a.vendor.translates("include."+value)
	}
	if a.request.TopLogprobs.N > 0 {
		r.Logprobs, r.TopLogprobs = true, &a.request.TopLogprobs.N
	}
}

// setHints passes the verbosity, and what does not change the answer.
func (r *request) setHints(a attempt) {
	for _, s := range []struct {
		field     string
		sent      *string
		requested string
	}{
		{"text.verbosity", &r.Verbosity, a.request.Verbosity},
		{"service_tier", &r.ServiceTier, a.request.ServiceTier},
		{"user", &r.User, a.request.User},
		{"safety_identifier", &r.SafetyIdentifier, a.request.SafetyIdentifier},
		{"prompt_cache_key", &r.PromptCacheKey, a.request.PromptCacheKey},
	} {
		if a.vendor.translates(s.field) {
			*s.sent = s.requested
		}
	}
	if r.User == "" && a.vendor.translates("user") && !a.vendor.translates("safety_identifier") {
		r.User = a.request.SafetyIdentifier
	}
	if a.vendor.translates("prompt_cache_retention") {
		r.PromptCacheRetention = a.request.Field("prompt_cache_retention")
	}
	if a.vendor.translates("store") && string(a.request.Field("store")) == "true" {
		r.Store, r.Metadata = true, a.request.Metadata // OpenAI takes metadata only of what it stores
	}
}

// isReasoning reports whether the model is known to reason.
func (a attempt) isReasoning() bool {
	return a.target.Capabilities != nil && a.target.Capabilities.Reasoning
}
