package mcpclient

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type sum struct {
	A int `json:"a"`
	B int `json:"b"`
}

// calculator is a server of the official SDK over Streamable HTTP.
func calculator(options *mcp.StreamableHTTPOptions) http.Handler {
	server := newCalculator()
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, options)
}

// newCalculator is a server with the tools add, refuse and picture.
func newCalculator() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "calculator", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "add", Description: "Adds.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, _ *mcp.CallToolRequest, s sum) (*mcp.CallToolResult, map[string]int, error) {
			return nil, map[string]int{"sum": s.A + s.B}, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "refuse"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return nil, nil, fmt.Errorf("not today")
	})
	mcp.AddTool(server, &mcp.Tool{Name: "picture"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{
			&mcp.TextContent{Text: "a cat"}, &mcp.ImageContent{MIMEType: "image/png", Data: []byte("x")},
			&mcp.ResourceLink{URI: "https://example.com/cat", Name: "cat"},
		}}, nil, nil
	})
	return server
}

// A server that speaks the transport of 2024 alone is spoken to, but not at another host.
func TestOlderTransport(t *testing.T) {
	server := newCalculator()
	s := open(t, mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return server }, nil), nil)
	tools, err := s.Tools(t.Context(), 10, anyLength)
	if err != nil || len(tools) != 3 {
		t.Fatalf("%v %v", tools, err)
	}
	if result, err := s.Call(t.Context(), "add", json.RawMessage(`{"a":1,"b":2}`)); err != nil || result != `{"sum":3}` {
		t.Errorf("%s %v", result, err)
	}

	asked := false
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer elsewhere.Close()
	s = open(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: endpoint\ndata: %s/messages\n\n", elsewhere.URL)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}), nil)
	if _, err := s.Tools(t.Context(), 10, anyLength); err == nil || asked {
		t.Errorf("the tools of a server that names another host: %v, asked %v", err, asked)
	}
}

func anyLength(int) error { return nil }

func open(t *testing.T, handler http.Handler, header http.Header) *Session {
	t.Helper()
	server := httptest.NewServer(handler)
	s := Open(Server{URL: server.URL, Header: header, Timeout: time.Second})
	t.Cleanup(func() {
		s.Close()
		<-s.transport.ctx.Done()
		server.CloseClientConnections()
		server.Close()
		connections.CloseIdleConnections()
	})
	return s
}

// A server is spoken to whether it keeps sessions, answers in JSON or in events.
func TestOfficialServer(t *testing.T) {
	for name, options := range map[string]*mcp.StreamableHTTPOptions{
		"events with sessions": nil, "JSON": {JSONResponse: true}, "stateless": {Stateless: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, calculator(options), nil)
			tools, err := s.Tools(t.Context(), 3, anyLength)
			if err != nil || len(tools) != 3 || tools[0].Name != "add" || tools[0].Description != "Adds." || !tools[0].ReadOnly || tools[1].ReadOnly ||
				!strings.Contains(string(tools[0].Schema), `"properties"`) {
				t.Fatalf("%+v, %v", tools, err)
			}
			for _, c := range []struct{ tool, arguments, want, failure string }{
				{"add", `{"a":1,"b":2}`, `{"sum":3}`, ""},
				{"picture", `{}`, "a cat\n[image/png, left out]\nhttps://example.com/cat", ""},
				{"refuse", `{}`, "", "not today"},
				{"none", `{}`, "", "The MCP server answered with the error -32602"},
			} {
				got, err := s.Call(t.Context(), c.tool, json.RawMessage(c.arguments))
				if got != c.want || (err == nil) != (c.failure == "") || err != nil && !strings.HasPrefix(err.Error(), c.failure) {
					t.Errorf("%s: %q, %v", c.tool, got, err)
				}
			}
			if _, err := s.Tools(t.Context(), 2, anyLength); err == nil || err.Error() != "The MCP server has more than 2 tools." {
				t.Errorf("with 3 tools of 2: %v", err)
			}
		})
	}
}

// A server may close the stream of a call and answer when the client comes back
// (SEP-1699).
func TestServerThatClosesStreams(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "slow", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "slow"}, func(_ context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		r.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{RetryAfter: 10 * time.Millisecond})
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "at last"}}}, nil, nil
	})
	s := open(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{EventStore: mcp.NewMemoryEventStore(nil)}), nil)
	if got, err := s.Call(t.Context(), "slow", json.RawMessage(`{}`)); got != "at last" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// A server whose list of tools never ends is not asked forever.
func TestEndlessList(t *testing.T) {
	var asked atomic.Int64
	server := mcp.NewServer(&mcp.Implementation{Name: "endless", Version: "1"}, &mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}})
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			if method == "tools/list" {
				return &mcp.ListToolsResult{Tools: []*mcp.Tool{}, NextCursor: fmt.Sprint(asked.Add(1))}, nil
			}
			return next(ctx, method, r)
		}
	})
	s := open(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{JSONResponse: true}), nil)
	s.timeout = time.Minute
	if _, err := s.Tools(t.Context(), 10, anyLength); err == nil || err.Error() != "The MCP server takes more than 1000 requests." || asked.Load() > maxRequests {
		t.Errorf("after %d requests: %v", asked.Load(), err)
	}
}

// A server that fails, in whatever way, fails in time, within the bound of bytes, and in
// words that its reader may see.
func TestFailingServers(t *testing.T) {
	flood := strings.Repeat("x", 64<<10)
	written := make(chan int64, 1)
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request)
		want   string
	}{
		"hangs":   {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "The MCP server did not answer within 1s."},
		"dies":    {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "The MCP server could not be reached."},
		"refuses": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "who are you", http.StatusUnauthorized) }, "The MCP server answered with the status 401."},
		"redirects": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
		}, "The MCP server answered with the status 307."},
		"no protocol": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<html>")
		}, "The MCP server broke off, or its answer is none of the protocol."},
		"floods": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			var n int64
			for n < 100<<20 {
				m, err := io.WriteString(w, flood)
				if n += int64(m); err != nil {
					break
				}
			}
			select {
			case written <- n:
			default:
			}
		}, "The MCP server's answer is over 1048576 bytes long."},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.ReadAll(r.Body)
				c.answer(w, r)
			}), nil)
			if _, err := s.Tools(t.Context(), 10, anyLength); err == nil || err.Error() != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
	if n := <-written; n > 32<<20 {
		t.Errorf("%d bytes were read of a server that floods", n)
	}
}

// The header goes to the server, and does not replace what the protocol needs.
func TestHeader(t *testing.T) {
	calculator := calculator(nil)
	var got http.Header
	s := open(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		calculator.ServeHTTP(w, r)
	}), http.Header{"Authorization": {"Bearer token"}, "X-Tenant": {"7"}, "Content-Type": {"text/plain"}})
	if _, err := s.Tools(t.Context(), 10, anyLength); err != nil {
		t.Fatal(err)
	}
	if got.Get("Authorization") != "Bearer token" || got.Get("X-Tenant") != "7" || got.Get("Content-Type") != "application/json" || got.Get("Cookie") != "" {
		t.Errorf("%v", got)
	}
}

// A client that leaves cancels the call, and the session leaves nothing behind.
func TestCancel(t *testing.T) {
	calculator := calculator(nil)
	reached, ended := make(chan struct{}), make(chan struct{})
	s := open(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		if strings.Contains(string(body), "tools/call") {
			close(reached)
			<-r.Context().Done()
			close(ended)
			return
		}
		calculator.ServeHTTP(w, r)
	}), nil)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-reached
		cancel()
	}()
	if _, err := s.Call(ctx, "add", json.RawMessage(`{}`)); err == nil {
		t.Error("there was an answer")
	}
	<-ended
}
