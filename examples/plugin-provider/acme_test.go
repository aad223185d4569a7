package acme

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/plugins/translate"
)

var target = translate.Target{Model: "anvil-1", BaseURL: "https://api.acme.example", Key: "secret"}

func TestFixtures(t *testing.T) {
	plugintest.Run(t, Provider{}, target, plugintest.Fixtures(t, "testdata"))
}

func FuzzDecode(f *testing.F) {
	plugintest.Fuzz(f, Provider{}, plugintest.Fixtures(f, "testdata"), nil)
}

func TestErrors(t *testing.T) {
	plugintest.Errors(t, Provider{})
	e := Provider{}.Error(&http.Response{
		StatusCode: http.StatusBadRequest,
		Body:       io.NopCloser(strings.NewReader(`{"error":{"code":"too_long","message":"Over 128000 tokens."}}`)),
	})
	if e.Status != 400 || e.Code != "context_length_exceeded" || e.Message != "Over 128000 tokens." {
		t.Errorf("got %+v", e)
	}
}

func TestPrepare(t *testing.T) {
	p, err := translate.ParseRequest([]byte(`{
		"model": "anvil-1", "instructions": "Be brief.", "stream": true, "max_output_tokens": 50, "temperature": 0.2, "top_p": 0.5,
		"input": [
			{"role": "user", "content": "Drop it on Tuesday."},
			{"type": "function_call", "call_id": "c1", "name": "drop", "arguments": "{\"day\":\"Tuesday\"}"},
			{"type": "custom_tool_call", "call_id": "c2", "name": "note", "input": "dropped"},
			{"type": "function_call_output", "call_id": "c1", "output": "done"},
			{"type": "custom_tool_call_output", "call_id": "c2", "output": "kept"}
		],
		"tools": [{"type": "function", "name": "drop", "parameters": {"type": "object"}}, {"type": "custom", "name": "note"}],
		"tool_choice": {"type": "function", "name": "drop"}
	}`))
	if err != nil {
		t.Fatal(err)
	}
	req, err := Provider{Project: "road"}.Prepare(context.Background(), p, target)
	if err != nil {
		t.Fatal(err)
	}
	if req.URL.String() != "https://api.acme.example/generate" || req.Header.Get("Acme-Key") != "secret" || req.Header.Get("Acme-Project") != "road" {
		t.Errorf("sent to %s with %v", req.URL, req.Header)
	}
	var got, want any
	if err := json.NewDecoder(req.Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(`{
		"model": "anvil-1", "stream": true, "limit": 50, "temperature": 0.2, "choice": "required",
		"turns": [
			{"from": "system", "text": "Be brief."},
			{"from": "user", "text": "Drop it on Tuesday."},
			{"from": "model", "calls": [
				{"index": 0, "id": "c1", "tool": "drop", "input": "{\"day\":\"Tuesday\"}"},
				{"index": 1, "id": "c2", "tool": "note", "input": "{\"input\":\"dropped\"}"}
			]},
			{"from": "tools", "results": [{"call": "c1", "text": "done"}, {"call": "c2", "text": "kept"}]}
		],
		"tools": [{"name": "drop", "input": {"type": "object"}}]
	}`), &want); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if want := []string{"top_p: not supported by the provider, left out"}; !slices.Equal(p.Warnings, want) {
		t.Errorf("the client is warned of %q, want %q", p.Warnings, want)
	}
}
