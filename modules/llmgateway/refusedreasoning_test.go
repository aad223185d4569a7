package llmgateway

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// A provider that refuses the reasoning of earlier turns, as that of another account, is asked once more
// without it. A strict call gets the error.
func TestRefusedReasoningIsLeftOut(t *testing.T) {
	const refusal = `{"error":{"type":"invalid_request_error","code":"invalid_encrypted_content","message":"The encrypted content gAAA for item rs_1 could not be verified."}}`
	for path, c := range map[string]struct{ asked, again, answer string }{
		"/v1/responses": {
			`{"model":"raw/m","input":[{"role":"user","content":"a"},{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA"},{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":"{}"},{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"t","annotations":[]}]},{"type":"mcp_approval_request","id":"mcpr_1","name":"f","server_label":"s","arguments":"{}"},{"type":"mcp_approval_response","id":"r","approval_request_id":"mcpr_1","approve":true},{"type":"computer_call","id":"cu_1","call_id":"d","status":"completed","pending_safety_checks":[],"action":{"type":"wait"}},{"type":"computer_call_output","id":"o","call_id":"d","output":{"type":"computer_screenshot","image_url":"data:,"}},{"type":"function_call_output","call_id":"c","output":"b"}]}`,
			`{"model":"raw/m","input":[{"role":"user","content":"a"},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"t","annotations":[]}]},{"type":"mcp_approval_request","id":"mcpr_1","name":"f","server_label":"s","arguments":"{}"},{"type":"mcp_approval_response","id":"r","approval_request_id":"mcpr_1","approve":true},{"type":"computer_call","id":"cu_1","call_id":"d","status":"completed","pending_safety_checks":[],"action":{"type":"wait"}},{"type":"computer_call_output","id":"o","call_id":"d","output":{"type":"computer_screenshot","image_url":"data:,"}},{"type":"function_call_output","call_id":"c","output":"b"}]}`,
			`{"id":"resp_1","object":"response","status":"completed","output":[]}`,
		},
		"/v1/messages": {
			`{"model":"raw/m","max_tokens":9,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"text","text":"b"}]},{"role":"assistant","content":[{"type":"redacted_thinking","data":"d"}]},{"role":"user","content":"c"}]}`,
			`{"model":"raw/m","max_tokens":9,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"text","text":"b"}]},{"role":"user","content":"c"}]}`,
			`{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"d"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`,
		},
	} {
		var sent []string
		answers := func(status int, body string) upstream {
			return func(w http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				sent = append(sent, string(b))
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(status)
				_, _ = io.WriteString(w, body)
			}
		}
		for name, later := range map[string][]upstream{"taken": {answers(200, c.answer)}, "refused again": {answers(400, refusal)}} {
			sent = nil
			s := serve(t, map[string][]upstream{"raw": append([]upstream{answers(400, refusal)}, later...)})
			resp, body := s.postTo(path, strings.NewReader(c.asked))
			want := http.StatusOK
			if name != "taken" {
				want = http.StatusBadRequest
			}
			if resp.StatusCode != want || len(sent) != 2 || sent[1] != c.again {
				t.Errorf("%s, %s: %d %s, %d attempts, the last one %s", path, name, resp.StatusCode, body, len(sent), sent[len(sent)-1])
			}
			if warning := resp.Header.Get("Service-Warnings"); want == http.StatusOK && !strings.Contains(warning, "reasoning of earlier turns, which the provider refuses, left out") {
				t.Errorf("%s: warned %q", path, warning)
			}
		}
		sent = nil
		s := serve(t, map[string][]upstream{"raw": {answers(400, refusal)}})
		if resp, _ := s.postTo(path, strings.NewReader(c.asked), "Service-Strict", "true"); resp.StatusCode != http.StatusBadRequest || len(sent) != 1 {
			t.Errorf("%s, strict: %d, %d attempts", path, resp.StatusCode, len(sent))
		}
	}
}
