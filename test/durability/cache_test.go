//go:build linux

package durability

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// paidAnswers are the answers that a provider has given, by their bytes: for which credential
// and request.
type paidAnswers struct {
	sync.Map
	serial atomic.Int64
}

// ServeHTTP answers Chat Completions as no other provider would: each answer names who paid for it,
// what was asked, and how many were given before. Some fail, some break off.
func (p *paidAnswers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	request := gjson.ParseBytes(body)
	who := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	question := who + " " + request.Get("messages.0.content").Str
	text := fmt.Sprintf("%s %d", question, p.serial.Add(1))
	time.Sleep(rand.N(5 * time.Millisecond))
	fate := rand.N(20)
	if fate == 0 {
		http.Error(w, `{"error":{"message":"No luck.","type":"server_error"}}`, http.StatusInternalServerError)
		return
	}
	if !request.Get("stream").Bool() {
		answer := fmt.Sprintf(`{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}`, text)
		p.Store(answer, question)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
		return
	}
	begin := fmt.Sprintf("data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":%q}}]}\n\n", text)
	end := "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
	p.Store(begin+end, question)
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, begin)
	_ = http.NewResponseController(w).Flush()
	time.Sleep(rand.N(5 * time.Millisecond))
	if fate == 1 {
		panic(http.ErrAbortHandler)
	}
	_, _ = io.WriteString(w, end)
}

// TestCacheKill asks equal and different questions for three organisations at once, through the
// gateway and a proxy, while providers fail, clients leave and the process is killed. Each answer
// that a client has to its end is one that the provider has given to its organisation for its
// question, byte for byte.
func TestCacheKill(t *testing.T) {
	t.Parallel()
	given := new(paidAnswers)
	upstream := httptest.NewServer(given)
	t.Cleanup(upstream.Close)
	w := newWeir(t, &provider{Server: upstream})
	c := config{site: "llm_gateway"}
	for _, org := range []string{"a", "b", "c"} {
		c.llm += fmt.Sprintf("org %s {\nkey key-%[1]s\nprovider lab compatible {\nbase_url %s/v1\napi_key lab-%[1]s\n}\n}\n", org, upstream.URL)
	}
	var answered, hits, questions atomic.Int64
	for range killings() {
		w.start(c)
		var killed atomic.Bool
		var group sync.WaitGroup
		for range 16 {
			group.Go(func() {
				for !killed.Load() {
					questions.Add(1)
					hit, ok := given.call(t, w, []string{"a", "b", "c"}[rand.N(3)], rand.N(4) == 0)
					if ok {
						answered.Add(1)
					}
					if hit {
						hits.Add(1)
					}
				}
			})
		}
		time.Sleep(lifetime() + 300*time.Millisecond)
		killed.Store(true)
		w.kill()
		group.Wait()
	}
	w.start(c)
	if answered.Load() == 0 || hits.Load() == 0 {
		t.Errorf("%d of %d questions were answered, %d from the cache", answered.Load(), questions.Load(), hits.Load())
	}
	t.Logf("%d questions, %d answered, %d of them from the cache, %d answers of the provider", questions.Load(), answered.Load(), hits.Load(), given.serial.Load())
}

// call asks a question, and checks the answer if the client gets one to its end.
func (p *paidAnswers) call(t *testing.T, w *weir, org string, leaves bool) (hit, answered bool) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	prompt := fmt.Sprint("question ", rand.N(8))
	path, who, model := "/v1/chat/completions", "lab-"+org, "lab/m"
	proxied := rand.N(2) == 0
	if proxied {
		path, who, model = "/openai/v1/chat/completions", "own-"+org, "m"
	}
	stream := rand.N(2) == 0
	body := fmt.Sprintf(`{"model":%q,"stream":%t,"messages":[{"role":"user","content":%q}]}`, model, stream, prompt)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+w.site+path, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return false, false
	}
	r.Header.Set("Service-Cache-Enabled", "true")
	if proxied {
		r.Header.Set("Service-Auth", "Bearer key-"+org)
		r.Header.Set("Authorization", "Bearer "+who)
	} else {
		r.Header.Set("Authorization", "Bearer key-"+org)
	}
	if leaves {
		defer time.AfterFunc(rand.N(5*time.Millisecond), cancel).Stop()
	}
	response, err := calling.Do(r)
	if err != nil {
		return false, false // the client has left, or the process is killed
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || stream && !strings.HasSuffix(string(answer), "data: [DONE]\n\n") {
		return false, false
	}
	hit = response.Header.Get("Service-Cache") == "HIT"
	if question, ok := p.Load(string(answer)); !ok || question != who+" "+prompt {
		t.Errorf("%s asked %q, and got %s (hit: %t)", who, prompt, answer, hit)
	}
	return hit, true
}
