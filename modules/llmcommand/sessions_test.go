package llmcommand

import (
	"bytes"
	"strings"
	"testing"
)

func TestSessionsTable(t *testing.T) {
	address, asked := answering(t, "/v1/session/query", `[
		{"created_at":"2026-11-20T10:00:00.000Z","latest_request_created_at":"2026-11-20T10:05:00.000Z","session_id":"a-tree","session_name":"","is_derived":true,
			"total_requests":64,"prompt_tokens":912402,"completion_tokens":8120,"total_cost":0.912345},
		{"created_at":"2026-11-20T09:00:00.000Z","latest_request_created_at":"2026-11-20T09:00:00.000Z","session_id":"review-7","session_name":"review",
			"total_requests":1,"prompt_tokens":null,"completion_tokens":null,"total_cost":null}]`)
	var out bytes.Buffer
	if _, err := run(t.Context(), sessionsCommand, &out, "--address", address, "--utc", "--sort", "total_cost", "--limit", "2", "status>=400"); err != nil {
		t.Fatal(err)
	}
	want := `
BEGAN                LAST REQUEST         SESSION   NAME    DERIVED  REQUESTS       IN    OUT       COST
2026-11-20 10:00:00  2026-11-20 10:05:00  a-tree            true           64  912,402  8,120  $0.912345
2026-11-20 09:00:00  2026-11-20 09:00:00  review-7  review  -               1        -      -          -
`
	if got := "\n" + out.String(); got != want {
		t.Errorf("table%s\nwant%s", got, want)
	}
	if got, want := asked.Raw, `{"derived":true,"filter":{"request_response_rmt":{"status":{"gte":400}}},"limit":2,"sort":{"total_cost":"desc"}}`; got != want {
		t.Errorf("asked %s, want %s", got, want)
	}
	if _, err := run(t.Context(), sessionsCommand, &out, "--address", address, "--sort", "price"); err == nil || !strings.Contains(err.Error(), "--sort") {
		t.Errorf("an unknown field: %v", err)
	}
}
