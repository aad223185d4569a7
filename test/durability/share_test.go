//go:build linux

package durability

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/sqlite"
)

var seeded = flag.Int("records", 20_000, "the records that TestHeavyQueries asks about; the promise is of 1,000,000")

// timings are how long something took, each time.
type timings []time.Duration

// at is the quantile that is below q of all.
func (s timings) at(q float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func (s timings) String() string {
	return fmt.Sprintf("%d times, median %v, 99%% %v, most %v", len(s), s.at(0.5), s.at(0.99), s.at(1))
}

// during does something again and again, every pause, while others are at work.
func during(busy <-chan struct{}, pause time.Duration, do func()) (took timings) {
	for {
		select {
		case <-busy:
			return took
		default:
		}
		start := time.Now()
		do()
		took = append(took, time.Since(start))
		time.Sleep(pause)
	}
}

// after is a channel that is closed after a time.
func after(d time.Duration) <-chan struct{} {
	done := make(chan struct{})
	time.AfterFunc(d, func() { close(done) })
	return done
}

// TestGreedyWriter has a key write all it may, and more, to a few records. Another
// organisation's writes must not wait for it, nor its records to be seen.
func TestGreedyWriter(t *testing.T) {
	t.Parallel()
	const most, visible = 50 * time.Millisecond, time.Second
	p := newProvider(t)
	w := newWeir(t, p)
	w.start(config{llm: "org greedy {\nkey greedy-key\n}\norg modest {\nkey modest-key\n}"})
	record := func(key string) string {
		c := p.call(chat)
		c.header.Set("Service-Auth", "Bearer "+key)
		return c.must(t, w).id
	}
	var targets []string
	for range 4 {
		targets = append(targets, record("greedy-key"))
	}
	own := record("modest-key")
	w.flush()

	names := func(n int, value string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"n%d":%s,`, i, value)
		}
		return `{"scores":{` + b.String() + `"last":1}}`
	}
	long := strings.Repeat("n", 900<<10)
	worst := []struct{ method, path, body string }{
		{"POST", "/v1/request/$/score", names(20_000, "1")},
		{"POST", "/v1/request/$/score", names(50, "0.5")},
		{"POST", "/v1/request/$/score", `{"scores":{"` + long + `":1}}`},
		{"PUT", "/v1/request/$/property", `{"key":"` + long + `","value":"v"}`},
		{"PUT", "/v1/request/$/property", `{"key":"p#","value":"` + strings.Repeat("v", 1000) + `"}`},
		{"POST", "/v1/request/$/feedback", `{"rating":true}`},
		{"POST", "/v1/session/s#/tag", `{"tag":"` + strings.Repeat("t", 200) + `"}`},
		{"POST", "/v1/session/s#/tag", `{"tag":"` + long + `"}`},
	}
	write := func(key, method, path, body string) int {
		r, err := http.NewRequest(method, "http://"+w.site+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+key)
		response, err := direct.Do(r)
		switch {
		case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
			return http.StatusRequestEntityTooLarge // said while the body was still on its way
		case err != nil:
			t.Error(err)
			return 0
		}
		response.Body.Close()
		return response.StatusCode
	}
	modestly := func() {
		if status := write("modest-key", "POST", "/v1/request/"+own+"/score", `{"scores":{"quality":1}}`); status/100 != 2 {
			t.Errorf("a modest write is answered with %d", status)
		}
	}
	phase := time.Duration(rounds(300, 20_000)) * time.Millisecond
	alone := during(after(phase), 10*time.Millisecond, modestly)

	ctx, stop := context.WithCancel(t.Context())
	var greedy sync.WaitGroup
	var mu sync.Mutex
	statuses := map[int]int{}
	for client := range 8 {
		greedy.Go(func() {
			for i := client; ctx.Err() == nil; i++ {
				x, number := worst[i%len(worst)], strconv.Itoa(i)
				path := strings.NewReplacer("$", targets[i%len(targets)], "#", number).Replace(x.path)
				status := write("greedy-key", x.method, path, strings.ReplaceAll(x.body, "#", number))
				mu.Lock()
				statuses[status]++
				mu.Unlock()
			}
		})
	}
	beside := during(after(phase), 10*time.Millisecond, modestly)
	seen := during(after(phase), 0, func() {
		id := record("modest-key")
		w.await("the record is seen", func() bool {
			r, _ := http.NewRequest("POST", "http://"+w.site+"/v1/request/query", strings.NewReader(`{"filter":"all","limit":1}`))
			r.Header.Set("Authorization", "Bearer modest-key")
			answer, err := exchange(r)
			return err == nil && strings.Contains(string(answer), id)
		})
	})
	stop()
	greedy.Wait()
	t.Logf("writes alone: %v; beside the greedy: %v; a call until its record is seen: %v; answers to the greedy: %v", alone, beside, seen, statuses)
	for status := range statuses {
		if status >= http.StatusInternalServerError || status == 0 {
			t.Errorf("the greedy is answered with %d", status)
		}
	}
	if *full && beside.at(1) > max(most, 2*alone.at(1)) {
		t.Errorf("a write took %v, want at most %v", beside.at(1), most)
	}
	if *full && seen.at(1) > visible {
		t.Errorf("a record was seen after %v, want at most %v", seen.at(1), visible)
	}
}

// seed writes records before the process starts.
func (w *weir) seed(n int) {
	w.t.Helper()
	b := sqlite.New(w.database())
	if _, err := b.Open(w.t.Context(), &storage.Host{Journal: uuid.UUID{1}}); err != nil {
		w.t.Fatal(err)
	}
	defer b.Close()
	const size = 5000
	start := storage.Millis(time.Now().Add(-30 * 24 * time.Hour))
	for from := 0; from < n; from += size {
		batch := &storage.Batch{Journal: uuid.UUID{1}, ID: strconv.Itoa(from), End: storage.Position{Segment: 1, Ordinal: uint32(from + size)}}
		for i := from; i < min(from+size, n); i++ {
			r := &storage.Record{
				Org: "default", CreatedAt: start + storage.Timestamp(i), Provider: "openai", Dialect: plugins.Chat,
				Model: fmt.Sprint("model-", i%7), Path: "/v1/chat/completions", Status: plugins.Known(200),
				Latency: plugins.KnownDuration(time.Duration(i%5000) * time.Millisecond), Cost: plugins.KnownCost(plugins.Nanodollars(i % 1_000_000)),
				UserID: fmt.Sprint("user-", i*31%1000), SessionID: fmt.Sprint("session-", i/10),
				Properties: map[string]string{"feature": fmt.Sprint(i % 20)},
			}
			binary.BigEndian.PutUint64(r.ID[8:], uint64(i)+1)
			r.Usage.Input, r.Usage.Output = plugins.Known(int64(i%3000)), plugins.Known(int64(i%500))
			batch.Records = append(batch.Records, r)
		}
		if err := b.Write(w.t.Context(), batch); err != nil {
			w.t.Fatal(err)
		}
	}
}

// TestHeavyQueries asks a hundred queries over all records at the same time. Each must
// be answered or refused, and calls must pass almost as fast as without them.
func TestHeavyQueries(t *testing.T) {
	p := newProvider(t)
	w := newWeir(t, p)
	w.seed(*seeded)
	keys := []string{key}
	llm := ""
	for i := range 9 {
		keys = append(keys, fmt.Sprint("asker-", i))
		llm += "key " + keys[i+1] + "\n"
	}
	w.start(config{llm: llm})
	call := func() { p.call(chat).must(t, w) }
	heavy := []struct{ path, body string }{
		{"/v1/user/metrics/query", `{"filter":"all","sort":{"cost":"desc"},"limit":100}`},
		{"/v1/user/metrics-overview/query", `{"filter":"all","pSize":"p99"}`},
		{"/v1/session/query", `{"sort":{"total_cost":"desc"},"limit":100}`},
		{"/v1/session/metrics/query", `{"pSize":"p99"}`},
		{"/v1/dashboard/scores/query", `{"dbIncrement":"day","userFilter":"all"}`},
		{"/v1/request/query-clickhouse", `{"filter":{"request_response_rmt":{"properties":{"feature":{"contains":"nothing"}}}},"limit":100}`},
		{"/v1/request/query", `{"filter":{"request_response_rmt":{"user_id":{"contains":"nobody"}}},"sort":{"cost":"desc"},"limit":1000}`},
	}
	ask := func(i int) int {
		q := heavy[i%len(heavy)]
		r, err := http.NewRequest("POST", "http://"+w.site+q.path, strings.NewReader(q.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+keys[i%len(keys)])
		response, err := calling.Do(r)
		if err != nil {
			t.Error(err)
			return 0
		}
		response.Body.Close()
		return response.StatusCode
	}
	w.await("the first query is answered", func() bool { return ask(0) == http.StatusOK })
	during(after(time.Duration(rounds(100, 1000))*time.Millisecond), 0, call) // connections and caches
	alone := during(after(time.Duration(rounds(100, 10_000))*time.Millisecond), 0, call)

	const n = 100
	var queries sync.WaitGroup
	var mu sync.Mutex
	statuses := map[int]int{}
	var asked timings
	for i := range n {
		queries.Go(func() {
			start := time.Now()
			status := ask(i)
			if status != http.StatusOK && status != http.StatusTooManyRequests {
				t.Errorf("%s is answered with %d", heavy[i%len(heavy)].path, status)
			}
			mu.Lock()
			defer mu.Unlock()
			statuses[status]++
			asked = append(asked, time.Since(start))
		})
	}
	answered := make(chan struct{})
	go func() {
		queries.Wait()
		close(answered)
	}()
	beside := during(answered, 0, call)
	t.Logf("%d records: calls alone %v; beside the queries %v; queries %v; answers %v", *seeded, alone, beside, asked, statuses)
	if *full && *seeded >= 1_000_000 && len(beside) > 0 && 2*beside.at(0.5) > 3*alone.at(0.5) {
		t.Errorf("calls take %v beside the queries, and %v without", beside.at(0.5), alone.at(0.5))
	}
	if *full && *seeded >= 1_000_000 && len(beside) > 0 && beside.at(0.99) > 2*alone.at(0.99) {
		t.Errorf("of 100 calls, one takes %v beside the queries, and %v without", beside.at(0.99), alone.at(0.99))
	}
}
