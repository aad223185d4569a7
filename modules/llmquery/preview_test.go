package llmquery_test

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// A preview says in a line what a call adds and what came of it, in every dialect.
func TestPreviews(t *testing.T) {
	s := newSite(t)
	long := strings.Repeat("ä long question ", 40)
	for name, c := range map[string]struct {
		dialect           plugins.Dialect
		request, response string
		want              string
	}{
		"a question": {
			plugins.Chat, `{"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"What\n is  it?"}]}`,
			`{"choices":[{"message":{"role":"assistant","content":"It is blue."}}]}`,
			`{"asked":"What is it?","results":0,"failed_results":0,"answered":"It is blue.","calls":[],"match":null}`,
		},
		"results of tools": {
			plugins.Chat, `{"messages":[{"role":"user","content":"q"},{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"Read","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"Error: no such file"},{"role":"tool","tool_call_id":"b","content":"ok"}]}`,
			`{"choices":[{"message":{"role":"assistant","tool_calls":[{"function":{"name":"Read","arguments":"{}"}},{"function":{"name":"Grep","arguments":"{}"}},{"function":{"name":"Read","arguments":"{}"}}]}}]}`,
			`{"asked":"","results":2,"failed_results":1,"answered":"","calls":[{"name":"Read","count":2},{"name":"Grep","count":1}],"match":null}`,
		},
		"Messages": {
			plugins.Messages, `{"messages":[{"role":"user","content":[{"type":"text","text":"mend it"},{"type":"text","text":"<system-reminder>x</system-reminder>"}]},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"Edit","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","is_error":true,"content":"denied"}]}]}`,
			`{"content":[{"type":"text","text":"Done."},{"type":"tool_use","id":"u","name":"Bash","input":{}}]}`,
			`{"asked":"","results":1,"failed_results":1,"answered":"Done.","calls":[{"name":"Bash","count":1}],"match":null}`,
		},
		"Responses": {
			plugins.Responses, `{"input":[{"type":"function_call_output","call_id":"c","output":"fine"}]}`,
			`{"output":[{"type":"function_call","call_id":"d","name":"look","arguments":"{}"}]}`,
			`{"asked":"","results":1,"failed_results":0,"answered":"","calls":[{"name":"look","count":1}],"match":null}`,
		},
		"a long text": {
			plugins.Chat, `{"messages":[{"role":"user","content":"` + long + `"}]}`, `no JSON`,
			`{"asked":"` + strings.ToValidUTF8(long[:160], "") + `…","results":0,"failed_results":0,"answered":"","calls":[],"match":null}`,
		},
		"nothing": {plugins.Chat, ``, ``, `{"asked":"","results":0,"failed_results":0,"answered":"","calls":[],"match":null}`},
	} {
		id := s.record("default", &storage.Record{Org: "default", Dialect: c.dialect, Model: name}, &storage.Content{
			Request: storage.Body{Type: "application/json", Data: []byte(c.request)}, Response: storage.Body{Type: "application/json", Data: []byte(c.response)},
		})
		_, answer := s.do("POST", "/v1/request/query-clickhouse", "root", `{"filter":{"request_response_rmt":{"request_id":{"equals":"`+id.String()+`"}}},"includeContent":false,"includePreview":true}`)
		if got := answer.Get("data.0.preview").Raw; got != c.want {
			t.Errorf("%s:\n%s, want\n%s", name, got, c.want)
		}
	}
	_, answer := s.do("POST", "/v1/request/search", "root", `{"filter":{"request_response_rmt":{"response_body":{"contains":"IS BLUE"}}},"includeContent":false,"includePreview":true}`)
	if got := answer.Get("data.0.preview.match").Str; got != "It is blue." {
		t.Errorf("the search shows %q", got)
	}
}
