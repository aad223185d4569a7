package cohere

import (
	"encoding/json"
	"fmt"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/chat"
	"github.com/weirhq/weir/plugins/translate"
)

// policy says what Cohere's Chat has equivalents for.
var policy = translate.DefaultPolicy.Translating(
	"frequency_penalty", "presence_penalty", "reasoning.effort", "seed", "top_k",
	"input.input_image",
)

// request is the body of POST /v2/chat.
type request struct {
	Model            string          `json:"model"`
	Messages         []message       `json:"messages"`
	Tools            []chat.Tool     `json:"tools,omitempty"`
	StrictTools      bool            `json:"strict_tools,omitempty"`
	ToolChoice       string          `json:"tool_choice,omitempty"`
	ResponseFormat   *responseFormat `json:"response_format,omitempty"`
	Thinking         *thinking       `json:"thinking,omitempty"`
	MaxTokens        *int64          `json:"max_tokens,omitempty"`
	Temperature      *float64        `json:"temperature,omitempty"`
	P                *float64        `json:"p,omitempty"`
	K                json.RawMessage `json:"k,omitempty"`
	Seed             json.RawMessage `json:"seed,omitempty"`
	FrequencyPenalty *float64        `json:"frequency_penalty,omitempty"`
	PresencePenalty  *float64        `json:"presence_penalty,omitempty"`
	Stop             []string        `json:"stop_sequences,omitempty"`
	Stream           bool            `json:"stream"`
}

// newRequest translates p. If the client is at fault, the error is a *plugins.Error.
func newRequest(p *translate.Request, t translate.Target) (*request, error) {
	if err := p.Apply(policy); err != nil {
		return nil, err
	}
	if err := p.FitCalls(translate.CallRules{}); err != nil {
		return nil, err
	}
	r := &request{Model: t.Model, Stream: p.Stream, K: p.Field("top_k"), Seed: p.Field("seed")}
	if p.MaxOutputTokens.Valid {
		r.MaxTokens = &p.MaxOutputTokens.N
	}
	var err error
	if r.Stop, err = p.FitStop(maxStops, nil); err != nil {
		return nil, err
	}
	for _, set := range []func(*translate.Request, *plugins.Capabilities) error{
		r.setMessages, r.setTools, r.setFormat, r.setReasoning, r.setSampling,
	} {
		if err := set(p, t.Capabilities); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// maxStops is how many stop sequences a request may have (https://docs.cohere.com/reference/chat).
const maxStops = 5

type responseFormat struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"json_schema,omitempty"`
}

func (r *request) setFormat(p *translate.Request, _ *plugins.Capabilities) error {
	switch {
	case p.Format.Type == "" || p.Format.Type == "text":
		return nil
	case len(r.Tools) > 0 && p.Format.Type == "json_schema":
		return r.setAnswerTool(p)
	case len(r.Tools) > 0:
		return plugins.Unsupported("text.format", "The provider takes no format of type '%s' beside tools.", p.Format.Type)
	}
	r.ResponseFormat = &responseFormat{"json_object", p.Format.Schema}
	return nil
}

// setAnswerTool makes the model answer by a call: of a tool of the client's, or with the answer.
func (r *request) setAnswerTool(p *translate.Request) error {
	t, err := p.AnswerTool()
	if t == nil {
		return err
	}
	if p.ToolChoice.Mode == "none" {
		r.Tools = nil
	}
	r.Tools = append(r.Tools, newTool(t))
	r.ToolChoice, r.StrictTools = "REQUIRED", false
	return nil
}

// setSampling keeps to the provider's limits
// (https://docs.cohere.com/reference/chat), which are narrower than OpenAI's.
func (r *request) setSampling(p *translate.Request, _ *plugins.Capabilities) error {
	for _, s := range []struct {
		field           string
		requested, sent **float64
		least, greatest float64
	}{
		{"temperature", &p.Temperature, &r.Temperature, 0, 1},
		{"top_p", &p.TopP, &r.P, 0.01, 0.99},
		{"frequency_penalty", &p.FrequencyPenalty, &r.FrequencyPenalty, 0, 1},
		{"presence_penalty", &p.PresencePenalty, &r.PresencePenalty, 0, 1},
	} {
		if *s.requested == nil || s.field == "top_p" && **s.requested == 1 { // 1 is no limit
			continue
		}
		value := min(max(**s.requested, s.least), s.greatest)
		if value != **s.requested {
			if err := p.DropWithWarning(s.field, fmt.Sprintf("beyond the provider's limit, %v in its place", value)); err != nil {
				return err
			}
			*s.requested = &value
		}
		*s.sent = &value
	}
	return nil
}
