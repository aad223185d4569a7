package perplexity

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/plugins/translate"
)

func prepared(t *testing.T, model, fields string) (body string, warnings []string) {
	t.Helper()
	req, body, p, err := plugintest.Prepare(t, Provider{}, translate.Target{Model: model}, plugintest.Request(fields), false)
	if err != nil {
		t.Fatal(err)
	}
	if got := req.URL.String() + " " + req.Header.Get("Authorization"); got != "https://example.com/v1/responses Bearer secret" {
		t.Errorf("got %s", got)
	}
	return body, p.Warnings
}

// Models are those of the API, presets, or what took the place of the models before.
func TestModel(t *testing.T) {
	const input = `"input":[{"type":"message","role":"user","content":"hi"}]`
	for model, want := range map[string]string{
		"openai/gpt-5.5":      `{"model":"openai/gpt-5.5",` + input + `}`,
		"perplexity/sonar":    `{"model":"perplexity/sonar",` + input + `}`,
		"fast":                `{"preset":"fast",` + input + `}`,
		"sonar":               `{"model":"perplexity/sonar",` + input + `,"tools":[{"type":"web_search"}]}`,
		"sonar-pro":           `{"preset":"low",` + input + `}`,
		"sonar-deep-research": `{"preset":"medium",` + input + `}`,
		"anthropic/claude":    `{"model":"anthropic/claude",` + input + `,"max_output_tokens":4096}`,
	} {
		if got, warnings := prepared(t, model, `"store":false`); got != want || len(warnings) > 0 {
			t.Errorf("%s: got %s, warnings %q\nwant %s", model, got, warnings, want)
		}
	}
}

// The API refuses every field that it does not know: nothing else is sent.
func TestPrepare(t *testing.T) {
	got, warnings := prepared(t, "m", `"instructions":"Be brief.","temperature":0.2,"top_p":0.5,"max_output_tokens":50,"parallel_tool_calls":false,
		"reasoning":{"effort":"low"},"metadata":{"k":"v"},"user":"u","stop":["x"],"top_k":5,"service_tier":"flex","include":["reasoning.encrypted_content"],
		"text":{"verbosity":"low","format":{"type":"json_schema","name":"n","strict":true,"schema":{"type":"object"}}},"tool_choice":{"type":"function","name":"f"},
		"tools":[{"type":"function","name":"f","strict":true,"parameters":{"type":"object"}},{"type":"custom","name":"c"},
			{"type":"web_search","search_context_size":"low","filters":{"allowed_domains":["a.b"],"blocked_domains":["c.d"]},
			"user_location":{"type":"approximate","city":"Paris","timezone":"Europe/Paris"}}]`)
	want := `{"model":"m","instructions":"Be brief.","input":[{"type":"message","role":"user","content":"hi"}],` +
		`"tools":[{"type":"function","name":"f","parameters":{"type":"object"},"strict":true},` +
		`{"type":"function","name":"c","parameters":{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}},` +
		`{"type":"web_search","search_context_size":"low","user_location":{"city":"Paris"},"filters":{"search_domain_filter":["a.b","-c.d"]}}],` +
		`"tool_choice":{"name":"f"},"parallel_tool_calls":false,` +
		`"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object"},"strict":true}},"reasoning":{"effort":"low"},` +
		`"max_output_tokens":50,"temperature":0.2,"top_p":0.5,"metadata":{"k":"v"}}`
	if got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if len(warnings) != 3 { // top_k, service_tier, text.verbosity
		t.Errorf("warnings %q", warnings)
	}
}

func TestInput(t *testing.T) {
	got, _ := prepared(t, "m", `"input":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"input_image","image_url":"https://x/y.png"}]},
		{"type":"reasoning","summary":[],"encrypted_content":"{\"perplexity_signature\":\"sig\"}"},
		{"type":"function_call","call_id":"1","name":"f","arguments":"{}"},
		{"type":"function_call_output","call_id":"1","output":[{"type":"input_text","text":"o"}]}]`)
	want := `{"model":"m","input":[{"type":"message","role":"system","content":"s"},` +
		`{"type":"message","role":"user","content":[{"type":"input_image","image_url":"https://x/y.png"}]},` +
		`{"type":"function_call","call_id":"1","name":"f","arguments":"{}","thought_signature":"sig"},` +
		`{"type":"function_call_output","call_id":"1","name":"f","output":"o"}]}`
	if got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// The API refuses an effort above "xhigh".
func TestFailures(t *testing.T) { plugintest.Failures(t, Provider{}, translate.Target{}) }

func TestHighestEffort(t *testing.T) {
	got, _ := prepared(t, "m", `"input":"hi","reasoning":{"effort":"max"}`)
	if !strings.Contains(got, `"reasoning":{"effort":"xhigh"}`) {
		t.Errorf("got %s", got)
	}
}

func TestRefused(t *testing.T) {
	for fields, param := range map[string]string{
		`"input":[{"role":"user","content":[{"type":"input_file","file_url":"https://x/y.pdf"}]}]`:                                                                                  "input[0].content[0]",
		`"input":[{"role":"user","content":[{"type":"input_image","file_id":"f"}]}]`:                                                                                                "input[0].content[0]",
		`"input":[{"type":"function_call","call_id":"1","name":"f"},{"type":"function_call_output","call_id":"1","output":[{"type":"input_image","image_url":"https://x/y.png"}]}]`: "input[1].output[0]",
		`"tool_choice":"required"`: "tool_choice",
	} {
		plugintest.Refuses(t, Provider{}, translate.Target{Model: "m"}, fields, param)
	}
}

func TestErrors(t *testing.T) { plugintest.Errors(t, Provider{}) }

func TestDocumentedValues(t *testing.T) {
	plugintest.Documented(t, Provider{}, translate.Target{Model: "m"})
}
