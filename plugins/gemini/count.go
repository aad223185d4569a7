package gemini

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/translate"
)

// countRequest is the body of countTokens: the request of generateContent, with the name
// of its model (https://ai.google.dev/api/tokens).
type countRequest struct {
	Request struct {
		Model string `json:"model"`
		*request
	} `json:"generateContentRequest"`
}

// PrepareCount implements translate.Counter.
func (Provider) PrepareCount(ctx context.Context, p *translate.Request, t translate.Target) (*http.Request, error) {
	r, err := newRequest(p, t, false)
	if err != nil {
		return nil, err
	}
	name := strings.TrimPrefix(t.Model, "models/")
	var count countRequest
	count.Request.Model, count.Request.request = "models/"+name, r
	return t.Post(ctx, apiVersion+"models/"+url.PathEscape(name)+":countTokens", Provider{}.KeyHeader(), count)
}

// PrepareCount implements translate.Counter
// (https://docs.cloud.google.com/vertex-ai/docs/reference/rest/v1beta1/projects.locations.publishers.models/countTokens).
func (Vertex) PrepareCount(ctx context.Context, p *translate.Request, t translate.Target) (*http.Request, error) {
	r, err := newRequest(p, t, true)
	if err != nil {
		return nil, err
	}
	read := request{SystemInstruction: r.SystemInstruction, Contents: r.Contents, Tools: r.Tools}
	return t.Post(ctx, "/publishers/google/models/"+url.PathEscape(t.Model)+":countTokens", translate.Bearer, read)
}

// Tokens implements translate.Counter.
func (generateContent) Tokens(body []byte) (n int64, ok bool) {
	v := gjson.GetBytes(body, "totalTokens")
	return v.Int(), v.Type == gjson.Number
}

var (
	_ translate.Counter = (*Provider)(nil)
	_ translate.Counter = (*Vertex)(nil)
)
