package llmcontrol_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// billing is OpenAI with one answer, and with a bill of today for it.
func billing(t *testing.T, adminKey string, billedInput *atomic.Int64) string {
	t.Helper()
	day := time.Now().UTC().Truncate(24 * time.Hour).Unix()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		results := ""
		switch r.URL.Path {
		case "/v1/chat/completions":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-4o-mini-2024-07-18", "service_tier": "default",
				"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hi"}}], "usage": {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}}`)
			return
		case "/v1/organization/usage/completions":
			results = fmt.Sprintf(`{"model": "gpt-4o-mini-2024-07-18", "input_tokens": %d, "output_tokens": 100, "num_model_requests": 1, "service_tier": "default"}`, billedInput.Load())
		case "/v1/organization/costs":
			results = fmt.Sprintf(`{"amount": {"value": %.9f, "currency": "usd"}, "line_item": "gpt-4o-mini-2024-07-18, all"}`, float64(billedInput.Load())*15e-8+6e-5)
		}
		if r.Header.Get("Authorization") != "Bearer "+adminKey {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error": {"message": "wrong key: %s"}}`, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
			return
		}
		fmt.Fprintf(w, `{"data": [{"start_time": %d, "results": [%s]}], "has_more": false}`, day, results)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// An administrator compares a bill of the configuration with the records of the organisation. No other
// organisation has the bill, and no answer and no log has its key.
func TestReconciliation(t *testing.T) {
	const secret = "sk-admin-canary"
	t.Setenv("TEST_BILL_KEY", secret)
	t.Setenv("TEST_WRONG_KEY", "sk-wrong-canary")
	var billedInput atomic.Int64
	address := billing(t, secret, &billedInput)
	s := newSite(t, fmt.Sprintf(`
		provider openai {
			api_key sk-test
			base_url %[1]s/v1
		}
		key root-admin admin query
		key root-all
		bill openai {
			admin_key {env.TEST_BILL_KEY}
			url %[1]s
		}
		bill wrong openai {
			admin_key {env.TEST_WRONG_KEY}
			url %[1]s
		}
		bill missing aws {
			files %[2]s/*.csv
		}
		bill openrouter {
			admin_key {env.TEST_BILL_KEY}
			url %[1]s
		}`, address, t.TempDir()))
	if status, got := s.as("root-all", "POST", "/v1/chat/completions", `{"model":"openai/gpt-4o-mini","messages":[{"role":"user","content":"Hello"}]}`); status != http.StatusOK {
		t.Fatal(status, got.Raw)
	}
	today := time.Now().UTC()
	first := today.AddDate(0, 0, -30).Format(time.DateOnly)
	ask := func(bill string) string {
		return fmt.Sprintf(`{"bill":%q,"since":%q,"until":%q}`, bill, today.Format(time.DateOnly), today.AddDate(0, 0, 1).Format(time.DateOnly))
	}
	if list := s.must("root-admin", "GET", "/v1/reconciliations/bills", ""); list.Get("items").Raw != `[{"name":"openai","provider":"openai","first_day":null},{"name":"wrong","provider":"openai","first_day":null},{"name":"missing","provider":"aws","first_day":null},{"name":"openrouter","provider":"openrouter","first_day":"`+first+`"}]` {
		t.Error(list.Raw)
	}
	billedInput.Store(1000)
	if report := s.must("root-admin", "POST", "/v1/reconciliations", ask("openai")); !report.Get("agrees").Bool() || report.Get("recorded.requests").Int() != 1 || report.Get("billed.cost").Num != 0.00021 {
		t.Error("they agree:", report.Raw)
	}
	billedInput.Store(3000)
	report := s.must("root-admin", "POST", "/v1/reconciliations", ask("openai"))
	if d := report.Get("differences.0"); report.Get("agrees").Bool() || d.Get("reason").Str != "outside" || d.Get("tokens.input").Int() != 2000 || report.Get("lines.#").Int() != 1 {
		t.Error("one call went around Weir:", report.Raw)
	}
	if found := s.must("root-admin", "POST", "/v1/request/query", `{"filter":`+report.Get("differences.0.filter").Raw+`}`); len(found.Array()) != 1 {
		t.Error("the filter finds the calls of the day:", found.Raw)
	}
	for _, tc := range []struct {
		key, body string
		status    int
		want      string
	}{
		{"acme-admin", ask("openai"), http.StatusBadRequest, `there is no bill \"openai\"`},
		{"globex-agent", ask("openai"), http.StatusForbidden, "insufficient_scope"},
		{"root-admin", ask("wrong"), http.StatusBadGateway, "bill wrong: "},
		{"root-admin", ask("missing"), http.StatusBadGateway, "no such file"},
		{"root-admin", `{}`, http.StatusBadRequest, "bill: "},
		{"root-admin", `{"bill":"openai","since":"soon","until":"2026-01-01"}`, http.StatusBadRequest, "since: "},
		{"root-admin", `{"bill":"openai","since":"2026-01-02","until":"2026-01-01"}`, http.StatusBadRequest, "until must be after since"},
		{"root-admin", `{"bill":"openai","since":"0001-01-01","until":"9999-01-01"}`, http.StatusBadRequest, "at most 366 days"},
		{"root-admin", `{"bill":"openrouter","since":"2026-01-01","until":"2026-02-01"}`, http.StatusBadRequest, "the first day that can be compared is " + first},
		{"root-admin", `{"bill":"openai","month":"2026-01"}`, http.StatusBadRequest, "month"},
	} {
		if status, got := s.as(tc.key, "POST", "/v1/reconciliations", tc.body); status != tc.status || !strings.Contains(got.Raw, tc.want) || strings.Contains(got.Raw, "canary") {
			t.Errorf("%s %s: %d %s", tc.key, tc.body, status, got.Raw)
		}
	}
	log, err := os.ReadFile(filepath.Join(s.dir, "log"))
	if err != nil || strings.Contains(string(log), "canary") {
		t.Errorf("the log has a key: %v", err)
	}
}
