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
	if _, err := run(t.Context(), sessionsCommand, &out, "--address", address, "--sort", "total_cost:asc"); err != nil || asked.Get("sort").Raw != `{"total_cost":"asc"}` {
		t.Errorf("asked %s, %v", asked.Raw, err)
	}
	for flag, args := range map[string][]string{
		"--sort":  {"--sort", "price"},
		"behind":  {"--sort", "total_cost:up"},
		"--by":    {"--by", "path"},
		"--limit": {"--tree", "a", "--limit", "1"},
		"filters": {"--tree", "a", "model=m"},
	} {
		if _, err := run(t.Context(), sessionsCommand, &out, append(args, "--address", address)...); err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%q: %v", args, err)
		}
	}
}

func TestSessionTreeTable(t *testing.T) {
	address, asked := answering(t, "/v1/session/tree/query", `[
		{"id":"/","parent_id":null,"depth":0,"created_at":"2026-11-20T10:00:00.000Z",
			"own":{"cost":null,"requests":0,"total_tokens":null},"total":{"cost":1.5,"requests":3,"total_tokens":4000}},
		{"id":"/plan","parent_id":"/","depth":1,"created_at":"2026-11-20T10:00:00.000Z",
			"own":{"cost":1.5,"requests":3,"total_tokens":4000},"total":{"cost":1.5,"requests":3,"total_tokens":4000}}]`)
	var out bytes.Buffer
	if _, err := run(t.Context(), sessionsCommand, &out, "--address", address, "--utc", "--tree", "review-7", "--by", "path"); err != nil {
		t.Fatal(err)
	}
	want := `
PART     BEGAN                REQUESTS  TOKENS   COST  ALL REQUESTS  ALL TOKENS  ALL COST
/        2026-11-20 10:00:00         0       -      -             3       4,000     $1.50
  /plan  2026-11-20 10:00:00         3   4,000  $1.50             3       4,000     $1.50
`
	if got := "\n" + out.String(); got != want {
		t.Errorf("table%s\nwant%s", got, want)
	}
	if got, want := asked.Raw, `{"by":"path","sessionId":"review-7"}`; got != want {
		t.Errorf("asked %s, want %s", got, want)
	}
}
