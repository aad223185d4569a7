package standard

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/weirhq/weir/modules/llmencoder"
)

// TestLogsHaveNoCredentials logs a request in the shapes that Caddy logs one, and looks
// for the canary in each.
func TestLogsHaveNoCredentials(t *testing.T) {
	const canary = "c4n4ry"
	r := httptest.NewRequest("POST", "/v1beta/models/m:generateContent?alt=sse&key="+canary, nil)
	for _, name := range []string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "Service-Auth", "Helicone-Auth", "Cookie", "Sec-Websocket-Protocol", "Ocp-Apim-Subscription-Key"} {
		r.Header.Set(name, "Bearer "+canary)
	}
	for _, name := range []string{"Location", "Referer", "X-Goog-Upload-Url"} {
		r.Header.Set(name, "https://generativelanguage.googleapis.com/upload/v1beta/files?upload_id=1&key="+canary)
	}
	r.Header.Set("User-Agent", "visible-agent")
	r = r.WithContext(context.WithValue(r.Context(), caddyhttp.VarsCtxKey, map[string]any{}))
	loggable := caddyhttp.LoggableHTTPRequest{Request: r, ShouldLogCredentials: true}

	ctx, cancel := caddy.NewContext(caddy.Context{Context: context.Background()})
	defer cancel()
	e := new(llmencoder.Encoder)
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

// TestFieldsOfLogs: filters that are configured come besides, and in place of nothing.
func TestFieldsOfLogs(t *testing.T) {
	const canary = "c4n4ry"
	for name, config := range map[string]string{
		"in the Caddyfile": "llm filter {\n wrap json\n request>headers rename h\n request>headers>User-Agent delete\n request>uri rename u\n request>host delete\n}",
		"in JSON":          "",
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest("POST", "http://hidden/x?alt=sse&key="+canary, nil)
			r.Header = http.Header{"X-Api-Key": {canary}, "User-Agent": {"hidden"}, "Accept": {"visible"}}
			r = r.WithContext(context.WithValue(r.Context(), caddyhttp.VarsCtxKey, map[string]any{}))
			e := new(llmencoder.Encoder)
			if config != "" {
				if err := e.UnmarshalCaddyfile(caddyfile.NewTestDispenser(config)); err != nil {
					t.Fatal(err)
				}
			} else {
				e.FieldsRaw = caddy.ModuleMap{
					"request>headers": json.RawMessage(`{"filter":"rename","name":"h"}`), "request>headers>User-Agent": json.RawMessage(`{"filter":"delete"}`),
					"request>uri": json.RawMessage(`{"filter":"rename","name":"u"}`), "request>host": json.RawMessage(`{"filter":"delete"}`),
				}
			}
			ctx, cancel := caddy.NewContext(caddy.Context{Context: t.Context()})
			defer cancel()
			if err := e.Provision(ctx); err != nil {
				t.Fatal(err)
			}
			line, err := e.EncodeEntry(zapcore.Entry{}, []zap.Field{zap.Object("request", caddyhttp.LoggableHTTPRequest{Request: r, ShouldLogCredentials: true})})
			if err != nil {
				t.Fatal(err)
			}
			got := line.String()
			for _, want := range []string{`"h":{`, `"u":"`, "alt=sse", "visible"} {
				if !strings.Contains(got, want) {
					t.Errorf("no %s in %s", want, got)
				}
			}
			if strings.Contains(got, canary) || strings.Contains(got, "hidden\"") {
				t.Errorf("%s", got)
			}
		})
	}
	if err := new(llmencoder.Encoder).UnmarshalCaddyfile(caddyfile.NewTestDispenser("llm {\n wrap console\n}")); err == nil {
		t.Error("options of no encoder are taken")
	}
}
