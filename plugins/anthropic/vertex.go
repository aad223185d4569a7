package anthropic

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// Vertex speaks the Messages API as Claude has it on Google's Vertex AI
// (https://platform.claude.com/docs/en/build-with-claude/claude-on-vertex-ai).
// Its base URL is that of a project's location, and its key an OAuth access
// token.
type Vertex struct{ Provider }

// vertexVersion is the version of the API, which is sent in the body.
const vertexVersion = "vertex-2023-10-16"

// Prepare implements translate.Provider.
func (Vertex) Prepare(ctx context.Context, p *translate.Request, t translate.Target) (*http.Request, error) {
	listed := t
	listed.Model = vertexName(t.Model)
	r, err := newRequest(p, listed)
	if err != nil {
		return nil, err
	}
	r.Model, r.Version = "", vertexVersion
	req, err := postVertex(ctx, t, r, p.Stream)
	if err != nil {
		return nil, err
	}
	r.setBetas(req)
	return req, nil
}

// vertexName is a model's name at Anthropic: Vertex has an @ before a date.
func vertexName(name string) string { return strings.ReplaceAll(name, "@", "-") }

// PrepareNative implements translate.Native.
func (Vertex) PrepareNative(ctx context.Context, d plugins.Dialect, body *plugins.Object, t translate.Target) (*http.Request, error) {
	if d != plugins.Messages {
		return nil, errors.ErrUnsupported
	}
	data, err := sjson.DeleteBytes(body.Data, "model")
	if err != nil {
		return nil, err
	}
	if data, err = sjson.SetBytes(data, "anthropic_version", vertexVersion); err != nil {
		return nil, err
	}
	return postVertex(ctx, t, data, body.Get("stream").Bool())
}

func postVertex(ctx context.Context, t translate.Target, body any, stream bool) (*http.Request, error) {
	method := ":rawPredict"
	if stream {
		method = ":streamRawPredict"
	}
	return t.Post(ctx, "/publishers/anthropic/models/"+url.PathEscape(t.Model)+method, translate.Bearer, body)
}

var (
	_ translate.Provider = (*Vertex)(nil)
	_ translate.Native   = (*Vertex)(nil)
)
