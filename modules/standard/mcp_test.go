package standard

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tidwall/gjson"
)

// bearer sends a key with each request.
type bearer string

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// An agent asks the MCP server of a site. It sees the records of its organisation, and content if its
// key may.
func TestMCPServer(t *testing.T) {
	s := serve(t)
	const secret = "the answer to everything"
	if a := s.send(http.MethodPost, "/v1/responses", "walker-root", jsonType, []byte(`{"model":"echo/echo-1","input":"`+secret+`"}`)); a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	s.flush()
	for _, c := range []struct {
		key     string
		records int64
		content bool
	}{{"walker-root", 1, true}, {"walker-viewer", 1, false}, {"walker-other", 0, false}} {
		session, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{
			Endpoint: s.url + "/mcp", HTTPClient: &http.Client{Transport: bearer(c.key)}, DisableStandaloneSSE: true,
		}, nil)
		if err != nil {
			t.Fatal(c.key, err)
		}
		call := func(name, arguments string) (text string, failed bool) {
			t.Helper()
			result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: json.RawMessage(arguments)})
			if err != nil {
				t.Fatalf("%s: %s: %v", c.key, name, err)
			}
			return result.Content[0].(*mcp.TextContent).Text, result.IsError
		}
		text, failed := call("requests", `{"filter":"model=echo-1","limit":1,"sort":"time"}`)
		if rows := gjson.Get(text, "#").Int(); failed || rows != c.records || strings.Contains(text, secret) {
			t.Errorf("%s: %s", c.key, text)
		}
		if id := gjson.Get(text, "0.request_id").Str; id != "" {
			if text, _ := call("request", `{"id":"`+id+`"}`); strings.Contains(text, secret) != c.content {
				t.Errorf("%s: %s", c.key, text)
			}
		}
		if text, failed := call("budgets", `{}`); failed || gjson.Get(text, "organization").Str != map[bool]string{true: "other", false: "default"}[c.key == "walker-other"] {
			t.Errorf("%s: %s", c.key, text)
		}
		if text, failed := call("spend", `{"filter":"colour=red"}`); !failed || !strings.Contains(text, "colour") {
			t.Errorf("%s: %s", c.key, text)
		}
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []struct {
		key, method, body string
		header            []string
		status            int
	}{
		{"none", "POST", "{}", nil, 401},
		{"walker-root", "GET", "", nil, 405},
		{"walker-root", "POST", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, []string{"Origin", "https://evil.example.com", "Sec-Fetch-Site", "cross-site"}, 403},
		{"walker-root", "POST", strings.Repeat("[", 1000), nil, 413},
	} {
		if a := s.send(c.method, "/mcp", c.key, jsonType, []byte(c.body), c.header...); a.status != c.status || !gjson.Get(a.body, "error.message").Exists() {
			t.Errorf("%+v: %d %s", c, a.status, a.body)
		}
	}
}
