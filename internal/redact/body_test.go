package redact

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

const canary = "canary-secret"

// Secrets of MCP servers are removed wherever a vendor's format has them, and however they
// are written.
func TestBodyRemovesTheCredentialsOfMCPServers(t *testing.T) {
	for name, body := range map[string]string{
		"Messages":            `{"mcp_servers":[{"type":"url","url":"https://a.b","authorization_token":"canary-secret","name":"a"}],"messages":[]}`,
		"Responses":           `{"tools":[{"type":"mcp","authorization":"canary-secret","server_label":"a","headers":{"X-Key":"canary-secret"}}]}`,
		"user of an address":  `{"tools":[{"type":"mcp","server_url":"https://ada:canary-secret@a.b/mcp"}]}`,
		"query of an address": `{"mcp_servers":[{"type":"url","url":"https:\/\/a.b?key=canary-secret"}]}`,
		"escaped address":     `{"tools":[{"type":"mcp","server_url":"https://a.b\u003fkey=canary-secret"}]}`,
		"type at the end":     `{"tools":[{"headers":{"a":["canary-secret",{"b":1}]},"authorization" : "canary-secret" , "type":"mcp"}]}`,
		"duplicate keys":      `{"tools":[{"type":"mcp","authorization":"canary-secret","authorization":"canary-secret","type":"function"}]}`,
		"duplicate lists":     `{"tools":[],"tools":[{"type":"mcp","authorization":"canary-secret"}]}`,
		"escaped key":         `{"tools":[{"type":"mcp","\u0061uthoriz\u0061tion":"canary-secret"}]}`,
		"escaped type":        `{"tools":[{"ty\u0070e":"\u006dcp","authorization":"canary-secret"}]}`,
		"escaped list":        `{"mcp\u005Fservers":[{"authorization_token":"canary-secret"}]}`,
		"another letter case": `{"Tools":[{"Type":"mcp","Authorization":"canary-secret"}]}`,
		"in an item":          `{"input":[{"type":"additional_tools","tools":[{"type":"mcp","authorization":"canary-secret"}]}]}`,
		"Interactions":        `{"tools":[{"type":"mcp_server","headers":{"Authorization":"canary-secret"}}]}`,
		"one server":          `{"mcp_servers":{"a":1,"api_key":"canary-secret"}}`,
		"cut in the secret":   `{"tools":[{"type":"mcp","authorization":"canary-secret`,
		"cut before the type": `{"stop":"\u0063","tools":[{"authorization":"canary-secret","server`,
		"lines":               "{\"type\":\"session.update\"}\n{\"tools\":[{\"type\":\"mcp\",\"authorization\":\"canary-secret\"}]}\n",
		"events":              "event: a\ndata: {\"tools\":[{\"type\":\"mcp\",\"authorization\":\"canary-secret\"}]}\n\n",
		"an escaped quote":    `{"a":"\"}],\\","tools":[{"type":"mcp","authorization":"\\\"canary-secret"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			got := string(Body([]byte(body)))
			if strings.Contains(got, canary) {
				t.Errorf("kept: %s", got)
			}
			if json.Valid([]byte(body)) && !json.Valid([]byte(got)) {
				t.Errorf("no longer JSON: %s", got)
			}
		})
	}
}

func TestBodyLeavesTheRest(t *testing.T) {
	for _, body := range []string{
		`{"messages":[{"role":"user","content":"the \"mcp\" server, authorization"}],"headers":{"a":1}}`,
		`{"tools":[{"type":"function","parameters":{"properties":{"authorization":{"type":"string"},"headers":{}}}},{"type":"mcp","server_label":"a"}]}`,
		`{"output":[{"type":"mcp_call","arguments":"{\"authorization\":\"a\"}"}],"caf\u0065":1}`,
		`{"tools":[{"type":"mcp","server_url":"https:\/\/a.b/mcp"},{"type":"image","url":"https://a.b?c=d"}]}`,
		"", "{", `"mcp"`, `}]"mcp"`, "\x00\"mcp\"\xff",
	} {
		if got := Body([]byte(body)); string(got) != body {
			t.Errorf("Body(%q) = %q", body, got)
		}
	}
	deep := []byte(strings.Repeat("[", maxDepth+1) + `"mcp"`)
	if Body(deep) != nil {
		t.Error("a body that is nested too deeply is kept")
	}
}

func FuzzBody(f *testing.F) {
	f.Add([]byte(`{"tools":[{"type":"mcp","authorization":"a"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		clean := Body(body)
		if json.Valid(body) && clean != nil && !json.Valid(clean) {
			t.Errorf("%q became %q", body, clean)
		}
		if again := Body(clean); !bytes.Equal(again, clean) && json.Valid(body) {
			t.Errorf("%q became %q, and then %q", body, clean, again)
		}
	})
}

func BenchmarkBody(b *testing.B) {
	text := strings.Repeat(`{"role":"user","content":"words and \"quotes\",\nand lines"},`, 1<<14)
	for name, body := range map[string]string{
		"without a sign": `{"messages":[` + text + `{}]}`,
		"with":           `{"messages":[` + text + `{}],"tools":[{"type":"mcp","authorization":"a"}]}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				Body([]byte(body)[:len(body):len(body)])
			}
		})
	}
}
