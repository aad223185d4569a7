package chat

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/plugins/translate"
)

// prepare returns the upstream request, its body and the request with its warnings.
func prepare(t *testing.T, p translate.Provider, target translate.Target, request string) (*http.Request, string, *translate.Request, error) {
	t.Helper()
	target.Model = "m"
	return plugintest.Prepare(t, p, target, request, false)
}

// fixtures are the answers in testdata, by vendor.
func fixtures(t testing.TB) map[string][]plugintest.Fixture {
	folders, err := filepath.Glob("testdata/[a-z]*")
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string][]plugintest.Fixture)
	for _, folder := range folders {
		all[filepath.Base(folder)] = plugintest.Fixtures(t, folder)
	}
	return all
}

func TestFixtures(t *testing.T) {
	all := fixtures(t)
	for i := range vendors {
		if all[vendors[i].name] == nil {
			t.Errorf("there is no fixture of %s", vendors[i].name)
		}
	}
	for kind, list := range all {
		t.Run(kind, func(t *testing.T) {
			plugintest.Run(t, For(kind), translate.Target{Model: "m", BaseURL: "http://localhost"}, list)
		})
	}
}

// FuzzDecode: whatever the provider sends, the client gets a legal stream or
// object.
func FuzzDecode(f *testing.F) {
	var all []plugintest.Fixture
	byVendor := fixtures(f)
	for _, kind := range slices.Sorted(maps.Keys(byVendor)) {
		all = append(all, byVendor[kind]...)
	}
	plugintest.Fuzz(f, For("openrouter"), all, nil)
}

func TestPrepare(t *testing.T) {
	req, body, p, err := prepare(t, For("openai"), translate.Target{BaseURL: "https://example.com/v1", Key: "secret"}, `{
		"model": "gpt", "instructions": "Be brief.", "input": "hi", "stream": true, "temperature": 0.2, "max_output_tokens": 5,
		"tools": [{"type": "function", "name": "f", "description": "does <f>", "parameters": {"type": "object", "properties": {"b": {"const": 9007199254740993}, "a": {}}}}],
		"user": "u", "metadata": {"k": "v"}, "store": true, "service_tier": "flex", "prompt_cache_key": "k"}`)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"model":"m","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"hi"}],` +
		`"tools":[{"type":"function","function":{"name":"f","description":"does <f>","parameters":{"type":"object","properties":{"b":{"const":9007199254740993},"a":{}}}}}],` +
		`"max_completion_tokens":5,"temperature":0.2,"service_tier":"flex","user":"u","prompt_cache_key":"k","store":true,"metadata":{"k":"v"},` +
		`"stream":true,"stream_options":{"include_usage":true}}`
	if body != want {
		t.Errorf("got  %s\nwant %s", body, want)
	}
	if got := req.Method + " " + req.URL.String(); got != "POST https://example.com/v1/chat/completions" {
		t.Errorf("got %s", got)
	}
	if got := req.Header; got.Get("Authorization") != "Bearer secret" || got.Get("Content-Type") != "application/json" {
		t.Errorf("got %v", got)
	}
	if len(p.Warnings) > 0 {
		t.Errorf("warnings %q", p.Warnings)
	}
}

func TestAzure(t *testing.T) {
	for _, test := range []struct{ version, baseURL, want string }{
		{"", "https://acme.openai.azure.com", "https://acme.openai.azure.com/openai/deployments/m/chat/completions?api-version=2024-10-21"},
		{"2025-01-01-preview", "https://acme.openai.azure.com", "https://acme.openai.azure.com/openai/deployments/m/chat/completions?api-version=2025-01-01-preview"},
		{"", "https://acme.openai.azure.com/openai/v1", "https://acme.openai.azure.com/openai/v1/chat/completions"},
		{"preview", "https://acme.openai.azure.com/openai/v1", "https://acme.openai.azure.com/openai/v1/chat/completions?api-version=preview"},
	} {
		z := &Azure{Provider: *For("azure"), APIVersion: test.version}
		req, _, _, err := prepare(t, z, translate.Target{BaseURL: test.baseURL, Key: "secret"}, `{"model":"m","input":"hi"}`)
		if err != nil {
			t.Fatal(err)
		}
		if got := req.URL.String(); got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
		if req.Header.Get("Api-Key") != "secret" || req.Header.Get("Authorization") != "" {
			t.Errorf("got %v", req.Header)
		}
	}
}

// Version 1 of Azure's API may count tokens, for clients of either API.
func TestAzureCounts(t *testing.T) {
	z := &Azure{Provider: *For("azure"), APIVersion: "preview"}
	p, err := translate.ParseRequest([]byte(`{"model":"m","input":"hi"}`))
	if err != nil {
		t.Fatal(err)
	}
	for baseURL, counts := range map[string]bool{"https://acme.openai.azure.com": false, "https://acme.openai.azure.com/openai/v1": true} {
		target := translate.Target{Model: "m", BaseURL: baseURL, Key: "secret"}
		native, nativeErr := z.PrepareNative(t.Context(), plugins.InputTokens, plugintest.Object(t, `{"model":"m","input":"hi"}`), target)
		translated, err := z.PrepareCount(t.Context(), p, target)
		if !counts {
			if !errors.Is(nativeErr, errors.ErrUnsupported) || !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("%s: %v, %v", baseURL, nativeErr, err)
			}
			continue
		}
		if nativeErr != nil || err != nil {
			t.Fatal(nativeErr, err)
		}
		for _, req := range []*http.Request{native, translated} {
			if req.URL.String() != baseURL+"/responses/input_tokens?api-version=preview" || req.Header.Get("Api-Key") != "secret" || req.Header.Get("Authorization") != "" {
				t.Errorf("%s %v", req.URL, req.Header)
			}
		}
	}
}

func TestAzureSpeaksResponses(t *testing.T) {
	body := `{"model":"azure/m","input":"hi"}`
	for version, want := range map[string]string{
		"":        "https://acme.openai.azure.com/openai/v1/responses",
		"preview": "https://acme.openai.azure.com/openai/v1/responses?api-version=preview",
	} {
		z := &Azure{Provider: *For("azure"), APIVersion: version}
		req, err := z.PrepareNative(t.Context(), plugins.Responses, plugintest.Object(t, body),
			translate.Target{Model: "m", BaseURL: "https://acme.openai.azure.com/openai/v1", Key: "secret"})
		if err != nil {
			t.Fatal(err)
		}
		if got := req.URL.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if req.Header.Get("Api-Key") != "secret" || req.Header.Get("Authorization") != "" {
			t.Errorf("the header is %v", req.Header)
		}
	}
	z := &Azure{Provider: *For("azure")}
	_, err := z.PrepareNative(t.Context(), plugins.Responses, plugintest.Object(t, body), translate.Target{Model: "m", BaseURL: "https://acme.openai.azure.com"})
	if !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("got %v for a resource, which has no Responses without a version", err)
	}
	for baseURL, native := range map[string]bool{"https://acme.openai.azure.com": true, "https://acme.openai.azure.com/openai/v1": false} {
		_, err := z.PrepareNative(t.Context(), plugins.Chat, plugintest.Object(t, `{"model":"m","tools":[{"type":"function","function":{"name":"f"}}]}`), translate.Target{Model: "gpt-5.6", BaseURL: baseURL})
		if native != (err == nil) {
			t.Errorf("%s: got %v for functions of a model that reasons", baseURL, err)
		}
	}
}

// What others wrote for Chat Completions passes as it is.
func TestPrepareNative(t *testing.T) {
	azure := &Azure{Provider: *For("azure")}
	const body = `{"messages": [], "model":"label/m", "seed":1.0e2}`
	for name, test := range map[string]struct {
		provider translate.Native
		dialect  plugins.Dialect
		baseURL  string
		want     string // "" is unsupported
	}{
		"chat":         {For("groq"), plugins.Chat, "https://x/v1", "https://x/v1/chat/completions"},
		"no messages":  {For("compatible"), plugins.Messages, "https://x/v1", ""},
		"no responses": {For("compatible"), plugins.Responses, "https://x/v1", ""},
		"deployment":   {azure, plugins.Chat, "https://x", "https://x/openai/deployments/m/chat/completions?api-version=" + azureVersion},
		"version 1":    {azure, plugins.Chat, "https://x/openai/v1", "https://x/openai/v1/chat/completions"},
	} {
		t.Run(name, func(t *testing.T) {
			req, err := test.provider.PrepareNative(t.Context(), test.dialect, plugintest.Object(t, body), translate.Target{Model: "m", BaseURL: test.baseURL, Key: "secret"})
			if test.want == "" {
				if !errors.Is(err, errors.ErrUnsupported) || req != nil {
					t.Errorf("got %v, %v", req, err)
				}
				return
			}
			if err != nil || req.URL.String() != test.want {
				t.Fatalf("got %v, %v", req, err)
			}
			sent, err := io.ReadAll(req.Body)
			if err != nil || string(sent) != `{"messages": [], "model":"m", "seed":1.0e2}` {
				t.Errorf("it sends %s, %v", sent, err)
			}
			if req.Header.Get("Api-Key")+req.Header.Get("Authorization") == "" {
				t.Error("it sends no key")
			}
		})
	}
}

func TestPrepareEndpoint(t *testing.T) {
	azure := &Azure{Provider: *For("azure")}
	for name, test := range map[string]struct {
		provider       translate.Endpoints
		baseURL, model string
		path, want     string // "" is unsupported
	}{
		"embeddings":            {For("mistral"), "https://x/v1", "m", "/v1/embeddings", "https://x/v1/embeddings"},
		"no embeddings":         {For("groq"), "https://x/v1", "m", "/v1/embeddings", ""},
		"audio":                 {For("groq"), "https://x/v1", "m", "/v1/audio/translations", "https://x/v1/audio/translations"},
		"a file":                {For("groq"), "https://x/v1", "", "/v1/files/file-1/content", "https://x/v1/files/file-1/content"},
		"something like a file": {For("groq"), "https://x/v1", "", "/v1/filesystem", ""},
		"another version":       {For("vllm"), "https://x/v1", "m", "/v2/rerank", ""},
		"any server":            {For("compatible"), "https://x/v1", "m", "/v1/rerank", "https://x/v1/rerank"},
		"batches of Messages":   {For("compatible"), "https://x/v1", "", "/v1/messages/batches", ""},
		"a deployment's":        {azure, "https://x", "m", "/v1/embeddings", "https://x/openai/deployments/m/embeddings?api-version=" + azureVersion},
		"files of a resource":   {azure, "https://x", "", "/v1/files", "https://x/openai/files?api-version=" + azureVersion},
		"realtime":              {azure, "https://x/openai/v1", "m", "/v1/realtime", "https://x/openai/v1/realtime"},
		"realtime by version 1": {azure, "https://x", "m", "/v1/realtime", ""},
		"version 1":             {azure, "https://x/openai/v1", "m", "/v1/audio/speech", "https://x/openai/v1/audio/speech"},
	} {
		t.Run(name, func(t *testing.T) {
			req, err := test.provider.PrepareEndpoint(t.Context(), "POST", test.path, translate.Target{Model: test.model, BaseURL: test.baseURL, Key: "secret"})
			if test.want == "" {
				if !errors.Is(err, errors.ErrUnsupported) || req != nil {
					t.Errorf("got %v, %v", req, err)
				}
				return
			}
			if err != nil || req.URL.String() != test.want || req.Header.Get("Api-Key")+req.Header.Get("Authorization") == "" {
				t.Errorf("got %v, %v", req, err)
			}
		})
	}
}

func TestVendors(t *testing.T) {
	var names []string
	for i := range vendors {
		names = append(names, vendors[i].name)
		for path := range vendors[i].policy {
			if _, ok := translate.DefaultPolicy[path]; !ok && !strings.HasPrefix(path, "input.") && !strings.HasPrefix(path, "tools.") {
				t.Errorf("%s: there is no field %s", vendors[i].name, path)
			}
		}
		if v := &vendors[i]; v.translates("input.input_file") != (v.messages.file != noFile) || v.translates("tools.web_search") != (v.tools.search != noSearch) {
			t.Errorf("%s: the policy and the form of files or searches disagree", v.name)
		}
	}
	slices.Sort(names)
	if len(slices.Compact(names)) != len(vendors) {
		t.Errorf("duplicate vendor in %q", names)
	}
	if For("acme") != nil {
		t.Error("a provider for an unknown kind")
	}
}

// Mistral refuses what clients of Chat Completions commonly send. OpenAI's models do so too
// if they reason.
func TestAdapt(t *testing.T) {
	reasons := translate.Target{Capabilities: &plugins.Capabilities{Input: []string{"text"}, Reasoning: true}}
	for _, test := range []struct{ vendor, body, want, warned string }{
		{"mistral", `{"stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":5}`, `{"stream":true,"max_tokens":5}`, "max_completion_tokens stream_options"},
		{"mistral", `{"max_tokens":5}`, `{"max_tokens":5}`, ""},
		{"mistral", `{"store":false,"seed":7,"user":"u","metadata":{},"safe_prompt":true}`, `{"metadata":{},"safe_prompt":true,"random_seed":7}`, "seed store user"},
		{"mistral", `{"messages":[{"role":"developer","content":"a"},{"role":"user","content":"b"}]}`, `{"messages":[{"role":"system","content":"a"},{"role":"user","content":"b"}]}`, "messages.0.role"},
		{"mistral", `{"messages":[{"role":"user","content":"a","name":"bob"},{"role":"assistant","content":"","refusal":null,"annotations":[],"reasoning_content":"Hm","tool_calls":[{"id":"a23456789","type":"function","name":"f","function":{"name":"f","arguments":"{}","strict":true}}]},{"role":"tool","name":"f","tool_call_id":"a23456789","content":"x"},{"role":"assistant","content":"y","refusal":null,"prefix":true}]}`,
			`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"","tool_calls":[{"id":"a23456789","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","name":"f","tool_call_id":"a23456789","content":"x"},{"role":"assistant","content":"y","prefix":true}]}`, "messages.*.name messages.*.reasoning_content messages.*.strict"},
		{"mistral", `{"messages": [ {"role":"assistant","content":"y"} ]}`, `{"messages": [ {"role":"assistant","content":"y"} ]}`, ""},
		{"deepseek", `{"messages":[{"role":"system","content":"developer"},{"role":"developer","content":"a"}],"store":true}`, `{"messages":[{"role":"system","content":"developer"},{"role":"system","content":"a"}],"store":true}`, "messages.1.role"},
		{"openrouter", `{"messages":[{"role":"developer","content":"a"}]}`, `{"messages":[{"role":"developer","content":"a"}]}`, ""},
		{"fireworks", `{"messages":[{"role":"assistant","content":null,"refusal":null,"annotations":[ ],"function_call":{"name":"f"}}]}`, `{"messages":[{"role":"assistant","content":null,"function_call":{"name":"f"}}]}`, ""},
		{"groq", `{"max_tokens":5}`, `{"max_tokens":5}`, ""},
		{"azure", `{"max_tokens":5}`, `{"max_completion_tokens":5}`, "max_tokens"},
		{"deepseek", `{"max_tokens":5,"stream_options":{}}`, `{"max_tokens":5,"stream_options":{}}`, ""},
	} {
		var p translate.Adapter = For(test.vendor)
		if test.vendor == "azure" {
			p = &Azure{Provider: *For("azure")}
		}
		got, warnings := p.Adapt(plugins.Chat, plugintest.Object(t, test.body), reasons)
		var warned []string
		for _, w := range warnings {
			field, _, _ := strings.Cut(w, ": ")
			warned = append(warned, field)
		}
		if string(got) != test.want || strings.Join(warned, " ") != test.warned {
			t.Errorf("%s: got %s, warnings %q, want %s", test.vendor, got, warnings, test.want)
		}
	}
}

// A client of Messages is answered from the Responses of version 1 of Azure's API, which
// have the reasoning of the model.
func TestAzureAnswersMessages(t *testing.T) {
	azure := &Azure{Provider: *For("azure")}
	const asked = `{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"hi"}]}`
	target := translate.Target{Model: "m", BaseURL: "https://acme.openai.azure.com/openai/v1"}
	req, body, p, err := plugintest.PrepareIn(t, plugins.Messages, azure, target, asked, false)
	if err != nil {
		t.Fatal(err)
	}
	if req.URL.Path != "/openai/v1/responses" || req.Header.Get("Api-Key") != "secret" || req.Header.Get("Authorization") != "" ||
		gjson.Get(body, "include.0").Str != "reasoning.encrypted_content" {
		t.Errorf("%s %v: %s", req.URL, req.Header, body)
	}
	resp := plugintest.Response(http.StatusOK, `{"status":"completed","output":[{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"Hm"}]}]}`)
	resp.Request = req
	a := translate.NewAssembler(p, nil, translate.Options{})
	if err := azure.Decode(resp, a); err != nil {
		t.Fatal(err)
	}
	a.End()
	if got := gjson.GetBytes(a.Response(), "output.0.summary.0.text").Str; got != "Hm" {
		t.Errorf("the response is %s", a.Response())
	}
	target.BaseURL = "https://acme.openai.azure.com"
	if req, _, _, err = plugintest.PrepareIn(t, plugins.Messages, azure, target, asked, false); err != nil || !strings.HasSuffix(req.URL.Path, "/chat/completions") {
		t.Errorf("a deployment: %v, %v", req, err)
	}
}

// A request with stop sequences that the vendor refuses is translated, and the gateway has those that are
// not sent.
func TestStopSequencesThatTheVendorRefuses(t *testing.T) {
	reasons := &plugins.Capabilities{Input: []string{"text"}, Reasoning: true}
	for _, test := range []struct {
		vendor, stop string
		model        *plugins.Capabilities
		native       bool
		sent         string
	}{
		{"groq", `["a","b","c","d"]`, nil, true, `["a","b","c","d"]`},
		{"groq", `["a","b","c","d","e"]`, nil, false, `["a","b","c","d"]`},
		{"compatible", `["a","b","c","d","e"]`, nil, true, `["a","b","c","d","e"]`},
		{"xai", `"a"`, reasons, false, ``},
		{"azure", `["a"]`, reasons, false, ``},
		{"azure", `["a"]`, plain.Capabilities, true, `["a"]`},
	} {
		target := translate.Target{Model: "m", BaseURL: "https://x/v1", Capabilities: test.model}
		p := For(test.vendor)
		if _, err := p.PrepareNative(t.Context(), plugins.Chat, plugintest.Object(t, `{"model":"m","stop":`+test.stop+`}`), target); test.native != (err == nil) {
			t.Errorf("%s, %s: %v", test.vendor, test.stop, err)
		}
		_, body, request, err := plugintest.Prepare(t, p, target, `{"model":"m","input":"hi","stop":`+test.stop+`}`, false)
		if err != nil || gjson.Get(body, "stop").Raw != test.sent || len(request.Warnings) > 0 {
			t.Errorf("%s gets %s, warnings %q: %v", test.vendor, body, request.Warnings, err)
		}
	}
}

// A model that thinks refuses calls whose reasoning the client has left out, and forced ones. The
// translation adds what the gateway remembers, or tells the model not to think.
func TestCallsWithoutReasoningAreTranslated(t *testing.T) {
	const (
		called   = `{"tools":[{"type":"function","function":{"name":"f"}}],"messages":[{"role":"user","content":"hi"},{"role":"assistant",%s"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"2"}]%s}`
		reasoned = `"reasoning_content":"Hm",`
	)
	for name, test := range map[string]struct {
		vendor, reasoning, fields string
		model                     *plugins.Capabilities
		native                    bool
	}{
		"left out":                {"deepseek", "", "", remembers.Capabilities, false},
		"kept":                    {"deepseek", reasoned, "", remembers.Capabilities, true},
		"told not to think":       {"deepseek", "", `,"thinking":{"type":"disabled"}`, remembers.Capabilities, true},
		"a model without":         {"deepseek", "", "", plain.Capabilities, true},
		"a vendor that forgets":   {"xai", "", "", remembers.Capabilities, true},
		"a forced call":           {"deepseek", reasoned, `,"tool_choice":"required"`, remembers.Capabilities, false},
		"forced, and no thoughts": {"deepseek", reasoned, `,"tool_choice":"required","thinking":{"type":"disabled"}`, remembers.Capabilities, true},
	} {
		t.Run(name, func(t *testing.T) {
			body := plugintest.Object(t, fmt.Sprintf(called, test.reasoning, test.fields))
			_, err := For(test.vendor).PrepareNative(t.Context(), plugins.Chat, body, translate.Target{Model: "m", BaseURL: "https://x/v1", Capabilities: test.model})
			if native := err == nil; native != test.native {
				t.Errorf("native %v, %v", native, err)
			}
		})
	}
}
