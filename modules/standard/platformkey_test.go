package standard

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// What a provider says to the platform does not reach its tenants: neither the key, in whatever answer and
// encoding the provider repeats it, nor that the platform's account is empty, of which the log tells the
// operator, nor whose account it is. No file has the key.
func TestTenantsDoNotSeeThePlatformsAccount(t *testing.T) {
	config := strings.Replace(unfetchedConfig, "	llm_query\n", "	handle_path /anth/* {\n		llm_proxy anthropic {\n			credentials platform\n		}\n	}\n	llm_query\n", 1)
	empty := `{"error":"Your team 9f3c1e2a has either used all available credits or reached its monthly spending limit. Go to https://console.x.ai/team/9f3c1e2a"}`
	refused := `{"type":"error","error":{"type":"invalid_request_error","message":"Incorrect API key provided: KEY"}}`
	for name, upstream := range map[string]http.HandlerFunc{
		"plain":                        repeatsKey(http.StatusBadRequest, refused),
		"encoded":                      repeatsKeyEncoded(http.StatusBadRequest, refused),
		"with 200, as MiniMax answers": repeatsKey(http.StatusOK, `{"base_resp":{"status_code":2049,"status_msg":"invalid api key KEY"}}`),
		"with 200, encoded":            repeatsKeyEncoded(http.StatusOK, `{"base_resp":{"status_code":2049,"status_msg":"invalid api key KEY"}}`),
		"empty, with 402":              repeatsKey(http.StatusPaymentRequired, empty),
		"with escapes of JSON":         repeatsKey(http.StatusBadRequest, strings.Replace(refused, "KEY", "ESCAPED", 1)),
		"empty, with 403":              repeatsKey(http.StatusForbidden, empty),
		"empty, with 400":              repeatsKey(http.StatusBadRequest, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API of 9f3c1e2a."}}`),
		"content, with 403":            repeatsKey(http.StatusForbidden, `{"error":"Content violates usage guidelines. Team: 9f3c1e2a-40f4-4a80-8ad0-cae00c27e8dd, API key ID: 9f3c1e2a-40f4"}`),
		"no model, with 404":           repeatsKey(http.StatusNotFound, `{"error":{"message":"The model does not exist or your team 9f3c1e2a does not have access to it."}}`),
		"empty, with 429":              repeatsKey(http.StatusTooManyRequests, `{"error":{"type":"insufficient_quota","message":"9f3c1e2a exceeded its current quota."}}`),
	} {
		t.Run(name, func(t *testing.T) {
			provider := httptest.NewServer(upstream)
			defer provider.Close()
			s := serveWith(t, config, provider.URL)
			for _, path := range []string{"/anth/v1/messages", "/v1/messages"} {
				resp, text := s.ask("POST", path, `{"model":"claude-haiku-4-5","max_tokens":5,"messages":[{"role":"user","content":"hi"}]}`, "X-Api-Key", "weir-rich", "Accept-Encoding", "gzip")
				if resp.Header.Get("Content-Encoding") != "" || strings.Contains(text, "platform-anthropic") || strings.Contains(text, `\u0070`) || strings.Contains(text, "9f3c1e2a") {
					t.Errorf("%s: %d %v %s", path, resp.StatusCode, resp.Header, text)
				}
				if strings.HasPrefix(name, "empty") && (resp.StatusCode != http.StatusBadGateway || !strings.Contains(text, "upstream_auth")) {
					t.Errorf("%s: %d %s", path, resp.StatusCode, text)
				}
			}
			s.flush()
			if files := s.files("platform-anthropic"); len(files) > 0 {
				t.Errorf("the key is in %q", files)
			}
		})
	}
}

// repeatsKey answers with a body in which KEY is the key of the request, and ESCAPED is the key as JSON may
// have it.
func repeatsKey(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		key := r.Header.Get("X-Api-Key")
		escaped := ""
		for _, c := range key {
			escaped += fmt.Sprintf("\\u%04x", c)
		}
		_, _ = io.WriteString(w, strings.ReplaceAll(strings.ReplaceAll(body, "ESCAPED", escaped), "KEY", key))
	}
}

// repeatsKeyEncoded answers as repeatsKey does, in gzip though nobody asks for it.
func repeatsKeyEncoded(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var b bytes.Buffer
		plain := httptest.NewRecorder()
		repeatsKey(status, body)(plain, r)
		z := gzip.NewWriter(&b)
		_, _ = z.Write(plain.Body.Bytes())
		_ = z.Close()
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		w.WriteHeader(status)
		_, _ = w.Write(b.Bytes())
	}
}
