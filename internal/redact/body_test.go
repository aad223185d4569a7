package redact

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"
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
		"a call of a tool":    `{"input":[{"type":"mcp_call","authorization":"canary-secret"},{"headers":{"a":"canary-secret"},"type":"mcp_list_tools"}]}`,
		"UTF-16":              encoded(`{"tools":[{"type":"mcp","authorization":"canary-secret"}],"a":"🔑"}`, binary.BigEndian, 2, ""),
		"UTF-16, other order": encoded(`{"mcp_servers":[{"authorization_token":"canary-secret"}]}`, binary.LittleEndian, 2, ""),
		"UTF-16 with a mark":  encoded(`{"tools":[{"type":"mcp","authorization":"canary-secret`, binary.LittleEndian, 2, "\ufeff"),
		"UTF-32":              encoded(`[{"type":"mcp","authorization":"canary-secret"}]`, binary.BigEndian, 4, ""),
		"UTF-32, other order": encoded(`[{"type":"mcp","authorization":"canary-secret"}]`, binary.LittleEndian, 4, "\ufeff"),
		"a container":         `{"tools":[{"type":"shell","environment":{"network_policy":{"domain_secrets":[{"domain":"a","name":"K","value":"canary-secret"}]}}}]}`,
		"cut in a container":  `{"tools":[{"type":"shell","environment":{"network_policy":{"domain_secrets":[{"value":"canary-secret`,
		"Azure's data":        `{"data_sources":[{"type":"azure_search","parameters":{"authentication":{"type":"api_key","key":"canary-secret"}}}]}`,
		"a secret of clients": `{"object":"realtime.session","client_secret":{"expires_at":1,"value":"ek_canary-secret"}}`,
		"a key that is made":  `{"object":"organization.admin_api_key","value" : "sk-canary-secret"}`,
		"an escaped quote":    `{"a":"\"}],\\","tools":[{"type":"mcp","authorization":"\\\"canary-secret"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			got := string(Body([]byte(body)))
			if strings.Contains(strings.ReplaceAll(got, "\x00", ""), canary) {
				t.Errorf("kept: %s", got)
			}
			if json.Valid([]byte(body)) && !json.Valid([]byte(got)) {
				t.Errorf("no longer JSON: %s", got)
			}
		})
	}
}

// encoded is a text in UTF-16 or UTF-32, after a byte order mark if there is one.
func encoded(text string, order binary.AppendByteOrder, width int, mark string) string {
	var b []byte
	for _, r := range mark + text {
		if width == 4 {
			b = order.AppendUint32(b, uint32(r))
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			b = order.AppendUint16(b, unit)
		}
	}
	return string(b)
}

// A body in UTF-16 stays readable, without its credentials.
func TestBodyInUTF16(t *testing.T) {
	const text = `{"tools":[{"type":"mcp","authorization":%s}],"a":"\u00e9 é 🔑"}`
	got := string(Body([]byte(encoded(fmt.Sprintf(text, `"canary"`), binary.LittleEndian, 2, ""))))
	if want := fmt.Sprintf(text, "null"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestBodyLeavesTheRest(t *testing.T) {
	for _, body := range []string{
		`{"messages":[{"role":"user","content":"the \"mcp\" server, authorization"}],"headers":{"a":1}}`,
		`{"tools":[{"type":"function","parameters":{"properties":{"authorization":{"type":"string"},"headers":{}}}},{"type":"mcp","server_label":"a"}]}`,
		`{"output":[{"type":"mcp_call","arguments":"{\"authorization\":\"a\"}"}],"caf\u0065":1}`,
		`{"tools":[{"type":"mcp","server_url":"https:\/\/a.b/mcp"},{"type":"image","url":"https://a.b?c=d"}]}`,
		`{"content":[{"type":"mcp_tool_use","input":{"authorization":"a","api_key":"b"}},{"type":"mcp_list_tools","tools":[{"input_schema":{"properties":{"token":{}}}}]}]}`,
		encoded(`{"tools":[{"type":"mcp","server_label":"a"}]}`, binary.LittleEndian, 2, ""), "\x00\x00\x00", "\xff\xfe", "{\x00",
		`{"a":"\"data_sources\"","authentication":{"type":"object","properties":{"key":{"type":"string"}}},"data_sources":[{"value":"sky"}]}`,
		`{"value":"a","domain_secrets":[{"name":"A"}],"data_sources":[{"parameters":{"key":"a"}}],"text":"sk-1"}`,
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
