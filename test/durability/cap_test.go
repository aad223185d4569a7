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
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"
	"github.com/tidwall/gjson"
)

// The price of claude-haiku-4-5 in nanodollars for a token, and what each call has.
const (
	inPrice, outPrice = 1000, 5000
	tokensIn          = 12
	// tokensOut is what the model writes if the call lets it, of twice as much.
	tokensOut = 250
)

// meter is a provider that counts what it charges.
type meter struct{ charged atomic.Int64 } // nanodollars

func (m *meter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Stream    bool
		MaxTokens int64 `json:"max_tokens"`
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	out := min(request.MaxTokens, tokensOut)
	m.charged.Add(tokensIn*inPrice + out*outPrice)
	time.Sleep(rand.N(600 * time.Millisecond))
	if !request.Stream {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"m","type":"message","role":"assistant","model":"claude-haiku-4-5","content":[{"type":"text","text":"Little."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":%d,"output_tokens":%d}}`, tokensIn, out)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range []string{
		fmt.Sprintf(`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"claude-haiku-4-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":%d,"output_tokens":1}}}`, tokensIn),
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Little."}}`,
		`{"type":"content_block_stop","index":0}`,
		fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":%d}}`, out),
		`{"type":"message_stop"}`,
	} {
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", gjson.Get(event, "type").Str, event)
		_ = http.NewResponseController(w).Flush()
		time.Sleep(rand.N(100 * time.Millisecond))
	}
}

// cappedPayer configures an organisation that may spend 10 dollars at a provider.
func cappedPayer(upstream string) string {
	return fmt.Sprintf(`
		provider anthropic {
			base_url %s
			api_key x
		}
		org payer {
			key payer-key
			budget cap 10 total
		}`, upstream)
}

// TestCap lets 200 clients spend a budget of 10 dollars by all lanes, while the process is
// killed every three seconds. The provider never charges more than the budget, and the records
// cost what the budget counts, to the nanodollar.
func TestCap(t *testing.T) {
	if !*full {
		t.Skip("takes half a minute: -full")
	}
	const limit, spenders = 10_000_000_000, 200
	m := new(meter)
	upstream := httptest.NewServer(m)
	t.Cleanup(upstream.Close)
	w := newWeir(t, newProvider(t))
	w.upstream = upstream.URL
	c := config{site: "llm_gateway\nllm_control", llm: cappedPayer(upstream.URL)}
	began := time.Now()
	w.start(c)
	var answered, refused atomic.Int64
	var group sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for range spenders {
		group.Go(func() {
			for spent := 0; spent < 5 && ctx.Err() == nil; {
				switch status := w.spend(ctx); status {
				case http.StatusOK:
					answered.Add(1)
					spent = 0
				case http.StatusPaymentRequired:
					refused.Add(1)
					spent++
				default: // killed, or held by others
					time.Sleep(50 * time.Millisecond)
				}
			}
		})
	}
	kills := w.killDuring(&group, c, 3*time.Second)
	w.kill() // with what runs in the background
	w.start(c)
	w.flush()
	b := w.settled()
	answer, _, err := w.pays(t.Context(), "GET", "/v1/key", "", "")
	if err != nil {
		t.Fatal(err)
	}
	counted := gjson.Get(answer, "data.budgets.0.accounts.0")
	var cost int64 // nanodollars
	records := w.query("", payer, began)
	for _, r := range records {
		if r.Cost != nil {
			cost += nanodollars(*r.Cost)
		}
	}
	spent, charged := nanodollars(counted.Get("spent").Num), m.charged.Load()
	if charged > limit || spent > limit || charged > spent {
		t.Errorf("the provider charged %d, and %d are spent of %d", charged, spent, int64(limit))
	}
	if cost != spent || counted.Get("reserved").Num != 0 {
		t.Errorf("the records cost %d, and the budget counts %s", cost, counted.Raw)
	}
	if answered.Load() == 0 || spent < limit/10*9 || kills < 2 {
		t.Errorf("%d answers, %d kills and %d spent prove nothing", answered.Load(), kills, spent)
	}
	t.Logf("%d kills: %d answers, %d refused, %d records of %d, %d are spent, the provider charged %d; %d seen",
		kills, answered.Load(), refused.Load(), len(records), cost, spent, charged, b.Seen)
}

// killDuring kills the process and starts it again, each time after a while, until a group has
// ended. It returns how often.
func (w *weir) killDuring(group *sync.WaitGroup, c config, pause time.Duration) (kills int) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		group.Wait()
	}()
	for {
		select {
		case <-ended:
			return kills
		case <-time.After(pause):
			kills++
			w.kill()
			w.start(c)
		}
	}
}

// spend makes a call by a lane at random. The status is 0 where the answer has no end.
func (w *weir) spend(ctx context.Context) (status int) {
	ctx, cancel := context.WithTimeout(ctx, waitLimit)
	defer cancel()
	stream := rand.N(2) == 0
	classic := fmt.Sprintf(`{"model":"claude-haiku-4-5","max_tokens":%d,"stream":%t,"messages":[{"role":"user","content":"What does it cost?"}]}`, 2*tokensOut, stream)
	response := fmt.Sprintf(`{"model":"claude-haiku-4-5","max_output_tokens":%d,"stream":%t,"input":"What does it cost?"}`, 2*tokensOut, stream)
	switch rand.N(6) {
	case 0:
		status, _ = w.buy(ctx, "POST", "/anthropic/v1/messages", classic)
	case 1:
		status, _ = w.buy(ctx, "POST", "/v1/messages", classic)
	case 2:
		status, _ = w.buy(ctx, "POST", "/v1/chat/completions", classic)
	case 3:
		status, _ = w.buy(ctx, "POST", "/v1/responses", response)
	case 4:
		status = w.buyOverSocket(ctx, strings.Replace(strings.Replace(response, "{", `{"type":"response.create",`, 1), fmt.Sprintf(`"stream":%t,`, stream), "", 1))
	default:
		status = w.buyInBackground(ctx, strings.Replace(response, fmt.Sprintf(`"stream":%t`, stream), `"background":true`, 1))
	}
	return status
}

// buy asks for the organisation that pays.
func (w *weir) buy(ctx context.Context, method, path, body string) (status int, answer string) {
	r, err := http.NewRequestWithContext(ctx, method, "http://"+w.site+path, strings.NewReader(body))
	if err != nil {
		w.t.Error(err)
		return 0, ""
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+payer)
	r.Header.Set("Service-Auth", "Bearer "+payer)
	got, err := calling.Do(r)
	if err != nil {
		return 0, ""
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		return 0, ""
	}
	if known := []int{200, 402, 429, 503}; !slices.Contains(known, got.StatusCode) {
		w.t.Errorf("%s %s: %s: %.300s", method, path, got.Status, text)
	}
	return got.StatusCode, string(text)
}

// buyInBackground waits for the end of a response in the background.
func (w *weir) buyInBackground(ctx context.Context, body string) int {
	status, answer := w.buy(ctx, "POST", "/v1/responses", body)
	for id := gjson.Get(answer, "id").Str; status == http.StatusOK; status, answer = w.buy(ctx, "GET", "/v1/responses/"+id, "") {
		switch gjson.Get(answer, "status").Str {
		case "completed", "incomplete":
			return status
		case "failed":
			if gjson.Get(answer, "error.message").Str == "" {
				w.t.Errorf("failed without a reason: %s", answer)
			}
			return 0
		}
		time.Sleep(100 * time.Millisecond)
	}
	return status
}

// buyOverSocket makes a call over a WebSocket of its own.
func (w *weir) buyOverSocket(ctx context.Context, message string) int {
	dialer := ws.Dialer{Header: ws.HandshakeHeaderHTTP{"Authorization": {"Bearer " + payer}}}
	connection, buffered, _, err := dialer.Dial(ctx, "ws://"+w.site+"/v1/responses")
	if err != nil {
		return 0
	}
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(waitLimit))
	from := io.Reader(connection)
	if buffered != nil {
		from = io.MultiReader(buffered, connection)
	}
	if err := wsutil.WriteClientText(connection, []byte(message)); err != nil {
		return 0
	}
	for {
		event, err := wsutil.ReadServerText(readWriter{from, connection})
		if err != nil {
			return 0
		}
		switch e := gjson.ParseBytes(event); e.Get("type").Str {
		case "response.completed", "response.incomplete":
			return http.StatusOK
		case "error":
			return int(e.Get("status").Int())
		case "response.failed":
			w.t.Errorf("over the socket: %s", event)
			return 0
		}
	}
}
