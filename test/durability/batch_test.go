//go:build linux

package durability

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// batchMeter is a provider of batches that counts what it charges.
type batchMeter struct {
	mu      sync.Mutex
	charged int64 // nanodollars
	results []string
}

func (m *batchMeter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodGet {
		var n int
		if _, err := fmt.Sscanf(r.URL.Path, "/v1/messages/batches/msgbatch_%d/results", &n); err != nil {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, m.results[n])
		return
	}
	var request struct {
		Requests []struct {
			CustomID string `json:"custom_id"`
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		return // the process was killed
	}
	var lines strings.Builder
	for _, call := range request.Requests {
		out := rand.Int64N(tokensOut + 1)
		m.charged += (tokensIn*inPrice + out*outPrice) / 2
		fmt.Fprintf(&lines, `{"custom_id":%q,"result":{"type":"succeeded","message":{"id":"m","type":"message","role":"assistant","model":"claude-haiku-4-5","content":[{"type":"text","text":"Little."}],"stop_reason":"end_turn","usage":{"input_tokens":%d,"output_tokens":%d}}}}`+"\n",
			call.CustomID, tokensIn, out)
	}
	m.results = append(m.results, lines.String())
	time.Sleep(rand.N(30 * time.Millisecond))
	fmt.Fprintf(w, `{"id":"msgbatch_%d","type":"message_batch","processing_status":"in_progress"}`, len(m.results)-1)
}

// TestBatchCap lets clients spend a budget by batches, through a proxy, through one with the
// credentials of the gateway and through the gateway, while the process is killed. What the
// provider charges is spent, or still set aside for a batch whose maker was not told of it, and
// never more than the budget. The records cost what is spent, to the nanodollar.
func TestBatchCap(t *testing.T) {
	if !*full {
		t.Skip("takes half a minute: -full")
	}
	const limit, makers, calls = 2_000_000_000, 20, 20
	m := new(batchMeter)
	upstream := httptest.NewServer(m)
	t.Cleanup(upstream.Close)
	w := newWeir(t, newProvider(t))
	w.upstream = upstream.URL
	c := config{site: "llm_control\nllm_gateway\nhandle_path /paid/* {\nllm_proxy anthropic {\ncredentials platform\n}\n}", llm: `
		provider anthropic {
			base_url ` + upstream.URL + `
			api_key x
		}
		org payer {
			key payer-key
			budget cap 2 total
		}`}
	began := time.Now()
	w.start(c)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	call := fmt.Sprintf(`{"model":"claude-haiku-4-5","max_tokens":%d,"messages":[{"role":"user","content":"What does it cost?"}]}`, tokensOut)
	var list []string
	for n := range calls {
		list = append(list, fmt.Sprintf(`{"custom_id":"%d","params":%s}`, n, call))
	}
	batch := `{"requests":[` + strings.Join(list, ",") + `]}`
	var group sync.WaitGroup
	for n := range makers {
		lane := []string{"/anthropic", "", "/paid"}[n%3] + "/v1/messages/batches"
		group.Go(func() {
			for ctx.Err() == nil {
				status, answer := w.buy(ctx, "POST", lane, batch)
				switch status {
				case http.StatusOK:
					results := lane + "/" + gjson.Get(answer, "id").Str + "/results"
					for status = 0; status != http.StatusOK && ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
						status, _ = w.buy(ctx, "GET", results, "")
					}
				case http.StatusPaymentRequired, http.StatusTooManyRequests: // others hold the rest, for a day
					return
				default:
					time.Sleep(50 * time.Millisecond)
				}
			}
		})
	}
	kills := w.killDuring(&group, c, time.Second)
	w.kill()
	w.start(c)
	w.flush()
	w.settled()
	answer, _, err := w.pays(t.Context(), "GET", "/v1/key", "", "")
	if err != nil {
		t.Fatal(err)
	}
	counted := gjson.Get(answer, "data.budgets.0.accounts.0")
	spent, reserved := nanodollars(counted.Get("spent").Num), nanodollars(counted.Get("reserved").Num)
	var cost int64 // nanodollars
	for _, r := range w.query("", payer, began) {
		if r.Cost != nil {
			cost += nanodollars(*r.Cost)
		}
	}
	if m.charged > spent+reserved || spent+reserved > limit {
		t.Errorf("the provider charged %d, %d are spent and %d set aside of %d", m.charged, spent, reserved, int64(limit))
	}
	if cost != spent {
		t.Errorf("the records cost %d, and the budget counts %s", cost, counted.Raw)
	}
	if len(m.results) < 50 || kills < 2 || spent < limit/4 {
		t.Errorf("%d batches, %d kills and %d spent prove nothing", len(m.results), kills, spent)
	}
	t.Logf("%d kills: %d batches, the provider charged %d, %d are spent and %d set aside", kills, len(m.results), m.charged, spent, reserved)
}
