package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// Vertex speaks the Messages API of Claude on Google's Vertex AI
// (https://platform.claude.com/docs/en/build-with-claude/claude-on-vertex-ai).
// The base URL names a project and a location. The key is an OAuth access token.
type Vertex struct{ Provider }

// vertexVersion is the version of the API, which is sent in the body.
const vertexVersion = "vertex-2023-10-16"

// Prepare implements translate.Provider.
func (Vertex) Prepare(ctx context.Context, p *translate.Request, t translate.Target) (*http.Request, error) {
	r, err := newVertexRequest(p, t)
	if err != nil {
		return nil, err
	}
	r.Model, r.Version, r.Labels = "", vertexVersion, labels(t.Tags)
	req, err := postVertex(ctx, t, r, p.Stream)
	if err != nil {
		return nil, err
	}
	r.setBetas(req)
	return req, nil
}

func newVertexRequest(p *translate.Request, t translate.Target) (*request, error) {
	t.Model = vertexName(t.Model)
	return newRequest(p, t)
}

// countPath is where tokens are counted
// (https://docs.cloud.google.com/vertex-ai/generative-ai/docs/partner-models/claude/count-tokens).
// The body names the model.
const countPath = "/publishers/anthropic/models/count-tokens:rawPredict"

// PrepareCount implements translate.Counter.
func (Vertex) PrepareCount(ctx context.Context, p *translate.Request, t translate.Target) (*http.Request, error) {
	r, err := newVertexRequest(p, t)
	if err != nil {
		return nil, err
	}
	r.Model = t.Model
	return t.Post(ctx, countPath, translate.Bearer, r.prompt)
}

// vertexName is a model's name at Anthropic: Vertex has an @ before a date.
func vertexName(name string) string { return strings.ReplaceAll(name, "@", "-") }

// PrepareNative implements translate.Native.
func (Vertex) PrepareNative(ctx context.Context, d plugins.Dialect, body *plugins.Object, t translate.Target) (*http.Request, error) {
	switch d {
	case plugins.Messages:
	case plugins.CountTokens:
		return t.Post(ctx, countPath, translate.Bearer, plugins.WithModel(body, t.Model))
	default:
		return nil, errors.ErrUnsupported
	}
	data := plugins.DeleteField(body.Data, "model")
	data = plugins.DeleteField(data, "anthropic_version")
	data, _ = sjson.SetBytes(data, "anthropic_version", vertexVersion) // an object, and a plain path, like the next
	if set := labels(t.Tags); set != nil {
		data, _ = sjson.SetRawBytes(plugins.DeleteField(data, "labels"), "labels", set)
	}
	return postVertex(ctx, t, data, body.Get("stream").Bool())
}

// labels are tags as Google's invoice has them, nil if there are none
// (https://docs.cloud.google.com/gemini-enterprise-agent-platform/models/capabilities/add-labels-to-api-calls).
func labels(tags []translate.Tag) json.RawMessage {
	if tags == nil {
		return nil
	}
	set := make(map[string]string, len(tags))
	for _, tag := range tags {
		set[tag.Name] = tag.Value
	}
	text, _ := json.Marshal(set) // a map of texts
	return text
}

// vertexBetas are the values of the header Anthropic-Beta that Vertex AI accepts. It refuses a request with
// any other value. Claude Code sends values that only Anthropic's own API accepts
// (https://github.com/anthropics/claude-code/issues/21625).
var vertexBetas = []string{
	"compact-2026-01-12", "compact-2026-09-04", "computer-use-2025-01-24", "computer-use-2025-11-24", "context-1m-2025-08-07",
	"context-management-2025-06-27", "dangerous-tool-use-2026-09-03", "interleaved-thinking-2025-05-14",
	"per-turn-control-2026-07-01", "thinking-binding-controls-2026-08-01", "thinking-display-updates-2026-08-18",
	toolSearch, "web-search-2025-03-05",
}

// The names of one feature at Vertex AI and at Anthropic.
const (
	toolSearch      = "tool-search-tool-2025-10-19"
	advancedToolUse = "advanced-tool-use-2025-11-20"
)

const betaHeader = "Anthropic-Beta"

// AdaptHeader implements translate.HeaderAdapter.
func (Vertex) AdaptHeader(header http.Header, _ translate.Target) (warnings []string) {
	var taken, refused []string
	for value := range strings.SplitSeq(strings.Join(header[betaHeader], ","), ",") {
		value = strings.TrimSpace(value)
		if value == advancedToolUse {
			value = toolSearch
		}
		switch {
		case value == "" || slices.Contains(taken, value):
		case slices.Contains(vertexBetas, value):
			taken = append(taken, value)
		default:
			refused = append(refused, value)
		}
	}
	if header.Del(betaHeader); taken != nil {
		header.Set(betaHeader, strings.Join(taken, ","))
	}
	if refused != nil {
		warnings = []string{"anthropic-beta: " + strings.Join(refused, ", ") + " " + translate.NotSupported}
	}
	return warnings
}

func postVertex(ctx context.Context, t translate.Target, body any, stream bool) (*http.Request, error) {
	method := ":rawPredict"
	if stream {
		method = ":streamRawPredict"
	}
	return t.Post(ctx, "/publishers/anthropic/models/"+url.PathEscape(t.Model)+method, translate.Bearer, body)
}

var (
	_ translate.Provider      = (*Vertex)(nil)
	_ translate.Native        = (*Vertex)(nil)
	_ translate.Adapter       = (*Vertex)(nil)
	_ translate.HeaderAdapter = (*Vertex)(nil)
	_ translate.Counter       = (*Vertex)(nil)
)
