package standard

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/weirhq/weir/modules/llmecho"
)

func TestEchoAnswersAsConfigured(t *testing.T) {
	ctx, cancel := caddy.NewContext(caddy.Context{Context: context.Background()})
	defer cancel()
	v, err := ctx.LoadModuleByID("http.handlers.llm_echo", []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	next := caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error {
		t.Error("the next handler was invoked")
		return nil
	})
	for path, status := range map[string]int{"/echo/v1/responses": 200, "/echo/v1/nothing": 404} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(`{"input":"hi"}`))
		if err := v.(caddyhttp.MiddlewareHandler).ServeHTTP(w, r, next); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if w.Code != status {
			t.Errorf("%s: status %d, want %d", path, w.Code, status)
		}
	}
}

// What is too large is refused in the format of the provider whose endpoint it is.
func TestEchoBoundsRequests(t *testing.T) {
	ctx, cancel := caddy.NewContext(caddy.Context{Context: context.Background()})
	defer cancel()
	v, err := ctx.LoadModuleByID("http.handlers.llm_echo", []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"/v1/responses": `"code":"request_too_large"`, "/v1/messages": `"type":"error"`} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(`{"input":"`+strings.Repeat("a", 32<<20)+`"}`))
		r.ContentLength = -1
		if err := v.(caddyhttp.MiddlewareHandler).ServeHTTP(w, r, nil); err != nil || w.Code != http.StatusRequestEntityTooLarge || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %v, %d %s", path, err, w.Code, w.Body)
		}
	}
}

func TestEchoHasNoOptions(t *testing.T) {
	ctx, cancel := caddy.NewContext(caddy.Context{Context: context.Background()})
	defer cancel()
	if _, err := ctx.LoadModuleByID("http.handlers.llm_echo", []byte(`{"delay":"1s"}`)); err == nil {
		t.Error("an unknown field was accepted")
	}
}

func TestEchoInCaddyfiles(t *testing.T) {
	for _, tt := range []struct {
		input string
		ok    bool
	}{
		{"llm_echo", true},
		{"llm_echo {\n}", true},
		{"llm_echo loudly", false},
		{"llm_echo {\n\tdelay 1s\n}", false},
		{"llm_echo {\n\tdelay\n}", false},
	} {
		err := new(llmecho.Handler).UnmarshalCaddyfile(caddyfile.NewTestDispenser(tt.input))
		if (err == nil) != tt.ok {
			t.Errorf("%q: %v", tt.input, err)
		}
	}
}
