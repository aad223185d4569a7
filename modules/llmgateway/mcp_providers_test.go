package llmgateway

import (
	"context"
	"encoding/json"
	"io"
	"testing"

	"github.com/weirhq/weir/plugins/anthropic"
	"github.com/weirhq/weir/plugins/bedrock"
	"github.com/weirhq/weir/plugins/chat"
	"github.com/weirhq/weir/plugins/cohere"
	"github.com/weirhq/weir/plugins/gemini"
	"github.com/weirhq/weir/plugins/translate"
	"github.com/weirhq/weir/plugins/vertex"
)

// What a provider is sent when its model goes on with the results of MCP tools is what a
// client would send that offers the same functions and calls them itself.
func TestEveryProviderGoesOnAsWithFunctions(t *testing.T) {
	const (
		schema = `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`
		before = `{"role":"user","content":"1+2, 3+4?"}`
		ours   = `{"model":"m","max_output_tokens":100,"input":[` + before + `],"tools":[{"type":"mcp","server_label":"calc","server_url":"https://example.com"}]}`
		theirs = `{"model":"m","max_output_tokens":100,"tools":[{"type":"function","name":"mcp_calc_add","description":"Adds.","parameters":` + schema + `}],"input":[` + before + `,
			{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Let me see."}]},
			{"type":"function_call","call_id":"mcp_1","name":"mcp_calc_add","arguments":"{\"a\":1}"},
			{"type":"function_call","call_id":"mcp_2","name":"mcp_calc_add","arguments":"{\"a\":3}"},
			{"type":"function_call_output","call_id":"mcp_1","output":"3"},
			{"type":"function_call_output","call_id":"mcp_2","output":"7"}]}`
	)
	items := []json.RawMessage{
		json.RawMessage(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Let me see."}]}`),
		json.RawMessage(`{"id":"mcp_1","type":"mcp_call","server_label":"calc","name":"add","arguments":"{\"a\":1}","output":"3","error":null}`),
		json.RawMessage(`{"id":"mcp_2","type":"mcp_call","server_label":"calc","name":"add","arguments":"{\"a\":3}","output":"7","error":null}`),
	}
	providers := map[string]translate.Provider{
		"anthropic": anthropic.Provider{}, "bedrock": new(bedrock.Provider), "cohere": cohere.Provider{}, "gemini": gemini.Provider{},
		"vertex": vertex.Provider{},
	}
	for _, vendor := range []string{"compatible", "mistral", "groq", "deepseek", "xai", "ollama", "openrouter"} {
		providers[vendor] = chat.For(vendor)
	}
	for name, provider := range providers {
		t.Run(name, func(t *testing.T) {
			mcp, err := translate.ParseMCP([]byte(ours), map[string][]translate.Tool{"calc": {{
				Description: "Adds.", Parameters: json.RawMessage(schema), MCP: &translate.MCPTool{Server: "calc", Name: "add"},
			}}})
			if err != nil {
				t.Fatal(err)
			}
			if err := mcp.Continue(items, func(string) (string, bool) { return "", false }); err != nil {
				t.Fatal(err)
			}
			functions, err := translate.ParseRequest([]byte(theirs))
			if err != nil {
				t.Fatal(err)
			}
			var sent [2]string
			for i, p := range []*translate.Request{mcp, functions} {
				at := translate.Target{Model: "m", BaseURL: "https://example.com", Key: "secret"}
				req, err := provider.Prepare(context.Background(), p, at)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(req.Body)
				if err != nil || len(p.Warnings) > 0 {
					t.Fatalf("%v, warnings %q", err, p.Warnings)
				}
				sent[i] = string(body)
			}
			if sent[0] != sent[1] {
				t.Errorf("the provider gets\n%s\nand of a client with functions\n%s", sent[0], sent[1])
			}
		})
	}
}
