package standard

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/paths"
	"github.com/weirhq/weir/modules/llmnotfound"
)

// What no handler serves is an error in the client's format, which says what there
// is.
func TestNotFound(t *testing.T) {
	for path, c := range map[string]struct{ message, says string }{
		"/":                                  {"error.message", "This site has /v1/chat/completions, /v1/request/query, /v1/responses, /v1/traces."},
		"/health":                            {"error.message", "This site has "},
		"/chat/completions":                  {"error.message", "Did you mean /v1/chat/completions?"},
		"//v1/responses":                     {"error.message", "Did you mean /v1/responses?"},
		"/api/public/otel/v1/traces":         {"error.message", "Did you mean /v1/traces?"},
		"/v1/messages/batches":               {"error.message", `There is no "/v1/messages/batches" here.`},
		"/v1/request/querry":                 {"error", `There is no "/v1/request/querry" here.`},
		"/v1/metrics/querry":                 {"error", `There is no "/v1/metrics/querry" here.`},
		"/v1/views":                          {"error", `There is no "/v1/views" here.`},
		"/v1/chat/completion":                {"error.message", "Did you mean /v1/chat/completions?"},
		"/v1/keys/key_1":                     {"error.message", "The directive llm_control serves it"},
		"/v1/session/query":                  {"error", "The directive llm_query serves it"},
		"/v1beta/models/m:generateContent":   {"error.message", "This site has "},
		"/v1/files/%0d%0aX-Injected:%20true": {"error.message", `\r\n`},
	} {
		ctx := context.WithValue(t.Context(), caddyhttp.VarsCtxKey, map[string]any{})
		paths.Offer(ctx, []string{"/v1/responses", "/v1/chat/completions"})
		paths.Offer(ctx, []string{"/v1/traces", "/v1/request/query", "/v1/responses"}) // by another method
		w := httptest.NewRecorder()
		if err := (llmnotfound.Handler{}).ServeHTTP(w, httptest.NewRequestWithContext(ctx, "POST", path, nil), nil); err != nil {
			t.Fatal(err)
		}
		body := w.Body.String()
		if w.Code != 404 || w.Header().Get("Content-Type") != "application/json" || !strings.Contains(gjson.Get(body, c.message).Str, c.says) {
			t.Errorf("%s: %d %s", path, w.Code, body)
		}
		if isAnthropic := gjson.Get(body, "type").Str == "error"; isAnthropic != strings.Contains(path, "messages") {
			t.Errorf("%s: %s", path, body)
		}
		if isGoogle := gjson.Get(body, "error.status").Str == "NOT_FOUND"; isGoogle != strings.Contains(path, "generateContent") {
			t.Errorf("%s: %s", path, body)
		}
	}
}
