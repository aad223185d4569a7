//go:build linux

// Package cluster holds that several nodes lose nothing and spend nothing twice.
package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	clients = flag.Int("clients", 40, "how many clients call at the same time")
	kills   = flag.Int("kills", 3, "how often a node, Redis and ClickHouse are killed each")
	rate    = flag.Int("rate", 0, "how many calls a second the clients make until the kills are over; 0: as many as they can, until 10 dollars are spent")
	pause   = flag.Duration("pause", 600*time.Millisecond, "how long at most between two kills")
	outage  = flag.Duration("outage", 5*time.Second, "how long ClickHouse is down")
)

const (
	nodes = 3
	// answered is what a call costs: 20 tokens in and 500 out of gpt-4o, or as many as the
	// call may have.
	answered = 5_050_000 // nanodollars
)

// Clients of three nodes spend the credits of one organisation, while nodes, Redis and
// ClickHouse are killed. The provider is never asked for more than what was granted, not
// even by calls whose node was killed. Every answer has its record, once, and the records
// cost what was spent, to the nanodollar: those of calls that a kill cut off have the most that
// these calls can have cost, as soon as the leases of the killed processes have ended.
func TestKills(t *testing.T) {
	c := start(t)
	began := time.Now()
	traffic := c.load(t, *rate)
	for range *kills {
		for _, kill := range []func(){c.killNode, c.killRedis, c.killClickHouse} {
			time.Sleep(rand.N(*pause))
			kill()
		}
	}
	if *rate > 0 {
		traffic.stop()
	}
	traffic.group.Wait()
	took := time.Since(began)

	records, cost := c.check(t, traffic)
	spent, asked := c.spent(t), c.asked.Load()
	for deadline := time.Now().Add(4 * time.Minute); spent != int64(math.Round(cost*1e9)) && time.Now().Before(deadline); time.Sleep(time.Second) {
		records, cost = c.check(t, traffic)
		spent = c.spent(t)
	}
	if spent > c.granted || asked > spent {
		t.Errorf("the provider was asked for %d, and %d are spent of %d", asked, spent, c.granted)
	}
	if spent != int64(math.Round(cost*1e9)) {
		t.Errorf("the records cost $%.9f, and $%.9f are spent", cost, float64(spent)/1e9)
	}
	t.Logf("%d answers in %s (%.0f a second), %d records of $%.4f, $%.4f are spent, the provider was asked for $%.4f, after %d kills of each",
		len(traffic.ended), took.Round(time.Second), float64(len(traffic.ended))/took.Seconds(), records, cost, float64(spent)/1e9, float64(asked)/1e9, *kills)
}

// While ClickHouse is down, calls are answered as before; their records are there when
// it is back.
func TestClickHouseOutage(t *testing.T) {
	c := start(t)
	perSecond := max(*rate, 20)
	before := c.load(t, perSecond)
	time.Sleep(min(*outage, 10*time.Second))
	before.stop()
	before.group.Wait()

	c.clickhouse.Kill()
	during := c.load(t, perSecond)
	time.Sleep(*outage)
	during.stop()
	during.group.Wait()
	c.clickhouse.Restart(t)
	for what, traffic := range map[string]*load{"before": before, "during": during} {
		if traffic.failed > 0 {
			t.Errorf("%s the outage %d calls failed, and %d were answered", what, traffic.failed, len(traffic.ended))
		}
		t.Logf("%s the outage: %d answers, half of them within %s, 99%% within %s", what, len(traffic.ended), traffic.within(50), traffic.within(99))
	}
	began := time.Now()
	c.check(t, before)
	records, cost := c.check(t, during)
	if spent := c.spent(t); int64(math.Round(cost*1e9)) != spent {
		t.Errorf("the records cost $%.9f, and $%.9f are spent", cost, float64(spent)/1e9)
	}
	t.Logf("after %s without ClickHouse all %d records were there within %s", *outage, records, time.Since(began).Round(time.Second))
}

// load is calls of many clients.
type load struct {
	stop  context.CancelFunc
	group sync.WaitGroup

	mu     sync.Mutex
	ended  map[string]bool // the ids of answers that a client had to their ends
	failed int             // calls without an answer
	took   []time.Duration // the answers
}

// load lets the clients make so many calls a second until they are stopped, or as many
// as they can until the credits are spent.
func (c *cluster) load(t *testing.T, perSecond int) *load {
	l := &load{ended: map[string]bool{}}
	ctx, stop := context.WithCancel(t.Context())
	l.stop = stop
	turns := make(chan struct{})
	l.group.Go(func() {
		defer close(turns)
		began := time.Now()
		for n := 1; ; n++ {
			if perSecond > 0 {
				time.Sleep(time.Until(began.Add(time.Duration(n) * time.Second / time.Duration(perSecond))))
			}
			select {
			case turns <- struct{}{}:
			case <-ctx.Done():
				return
			}
		}
	})
	var clientsLeft atomic.Int64
	clientsLeft.Store(int64(*clients))
	for range *clients {
		l.group.Go(func() {
			defer func() {
				if clientsLeft.Add(-1) == 0 {
					stop()
				}
			}()
			refused := 0
			for range turns {
				began := time.Now()
				status, id := c.call(t)
				l.count(t, status, id, time.Since(began))
				switch status {
				case http.StatusOK:
				case http.StatusPaymentRequired:
					if refused++; refused == 3 {
						return
					}
					time.Sleep(200 * time.Millisecond)
				default: // killed, or nothing to pay with
					refused = 0
					time.Sleep(50 * time.Millisecond)
				}
			}
		})
	}
	return l
}

func (l *load) count(t *testing.T, status int, id string, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if status != http.StatusOK {
		l.failed++
		return
	}
	if l.ended[id] {
		t.Errorf("two calls have the id %s", id)
	}
	l.ended[id] = true
	l.took = append(l.took, took)
}

// within is the time within which so many percent of the answers came.
func (l *load) within(percent int) time.Duration {
	if len(l.took) == 0 {
		return 0
	}
	slices.Sort(l.took)
	return l.took[(len(l.took)-1)*percent/100].Round(time.Millisecond)
}

// check waits for the records of all answers, and holds that each is there once. It
// returns how many records there are, and what all of them cost.
func (c *cluster) check(t *testing.T, l *load) (n int, cost float64) {
	t.Helper()
	var records map[string]int
	for deadline := time.Now().Add(3 * time.Minute); time.Now().Before(deadline); time.Sleep(time.Second) {
		if records, cost = c.records(t); missing(l.ended, records) == 0 {
			break
		}
	}
	if n := missing(l.ended, records); n > 0 {
		t.Errorf("of %d answers %d have no record", len(l.ended), n)
	}
	for id, n := range records {
		if n > 1 {
			t.Errorf("%s is recorded %d times", id, n)
		}
	}
	return len(records), cost
}

func missing(ended map[string]bool, records map[string]int) (n int) {
	for id := range ended {
		if records[id] == 0 {
			n++
		}
	}
	return n
}

// call makes one call of the organisation, with an id of its own. The status is 0 where
// the answer does not come to its end.
func (c *cluster) call(t *testing.T) (status int, id string) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	stream := rand.N(2) == 0
	body := fmt.Sprintf(`{"model":"openai/gpt-4o","max_tokens":1000,"stream":%t,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"What does it cost?"}]}`, stream)
	if !stream {
		body = strings.Replace(body, `"stream_options":{"include_usage":true},`, "", 1)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.balancer+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	r.Header.Set("Authorization", "Bearer weir-acme")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, ""
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil && !(stream && strings.HasSuffix(string(text), "[DONE]\n\n")) {
		return 0, ""
	}
	if resp.StatusCode == http.StatusOK && stream && !strings.HasSuffix(string(text), "[DONE]\n\n") {
		return 0, ""
	}
	return resp.StatusCode, resp.Header.Get("Service-Id")
}

// answer is the provider's.
func (c *cluster) answer(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Stream    bool
		MaxTokens int64 `json:"max_tokens"`
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	less := max(500-request.MaxTokens, 0)
	c.asked.Add(answered - less*10_000)
	usage := fmt.Sprintf(`{"prompt_tokens":20,"completion_tokens":%d,"total_tokens":%d}`, 500-less, 520-less)
	time.Sleep(rand.N(50 * time.Millisecond))
	if !request.Stream {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"c","object":"chat.completion","created":1,"model":"gpt-4o","choices":[{"index":0,"message":{"role":"assistant","content":"Little."},"finish_reason":"stop"}],"usage":%s}`, usage)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range []string{
		`{"id":"c","object":"chat.completion.chunk","created":1,"model":"gpt-4o","choices":[{"index":0,"delta":{"role":"assistant","content":"Little."},"finish_reason":null}]}`,
		`{"id":"c","object":"chat.completion.chunk","created":1,"model":"gpt-4o","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`,
		`{"id":"c","object":"chat.completion.chunk","created":1,"model":"gpt-4o","choices":[],"usage":` + usage + `}`,
		`[DONE]`,
	} {
		fmt.Fprintf(w, "data: %s\n\n", event)
		_ = http.NewResponseController(w).Flush()
		time.Sleep(rand.N(10 * time.Millisecond))
	}
}

// records are how often each id is recorded, and what all records cost, as the export
// of any node says.
func (c *cluster) records(t *testing.T) (ids map[string]int, cost float64) {
	t.Helper()
	ids = map[string]int{}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:"+c.nodes[rand.N(nodes)].port+"/v1/export", strings.NewReader(`{"filter":"all"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer weir-acme")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		t.Logf("export: %s: %s", resp.Status, text)
		return ids, 0
	}
	for d := json.NewDecoder(resp.Body); ; {
		var record struct {
			ID   string   `json:"request_id"`
			Cost *float64 `json:"cost"`
		}
		if err := d.Decode(&record); errors.Is(err, io.EOF) {
			return ids, cost
		} else if err != nil {
			t.Fatal(err)
		}
		ids[record.ID]++
		if record.Cost != nil {
			cost += *record.Cost
		}
	}
}

// spent is what the organisation has spent, as a node's admin endpoint says.
func (c *cluster) spent(t *testing.T) int64 {
	t.Helper()
	out, err := exec.Command(c.binary, "credits", "--format", "json", "--admin", "127.0.0.1:"+c.nodes[0].admin).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var balances []struct {
		Org   string      `json:"org"`
		Spent json.Number `json:"spent"`
	}
	if err := json.Unmarshal(out, &balances); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, b := range balances {
		if b.Org == "acme" {
			dollars, err := b.Spent.Float64()
			if err != nil {
				t.Fatal(err)
			}
			return int64(math.Round(dollars * 1e9))
		}
	}
	t.Fatalf("acme has no credits: %s", out)
	return 0
}
