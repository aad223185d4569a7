package llmencoder

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// TestNoCredentials logs a request in the shapes that Caddy logs one, and looks
// for the canary in each.
func TestNoCredentials(t *testing.T) {
	const canary = "c4n4ry"
	r := httptest.NewRequest("POST", "/v1beta/models/m:generateContent?alt=sse&key="+canary, nil)
	for _, name := range []string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "Service-Auth", "Helicone-Auth", "Cookie"} {
		r.Header.Set(name, "Bearer "+canary)
	}
	r.Header.Set("User-Agent", "visible-agent")
	r = r.WithContext(context.WithValue(r.Context(), caddyhttp.VarsCtxKey, map[string]any{}))
	loggable := caddyhttp.LoggableHTTPRequest{Request: r, ShouldLogCredentials: true}

	ctx, cancel := caddy.NewContext(caddy.Context{Context: context.Background()})
	defer cancel()
	e := new(Encoder)
	if err := e.Provision(ctx); err != nil {
		t.Fatal(err)
	}
	for name, fields := range map[string][]zap.Field{
		"access log":  {zap.Object("request", loggable), zap.Object("resp_headers", caddyhttp.LoggableHTTPHeader{Header: r.Header})},
		"rewrite log": {zap.Object("request", loggable), zap.String("uri", r.RequestURI)},
		"header log":  {zap.Object("headers", caddyhttp.LoggableHTTPHeader{Header: r.Header, ShouldLogCredentials: true})},
	} {
		t.Run(name, func(t *testing.T) {
			line, err := e.EncodeEntry(zapcore.Entry{Message: "handled"}, fields)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(line.String(), canary) {
				t.Errorf("the canary is in %s", line)
			}
			if name != "header log" && !strings.Contains(line.String(), "alt=sse") {
				t.Errorf("the rest of the URI is not in %s", line)
			}
			if !strings.Contains(line.String(), "visible-agent") {
				t.Errorf("other headers are not in %s", line)
			}
		})
	}
	t.Run("fields added to a logger", func(t *testing.T) {
		clone := e.Clone()
		zap.Object("request", loggable).AddTo(clone)
		line, err := clone.EncodeEntry(zapcore.Entry{Message: "handled"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(line.String(), canary) {
			t.Errorf("the canary is in %s", line)
		}
	})
}
