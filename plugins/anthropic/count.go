package anthropic

import (
	"context"
	"net/http"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// PrepareCount implements translate.Counter.
func (Provider) PrepareCount(ctx context.Context, p *translate.Request, t translate.Target) (*http.Request, error) {
	r, err := newRequest(p, t)
	if err != nil {
		return nil, err
	}
	req, err := post(ctx, t, paths[plugins.CountTokens], r.prompt)
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
