//go:build !race

package llmotlp_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// TestLongBatch: a batch of ten megabytes is taken, and its content found.
func TestLongBatch(t *testing.T) {
	s := newSite(t, "")
	var spans []*tracepb.Span
	for n := range 1000 {
		spans = append(spans, span(n, map[string]string{"gen_ai.input.messages": fmt.Sprintf(`[{"role":"user","parts":[{"type":"text","content":"word-%d-end %s"}]}]`, n, strings.Repeat("lorem ipsum ", 850))}))
	}
	body := export(t, spans...)
	if len(body) < 10_000_000 {
		t.Fatalf("%d bytes", len(body))
	}
	if response, answer := s.send("root", zipped(t, body), append(binary, "Content-Encoding", "gzip")...); response.StatusCode != http.StatusOK {
		t.Fatalf("%s %q", response.Status, answer)
	}
	if n := len(s.records("root")); n != 1000 {
		t.Errorf("%d records", n)
	}
	r, _ := http.NewRequest("POST", s.url+"/v1/request/query-clickhouse", strings.NewReader(`{"filter":{"request_response_rmt":{"request_body":{"contains":"WORD-777-end"}}}}`))
	r.Header.Set("Authorization", "Bearer root")
	if _, answer := s.do(r); gjson.GetBytes(answer, "data.#").Int() != 1 {
		t.Errorf("%.300s", answer)
	}
}
