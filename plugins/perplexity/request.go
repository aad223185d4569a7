package perplexity

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/chat"
	"github.com/weirhq/weir/plugins/translate"
)

// policy says what the Agent API has equivalents for.
var policy = translate.DefaultPolicy.With(translate.WebSearch).Translating(
	"metadata", "parallel_tool_calls", "reasoning.effort",
	"input.input_image",
	"include.web_search_call.action.sources",
)

// request is the body of POST /v1/responses.
type request struct {
	Model             string `json:"model,omitempty"`
	Preset            string `json:"preset,omitempty"`
	Instructions      string `json:"instructions,omitempty"`
	Input             []any  `json:"input"`
	Tools             []any  `json:"tools,omitempty"`
	ToolChoice        any    `json:"tool_choice,omitempty"` // a word, or a choice
	ParallelToolCalls *bool  `json:"parallel_tool_calls,omitempty"`
	// ResponseFormat is that of Chat Completions: the API refuses that of Responses.
	ResponseFormat  *chat.ResponseFormat `json:"response_format,omitempty"`
	Reasoning       *reasoning           `json:"reasoning,omitempty"`
	MaxOutputTokens int64                `json:"max_output_tokens,omitempty"`
	Temperature     *float64             `json:"temperature,omitempty"`
	TopP            *float64             `json:"top_p,omitempty"`
	Metadata        json.RawMessage      `json:"metadata,omitempty"`
	Stream          bool                 `json:"stream,omitempty"`
}

type reasoning struct {
	Effort string `json:"effort"`
}

// presets are the names of configurations that stand for a model.
var presets = []string{
	"fast", "low", "medium", "high", "xhigh",
	"fast-search", "pro-search", "deep-research", "advanced-deep-research", // as they were called before
}

// successors are the models and presets that replace the models of the earlier API. The earlier models searched
// in every call.
var successors = map[string]string{
	"sonar":               "perplexity/sonar",
	"sonar-pro":           "low",
	"sonar-reasoning":     "low",
	"sonar-reasoning-pro": "low",
	"sonar-deep-research": "medium",
}

// leastOutput is the max_output_tokens, which the API demands for Anthropic's models, if the catalogue has none.
const leastOutput = 4096

// newRequest translates p. If the client is at fault, the error is a *plugins.Error.
func newRequest(p *translate.Request, t translate.Target) (*request, error) {
	if err := p.Apply(policy); err != nil {
		return nil, err
	}
	if err := p.FitCalls(translate.CallRules{ID: 64}); err != nil {
		return nil, err
	}
	r := &request{
		Instructions: p.Instructions, ParallelToolCalls: p.ParallelToolCalls, MaxOutputTokens: p.MaxOutputTokens.N,
		Temperature: p.Temperature, TopP: p.TopP, Metadata: p.Metadata, Stream: p.Stream,
	}
	name, before := successors[t.Model]
	name = cmp.Or(name, t.Model)
	if r.Model = name; slices.Contains(presets, name) {
		r.Model, r.Preset = "", name
	}
	if strings.HasPrefix(name, "anthropic/") && r.MaxOutputTokens == 0 {
		r.MaxOutputTokens = leastOutput
		if c := t.Capabilities; c != nil && c.MaxOutput > 0 {
			r.MaxOutputTokens = c.MaxOutput
		}
	}
	if _, err := p.FitStop(0, nil); err != nil { // the API has no such field
		return nil, err
	}
	r.setFormat(p)
	if err := r.setReasoning(p, t.Capabilities); err != nil {
		return nil, err
	}
	for _, set := range []func(*translate.Request) error{r.setMessages, r.setTools} {
		if err := set(p); err != nil {
			return nil, err
		}
	}
	if len(r.Input) == 0 {
		return nil, plugins.Invalid("input", "The input has no text: the provider takes no empty messages.")
	}
	if before && r.Preset == "" && !slices.ContainsFunc(r.Tools, isSearch) {
		r.Tools = append(r.Tools, search{Type: webSearch})
	}
	return r, nil
}

func (r *request) setFormat(p *translate.Request) {
	schema := p.Format.Schema
	switch p.Format.Type {
	case "json_object": // which the API does not have
		schema = json.RawMessage(`{"type":"object"}`)
	case "json_schema":
	default:
		return
	}
	r.ResponseFormat = &chat.ResponseFormat{Type: "json_schema", JSONSchema: &chat.JSONSchema{
		Name: cmp.Or(p.Format.Name, "answer"), Description: p.Format.Description, Schema: schema, Strict: p.Format.Strict,
	}}
}

// efforts are the levels that the Agent API takes
// (https://docs.perplexity.ai/api-reference/responses-post).
var efforts = translate.Efforts[1:6]

func (r *request) setReasoning(p *translate.Request, c *plugins.Capabilities) error {
	switch {
	case p.Reasoning.Effort == "":
		return nil
	case c.Described() && !c.Reasoning:
		return p.DropReasoning(translate.ModelRefuses)
	}
	if err := p.LimitEffort(efforts); err != nil {
		return err
	}
	r.Reasoning = &reasoning{p.Reasoning.Effort}
	return nil
}
