package compat

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/llmgateway/mcpclient"
)

// beMCPClient makes the test binary a client of the MCP server that its last argument names.
const beMCPClient = "COMPAT_BE_MCP_CLIENT"

// callMCPTools calls each tool of a server once.
func callMCPTools(address string) error {
	session := mcpclient.Open(mcpclient.Server{URL: address, Timeout: patience})
	tools, err := session.Tools(context.Background(), 100, func(int) error { return nil })
	for _, tool := range tools {
		_, failed := session.Call(context.Background(), tool.Name, json.RawMessage(`{"a": 1, "b": 2}`))
		if err == nil && failed != nil {
			err = fmt.Errorf("%s: %w", tool.Name, failed)
		}
	}
	return err
}

// The gateway's client of MCP servers passes the conformance tests of the protocol's authors
// (https://github.com/modelcontextprotocol/conformance) for what it does. It has nobody to ask
// what a server wants to know, and gets its tokens from the caller: docs/judges.md.
func TestMCPConformance(t *testing.T) {
	if !*withClients {
		t.Skip("the conformance tests need Node.js: see README.md, then go test ./test/compat -compat")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	judge, err := filepath.Abs("node/node_modules/@modelcontextprotocol/conformance/dist/index.js")
	if err != nil {
		t.Fatal(err)
	}
	for _, scenario := range []string{"initialize", "tools_call", "sse-retry"} {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			command := exec.CommandContext(ctx, "node", judge, "client", "--command", self, "--scenario", scenario)
			command.Env, command.Dir = append(os.Environ(), beMCPClient+"=1"), t.TempDir()
			out, err := command.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "0 failed, 0 warnings") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// The MCP server of a site, and that of `weir mcp`, pass those of their tests that need no server of
// their own making (a tool `test_simple_text`, prompts, resources), nor one without a key, which a
// page of the web could reach by a name of its own. The tests send no key: a proxy adds it. They
// speak HTTP alone: a bridge passes it on to `weir mcp`.
func TestMCPServerConformance(t *testing.T) {
	if !*withClients {
		t.Skip("the conformance tests need Node.js: see README.md, then go test ./test/compat -compat")
	}
	judge, err := filepath.Abs("node/node_modules/@modelcontextprotocol/conformance/dist/index.js")
	if err != nil {
		t.Fatal(err)
	}
	w := startWeir(t, strings.NewReader(`{
	admin 127.0.0.1:{$WEIR_ADMIN_PORT}
	persist_config off
	llm {
		store sqlite {$WEIR_DATA}/weir.db
		key k
	}
}
http://:{$WEIR_PORT} {
	bind 127.0.0.1
	llm_mcp_server
	llm_query
}`))
	site, err := url.Parse(w.url)
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, server := range map[string]http.Handler{
		"llm_mcp_server": &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(site)
			r.Out.Header.Set("Authorization", "Bearer k")
		}},
		"weir mcp": &mcpBridge{start: func() *exec.Cmd {
			command := exec.CommandContext(t.Context(), program, "mcp", "--address", w.url)
			command.Env = append(os.Environ(), beWeir+"=1", "WEIR_API_KEY=k")
			return command
		}},
	} {
		front := httptest.NewServer(server)
		defer front.Close()
		for _, scenario := range []string{"server-initialize", "ping", "tools-list"} {
			t.Run(name+" "+scenario, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				command := exec.CommandContext(ctx, "node", judge, "server", "--url", front.URL+"/mcp", "--scenario", scenario)
				command.Dir = t.TempDir()
				out, err := command.CombinedOutput()
				if err != nil || !strings.Contains(string(out), "0 failed, 0 warnings") {
					t.Errorf("%v\n%s", err, out)
				}
			})
		}
	}
}

// mcpBridge passes messages on to an MCP server that reads its standard input, a new one for each
// session.
type mcpBridge struct {
	start func() *exec.Cmd

	mu  sync.Mutex
	in  io.Writer // of the server that runs
	out *bufio.Reader
}

func (b *mcpBridge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost { // there are no events
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	answer, err := b.pass(r.Body)
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadGateway)
	case answer == nil:
		w.WriteHeader(http.StatusAccepted)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(answer)
	}
}

// pass returns the answer to a message, nil if it wants none.
func (b *mcpBridge) pass(body io.Reader) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var message bytes.Buffer
	raw, err := io.ReadAll(body)
	if err = errors.Join(err, json.Compact(&message, raw)); err != nil {
		return nil, err
	}
	if gjson.GetBytes(raw, "method").Str == "initialize" {
		command := b.start()
		in, err := command.StdinPipe()
		if err != nil {
			return nil, err
		}
		out, err := command.StdoutPipe()
		if err != nil {
			return nil, err
		}
		if err := command.Start(); err != nil {
			return nil, err
		}
		b.in, b.out = in, bufio.NewReader(out)
	}
	if _, err := fmt.Fprintf(b.in, "%s\n", &message); err != nil || !gjson.GetBytes(raw, "id").Exists() {
		return nil, err
	}
	return b.out.ReadBytes('\n')
}
