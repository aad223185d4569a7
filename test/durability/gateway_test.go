//go:build linux

package durability

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// payer opens the organisation that pays for the gateway's calls with credits.
const payer = "payer-key"

// lane is one way through the gateway.
type lane struct {
	path    string
	dialect dialect // of the provider
	body    string  // of stream and prompt; "" is the dialect's own
	echo    bool    // the provider is Weir's own
	// last begins the event that ends a stream.
	last string
}

var lanes = []lane{
	{path: "/v1/chat/completions", dialect: chat, last: "data: [DONE]"},
	{path: "/v1/messages", dialect: messages, last: "event: message_stop\n"},
	{path: "/v1/responses", dialect: messages, last: "event: response.completed\n",
		body: `{"model":"claude-haiku-4-5","max_output_tokens":100,"stream":%t,"input":%q}`},
	{path: "/v1/responses", echo: true, last: "event: response.completed\n",
		body: `{"model":"echo/echo-1","stream":%t,"input":%q}`},
}

// TestGatewayKill ends the process under load of the gateway. The record of
// every answer that a client had to its end must be there afterwards, once, and
// what it cost must be paid.
func TestGatewayKill(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	w := newWeir(t, p)
	upstream := httptest.NewServer(http.HandlerFunc(p.answerPrompt))
	t.Cleanup(upstream.Close)
	c := config{site: "llm_gateway", llm: strings.ReplaceAll(`
		provider echo
		provider openai {
			base_url $/v1
			api_key x
		}
		provider anthropic {
			base_url $
			api_key x
		}
		org payer {
			key payer-key
			credits 100000
		}`, "$", upstream.URL)}
	began := time.Now()
	ended := map[*call]string{}
	kills := killings()
	for range kills {
		w.start(c)
		for call, id := range loadGateway(t, p, w, lifetime()) {
			ended[call] = id
		}
	}
	w.start(c)
	w.flush()
	records := w.query("", payer, began)
	for call, id := range ended {
		if r := records[call.name()]; call.dialect == echoed {
			call.checkEchoed(t, r, id)
		} else {
			call.check(t, r, id)
		}
	}
	w.wantInterrupted(len(records), kills*clients)
	var sum, most float64
	for _, r := range records {
		if r.Cost != nil {
			sum, most = sum+*r.Cost, max(most, *r.Cost)
		}
	}
	// A call is charged before it is recorded, so that a kill between the two
	// leaves the charge alone.
	spent, between := w.spent("payer"), most*float64(clients*kills)
	if nano := math.Round((spent - sum) * 1e9); nano < 0 || nano > between*1e9 {
		t.Errorf("the records cost $%.9f, and $%.9f are spent", sum, spent)
	}
	t.Logf("%d answers ended before a kill, %d records of $%.9f, $%.9f are spent", len(ended), len(records), sum, spent)
}

// echoed is the dialect of calls that the provider never sees.
const echoed dialect = -1

var question = regexp.MustCompile(`question (\d+)\?`)

// answerPrompt answers the call whose prompt the request holds: the gateway
// makes headers of its own.
func (p *provider) answerPrompt(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var number int
	if found := question.FindSubmatch(body); found != nil {
		number, _ = strconv.Atoi(string(found[1]))
	}
	value, ok := p.calls.Load(number)
	if !ok {
		http.Error(w, "unknown call", http.StatusTeapot)
		return
	}
	value.(*call).answer(w)
}

// loadGateway makes calls of all lanes and kills the process after a while. It
// returns the calls whose answers the clients had to their ends.
func loadGateway(t *testing.T, p *provider, w *weir, while time.Duration) map[*call]string {
	ended := map[*call]string{}
	var mu sync.Mutex
	var killed atomic.Bool
	var group sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	for range clients {
		group.Go(func() {
			for !killed.Load() {
				l := lanes[rand.N(len(lanes))]
				c := p.call(l.dialect)
				c.stream = rand.N(3) > 0
				c.pause = rand.N(5 * time.Millisecond)
				id, err := l.do(ctx, w, c)
				if l.echo {
					c.dialect = echoed
				}
				switch {
				case err == nil:
					mu.Lock()
					ended[c] = id
					mu.Unlock()
				case !killed.Load():
					t.Errorf("%s at %s: %v", c.name(), l.path, err)
				}
			}
		})
	}
	time.Sleep(while)
	killed.Store(true)
	w.kill()
	group.Wait()
	return ended
}

// do makes a call, and fails unless its answer comes to its end.
func (l lane) do(ctx context.Context, w *weir, c *call) (id string, err error) {
	body := string(c.request())
	if l.body != "" {
		body = fmt.Sprintf(l.body, c.stream, c.prompt)
	}
	r, err := http.NewRequestWithContext(ctx, "POST", "http://"+w.site+l.path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	r.Header.Set("Authorization", "Bearer "+payer)
	r.Header.Set("Service-User-Id", c.name())
	response, err := calling.Do(r)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %.300s", response.Status, answer)
	}
	if c.stream {
		_, rest, found := strings.Cut(string(answer), l.last)
		if found && strings.Contains(rest, "\n\n") {
			err = nil // clients stop here
		} else if err == nil {
			err = fmt.Errorf("the stream ends with %q", answer[max(0, len(answer)-300):])
		}
	}
	return response.Header.Get("Service-Id"), err
}

// checkEchoed is check for a call that Weir answered itself.
func (c *call) checkEchoed(t *testing.T, r *record, id string) {
	t.Helper()
	switch {
	case r == nil:
		t.Errorf("%s (echo, stream %t): the record %s is lost", c.name(), c.stream, id)
	case r.ID != id || r.Status == nil || *r.Status != http.StatusOK || r.EndState != "complete":
		t.Errorf("%s: its record is %s, status %s, %s; want %s", c.name(), r.ID, number(r.Status), r.EndState, id)
	case r.Cost == nil || *r.Cost <= 0 || !has(r.RequestBody, c.prompt) || !has(r.ResponseBody, "You said: "+c.prompt):
		t.Errorf("%s: its record is not whole: %.200s", c.name(), r.ResponseBody)
	}
}

// spent is what an organisation has spent of its credits, in US dollars.
func (w *weir) spent(org string) float64 {
	w.t.Helper()
	answer, err := w.ask("GET", "/llm/credits", "")
	if err != nil {
		w.t.Fatal(err)
	}
	var balances []struct {
		Org   string
		Spent float64
	}
	if err := json.Unmarshal(answer, &balances); err != nil {
		w.t.Fatalf("%v in %s", err, answer)
	}
	for _, b := range balances {
		if b.Org == org {
			return b.Spent
		}
	}
	w.t.Fatalf("%s is not in %s", org, answer)
	return 0
}
