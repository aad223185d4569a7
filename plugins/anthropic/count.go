package anthropic

import (
	"context"
	"net/http"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// countRequest is the body of POST /v1/messages/count_tokens, which takes no other field
// (https://platform.claude.com/docs/en/api/messages-count-tokens).
type countRequest struct {
	Model        string        `json:"model"`
	System       []any         `json:"system,omitempty"`
	Messages     Messages[any] `json:"messages"`
	Tools        []tool        `json:"tools,omitempty"`
	ToolChoice   *ToolChoice   `json:"tool_choice,omitempty"`
	Thinking     *Thinking     `json:"thinking,omitempty"`
	OutputConfig *outputConfig `json:"output_config,omitempty"`
}

// PrepareCount implements translate.Counter.
func (Provider) PrepareCount(ctx context.Context, p *translate.Request, t translate.Target) (*http.Request, error) {
	r, err := newRequest(p, t)
	if err != nil {
		return nil, err
	}
	req, err := post(ctx, t, paths[plugins.CountTokens], countRequest{
		r.Model, r.System, r.Messages, r.Tools, r.ToolChoice, r.Thinking, r.OutputConfig,
	})
	if err != nil {
		return nil, err
	}
	r.setBetas(req)
	return req, nil
}

// Tokens implements translate.Counter.
func (Provider) Tokens(body []byte) (n int64, ok bool) {
	v := gjson.GetBytes(body, "input_tokens")
	return v.Int(), v.Type == gjson.Number
}

var _ translate.Counter = (*Provider)(nil)
