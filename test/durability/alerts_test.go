//go:build linux

package durability

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

var receiverDown = flag.Duration("receiver-down", 2*time.Minute, "how long the receiver of alerts is down in TestNodesAlert")

// alertReceiver takes the messages of a channel, unless it is down.
type alertReceiver struct {
	down atomic.Bool
	hold chan struct{} // until it is closed, a refused attempt has no answer

	mu       sync.Mutex
	attempts map[string]int // by the id of the message; guarded by mu
	taken    []gjson.Result // guarded by mu
}

func (a *alertReceiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.attempts[r.Header.Get("Webhook-Id")]++
	if !a.down.Load() {
		a.taken = append(a.taken, gjson.ParseBytes(body))
		return
	}
	a.mu.Unlock()
	select {
	case <-a.hold:
	case <-r.Context().Done():
	}
	a.mu.Lock()
	w.WriteHeader(http.StatusServiceUnavailable)
}

// tried is how many attempts there were in all.
func (a *alertReceiver) tried() (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, attempts := range a.attempts {
		n += attempts
	}
	return n
}

// told are the messages that the receiver has taken, in words.
func (a *alertReceiver) told() (all []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range a.taken {
		all = append(all, m.Get("type").Str+" "+m.Get("data.rule").Str)
	}
	return all
}

// TestNodesAlert makes calls at three nodes that share a Redis, far above the threshold of a rule
// that one of them was told. The receiver is down, and every node is killed in an attempt. It is
// told once when it is back, and once that the calls have ended, and both are kept.
func TestNodesAlert(t *testing.T) {
	if !*full {
		t.Skip("takes ten minutes: -full")
	}
	t.Parallel()
	program := clusterProgram(t)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"c","object":"chat.completion","model":"gpt-4o","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}`)
	}))
	t.Cleanup(upstream.Close)
	receiver := &alertReceiver{hold: make(chan struct{}), attempts: make(map[string]int)}
	receiver.down.Store(true)
	hook := httptest.NewServer(receiver)
	t.Cleanup(hook.Close)
	redis := startRedis(t)
	c := config{
		store: "shared redis redis://127.0.0.1:" + redis.port + " {\nlease 2s\n}",
		site:  "llm_control",
		llm:   "secret the-same\nkey alerts-admin admin\nchannel ops webhook " + hook.URL + " {\nsecret whsec_c2VjcmV0IHNlY3JldCBzZWNyZXQgc2VjcmV0IQ==\n}",
	}
	var nodes [3]*weir
	for i := range nodes {
		nodes[i] = newWeir(t, newProvider(t))
		nodes[i].program, nodes[i].upstream = program, upstream.URL
		nodes[i].start(c)
	}
	administer := func(w *weir, method, path, body string) gjson.Result {
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+w.site+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer alerts-admin")
		answer, err := exchange(r)
		if err != nil {
			t.Fatal(err)
		}
		return gjson.GetBytes(answer, "data")
	}
	const rule = `{"name":"busy","total":"requests","operator":">","threshold":10,"over":"1m","to":["ops"]}`
	administer(nodes[0], "POST", "/v1/alerts/rules", rule)
	for _, w := range nodes {
		w.await("each node knows the rule", func() bool {
			return administer(w, "GET", "/v1/alerts/rules", "").Get(`items.#(name=="busy").total`).Str == "requests"
		})
	}

	var answered atomic.Int64
	var over atomic.Bool
	var callers sync.WaitGroup
	defer callers.Wait()
	defer over.Store(true)
	for i := range 2 * len(nodes) {
		callers.Go(func() {
			for !over.Load() {
				r, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+nodes[i%len(nodes)].site+"/openai/v1/chat/completions",
					strings.NewReader(`{"model":"gpt-4o","messages":[{"role":"user","content":"Hi"}]}`))
				if err != nil {
					t.Error(err)
					return
				}
				response, err := calling.Do(r)
				if err != nil { // the node is killed
					time.Sleep(50 * time.Millisecond)
					continue
				}
				_, _ = io.Copy(io.Discard, response.Body)
				response.Body.Close()
				answered.Add(1)
			}
		})
	}
	until := func(what string, limit time.Duration, happened func() bool) {
		t.Helper()
		for end := time.Now().Add(limit); !happened(); time.Sleep(100 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: that did not come about. The receiver was told %q in %d attempts", what, receiver.told(), receiver.tried())
			}
		}
	}
	until("the alert fires", 2*time.Minute+waitLimit, func() bool { return receiver.tried() > 0 })
	began := time.Now()
	for _, w := range nodes { // one of them is in the attempt, which has no answer
		w.kill()
		w.start(c)
	}
	close(receiver.hold)
	time.Sleep(*receiverDown - time.Since(began))
	if told := receiver.told(); told != nil || receiver.tried() < 3 {
		t.Errorf("%q in %d attempts at a receiver that is down prove nothing", told, receiver.tried())
	}
	receiver.down.Store(false)
	until("the receiver is told", max(3*time.Minute, *receiverDown+time.Minute), func() bool { return len(receiver.told()) > 0 })
	over.Store(true)
	until("the receiver is told of the end", 10*time.Minute, func() bool { return len(receiver.told()) > 1 })
	time.Sleep(time.Minute) // nothing more comes with the next evaluation
	if told := receiver.told(); !slices.Equal(told, []string{"alert.firing busy", "alert.resolved busy"}) {
		t.Fatalf("the receiver was told %q", told)
	}
	firing := receiver.taken[0].Get("data.id").Str
	if resolved := receiver.taken[1].Get("data.id").Str; resolved != firing || len(receiver.attempts) != 2 {
		t.Errorf("%s fired, %s is resolved, with the messages %v", firing, resolved, receiver.attempts)
	}
	for i, w := range nodes {
		f := administer(w, "GET", "/v1/alerts/"+firing, "")
		for _, d := range f.Get("deliveries").Array() {
			if receiver.attempts[d.Get("id").Str] == 0 || d.Get("delivered_at").Str == "" || d.Get("next_at").Type != gjson.Null {
				t.Errorf("node %d keeps the message as %s", i, d.Raw)
			}
		}
		if fmt.Sprint(f.Get("deliveries.#.state").Value()) != "[firing resolved]" {
			t.Errorf("node %d keeps %s", i, f.Raw)
		}
	}
	t.Logf("%d calls at three nodes, the receiver was down for %s: attempts by message: %v", answered.Load(), *receiverDown, receiver.attempts)
}
