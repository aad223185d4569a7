// Package gemini translates between the neutral request and Google's
// generateContent, of the Gemini API
// (https://ai.google.dev/api/generate-content) and of Vertex AI.
package gemini

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// Provider speaks the Gemini API.
//
// The effort of `reasoning` becomes a thinking level, or with models that count
// their thoughts in tokens a thinking budget; strict functions make the calls of
// all functions keep to their schemas. `web_search` becomes the search of
// Google, `code_interpreter` the execution of code. What has no equivalent is
// refused, or left out with a warning.
type Provider struct{ generateContent }

// DefaultTarget is Google's own API, and the environment variable that holds
// its key.
func (Provider) DefaultTarget() (baseURL, keyEnv string) {
	return plugins.DefaultTarget("gemini")
}

// Prepare implements plugins.Provider.
func (Provider) Prepare(ctx context.Context, p *translate.Request, t translate.Target) (*http.Request, error) {
	r, err := newRequest(p, t, false)
	if err != nil {
		return nil, err
	}
	req, err := r.post(ctx, t.BaseURL+apiVersion+"models/"+modelName(t))
	if err != nil {
		return nil, err
	}
	if t.Key != "" {
		req.Header.Set("X-Goog-Api-Key", t.Key)
	}
	return req, nil
}

// apiVersion is the version of the API that has all of it, as paths begin.
const apiVersion = "/v1beta/"

// modelName is the last element of the model's resource name, for a path.
func modelName(t translate.Target) string {
	return url.PathEscape(strings.TrimPrefix(t.Model, "models/"))
}

// post is the HTTP request to a model.
func (r *request) post(ctx context.Context, model string) (*http.Request, error) {
	body, err := marshal(r)
	if err != nil {
		return nil, err
	}
	method := ":generateContent"
	if r.prompt.Stream {
		method = ":streamGenerateContent?alt=sse" // without, the stream is one JSON array
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, model+method, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	return req, nil
}

// marshal is the JSON of v, without the escapes that HTML needs.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

var _ translate.Provider = (*Provider)(nil)
