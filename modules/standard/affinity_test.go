//go:build !race

package standard

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"
)

// cachingProvider is a vendor with several accounts, each with a cache of its own, by the vendor's
// rules: OpenAI keeps prefixes by 128 tokens from 1,024 on, Anthropic keeps what stands
// before a mark. A token is four bytes.
type cachingProvider struct {
	mu       sync.Mutex
	caches   map[string]map[uint64]bool // by account: the prefixes that it has
	refuse   map[string]int             // by account: the status that it answers
	read     int64                      // tokens
	received int64
}

func newCachingProvider(t *testing.T) (p *cachingProvider, address string) {
	p = &cachingProvider{caches: make(map[string]map[uint64]bool), refuse: make(map[string]int)}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	return p, server.URL
}

func (p *cachingProvider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	account, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	p.mu.Lock()
	defer p.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if status := p.refuse[account]; status != 0 {
		w.Header().Set("Retry-After", "20")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"error":{"message":"not now","type":"error"}}`)
		return
	}
	var request struct{ Messages []json.RawMessage }
	_ = json.Unmarshal(body, &request)
	marked := strings.Contains(r.URL.Path, "/messages")
	read, written, total := p.take(account, request.Messages, marked)
	if marked {
		_, _ = fmt.Fprintf(w, `{"id":"msg","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"ok"}],"stop_reason":"end_turn",
			"usage":{"input_tokens":%d,"cache_read_input_tokens":%d,"cache_creation_input_tokens":%d,"output_tokens":5}}`, total-read-written, read, written)
		return
	}
	_, _ = fmt.Fprintf(w, `{"id":"c","object":"chat.completion","model":"gpt-5-nano","choices":[{"index":0,"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}],
		"usage":{"prompt_tokens":%d,"completion_tokens":5,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d}}}`, total, total+5, read)
}

// take returns what an account's cache has of a conversation, in tokens, and keeps the conversation.
func (p *cachingProvider) take(account string, messages []json.RawMessage, marked bool) (read, written, total int64) {
	cache := p.caches[account]
	if cache == nil {
		cache = make(map[uint64]bool)
		p.caches[account] = cache
	}
	h := fnv.New64a()
	bytes, keep := int64(0), []uint64(nil)
	for _, m := range messages {
		text := strings.ReplaceAll(string(m), `,"cache_control":{"type":"ephemeral"}`, "")
		for len(text) > 0 {
			n := min(len(text), int(512-bytes%512))
			_, _ = io.WriteString(h, text[:n])
			text, bytes = text[n:], bytes+int64(n)
			at := h.Sum64()
			if marked && len(text) == 0 || !marked && bytes%512 == 0 && bytes >= 4096 {
				if cache[at] && bytes >= 4096 {
					read = bytes / 4
				}
				keep = append(keep, at)
			}
		}
	}
	for _, at := range keep {
		cache[at] = true
	}
	total = bytes / 4
	if marked {
		written = total - read
	}
	p.read, p.received = p.read+read, p.received+total
	return read, written, total
}

// share is the part of all input that a cache served.
func (p *cachingProvider) share() float64 { return float64(p.read) / float64(p.received) }

// conversation is that of an agent: all agents have the same instructions.
type conversation struct{ messages []json.RawMessage }

var instructions = strings.Repeat("You are an agent. ", 8000/18)

func (c *conversation) next(agent, turn int, marked bool) []json.RawMessage {
	text := fmt.Sprintf("agent %d turn %d %s", agent, turn, strings.Repeat(fmt.Sprintf("%d-%d ", agent, turn), 100))
	if turn == 0 {
		text = instructions + text
	}
	if turn > 0 {
		c.messages = append(c.messages, json.RawMessage(`{"role":"assistant","content":"ok"}`))
	}
	c.messages = append(c.messages, json.RawMessage(fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":%q}]}`, text)))
	asked := append([]json.RawMessage(nil), c.messages...)
	if marked {
		last := string(asked[len(asked)-1])
		asked[len(asked)-1] = json.RawMessage(strings.Replace(last, `"}]}`, `","cache_control":{"type":"ephemeral"}}]}`, 1))
	}
	return asked
}

const (
	agents   = 40
	turns    = 30
	accounts = 8
)

// A conversation stays at the account whose cache has it, without a header, while others are as
// good. An account that dies, or is at its limit, loses its conversations within one call and no
// client sees it. The caches serve nearly what that of a single account does.
func TestConversationsStayAtTheirAccount(t *testing.T) {
	for _, vendor := range []struct {
		kind, base, model, path string
		marked                  bool
	}{
		{"openai", "/v1", "gpt-5-nano", "/v1/chat/completions", false},
		{"anthropic", "", "claude-sonnet-4-5", "/v1/messages", true},
	} {
		t.Run(vendor.kind, func(t *testing.T) {
			p, address := newCachingProvider(t)
			var providers, models strings.Builder
			for i := range accounts {
				_, _ = fmt.Fprintf(&providers, "provider a%d %s {\nbase_url %s/a%d%s\napi_key k%d\n}\n", i, vendor.kind, address, i, vendor.base, i)
				_, _ = fmt.Fprintf(&models, "model a%d/%s\n", i, vendor.model)
			}
			s := serveWith(t, strings.ReplaceAll(strings.ReplaceAll(poolConfig, "PROVIDERS", providers.String()), "MODELS", models.String()), address)
			call := func(c *conversation, agent, turn int) {
				messages, _ := json.Marshal(c.next(agent, turn, vendor.marked))
				resp, answer := s.ask("POST", vendor.path, fmt.Sprintf(`{"model":"pool","max_tokens":50,"messages":%s}`, messages), "Authorization", "Bearer weir-root")
				if resp.StatusCode != 200 {
					t.Fatalf("agent %d, turn %d: %d %s", agent, turn, resp.StatusCode, answer)
				}
			}
			var talks [agents]conversation
			for turn := range turns {
				p.mu.Lock()
				switch turn {
				case 6:
					p.refuse["a3"] = 503
				case 8:
					p.refuse["a5"] = 429
				}
				p.mu.Unlock()
				for agent := range agents {
					call(&talks[agent], agent, turn)
				}
			}
			single, random := simulate(func() string { return "one" }, vendor.marked), simulate(func() string { return fmt.Sprint(rand.N(accounts)) }, vendor.marked)
			if got := p.share(); got < single-0.02 {
				t.Errorf("the caches of %d accounts serve %.4f of the input, that of one %.4f", accounts, got, single)
			} else {
				t.Logf("cached: %.4f, at one account %.4f, at random %.4f", got, single, random)
			}
			messages, _ := json.Marshal(talks[0].next(0, turns, vendor.marked))
			_, where := s.ask("POST", vendor.path, fmt.Sprintf(`{"model":"pool","max_tokens":50,"messages":%s}`, messages), "Authorization", "Bearer weir-root", "Service-Dry-Run", "true")
			if first := gjson.Get(where, "targets.0"); first.Get("state").Str != "warm" || first.Get("cached_tokens").Int() < 2000 || gjson.Get(where, "targets.#").Int() != accounts {
				t.Errorf("a dry run says %s", where)
			}
			s.flush()
			records := s.send("POST", "/v1/request/query", "weir-root", jsonType, []byte(`{"filter":"all","limit":1000}`)).body
			_, tried := s.ask("POST", "/v1/whatif", `{"filter":"all","policy":"pool"}`, "Authorization", "Bearer weir-root")
			total := gjson.Get(tried[strings.LastIndex(strings.TrimSpace(tried), "\n")+1:], "data.total")
			if spent := total.Get("recorded_cost").Raw; spent == "" || spent == "0" || total.Get("low_cost").Raw != spent || total.Get("high_cost").Raw != spent || total.Get("unknown_calls").Int() != 0 {
				t.Errorf("under the policy that ran, the calls would have cost %s", tried)
			}
			saved := 0
			for _, r := range gjson.Get(records, "data").Array() {
				if r.Get("arm").Str == "" {
					t.Errorf("a record has no arm: %s", r)
				}
				// A turn at the second account that was tried found nothing of the conversation.
				moved := r.Get("response_status").Int() != 200 || r.Get("cache_miss_reason").Str == "other_key"
				if r.Get("turn").Int() > 1 && !moved && r.Get("routing_savings").Float() <= 0 {
					t.Errorf("a turn does not say what was saved: %s", r)
				}
				if r.Get("routing_savings").Float() > 0 {
					saved++
				}
			}
			if saved < agents*turns*3/4 {
				t.Errorf("%d calls say what was saved", saved)
			}
		})
	}
}

const poolConfig = `{
	admin off
	persist_config off
	auto_https off
	llm {
		store sqlite %[1]s/weir.db
		PROVIDERS
		alias pool {
			strategy weight
			MODELS
		}
		org root {
			key weir-root
		}
	}
}
http://127.0.0.1:%[3]s {
	bind 127.0.0.1
	llm_gateway
	llm_query
	header X-Unused %[2]s
}`

// simulate returns what the caches serve of the input of the same agents, if each call goes to the
// account that next names.
func simulate(next func() string, marked bool) float64 {
	p := &cachingProvider{caches: make(map[string]map[uint64]bool)}
	var talks [agents]conversation
	for turn := range turns {
		for agent := range agents {
			p.take(next(), talks[agent].next(agent, turn, marked), marked)
		}
	}
	return p.share()
}
