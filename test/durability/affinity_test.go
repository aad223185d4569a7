//go:build linux

package durability

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"
)

// talkedTo are the accounts that each conversation was at, in the order of its turns.
type talkedTo struct {
	mu       sync.Mutex
	accounts map[string][]string // by the conversation's first message; guarded by mu
}

func (p *talkedTo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	account, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	conversation := gjson.GetBytes(body, "messages.0.content").Str
	p.mu.Lock()
	defer p.mu.Unlock()
	p.accounts[conversation] = append(p.accounts[conversation], account)
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Turn %d."},"finish_reason":"stop"}],"usage":{"prompt_tokens":5000,"completion_tokens":5,"total_tokens":5005}}`, len(p.accounts[conversation]))
}

// TestNodesAffinity sends the turns of conversations to two nodes by chance, while one of them is
// killed. Each conversation stays at the account that has its cache, without a header, and first turns
// are divided among the accounts.
func TestNodesAffinity(t *testing.T) {
	if !*full {
		t.Skip("builds a program of its own: -full")
	}
	t.Parallel()
	const accounts, conversations, turns = 4, 40, 10
	provider := &talkedTo{accounts: make(map[string][]string)}
	upstream := httptest.NewServer(provider)
	t.Cleanup(upstream.Close)
	program, redis := clusterProgram(t), startRedis(t)
	c := config{store: "shared redis redis://127.0.0.1:" + redis.port + " {\nlease 2s\n}", site: "llm_gateway", llm: "secret the-same\nkey affinity-key\n"}
	var models strings.Builder
	for i := range accounts {
		c.llm += fmt.Sprintf("provider a%d compatible {\nbase_url %s/a%[1]d/v1\napi_key x\n}\n", i, upstream.URL)
		_, _ = fmt.Fprintf(&models, "model a%d/m\n", i)
	}
	c.llm += "alias pool {\nstrategy weight\n" + models.String() + "}"
	var nodes [2]*weir
	for i := range nodes {
		nodes[i] = newWeir(t, newProvider(t))
		nodes[i].program, nodes[i].upstream = program, upstream.URL
		nodes[i].start(c)
	}
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	var talks [conversations][]message
	for turn := range turns {
		if turn == turns/2 {
			nodes[0].kill()
			nodes[0].start(c)
		}
		for i := range talks {
			talks[i] = append(talks[i], message{"user", fmt.Sprintf("Conversation %d, turn %d.", i, turn)})
			body, err := json.Marshal(map[string]any{"model": "pool", "messages": talks[i]})
			if err != nil {
				t.Fatal(err)
			}
			node := nodes[rand.N(len(nodes))]
			var answer []byte
			node.await("the node is connected, and answers", func() bool {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+node.site+"/v1/chat/completions", bytes.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Authorization", "Bearer affinity-key")
				answer, err = exchange(r)
				return err == nil
			})
			talks[i] = append(talks[i], message{"assistant", gjson.GetBytes(answer, "choices.0.message.content").Str})
		}
	}
	first, moved := make(map[string]int), 0
	for conversation, at := range provider.accounts {
		if len(at) != turns {
			t.Errorf("%s has %d turns", conversation, len(at))
		}
		first[at[0]]++
		for i := 1; i < len(at); i++ {
			if at[i] != at[i-1] {
				moved++
			}
		}
	}
	if len(first) != accounts || moved > 0 {
		t.Errorf("of %d turns, %d are at another account than the turn before; first turns: %v", conversations*(turns-1), moved, first)
	}
}
