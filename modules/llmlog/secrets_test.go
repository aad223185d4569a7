package llmlog

import (
	"bytes"
	"fmt"
	"net/http"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// The provider gets the credentials of MCP servers, and the record does not.
func TestCredentialsOfMCPServersAreNotRecorded(t *testing.T) {
	for path, body := range map[string]string{
		"/v1/messages":         `{"model":"m","mcp_servers":[{"type":"url","url":"https://a.b","authorization_token":"canary"}],"messages":[]}`,
		"/v1/chat/completions": `{"model":"m","tools":[{"type":"mcp","authorization":"canary","headers":{"X-Key":"canary"}}],"messages":[]}`,
		"/v1/responses":        `{"model":"m","tools":[{"type":"mcp","authorization":"canary","authoriz\u0061tion":"canary"}],"input":"a"}`,
	} {
		t.Run(path, func(t *testing.T) {
			var sent bytes.Buffer
			s := serve(t, options{config: object{}, handler: caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
				_, err := sent.ReadFrom(r.Body)
				fmt.Fprintf(w, `{"tools":[{"type":"mcp","authorization":"canary"}]}`)
				return err
			})})
			s.do(http.MethodPost, path, body)
			if kept := s.record(); bytes.Contains(kept.Request.Data, []byte("canary")) || bytes.Contains(kept.Response.Data, []byte("canary")) || len(kept.Request.Data) == 0 {
				t.Errorf("kept %s and %s", kept.Request.Data, kept.Response.Data)
			}
			if sent.String() != body {
				t.Errorf("sent %s", &sent)
			}
		})
	}
}
