package reconcile

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// What was written to a cache for 12 hours is no other input. What input_cache_write_tokens has of it is another
// in older answers.
func TestOpenAICacheWrites(t *testing.T) {
	const read = `"input_tokens": 1000, "input_cached_tokens": 100, "output_tokens": 5`
	for name, c := range map[string]struct {
		usage string
		want  Tokens
	}{
		"all writes in one": {
			read + `, "input_uncached_tokens": 350, "input_cache_write_tokens": 550, "input_cache_write_30m_tokens": 50, "input_cache_write_12h_tokens": 500`,
			Tokens{Input: 350, CacheRead: 100, CacheWrite: 550, Output: 5},
		},
		"12 hours apart": {
			read + `, "input_uncached_tokens": 350, "input_cache_write_tokens": 50, "input_cache_write_12h_tokens": 500`,
			Tokens{Input: 350, CacheRead: 100, CacheWrite: 550, Output: 5},
		},
		"all writes in one, without the rest": {
			read + `, "input_cache_write_tokens": 550, "input_cache_write_30m_tokens": 50, "input_cache_write_12h_tokens": 500`,
			Tokens{Input: 350, CacheRead: 100, CacheWrite: 550, Output: 5},
		},
		"12 hours apart, without the rest": {
			read + `, "input_uncached_tokens": null, "input_cache_write_tokens": 50, "input_cache_write_12h_tokens": 500`,
			Tokens{Input: 350, CacheRead: 100, CacheWrite: 550, Output: 5},
		},
		"no uncached input": {
			read + `, "input_uncached_tokens": 0, "input_cache_write_tokens": 900`,
			Tokens{CacheRead: 100, CacheWrite: 900, Output: 5},
		},
		"no writes": {read, Tokens{Input: 900, CacheRead: 100, Output: 5}},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			results := ""
			if strings.HasSuffix(r.URL.Path, "/completions") {
				results = `{"model": "gpt-5", "num_model_requests": 1, ` + c.usage + `}`
			}
			fmt.Fprintf(w, `{"data": [{"start_time": %d, "results": [%s]}], "has_more": false}`, month.From.Time().Unix(), results)
		}))
		bill, err := API{URL: server.URL, Key: "admin"}.OpenAI(t.Context(), month)
		if server.Close(); err != nil {
			t.Fatal(err)
		}
		if len(bill.Usage) != 1 || bill.Usage[0].Tokens != c.want || bill.Usage[0].Requests != 1 {
			t.Errorf("%s: %+v, expected %v", name, bill.Usage, c.want)
		}
	}
}
