package llmcommand

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"
)

// maxContent is the longest content in an answer, in bytes.
const maxContent = 20 << 10

// An agent starts the command, lists its tools, which change nothing, and calls each. What Weir
// refuses, and what is no filter, is an answer that the model can read.
func TestMCP(t *testing.T) {
	asked := make(map[string]string)
	data := map[string]string{
		"/v1/metrics/query":            `{"groups":[{"key":"prefix_changed","totals":{"requests":2,"cost":0.5,"cache_loss":0.25,"errors":null}}]}`,
		"/v1/session/query":            `[{"session_id":"review-7","total_cost":1.5,"session_name":null}]`,
		"/v1/request/query-clickhouse": `[{"request_id":"a","error_message":"no such model","cost":null}]`,
		"/v1/request/a":                `{"request_id":"a","request_body":{"text":"` + strings.Repeat("é", maxContent) + `"},"response_body":{"n":1}}`,
		"/v1/key":                      `{"name":"ada","budgets":[]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		asked[r.URL.Path] = string(body)
		if answer, ok := data[r.URL.Path]; ok && r.Header.Get("Authorization") == "Bearer secret" {
			fmt.Fprintf(w, `{"data":%s,"error":null}`, answer)
			return
		}
		w.WriteHeader(http.StatusForbidden)
		io.WriteString(w, `{"data":null,"error":"the key needs the scope query"}`)
	}))
	defer server.Close()
	t.Setenv(keyEnv, "secret")
	in, question := io.Pipe()
	answer, out := io.Pipe()
	cmd := &cobra.Command{SilenceUsage: true, SilenceErrors: true}
	mcpCommand(cmd)
	cmd.SetIn(in)
	cmd.SetOut(out)
	cmd.SetArgs([]string{"--address", server.URL})
	ended := make(chan error)
	go func() { ended <- cmd.ExecuteContext(t.Context()) }()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).
		Connect(t.Context(), &mcp.IOTransport{Reader: answer, Writer: question}, nil)
	if err != nil {
		t.Fatal(err)
	}
	tools, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools.Tools {
		if !tool.Annotations.ReadOnlyHint || tool.Description == "" {
			t.Errorf("%s: %+v", tool.Name, tool)
		}
	}
	call := func(name, arguments string) string {
		t.Helper()
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: json.RawMessage(arguments)})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		text := result.Content[0].(*mcp.TextContent).Text
		if result.IsError {
			return "error: " + text
		}
		return text
	}
	for _, c := range []struct{ name, arguments, want, path, body string }{
		{
			"spend", `{"filter":"model=m cost>0.5","by":["cache_miss_reason"]}`, `[{"key":"prefix_changed","requests":2,"cost":0.5,"cache_loss":0.25}]`,
			"/v1/metrics/query", `"groupBy":"cache_miss_reason"`,
		},
		{"sessions", `{"limit":3}`, `[{"session_id":"review-7","total_cost":1.5}]`, "/v1/session/query", `"limit":3,"sort":{"total_cost":"desc"}`},
		{"requests", `{"filter":"status>=400"}`, `[{"request_id":"a","error_message":"no such model"}]`, "/v1/request/query-clickhouse", `{"status":{"gte":400}}`},
		{"budgets", `{}`, `{"name":"ada","budgets":[]}`, "/v1/key", ""},
		{"spend", `{"filter":"model"}`, "error: filter term", "", ""},
		{"spend", `{"by":["day","hour"]}`, "error: by: expected", "", ""},
		{"requests", `{"limit":1000}`, "error: limit: expected 1 to 200, not 1000", "", ""},
		{"request", `{"id":"b"}`, "the key needs the scope query", "", ""},
	} {
		if got := call(c.name, c.arguments); !strings.Contains(got, c.want) {
			t.Errorf("%s %s: %s, want %s", c.name, c.arguments, got, c.want)
		}
		if !strings.Contains(asked[c.path], c.body) {
			t.Errorf("%s %s asked %s, want %s", c.name, c.arguments, asked[c.path], c.body)
		}
	}
	if got := call("request", `{"id":"a"}`); len(got) > 2*maxContent || !strings.Contains(got, `"response_body":{"n":1}`) || !strings.Contains(got, fmt.Sprintf("of %d bytes)", 2*maxContent+len(`{"text":""}`))) {
		t.Errorf("%d bytes: %.100s", len(got), got)
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
