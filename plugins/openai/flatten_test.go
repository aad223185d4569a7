package openai

import (
	"io"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/plugins/translate"
)

// grouped is a request as Codex sends it.
const grouped = `{"model":"m","stream":true,"tools":[{"type":"function","name":"f","strict":false,"parameters":{"type":"object"}},{"type":"custom","name":"patch","format":{"type":"text"}},{"type":"web_search"},
	{"type":"tool_search","execution":"client","description":"Finds tools.","parameters":{"type":"object","properties":{"query":{"type":"string"}}}},
	{"type":"namespace","name":"crm","description":"d","tools":[{"type":"function","name":"find","strict":false,"defer_loading":true,"parameters":{"type":"object","properties":{}}},{"type":"custom","name":"exec"}]}],
	"input":[{"type":"additional_tools","role":"developer","tools":[{"type":"function","name":"later","parameters":{"type":"object"}}]},
	{"role":"user","content":"hi"},
	{"type":"function_call","id":"fc_1","call_id":"a","namespace":"crm","name":"find","arguments":"{}"},{"type":"function_call_output","call_id":"a","output":"x"},
	{"type":"tool_search_call","call_id":"b","execution":"client","arguments":{"query":"erp"},"status":"completed"},
	{"type":"tool_search_output","call_id":"b","execution":"client","status":"completed","tools":[{"type":"namespace","name":"erp","tools":[{"type":"function","name":"book"}]}]}]`

// Those who speak Responses like OpenAI have no groups of tools.
func TestGroupsOfTools(t *testing.T) {
	body := plugintest.Object(t, grouped+"}")
	for baseURL, native := range map[string]bool{
		"https://api.openai.com/v1": true, "https://x.openai.azure.com/openai/v1": true,
		"http://localhost:1234/v1": false, "https://api.deepseek.com": false, "https://openrouter.ai/api/v1": false,
	} {
		if _, err := (Provider{}).PrepareNative(t.Context(), plugins.Responses, body, translate.Target{Model: "m", BaseURL: baseURL}); native != (err == nil) {
			t.Errorf("%s: got error %v", baseURL, err)
		}
	}
	for _, plain := range []string{
		`{"model":"m","input":"a \"namespace\"","tools":[{"type":"function","name":"namespace"}]}`,
		`{"model":"m","input":[{"role":"user","content":"x"}],"tools":[{"type":"tool_search"}]}`,
	} {
		if _, err := (Provider{}).PrepareNative(t.Context(), plugins.Responses, plugintest.Object(t, plain), translate.Target{Model: "m", BaseURL: "http://localhost:1234/v1"}); err != nil {
			t.Errorf("%s: %v", plain, err)
		}
	}
	for field, want := range map[string]string{
		"": "",
		`,"tool_choice":{"type":"function","namespace":"crm","name":"find"}`: `{"name":"crm__find","type":"function"}`,
		`,"tool_choice":{"type":"tool_search"}`:                              `{"name":"tool_search","type":"function"}`,
		`,"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","namespace":"crm","name":"find"},{"type":"web_search"}]}`: `{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"crm__find"},{"type":"web_search"}]}`,
	} {
		got, p := flattened(t, grouped+field+"}")
		if len(p.Warnings) > 0 || got.Get("tool_choice").Raw != want {
			t.Errorf("%s: %q, %s", field, p.Warnings, got)
		}
		wantTools := `[{"type":"function","name":"f","strict":false,"parameters":{"type":"object"}},{"type":"custom","name":"patch","format":{"type":"text"}},{"type":"web_search"},` +
			`{"type":"function","name":"tool_search","description":"Finds tools.","parameters":{"type":"object","properties":{"query":{"type":"string"}}},"strict":false},` +
			`{"type":"function","name":"crm__find","strict":false,"parameters":{"type":"object","properties":{}}},{"type":"custom","name":"crm__exec"},` +
			`{"type":"function","name":"later","parameters":{"type":"object"}},{"type":"function","name":"erp__book"}]`
		wantInput := `[{"role":"user","content":"hi"},` +
			`{"type":"function_call","id":"fc_1","call_id":"a","name":"crm__find","arguments":"{}"},{"type":"function_call_output","call_id":"a","output":"x"},` +
			`{"arguments":"{\"query\":\"erp\"}","call_id":"b","name":"tool_search","type":"function_call"},` +
			`{"call_id":"b","output":"These tools were found, and can be called now:\n- erp__book","type":"function_call_output"}]`
		if got.Get("tools").Raw != wantTools || got.Get("input").Raw != wantInput {
			t.Errorf("got  %s\n     %s\nwant %s\n     %s", got.Get("tools"), got.Get("input"), wantTools, wantInput)
		}
	}
}

func flattened(t *testing.T, request string) (gjson.Result, *translate.Request) {
	t.Helper()
	p, err := translate.ParseRequest([]byte(request))
	if err != nil {
		t.Fatal(err)
	}
	req, err := Provider{}.Prepare(t.Context(), p, translate.Target{Model: "m", BaseURL: "http://localhost:1234/v1"})
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		t.Fatal(err)
	}
	return gjson.ParseBytes(body), p
}

// The client gets its own names back.
func TestCallsOfGroupedTools(t *testing.T) {
	calls := []string{
		`{"type":"function_call","call_id":"1","name":"crm__find","arguments":"{}","status":"completed"}`,
		`{"type":"custom_tool_call","call_id":"2","name":"crm__exec","input":"ls","status":"completed"}`,
		`{"type":"function_call","call_id":"3","name":"tool_search","arguments":"{\"query\":\"x\"}","status":"completed"}`,
		`{"type":"custom_tool_call","call_id":"4","name":"patch","input":"p","status":"completed"}`,
	}
	_, p := flattened(t, grouped+"}")
	var sink strings.Builder
	a := translate.NewAssembler(p, &sink, translate.Options{})
	(&decoder{a: a}).object([]byte(`{"id":"r","model":"m","status":"completed","output":[` + strings.Join(calls, ",") + `]}`))
	sink.Write(a.End())
	if _, err := plugintest.Check([]byte(sink.String())); err != nil {
		t.Error(err)
	}
	var got []string
	for _, v := range gjson.GetBytes(a.Response(), "output").Array() {
		got = append(got, strings.Join([]string{v.Get("type").Str, v.Get("namespace").Str, v.Get("name").Str, v.Get("arguments").String(), v.Get("input").Str}, " "))
	}
	if want := `function_call crm find {} ; custom_tool_call crm exec  ls; tool_search_call   {"query":"x"} ; custom_tool_call  patch  p`; strings.Join(got, "; ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "; "), want)
	}
}
