//go:build linux

package cluster

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// keyFile is a node whose keys are in Redis.
const keyFile = `{
	admin off
	persist_config off
	llm {
		store sqlite {$WEIR_DATA}/weir.db {
			shared redis {$REDIS_URL}
		}
		secret the-same
		provider echo
		key k admin
	}
}
http://:{$WEIR_PORT} {
	bind 127.0.0.1
	llm_gateway
	llm_control
	llm_health
}
`

// attempt is one call with one secret of a key.
type attempt struct {
	secret       string
	began, ended time.Time
	status       int
}

// A key is rotated again and again while clients call three nodes, and Redis is killed. No node
// refuses a secret within its overlap, and no node takes a secret a second after its end.
func TestRotation(t *testing.T) {
	if *rate == 0 {
		t.Skip("takes 3 seconds for each kill: -rate 1000")
	}
	const overlap = 2 * time.Second
	c, started := sharing(t, keyFile, nodes)
	node := func() string { return started[rand.N(nodes)].address() }
	status, answer := ask(t, "POST", node()+"/v1/keys", `{"name":"x","scopes":["gateway"]}`)
	id, secret := gjson.Get(answer, "data.id").Str, gjson.Get(answer, "data.secret").Str
	if status != http.StatusCreated {
		t.Fatal(status, answer)
	}

	var mu sync.Mutex
	secrets := []string{secret}
	since := map[string]time.Time{secret: time.Now()} // of the answer that had the secret
	var attempts []attempt
	var stopped atomic.Bool
	var group sync.WaitGroup
	began := time.Now()
	for n := range *clients {
		group.Go(func() {
			every := time.Duration(*clients) * time.Second / time.Duration(*rate)
			for at := began.Add(every * time.Duration(n) / time.Duration(*clients)); !stopped.Load(); at = at.Add(every) {
				time.Sleep(time.Until(at))
				mu.Lock()
				known := secrets[max(0, len(secrets)-3):]
				mu.Unlock()
				a := try(t, node(), known[rand.N(len(known))])
				mu.Lock()
				attempts = append(attempts, a)
				mu.Unlock()
			}
		})
	}
	for range *kills {
		for range 2 {
			for next := ""; next == ""; time.Sleep(20 * time.Millisecond) {
				_, answer := ask(t, "POST", node()+"/v1/keys/"+id+"/rotate", fmt.Sprintf(`{"overlap_seconds":%d}`, int(overlap.Seconds())))
				if next = gjson.Get(answer, "data.secret").Str; next != "" {
					mu.Lock()
					secrets, since[next] = append(secrets, next), time.Now()
					mu.Unlock()
				}
			}
			time.Sleep(time.Second + rand.N(overlap/2))
		}
		c.killRedis()
	}
	time.Sleep(overlap)
	stopped.Store(true)
	group.Wait()
	took := time.Since(began)

	ends := c.ends(node(), id)
	var accepted, refusedAfter, unheard, passed, refused int
	for _, a := range attempts {
		end, has := ends[a.secret[len(a.secret)-4:]]
		within := a.began.After(since[a.secret]) && (!has || a.ended.Before(end))
		switch {
		case a.status == http.StatusOK && has && a.began.After(end.Add(time.Second)):
			passed++
			t.Errorf("a secret opens %s after its end", a.began.Sub(end))
		case a.status == http.StatusOK:
			accepted++
		case !within:
			refusedAfter++
		case a.status == http.StatusServiceUnavailable && a.began.Before(since[a.secret].Add(time.Second)):
			unheard++ // Redis was killed before the node heard of the secret
		default:
			refused++
			t.Errorf("a secret within its overlap is answered with %d, %s after it was made", a.status, a.began.Sub(since[a.secret]))
		}
	}
	t.Logf("%d calls in %s (%.0f a second), %d rotations, Redis killed %d times: %d accepted, %d refused within the overlap, %d passed a second after it, %d refused after the end, %d before their node could ask",
		len(attempts), took.Round(time.Second), float64(len(attempts))/took.Seconds(), len(secrets)-1, *kills, accepted, refused, passed, refusedAfter, unheard)
}

// try calls a model with a secret.
func try(t *testing.T, address, secret string) attempt {
	a := attempt{secret: secret, began: time.Now()}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/v1/chat/completions", strings.NewReader(`{"model":"echo/echo-1","messages":[{"role":"user","content":"hi"}]}`))
	if err != nil {
		t.Error(err)
		return a
	}
	r.Header.Set("Authorization", "Bearer "+secret)
	resp, err := http.DefaultClient.Do(r)
	if err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		a.status = resp.StatusCode
	}
	a.ended = time.Now()
	return a
}

// ends are when the secrets of a key ended, by their last four characters, as the audit log says.
func (c *cluster) ends(address, id string) map[string]time.Time {
	c.t.Helper()
	ends := map[string]time.Time{}
	_, answer := ask(c.t, "GET", address+"/v1/audit?limit=200&key="+id, "")
	for _, event := range gjson.Get(answer, "data.items").Array() { // the newest first
		for _, s := range event.Get("after.secrets").Array() {
			end, last4 := s.Get("ends_at").Time(), s.Get("last4").Str
			if _, known := ends[last4]; !known && s.Get("ends_at").Type == gjson.String {
				ends[last4] = end
			}
		}
	}
	if len(ends) == 0 {
		c.t.Fatal("no secret ended: ", answer)
	}
	return ends
}
