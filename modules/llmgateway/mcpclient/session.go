// Package mcpclient lists and calls the tools of MCP servers over HTTP, within
// bounds of time and bytes. A server gets nothing but what its Server says.
package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// maxAnswer bounds each answer of a server over HTTP, in bytes.
	maxAnswer = 1 << 20
	// maxRetries is how often the client opens a stream again that the server has closed without
	// another event (SEP-1699 of MCP).
	maxRetries = 2
	// maxRequests bounds the requests of one session, also to a server whose list never ends.
	maxRequests = 1000
	// closeTimeout bounds the goodbye to a server.
	closeTimeout = 5 * time.Second
)

// Server is where the tools are.
type Server struct {
	URL string
	// Header is sent to the server alone.
	Header http.Header
	// Timeout bounds how long the list of its tools may take, and each call.
	Timeout time.Duration
}

// Tool is a tool that a server offers.
type Tool struct {
	Name, Description string
	// Schema is the JSON Schema of the arguments.
	Schema json.RawMessage
	// ReadOnly: the tool says that it changes nothing.
	ReadOnly bool
}

// Session is the connection to one server for the time of one request of a client. It
// connects when it is first used. Its methods may be called concurrently.
type Session struct {
	timeout   time.Duration
	transport *transport
	connected func() (*mcp.ClientSession, error)
	used      atomic.Bool
}

// Open returns a session. Close must follow.
func Open(server Server) *Session {
	s := &Session{timeout: server.Timeout, transport: newTransport(server)}
	s.connected = sync.OnceValues(func() (*mcp.ClientSession, error) {
		client := mcp.NewClient(&mcp.Implementation{Name: "weir", Version: "1"}, &mcp.ClientOptions{
			Capabilities: &mcp.ClientCapabilities{}, // it answers no questions of a server
		})
		session, err := client.Connect(s.transport.ctx, &mcp.StreamableClientTransport{
			Endpoint: server.URL, HTTPClient: s.transport.client, MaxRetries: maxRetries, DisableStandaloneSSE: true,
		}, nil)
		status := s.transport.status.Load()
		if err == nil || status != http.StatusBadRequest && status != http.StatusNotFound && status != http.StatusMethodNotAllowed {
			return session, err
		}
		// The server may speak the transport of 2024, whose one answer is as long as the session
		// (https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#backwards-compatibility).
		endless := *s.transport.client
		endless.Timeout = 0
		older, failed := client.Connect(s.transport.ctx, &mcp.SSEClientTransport{Endpoint: server.URL, HTTPClient: &endless}, nil)
		if failed != nil {
			s.transport.status.Store(status)
			return session, err
		}
		return older, nil
	})
	return s
}

// Close ends the session. It does not wait for the server.
func (s *Session) Close() {
	if !s.used.Load() {
		s.transport.cancel()
		return
	}
	go func() {
		late := time.AfterFunc(closeTimeout, s.transport.cancel)
		defer late.Stop()
		defer s.transport.cancel()
		if session, err := s.connected(); err == nil {
			_ = session.Close() // the server forgets it by itself
		}
	}()
}

// Tools returns the tools of the server. More than limit are an error, and so is a tool for whose
// bytes grow finds no room.
func (s *Session) Tools(ctx context.Context, limit int, grow func(bytes int) error) ([]Tool, error) {
	return within(ctx, s, func(ctx context.Context, session *mcp.ClientSession) ([]Tool, error) {
		var tools []Tool
		for t, err := range session.Tools(ctx, nil) {
			if err != nil {
				return nil, err
			}
			if len(tools) == limit {
				return nil, &failure{fmt.Sprintf("The MCP server has more than %d tools.", limit)}
			}
			schema, err := json.Marshal(t.InputSchema)
			if err != nil {
				return nil, err
			}
			if err := grow(len(t.Name) + len(t.Description) + len(schema)); err != nil {
				return nil, &failure{err.Error()}
			}
			tools = append(tools, Tool{t.Name, t.Description, schema, t.Annotations != nil && t.Annotations.ReadOnlyHint})
		}
		return tools, nil
	})
}

// Call calls a tool with a JSON object of arguments. The error is for the model and the client,
// and hides what only the gateway knows.
func (s *Session) Call(ctx context.Context, tool string, arguments json.RawMessage) (string, error) {
	return within(ctx, s, func(ctx context.Context, session *mcp.ClientSession) (string, error) {
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
		if err != nil {
			return "", err
		}
		text := textOf(result)
		if result.IsError {
			return "", &failure{text}
		}
		return text, nil
	})
}

// failure is an error that its reader may see.
type failure struct{ text string }

func (f *failure) Error() string { return f.text }

// within makes a request to the server. After the timeout it waits no longer; the request ends
// with the session at the latest.
func within[T any](ctx context.Context, s *Session, do func(context.Context, *mcp.ClientSession) (T, error)) (T, error) {
	s.used.Store(true)
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		defer cancel()
		var o outcome
		var session *mcp.ClientSession
		if session, o.err = s.connected(); o.err == nil {
			o.value, o.err = do(ctx, session)
		}
		done <- o
	}()
	select {
	case o := <-done:
		return o.value, s.readable(o.err)
	case <-ctx.Done():
		select {
		case o := <-done: // the end of the call ends the context, too
			return o.value, s.readable(o.err)
		default:
		}
		var none T
		return none, &failure{fmt.Sprintf("The MCP server did not answer within %v.", s.timeout)}
	}
}

// readable returns an error that the model and the client may read.
func (s *Session) readable(err error) error {
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	status := s.transport.status.Load()
	switch e, ok := errors.AsType[*jsonrpc.Error](err); {
	case status == 0:
		return &failure{"The MCP server could not be reached."}
	case s.transport.requests.Load() > maxRequests:
		return &failure{fmt.Sprintf("The MCP server takes more than %d requests.", maxRequests)}
	case s.transport.tooLong.Load():
		return &failure{fmt.Sprintf("The MCP server's answer is over %d bytes long.", maxAnswer)}
	case ok && e.Code != codeRejected:
		return &failure{fmt.Sprintf("The MCP server answered with the error %d: %s", e.Code, e.Message)}
	case status >= http.StatusMultipleChoices:
		return &failure{fmt.Sprintf("The MCP server answered with the status %d.", status)}
	}
	return &failure{"The MCP server broke off, or its answer is none of the protocol."}
}

// codeRejected is the code of the SDK's error for a request that it could not send.
const codeRejected = -32005

// textOf returns the result of a call as text, or its structured content as JSON.
func textOf(result *mcp.CallToolResult) string {
	var texts []string
	for _, content := range result.Content {
		switch content := content.(type) {
		case *mcp.TextContent:
			texts = append(texts, content.Text)
		case *mcp.EmbeddedResource:
			if content.Resource != nil && content.Resource.Text != "" {
				texts = append(texts, content.Resource.Text)
			}
		case *mcp.ResourceLink:
			texts = append(texts, content.URI)
		case *mcp.ImageContent:
			texts = append(texts, "["+content.MIMEType+", left out]")
		case *mcp.AudioContent:
			texts = append(texts, "["+content.MIMEType+", left out]")
		}
	}
	if len(texts) == 0 && result.StructuredContent != nil {
		structured, _ := json.Marshal(result.StructuredContent) // it was JSON
		return string(structured)
	}
	return strings.Join(texts, "\n")
}
