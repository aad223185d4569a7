package llmquery_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

var benchmarkRecords = flag.Int("records", 10_000, "records in the store of the benchmarks")

// BenchmarkPointQuery asks for a few of many records, of either request endpoint
// in turns, through the whole handler. bulk/legacy is the time of the one over
// that of the other, get/legacy that of GET /v1/request/{id}.
func BenchmarkPointQuery(b *testing.B) {
	s := newSite(b)
	j := s.journal("default")
	ids := make([]uuid.UUID, *benchmarkRecords)
	for i := range ids {
		ids[i] = uuid.Must(uuid.NewV7())
		at := storage.Timestamp(1_790_000_000_000 + i*1000)
		r := &storage.Record{
			ID: ids[i], Org: "default", CreatedAt: at, RespondedAt: at + 900, Latency: plugins.KnownDuration(900 * time.Millisecond), Status: plugins.Known(200),
			Provider: "openai", Model: "gpt-5-mini", RequestModel: "gpt-5-mini", UserID: fmt.Sprint("user-", i/4),
			Usage: plugins.Usage{Input: plugins.Known(1200), Output: plugins.Known(300)}, Cost: plugins.KnownCost(900_000),
			Properties: map[string]string{"Environment": "production", "Tenant": fmt.Sprint("tenant-", i/4)},
		}
		if err := j.Append(r, storagetest.Kept(r, &storage.Content{
			Request:  storage.Body{Type: "application/json", Data: fmt.Appendf(nil, `{"model":"gpt-5-mini","input":"question %d"}`, i)},
			Response: storage.Body{Type: "application/json", Data: fmt.Appendf(nil, `{"output":[{"text":"answer %d"}]}`, i)},
		})); err != nil {
			b.Fatal(err)
		}
	}
	if err := j.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	h := s.handler()
	fill := func(text string, i int) string {
		return strings.NewReplacer("ID", ids[i].String(), "FEW", fmt.Sprint(i/4)).Replace(text)
	}

	for _, bench := range []struct{ name, bulk, legacy string }{
		{"id", `{"filter":{"request_response_rmt":{"request_id":{"equals":"ID"}}}}`, `{"filter":{"request":{"id":{"equals":"ID"}}}}`},
		{"user", `{"filter":{"request_response_rmt":{"user_id":{"equals":"user-FEW"}}}}`, `{"filter":{"request":{"user_id":{"equals":"user-FEW"}}}}`},
		{"property", `{"filter":{"request_response_rmt":{"properties":{"Tenant":{"equals":"tenant-FEW"}}}}}`, `{"filter":{"properties":{"Tenant":{"equals":"tenant-FEW"}}}}`},
	} {
		b.Run(bench.name, func(b *testing.B) {
			var took struct{ bulk, legacy, get time.Duration }
			// Each asks for a record of its own: the second to ask finds it warm.
			ask := func(total *time.Duration, method, path, body string) {
				i := rand.IntN(len(ids))
				r, w := newCall(method, fill(path, i), fill(body, i)), httptest.NewRecorder()
				start := time.Now()
				err := h.ServeHTTP(w, r, nil)
				*total += time.Since(start)
				if err != nil || w.Code != http.StatusOK || w.Body.Len() < 500 {
					b.Fatal(err, w.Code, w.Body)
				}
			}
			for b.Loop() {
				ask(&took.bulk, "POST", bulk, bench.bulk)
				ask(&took.legacy, "POST", legacy, bench.legacy)
				ask(&took.get, "GET", "/v1/request/ID", "")
			}
			b.ReportMetric(float64(took.bulk)/float64(took.legacy), "bulk/legacy")
			b.ReportMetric(float64(took.get)/float64(took.legacy), "get/legacy")
			b.ReportMetric(float64(took.bulk.Microseconds())/float64(b.N), "us/bulk")
			b.ReportMetric(float64(took.legacy.Microseconds())/float64(b.N), "us/legacy")
			b.ReportMetric(float64(took.get.Microseconds())/float64(b.N), "us/get")
		})
	}
}
