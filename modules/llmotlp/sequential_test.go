//go:build !race

package llmotlp_test

import (
	"bytes"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
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

// TestManyPieces: what takes a batch apart takes time by its length, not by the
// square of it.
func TestManyPieces(t *testing.T) {
	s := newSite(t, "")
	crowd := span(1, nil)
	for n := range 50_000 {
		crowd.Attributes = append(crowd.Attributes,
			&commonpb.KeyValue{Key: fmt.Sprintf("gen_ai.completion.%d.content", n), Value: text("x")},
			&commonpb.KeyValue{Key: fmt.Sprintf("traceloop.association.properties.p%d", n), Value: text("x")})
	}
	parts := strings.Repeat(`{"type":"reasoning","content":"because"},`, 100_000) + `{"type":"text","content":"x"}`
	thoughtful := span(2, map[string]string{"gen_ai.output.messages": `[{"role":"assistant","parts":[` + parts + `]}]`})
	began := time.Now()
	if response, answer := s.send("root", export(t, crowd, thoughtful), binary...); response.StatusCode != http.StatusOK {
		t.Fatalf("%s %q", response.Status, answer)
	}
	if took := time.Since(began); took > 2*time.Minute { // the race detector takes 20 s of it; what is quadratic takes many minutes
		t.Errorf("%s", took)
	}
	if records := s.records("root"); len(records) != 2 || records[0].Get("response_body.choices.#").Int() != 50_000 {
		t.Errorf("%d records", len(records))
	}
}

// TestEmptySpans: what takes two bytes on the wire and hundreds in memory is counted
// before it is parsed.
func TestEmptySpans(t *testing.T) {
	s := newSite(t, "")
	spans := bytes.Repeat([]byte{0x12, 0}, 5*bound)
	scope := append(protowire.AppendVarint([]byte{0x12}, uint64(len(spans))), spans...)
	body := append(protowire.AppendVarint([]byte{0x0a}, uint64(len(scope))), scope...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	response, answer := s.send("root", zipped(t, body), append(binary, "Content-Encoding", "gzip")...)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; response.StatusCode != http.StatusRequestEntityTooLarge || took > 256<<20 {
		t.Errorf("%s %q, %d MiB", response.Status, answer, took>>20)
	}
}
