//go:build linux

package durability

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var memory = flag.Bool("memory", false, "run TestMemoryOfLargeRequests, which takes a quiet machine")

// TestMemoryOfLargeRequests has four clients send the largest and worst requests
// there can be, at the same time and for a while. The process must stay below 1 GB,
// and small calls must take less than twice their time.
func TestMemoryOfLargeRequests(t *testing.T) {
	if !*memory {
		t.Skip("takes a quiet machine: -memory")
	}
	sink := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"m","type":"message","model":"claude","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`)
	}))
	t.Cleanup(sink.Close)
	w := newWeir(t, newProvider(t))
	w.start(config{llm: "provider echo\nprovider anthropic {\nbase_url " + sink.URL + "\napi_key k\n}", site: "llm_gateway"})

	post := func(body []byte) int {
		r, err := http.NewRequest("POST", "http://"+w.site+"/v1/responses", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+key)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0 // the connection was closed on a request that is too large
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode
	}
	const most = 64<<20 - 1<<10
	fill := func(model, item string, n int) []byte {
		list := strings.Repeat(item+",", n-1) + item
		return fmt.Appendf(nil, `{"model":%q,"input":[%s]}`, model, list)
	}
	const tiny = `{"role":"user","content":"a"}`
	long := fmt.Sprintf(`{"role":"user","content":%q}`, strings.Repeat("word ", (most-100_000)/5/1000))
	worst := [][]byte{
		fill("anthropic/claude", tiny, most/(len(tiny)+1)),
		fill("anthropic/claude", tiny, 19_000),
		fill("anthropic/claude", long, 1000),
		fill("echo/echo-1", long, 1000),
	}
	median := func() time.Duration {
		var took []time.Duration
		for range 300 {
			begin := time.Now()
			if status := post([]byte(`{"model":"echo/echo-1","input":"hi"}`)); status != http.StatusOK {
				t.Errorf("a small call got %d", status)
			}
			took = append(took, time.Since(begin))
		}
		slices.Sort(took)
		return took[len(took)/2]
	}

	alone := median()
	stop := make(chan struct{})
	var clients sync.WaitGroup
	var mu sync.Mutex
	statuses := make(map[int]int)
	for range 4 {
		clients.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					status := post(worst[i%len(worst)])
					mu.Lock()
					statuses[status]++
					mu.Unlock()
				}
			}
		})
	}
	begin := time.Now()
	var beside []time.Duration
	for time.Since(begin) < 20*time.Second {
		beside = append(beside, median())
	}
	close(stop)
	clients.Wait()
	slices.Sort(beside)
	peak := w.peak()
	t.Logf("alone %s, beside %s; peak %d MB; large requests by status: %v", alone, beside[len(beside)/2], peak>>20, statuses)
	if peak > 1<<30 {
		t.Errorf("the process took %d MB", peak>>20)
	}
	if beside[len(beside)/2] > 2*alone {
		t.Errorf("a small call took %s alone, and %s beside large ones", alone, beside[len(beside)/2])
	}
}
