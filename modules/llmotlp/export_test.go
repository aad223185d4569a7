package llmotlp_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// TestExport: what a store exports makes a record like the one that was
// exported, and one that came so is not exported again.
func TestExport(t *testing.T) {
	for name, content := range map[string]string{"metrics": "false", "content": "true"} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, `"otlp": {"endpoint": "http://ADDRESS", "headers": {"Authorization": "Bearer acme"}, "content": `+content+`},`)
			const trace = "0af7651916cd43dd8448eb211c80319c"
			r, err := http.NewRequest("POST", s.url+"/v1/chat/completions", strings.NewReader(
				`{"model":"echo-1","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hello, canary"}]}`))
			if err != nil {
				t.Fatal(err)
			}
			for name, value := range map[string]string{
				"Traceparent": "00-" + trace + "-b7ad6b7169203331-01", "Service-User-Id": "ada", "Service-Session-Id": "s", "Service-Session-Name": "n",
				"Service-Property-Tier": "gold", "Service-Prompt-Id": "p",
			} {
				r.Header.Set(name, value)
			}
			if response, answer := s.do(r); response.StatusCode != http.StatusOK {
				t.Fatalf("%s %s", response.Status, answer)
			}
			var ours, theirs []gjson.Result
			for end := time.Now().Add(10 * time.Second); len(theirs) == 0 && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
				ours, theirs = s.records("root"), s.records("acme")
			}
			if len(ours) != 1 || len(theirs) != 1 {
				t.Fatalf("%d and %d records", len(ours), len(theirs))
			}
			for _, field := range []string{
				"request_created_at", "provider", "model", "request_model", "response_model", "response_id", "response_status", "end_state",
				"time_to_first_token", "prompt_tokens", "completion_tokens", "cost", "request_user_id", "prompt_id", "trace_id",
				"properties.Service-Session-Id", "properties.Service-Session-Name", "properties.Tier",
			} {
				if got, want := theirs[0].Get(field), ours[0].Get(field); got.Raw != want.Raw || !got.Exists() {
					t.Errorf("%s is %s, not %s", field, got.Raw, want.Raw)
				}
			}
			if ours[0].Get("span_id").Str == theirs[0].Get("span_id").Str {
				t.Error("the span is the caller's, not its child")
			}
			for _, path := range []string{"request_body.messages", "response_body.choices.0.message.content"} {
				switch got, want := theirs[0].Get(path), ours[0].Get(path); {
				case content == "true" && got.Raw != want.Raw:
					t.Errorf("%s is %s, not %s", path, got.Raw, want.Raw)
				case content == "false" && got.Exists():
					t.Errorf("%s is %s", path, got.Raw)
				}
			}
			if content == "true" {
				return
			}
			time.Sleep(1500 * time.Millisecond) // more than spans are gathered for
			if again := s.records("acme"); len(again) != 1 {
				t.Errorf("%d records after a while", len(again))
			}
		})
	}
}
