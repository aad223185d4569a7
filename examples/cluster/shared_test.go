//go:build linux

package cluster

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// nodeFile is a node with records of its own, which shares the rest.
const nodeFile = `{
	admin off
	persist_config off
	llm {
		store sqlite {$WEIR_DATA}/weir.db {
			shared redis {$REDIS_URL}
		}
		secret the-same
		provider bad anthropic {
			base_url {$UPSTREAM}/bad
			api_key x
		}
		provider good anthropic {
			base_url {$UPSTREAM}/good
			api_key x
		}
		alias both bad/claude-haiku-4-5 good/claude-haiku-4-5
		key k
	}
}
http://:{$WEIR_PORT} {
	bind 127.0.0.1
	llm_gateway
	llm_health
}
`

// A loop of tool calls that began at one node goes on at another with the reasoning that
// the client left out, and a provider that failed one node comes last at the other. Each
// goes on alone while Redis is dead.
func TestNodesShare(t *testing.T) {
	p := new(provider)
	upstream := httptest.NewServer(p)
	t.Cleanup(upstream.Close)
	c, started := sharing(t, nodeFile, 2, "UPSTREAM="+upstream.URL)
	a, b := started[0].address(), started[1].address()

	calls := 0
	// goesOn begins a loop at one node, goes on at another, and reports whether the
	// provider has its reasoning back.
	goesOn := func(first, second string) bool {
		t.Helper()
		calls++
		id := fmt.Sprint("toolu_", calls)
		p.answer(id)
		respond(t, first, `{"model":"good/claude-haiku-4-5","input":"hi","reasoning":{"effort":"low"},"store":false,"tools":[{"type":"function","name":"look","parameters":{"type":"object"}}]}`)
		respond(t, second, `{"model":"good/claude-haiku-4-5","reasoning":{"effort":"low"},"store":false,"tools":[{"type":"function","name":"look","parameters":{"type":"object"}}],
			"input":[{"role":"user","content":"hi"},{"type":"function_call","call_id":"`+id+`","name":"look","arguments":"{}"},{"type":"function_call_output","call_id":"`+id+`","output":"it"}]}`)
		return strings.Contains(p.received(), "c2lnbmF0dXJl")
	}
	eventually := func(what string, f func() bool) {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); !f(); time.Sleep(100 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: not within 30 seconds", what)
			}
		}
	}
	eventually("a loop that goes on at another node", func() bool { return goesOn(a, b) && goesOn(b, a) })
	for range 10 {
		if !goesOn(a, b) {
			t.Error("a loop that went on at another node had no reasoning")
		}
	}

	_ = c.server.Process.Kill()
	_ = c.server.Wait()
	if !goesOn(a, a) {
		t.Error("a loop at one node has no reasoning while Redis is dead")
	}
	if goesOn(a, b) {
		t.Error("nodes share while Redis is dead")
	}
	c.startRedis()
	eventually("after Redis is back, a loop that goes on at another node", func() bool { return goesOn(a, b) && goesOn(b, a) })

	for range 2 { // with a retry each
		respond(t, a, `{"model":"both","input":"hi"}`)
	}
	failures := p.failures()
	if failures < 3 {
		t.Fatalf("the provider failed %d times", failures)
	}
	time.Sleep(3 * time.Second) // the other node learns of it within one
	respond(t, b, `{"model":"both","input":"hi"}`)
	if n := p.failures(); n != failures {
		t.Errorf("the other node asked the provider that had failed %d times", n-failures)
	}
}

func respond(t *testing.T, address, body string) {
	t.Helper()
	if status, answer := ask(t, http.MethodPost, address+"/v1/responses", body); status != http.StatusOK {
		t.Fatalf("%d %s", status, answer)
	}
}

// ask makes a request with the key k.
func ask(t *testing.T, method, url, body string) (status int, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer k")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// provider thinks, and calls a tool. One path of it always fails.
type provider struct {
	mu         sync.Mutex
	call, last string
	failed     int
}

func (p *provider) answer(call string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.call = call
}

func (p *provider) received() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

func (p *provider) failures() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	p.mu.Lock()
	defer p.mu.Unlock()
	if strings.HasPrefix(r.URL.Path, "/bad") {
		p.failed++
		http.Error(w, `{"type":"error","error":{"type":"api_error","message":"no luck"}}`, http.StatusInternalServerError)
		return
	}
	p.last = string(body)
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"id":"msg_1","type":"message","role":"assistant","model":"claude-haiku-4-5","stop_reason":"tool_use","content":[
		{"type":"thinking","thinking":"Where?","signature":"c2lnbmF0dXJl"},{"type":"tool_use","id":%q,"name":"look","input":{}}],"usage":{"input_tokens":1,"output_tokens":1}}`, p.call)
}
