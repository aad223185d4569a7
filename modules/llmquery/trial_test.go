package llmquery_test

import (
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// A trial of a policy adds each call once, however their times lie.
func TestTrialAddsEachCallOnce(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for _, span := range []int64{1, 300, 90 * 24 * 3600 * 1000} {
		s := newSite(t)
		j := s.journal("default")
		const calls = 3000 // more than a page
		cost := plugins.Nanodollars(0)
		for i := range calls {
			r := &storage.Record{
				ID: uuid.New(), Org: "default", CreatedAt: storage.Timestamp(1_790_000_000_000 + random.Int64N(span)), Provider: "openai", Dialect: plugins.Embeddings,
				Model: "gpt-5-mini", Usage: plugins.Usage{Input: plugins.Known(10)}, Cost: plugins.KnownCost(plugins.Nanodollars(i)),
			}
			if err := j.Append(r, storagetest.Kept(r, &storage.Content{})); err != nil {
				t.Fatal(err)
			}
			cost += r.Cost.N
		}
		if err := j.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		for filter, want := range map[string]int64{`"all"`: calls, `{"request_response_rmt":{"model":{"equals":"nobody"}}}`: 0} {
			w := httptest.NewRecorder()
			if err := s.handler().ServeHTTP(w, newCall("POST", "/v1/whatif", `{"filter":`+filter+`,"policy":["openai/gpt-5"]}`), nil); err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSpace(w.Body.String()), "\n")
			answer := gjson.Parse(lines[len(lines)-1])
			if answer.Get("calls").Int() != want || answer.Get("data.total.calls").Int() != want || want > 0 && answer.Get("data.total.expected_cost").Raw != cost.String()[1:] {
				t.Errorf("of %d ms, %s: %s", span, filter, answer.Raw)
			}
		}
	}
}
