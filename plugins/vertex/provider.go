// Package vertex speaks to the models of Google's Vertex AI
// (https://cloud.google.com/vertex-ai/generative-ai/docs), where each publisher
// kept its dialect: Google generateContent, Anthropic Messages. All others have
// Chat Completions.
package vertex

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/anthropic"
	"github.com/weirhq/weir/plugins/chat"
	"github.com/weirhq/weir/plugins/gemini"
	"github.com/weirhq/weir/plugins/translate"
)

// Provider speaks to the models of Vertex AI: `gemini-3.5-flash` as `gemini`
// does to the Gemini API, `claude-opus-5-5` as `anthropic` does to Anthropic's,
// and those of other publishers, such as `meta/llama-3.3-70b-instruct-maas`, as
// `compatible` does. Its key is an OAuth access token, such as
// `gcloud auth print-access-token` prints. `metadata` becomes the labels of
// Gemini's bill, as far as labels can hold it.
type Provider struct {
	// Project is the Google Cloud project that pays. Default: the environment
	// variable GOOGLE_CLOUD_PROJECT.
	Project string `json:"project,omitempty"`

	// Location is the region that serves, such as `europe-west4`. Default: the
	// environment variable GOOGLE_CLOUD_LOCATION, else `global`.
	Location string `json:"location,omitempty"`
}

// DefaultTarget is the address of the location, and the environment variable
// from which gcloud takes an access token.
func (v Provider) DefaultTarget() (baseURL, keyEnv string) {
	const keyVariable = "CLOUDSDK_AUTH_ACCESS_TOKEN"
	if v.Location == "global" {
		return "https://aiplatform.googleapis.com", keyVariable
	}
	return "https://" + v.Location + "-aiplatform.googleapis.com", keyVariable
}

// KeyHeader implements translate.KeyHeader: the path names the project that pays.
func (Provider) KeyHeader() string { return "" }

// Prepare implements translate.Provider.
func (v Provider) Prepare(ctx context.Context, p *translate.Request, t translate.Target) (*http.Request, error) {
	api, t := v.route(t)
	return api.Prepare(ctx, p, t)
}

// PrepareNative implements translate.Native.
func (v Provider) PrepareNative(ctx context.Context, d plugins.Dialect, body *plugins.Object, t translate.Target) (*http.Request, error) {
	api, t := v.route(t)
	if native, ok := api.(translate.Native); ok && d != plugins.Embeddings {
		return native.PrepareNative(ctx, d, body, t)
	}
	return nil, errors.ErrUnsupported
}

// maxLabel is the greatest length of a label's key or value, in characters.
const maxLabel = 63

// CheckTag implements translate.Tagger: tags are labels
// (https://docs.cloud.google.com/gemini-enterprise-agent-platform/models/capabilities/add-labels-to-api-calls).
func (v Provider) CheckTag(t translate.Target, tag translate.Tag) error {
	fits := func(s string) bool {
		return len([]rune(s)) <= maxLabel && !strings.ContainsFunc(s, func(c rune) bool {
			return !unicode.IsLower(c) && !unicode.In(c, unicode.Lo) && !unicode.IsDigit(c) && c != '-' && c != '_'
		})
	}
	first, _ := utf8.DecodeRuneInString(tag.Name)
	switch api, _ := v.route(t); {
	case api == translate.Provider(others):
		return errors.New("is no part of calls of Chat Completions, for which Google has no labels")
	case !fits(tag.Name) || !fits(tag.Value) || !unicode.IsLetter(first):
		return fmt.Errorf("is no label of Google, which has up to %d lower-case letters, digits, - and _", maxLabel)
	}
	return nil
}

// PrepareCount implements translate.Counter.
func (v Provider) PrepareCount(ctx context.Context, p *translate.Request, t translate.Target) (*http.Request, error) {
	api, t := v.route(t)
	if counter, ok := api.(translate.Counter); ok {
		return counter.PrepareCount(ctx, p, t)
	}
	return nil, errors.ErrUnsupported
}

// Tokens implements translate.Counter.
func (Provider) Tokens(body []byte) (n int64, ok bool) {
	if n, ok = (anthropic.Vertex{}).Tokens(body); ok {
		return n, ok
	}
	return gemini.Vertex{}.Tokens(body)
}

// Adapt implements translate.Adapter.
func (v Provider) Adapt(d plugins.Dialect, body *plugins.Object, t translate.Target) (adapted []byte, warnings []string) {
	api, t := v.route(t)
	if adapter, ok := api.(translate.Adapter); ok {
		return adapter.Adapt(d, body, t)
	}
	return body.Data, nil
}

// AdaptHeader implements translate.HeaderAdapter.
func (v Provider) AdaptHeader(header http.Header, t translate.Target) (warnings []string) {
	api, t := v.route(t)
	if adapter, ok := api.(translate.HeaderAdapter); ok {
		return adapter.AdaptHeader(header, t)
	}
	return nil
}

// Decode implements translate.Provider.
func (Provider) Decode(resp *http.Response, a *translate.Assembler) error {
	return providerOf(resp).Decode(resp, a)
}

// Error implements translate.Provider.
func (Provider) Error(resp *http.Response) *plugins.Error {
	return providerOf(resp).Error(resp)
}

// The dialects, and where in a project's location each is spoken.
const (
	atAnthropic = "/publishers/anthropic/"
	atOthers    = "/endpoints/openapi"
)

var others = chat.For("compatible")

// route returns the provider that speaks to the model, and the target as that provider knows it.
func (v Provider) route(t translate.Target) (translate.Provider, translate.Target) {
	project := "/projects/" + v.Project + "/locations/" + v.Location
	publisher, name := publisherOf(t.Model)
	switch {
	case publisher == "anthropic":
		t.BaseURL += "/v1" + project
		t.Model = name
		return anthropic.Vertex{}, t
	case publisher != "google" || strings.HasSuffix(name, "-maas"): // a service of models that anybody could host
		t.BaseURL += "/v1" + project + atOthers
		t.Model = publisher + "/" + name
		return others, t
	}
	t.BaseURL += "/v1beta1" + project
	t.Model = name
	return gemini.Vertex{}, t
}

// publisherOf returns the two parts of a model's name. The name may be that of a resource, as in
// projects/p/locations/global/publishers/anthropic/models/claude.
func publisherOf(model string) (publisher, name string) {
	if _, resource, ok := strings.Cut("/"+model, "/publishers/"); ok {
		publisher, name, _ = strings.Cut(resource, "/models/")
		return publisher, name
	}
	if publisher, name, ok := strings.Cut(model, "/"); ok && publisher != "models" {
		return publisher, name
	}
	name = strings.TrimPrefix(model, "models/")
	if strings.HasPrefix(name, "claude") {
		return "anthropic", name
	}
	return "google", name
}

// providerOf returns the provider whose model answered.
func providerOf(resp *http.Response) translate.Provider {
	switch r := resp.Request; {
	case r != nil && strings.Contains(r.URL.Path, atAnthropic):
		return anthropic.Vertex{}
	case r != nil && strings.Contains(r.URL.Path, atOthers+"/"):
		return others
	}
	return gemini.Vertex{}
}

var (
	_ translate.Provider      = (*Provider)(nil)
	_ translate.Native        = (*Provider)(nil)
	_ translate.Adapter       = (*Provider)(nil)
	_ translate.HeaderAdapter = (*Provider)(nil)
	_ translate.Counter       = (*Provider)(nil)
	_ translate.Tagger        = (*Provider)(nil)
)
