package anthropic

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// policy says what the Messages API has equivalents for.
var policy = translate.DefaultPolicy.With(translate.WebSearch).Translating(
	"max_tool_calls", "parallel_tool_calls", "prompt_cache_key", "prompt_cache_options",
	"prompt_cache_retention", "reasoning.effort", "reasoning.summary", "safety_identifier",
	"service_tier", "top_k", "user",
	"input.input_image", "input.input_file",
	"tools.code_interpreter",
	"include.code_interpreter_call.outputs", "include.web_search_call.action.sources",
)

// prompt is what the model reads: all that POST /v1/messages/count_tokens takes
// (https://platform.claude.com/docs/en/api/messages-count-tokens).
type prompt struct {
	Model        string        `json:"model,omitempty"`
	System       []any         `json:"system,omitempty"`
	Messages     Messages[any] `json:"messages"`
	Tools        []tool        `json:"tools,omitempty"`
	ToolChoice   *ToolChoice   `json:"tool_choice,omitempty"`
	Thinking     *Thinking     `json:"thinking,omitempty"`
	OutputConfig *outputConfig `json:"output_config,omitempty"`
}

// request is the body of POST /v1/messages.
type request struct {
	prompt
	Version      string          `json:"anthropic_version,omitempty"`
	MaxTokens    int64           `json:"max_tokens"`
	Temperature  *float64        `json:"temperature,omitempty"`
	TopP         *float64        `json:"top_p,omitempty"`
	TopK         json.RawMessage `json:"top_k,omitempty"`
	Stop         []string        `json:"stop_sequences,omitempty"`
	Metadata     *metadata       `json:"metadata,omitempty"`
	ServiceTier  string          `json:"service_tier,omitempty"`
	Speed        string          `json:"speed,omitempty"`
	CacheControl *cacheControl   `json:"cache_control,omitempty"`
	Stream       bool            `json:"stream,omitempty"`
	Labels       json.RawMessage `json:"labels,omitempty"`

	betas []string // of the header Anthropic-Beta
}

type outputConfig struct {
	Effort string        `json:"effort,omitempty"`
	Format *outputFormat `json:"format,omitempty"`
}

type metadata struct {
	UserID string `json:"user_id"`
}

// newRequest translates p. If the client is at fault, the error is a *plugins.Error.
func newRequest(p *translate.Request, t translate.Target) (*request, error) {
	if err := p.Apply(policy); err != nil {
		return nil, err
	}
	if err := p.FitCalls(calls); err != nil {
		return nil, err
	}
	r := &request{prompt: prompt{Model: t.Model}, Stream: p.Stream}
	m := modelOf(t)
	r.MaxTokens = p.MaxOutputTokens.Or(plugins.Known(m.maxOutput())).N
	if user := p.SafetyIdentifier; user != "" {
		r.Metadata = &metadata{user}
	} else if p.User != "" {
		r.Metadata = &metadata{p.User}
	}
	for _, set := range []func(*translate.Request, *model) error{
		r.setMessages, r.setTools, r.setFormat, r.setReasoning, r.setSampling, r.setStop, r.setServiceTier,
	} {
		if err := set(p, m); err != nil {
			return nil, err
		}
	}
	return r, r.setCache(p)
}

func (r *request) setBetas(req *http.Request) {
	if len(r.betas) > 0 {
		req.Header.Set(betaHeader, strings.Join(r.betas, ","))
	}
}

func (r *request) output() *outputConfig {
	if r.OutputConfig == nil {
		r.OutputConfig = new(outputConfig)
	}
	return r.OutputConfig
}

func (r *request) beta(name string) {
	if !slices.Contains(r.betas, name) {
		r.betas = append(r.betas, name)
	}
}

func (r *request) setSampling(p *translate.Request, m *model) (err error) {
	refused := ""
	switch {
	case !m.Temperature:
		refused = translate.ModelRefuses
	case r.Thinking != nil && r.Thinking.Type == "enabled":
		refused = "not supported while the model thinks, left out"
	}
	r.Temperature, r.TopP, err = Sampling(p, refused, false)
	if r.TopK = p.Field("top_k"); r.TopK != nil && refused != "" && err == nil {
		r.TopK, err = nil, p.DropWithWarning("top_k", refused)
	}
	return err
}

// setStop sets the stop sequences: "each stop sequence must contain non-whitespace".
func (r *request) setStop(p *translate.Request, _ *model) (err error) {
	r.Stop, err = p.FitStop(translate.AnyStops, translate.IsNotBlank)
	return err
}

// Sampling returns the temperature and top_p to send. They follow what the
// documentation of Claude 4 says: temperature up to 1, not with thinking, and
// unless both, not beside top_p. Later models take neither, which refused says
// to the client. What is left out is 1.
func Sampling(p *translate.Request, refused string, both bool) (temperature, topP *float64, err error) {
	if t := p.Temperature; t != nil && *t != 1 {
		switch {
		case refused != "":
			err = p.DropWithWarning("temperature", refused)
		case *t > 1:
			err = p.DropWithWarning("temperature", "above the provider's limit, 1 in its place")
		default:
			temperature = t
		}
	}
	if err != nil || p.TopP == nil || *p.TopP == 1 {
		return temperature, nil, err
	}
	if temperature != nil && !both {
		refused = "not supported beside temperature, left out"
	}
	if refused != "" {
		return temperature, nil, p.DropWithWarning("top_p", refused)
	}
	return temperature, p.TopP, nil
}

// setServiceTier chooses a tier. An account that has the priority tier gets it without asking.
func (r *request) setServiceTier(p *translate.Request, _ *model) error {
	switch p.ServiceTier {
	case "", "auto":
	case "priority":
		r.ServiceTier = "auto"
	case "default":
		r.ServiceTier = "standard_only"
	case "fast":
		r.Speed = "fast"
		r.beta("fast-mode-2026-02-01")
	default:
		return p.DropWithWarning("service_tier", translate.NotSupported)
	}
	return nil
}
