package compat

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/plugins/plugintest"
)

// strictKinds answers at /<kind>/… like the kind's vendor: it refuses what the vendor
// refuses of the model, and answers all else as [upstream] does.
func strictKinds(t *testing.T, p *published) http.Handler {
	t.Helper()
	mux := http.NewServeMux()
	for _, k := range providerKinds {
		mux.Handle("/"+k.name+"/", http.StripPrefix("/"+k.name, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			if r.Method == http.MethodPost {
				p.addRequest(k.name, r.URL.Path, body)
			}
			if k.name == "anthropic" { // which keeps threads, as the echo does not
				body, _ = sjson.DeleteBytes(body, "thread") // of what is no object, nothing
			}
			r.Body = io.NopCloser(bytes.NewReader(bytes.Replace(body, []byte(askedWeather), []byte(askedWeather+" get_weather()"), 1)))
			model := gjson.GetBytes(body, "model").Str
			if model == "" {
				model = k.model // which the path names
			}
			strict := plugintest.Strict{Vendor: k.name}
			if listed, ok := catalog.Default().Lookup(k.name, model); ok {
				strict.Model = &listed.Capabilities
			}
			if k.name == "mistral" {
				w = mistralIDs{w}
			}
			strict.Handler(allFormats).ServeHTTP(w, r)
		})))
	}
	return mux
}

// askedWeather is the question by which Open Responses expects a call of get_weather. The echo
// calls only the functions that are named.
const askedWeather = "the weather like in San Francisco?"

// mistralIDs gives the calls of an answer ids as Mistral's own are.
type mistralIDs struct{ http.ResponseWriter }

var callID = regexp.MustCompile(`"call_\w*(\w{9})"`)

func (w mistralIDs) Write(b []byte) (int, error) {
	_, err := w.ResponseWriter.Write(callID.ReplaceAll(b, []byte(`"$1"`)))
	return len(b), err
}

// agentTurns are the requests of an agent, by the endpoint of a client: after a call of a
// tool, with a text behind the output, and with what only some models take.
var agentTurns = map[string][]string{
	"/v1/messages": {
		`{"model":%q,"max_tokens":2000,"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],"messages":[
			{"role":"user","content":"Say hello."},
			{"role":"assistant","content":[{"type":"text","text":"hello","cache_control":{"type":"ephemeral"}}]},
			{"role":"user","content":"again"}]}`,
		`{"model":%q,"max_tokens":2000,"temperature":0.5,"tools":[{"name":"f","input_schema":{"type":"object","properties":{}}}],"messages":[
			{"role":"user","content":"Call f."},
			{"role":"assistant","content":[{"type":"text","text":"I call it."},{"type":"tool_use","id":"toolu_1","name":"f","input":{}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"42"},{"type":"text","text":"So?"}]}]}`,
		`{"model":%q,"max_tokens":5,"output_config":{"effort":"max"},"metadata":{"user_id":"` + strings.Repeat("u", 150) + `"},"messages":[
			{"role":"user","content":"hi"},{"role":"assistant","content":"hello"},{"role":"system","content":"Be brief."}]}`,
		`{"model":%q,"max_tokens":100,"thinking":{"type":"disabled"},"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"{"}]}`,
		`{"model":%q,"max_tokens":2000,"tool_choice":{"type":"any"},"tools":[{"name":"f","input_schema":{"type":"object","properties":{}}}],"messages":[{"role":"user","content":"Call f."}]}`,
	},
	"/v1/chat/completions": {
		`{"model":%q,"stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":100,"messages":[{"role":"user","content":"hi"}]}`,
		`{"model":%q,"max_tokens":100,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"text","text":"hello"}]},{"role":"user","content":"again"}]}`,
		`{"model":%q,"max_tokens":100,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"hello","refusal":null,"annotations":[]},{"role":"user","content":"again"}]}`,
	},
	"/v1/responses": {
		`{"model":%q,"input":[{"role":"user","content":"hi"},{"type":"function_call","call_id":"call_1","name":"f","arguments":"{}"},
			{"type":"function_call_output","call_id":"call_1","output":"42"},{"role":"user","content":"So?"}]}`,
		`{"model":%q,"input":"Call f.","tool_choice":"required","tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{}},"strict":false}]}`,
		`{"model":%q,"tools":[{"type":"tool_search","execution":"client","description":"d","parameters":{"type":"object","properties":{}}},
			{"type":"namespace","name":"mcp__crm","description":"d","tools":[{"type":"function","name":"find","description":"d","parameters":{"type":"object","properties":{}},"strict":false}]}],
			"input":[{"role":"user","content":"hi"},{"type":"function_call","call_id":"call_1","namespace":"mcp__crm","name":"find","arguments":"{}"},{"type":"function_call_output","call_id":"call_1","output":"42"},
			{"type":"tool_search_call","call_id":"call_2","execution":"client","arguments":{"query":"erp"},"status":"completed"},
			{"type":"tool_search_output","call_id":"call_2","execution":"client","status":"completed","tools":[{"type":"function","name":"book","description":"d","parameters":{"type":"object","properties":{}},"strict":false,"defer_loading":true}]},
			{"role":"user","content":"So?"}]}`,
	},
}

// reasoningModels are models that refuse what others take.
var reasoningModels = []string{"openai/gpt-5-mini", "openai/gpt-4o", "azure/gpt-5-mini", "azure/gpt-5.4", "anthropic/claude-opus-4-5", "gemini/gemini-3-pro-preview", "xai/grok-4"}

// TestStrictProviders has agents of each API go on with each kind of provider, none of
// which may refuse what it is sent.
func TestStrictProviders(t *testing.T) {
	w := startKinds(t)
	models := reasoningModels
	for _, k := range providerKinds {
		models = append(models, k.id())
	}
	for path, requests := range agentTurns {
		for i, request := range requests {
			for _, model := range models {
				status, _, body := w.ask(t, path, fmt.Sprintf(request, model))
				if status != http.StatusOK {
					t.Errorf("%s, request %d, to %s: %d %s", path, i, model, status, body)
				}
			}
		}
	}
}

// TestThreads: what Anthropic's libraries keep in a thread is sent whole after the error
// that they know.
func TestThreads(t *testing.T) {
	w := startKinds(t)
	const request = `{"model":%q,"max_tokens":9,"thread":{"type":"create"},"messages":[{"role":"user","content":"hi"}]}`
	status, _, body := w.ask(t, "/v1/messages", fmt.Sprintf(request, "gemini/gemini-2.5-flash"))
	if status != http.StatusBadRequest || gjson.GetBytes(body, "error.details.error_code").Str != "thread_unsupported_request" {
		t.Errorf("translated: %d %s", status, body)
	}
	if status, _, body := w.ask(t, "/v1/messages", fmt.Sprintf(request, "anthropic/claude-sonnet-4-5")); status != http.StatusOK {
		t.Errorf("to Anthropic: %d %s", status, body)
	}
}

// TestNativeFields: bytes that pass are changed where the provider is known to refuse them,
// with a warning, and a strict request is refused.
func TestNativeFields(t *testing.T) {
	w := startKinds(t)
	for model, request := range map[string]string{
		"mistral/any":       `{"model":%q,"stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}`,
		"openai/gpt-5-mini": `{"model":%q,"max_tokens":100,"messages":[{"role":"user","content":"hi"}]}`,
	} {
		request = fmt.Sprintf(request, model)
		if status, header, body := w.ask(t, "/v1/chat/completions", request); status != http.StatusOK || header.Get("Service-Warnings") == "" {
			t.Errorf("%s: %d %s, warnings %q", model, status, body, header["Service-Warnings"])
		}
		if status, _, body := w.ask(t, "/v1/chat/completions", request, "Service-Strict", "true"); status != http.StatusBadRequest {
			t.Errorf("%s, strictly: %d %s", model, status, body)
		}
	}
}

// TestAzureKeys: the libraries of Azure send their key in a field of their own.
func TestAzureKeys(t *testing.T) {
	w := startKinds(t)
	for path, want := range map[string]int{"/v1/chat/completions": http.StatusOK, "/v1/messages": http.StatusUnauthorized} {
		body := `{"model":"echo/echo-1","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`
		if status, _, body := w.ask(t, path, body, "Authorization", "", "Api-Key", "weir-quickstart"); status != want {
			t.Errorf("%s: %d %s, want %d", path, status, body, want)
		}
	}
}

// ask posts a request with pairs of header fields.
func (w *weir) ask(t *testing.T, path, body string, header ...string) (status int, answered http.Header, answer []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer weir-quickstart")
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return do(t, r)
}
