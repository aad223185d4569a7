package vertex

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/plugins/translate"
)

var (
	here   = Provider{Project: "p", Location: "eu"}
	target = translate.Target{BaseURL: "https://x", Key: "secret"}
)

func TestPrepare(t *testing.T) {
	const (
		location = "/projects/p/locations/eu"
		google   = "/v1beta1" + location + "/publishers/google/models/"
		claude   = "/v1" + location + "/publishers/anthropic/models/"
		others   = "/v1" + location + "/endpoints/openapi/chat/completions"
	)
	for model, want := range map[string]struct{ path, model string }{
		"gemini-3.5-flash":                               {google + "gemini-3.5-flash:generateContent", ""},
		"models/gemini-3.5-flash":                        {google + "gemini-3.5-flash:generateContent", ""},
		"publishers/google/models/gemini-3.5-flash":      {google + "gemini-3.5-flash:generateContent", ""},
		"claude-opus-4@20250514":                         {claude + "claude-opus-4@20250514:rawPredict", ""},
		"anthropic/claude-sonnet-4":                      {claude + "claude-sonnet-4:rawPredict", ""},
		"projects/q/publishers/anthropic/models/claude5": {claude + "claude5:rawPredict", ""},
		"meta/llama-3.3-70b-instruct-maas":               {others, "meta/llama-3.3-70b-instruct-maas"},
		"publishers/qwen/models/qwen3-maas":              {others, "qwen/qwen3-maas"},
		"gemma-4-26b-a4b-it-maas":                        {others, "google/gemma-4-26b-a4b-it-maas"},
		"a/b?c#d":                                        {others, "a/b?c#d"},
	} {
		target := target
		target.Model = model
		req, body, _, err := plugintest.Prepare(t, here, target, plugintest.Request(""), false)
		if err != nil {
			t.Fatal(err)
		}
		if got := gjson.Get(body, "model").Str; req.URL.Path != want.path || got != want.model {
			t.Errorf("%s: got %s for %q, want %s for %q", model, req.URL.Path, got, want.path, want.model)
		}
		if req.Header.Get("Authorization") != "Bearer secret" || req.Header.Get("X-Api-Key") != "" {
			t.Errorf("%s: got the header %v", model, req.Header)
		}
	}
}

// For Claude, the model is in the path and the version in the body. The date of a
// model follows another sign than at Anthropic, with the same meaning.
func TestPrepareClaude(t *testing.T) {
	target := target
	target.Model = "claude-opus-4@20250514"
	body, p := plugintest.Send(t, here, target, `{"model":"m","input":"hi","stream":true,"service_tier":"fast",
		"text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object","properties":{"a":{"type":"integer"}}}}}}`, true)
	if body.Get("anthropic_version").Str != "vertex-2023-10-16" || body.Get("model").Exists() || !body.Get("stream").Bool() {
		t.Errorf("got %s", body)
	}
	if body.Get("output_config").Exists() || body.Get("tools.0.name").Str != "structured_answer" || len(p.Warnings) > 0 {
		t.Errorf("claude 4 has no output format: got %s", body)
	}
}

func TestPrepareNative(t *testing.T) {
	for _, test := range []struct {
		model   string
		dialect plugins.Dialect
		body    string
		path    string // its end, "" for what is not spoken
		want    string
	}{
		{"claude-opus-5-5", plugins.Messages, `{"model":"v/claude","max_tokens":1e2,"stream":true}`, "claude-opus-5-5:streamRawPredict",
			`{"max_tokens":1e2,"stream":true,"anthropic_version":"vertex-2023-10-16"}`},
		{"claude-opus-5-5", plugins.Messages, `{"max_tokens":1}`, "claude-opus-5-5:rawPredict", `{"max_tokens":1,"anthropic_version":"vertex-2023-10-16"}`},
		{"meta/llama", plugins.Chat, `{"model":"v/meta/llama","seed":1.0}`, "/endpoints/openapi/chat/completions", `{"model":"meta/llama","seed":1.0}`},
		{"claude-opus-5-5", plugins.CountTokens, `{"model":"v/claude","messages":[]}`, "/count-tokens:rawPredict", `{"model":"claude-opus-5-5","messages":[]}`},
		{"claude-opus-5-5", plugins.Chat, `{}`, "", ""},
		{"meta/llama", plugins.Embeddings, `{}`, "", ""},
		{"gemini-3.5-flash", plugins.Messages, `{}`, "", ""},
	} {
		target := target
		target.Model = test.model
		req, err := here.PrepareNative(t.Context(), test.dialect, plugintest.Object(t, test.body), target)
		if test.path == "" {
			if !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("%s: got %v, %v", test.model, req, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(req.Body)
		if err != nil || string(body) != test.want || !strings.HasSuffix(req.URL.Path, test.path) {
			t.Errorf("%s: got %s to %s, %v", test.model, body, req.URL, err)
		}
	}
}

// Google's and Anthropic's models count tokens, each in its own way; the others do not.
func TestPrepareCount(t *testing.T) {
	for model, want := range map[string]struct{ path, body, answer string }{
		"gemini-3.5-flash":        {"/v1beta1/projects/p/locations/eu/publishers/google/models/gemini-3.5-flash:countTokens", `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`, `{"totalTokens":7}`},
		"claude-3-haiku@20240307": {"/v1/projects/p/locations/eu/publishers/anthropic/models/count-tokens:rawPredict", `{"model":"claude-3-haiku@20240307","messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}`, `{"input_tokens":7}`},
		"meta/llama":              {},
	} {
		target := target
		target.Model = model
		p, err := translate.ParseRequest([]byte(`{"model":"m","input":"hi","max_output_tokens":5,"stream":true}`))
		if err != nil {
			t.Fatal(err)
		}
		req, err := here.PrepareCount(t.Context(), p, target)
		if want.path == "" {
			if !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("%s: got %v, %v", model, req, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(req.Body)
		if err != nil || string(body) != want.body || req.URL.Path != want.path || req.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("%s: asks %s for %s, %v", model, req.URL, body, err)
		}
		if n, ok := here.Tokens([]byte(want.answer)); n != 7 || !ok {
			t.Errorf("%s: %s counts %d", model, want.answer, n)
		}
	}
}

// What Claude refuses is adapted as at Anthropic, and what Gemini gets is not.
func TestAdapt(t *testing.T) {
	for model, adapts := range map[string]bool{"claude-3-haiku@20240307": true, "anthropic/claude-3-haiku@20240307": true, "gemini-3.5-flash": false} {
		target := target
		target.Model = model
		body := `{"thinking":{"type":"adaptive"},"max_tokens":9}`
		adapted, _ := here.Adapt(plugins.Messages, plugintest.Object(t, body), target)
		header := http.Header{"Anthropic-Beta": {"claude-code-20250219"}}
		warnings := here.AdaptHeader(header, target)
		if (string(adapted) != body) != adapts || (len(header) == 0) != adapts || (len(warnings) > 0) != adapts {
			t.Errorf("%s: %s, %v, %q", model, adapted, header, warnings)
		}
	}
}

// Answers are read as the dialect of the model that they are of.
func TestDecode(t *testing.T) {
	for model, folder := range map[string]string{
		"gemini-3-test":            "../gemini/testdata",
		"claude-3-7-sonnet-latest": "../anthropic/testdata",
		"meta/llama":               "../chat/testdata/compatible",
	} {
		t.Run(model, func(t *testing.T) {
			target := target
			target.Model = model
			plugintest.Run(t, here, target, plugintest.Fixtures(t, folder)[:3])
		})
	}
}

func TestErrors(t *testing.T) {
	plugintest.Errors(t, here)
	for path, body := range map[string]string{
		"/publishers/google/models/g:generateContent":   `{"error":{"code":404,"message":"No such model.","status":"NOT_FOUND"}}`,
		"/publishers/anthropic/models/c:rawPredict":     `{"type":"error","error":{"type":"not_found_error","message":"No such model."}}`,
		"/publishers/anthropic/models/c?:rawPredict":    `{"error":{"code":404,"message":"No such model.","status":"NOT_FOUND"}}`,
		"/endpoints/openapi/chat/completions":           `[{"error":{"code":404,"message":"No such model.","status":"NOT_FOUND"}}]`,
		"/endpoints/openapi/chat/completions?of=Meta's": `{"error":{"message":"No such model.","type":"invalid_request_error"}}`,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://x"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		e := here.Error(&http.Response{StatusCode: http.StatusNotFound, Body: io.NopCloser(strings.NewReader(body)), Request: req})
		if e.Status != http.StatusNotFound || e.Message != "No such model." || e.Code != "model_not_found" {
			t.Errorf("%s: got %+v", path, e)
		}
	}
}

// Tags are labels, in both formats and in the client's own bytes. What is no label is none.
func TestTags(t *testing.T) {
	tagged := target
	tagged.Tags = []translate.Tag{{Name: "project", Value: "search"}}
	bodyOf := func(req *http.Request, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	for _, model := range []string{"gemini-3.5-flash", "claude-opus-5-5"} {
		tagged.Model = model
		p, err := translate.ParseRequest([]byte(`{"model":"m","input":"hi","metadata":{"project":"mine","other":"x"}}`))
		if err != nil {
			t.Fatal(err)
		}
		body := bodyOf(here.Prepare(t.Context(), p, tagged))
		if gjson.Get(body, "labels.project").Str != "search" || strings.Contains(body, "mine") {
			t.Errorf("%s: %s", model, body)
		}
	}
	if body := bodyOf(here.PrepareNative(t.Context(), plugins.Messages, plugintest.Object(t, `{"max_tokens":1,"labels":{"project":"mine"},"l\u0061bels":{},"labels":{"project":"mine"}}`), tagged)); gjson.Get(body, "labels").Raw != `{"project":"search"}` || strings.Count(body, "bels") != 1 {
		t.Errorf("native: %s", body)
	}
	tagged.Model = "text-embedding-005"
	_, err := here.TranslateEndpoint(t.Context(), plugins.Embeddings, plugintest.Object(t, `{"input":"a"}`), tagged)
	if refused, ok := errors.AsType[*plugins.Error](err); !ok || refused.Code != translate.NotTagged || refused.Status != http.StatusForbidden {
		t.Errorf("embeddings, which have no labels: %v", err)
	}
	for _, c := range []struct {
		model string
		tag   translate.Tag
		want  string
	}{
		{"gemini-3.5-flash", translate.Tag{Name: "project", Value: "search-2_ö"}, ""},
		{"gemini-3.5-flash", translate.Tag{Name: "user", Value: "ada@example.com"}, "no label"},
		{"gemini-3.5-flash", translate.Tag{Name: "Team", Value: "a"}, "no label"},
		{"gemini-3.5-flash", translate.Tag{Name: "project", Value: strings.Repeat("a", 64)}, "no label"},
		{"meta/llama", translate.Tag{Name: "project", Value: "search"}, "Chat Completions"},
	} {
		err := here.CheckTag(translate.Target{Model: c.model}, c.tag)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %v: %v", c.model, c.tag, err)
		}
	}
}
