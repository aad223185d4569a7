package llmgateway

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/money"
)

// counted is what a budget counts of a value, in thousandths of a dollar.
func (s *site) counted(org, budget, value string) (spent, reserved int64) {
	s.t.Helper()
	budgets, err := s.handler.site.App.Money().Of(org)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, b := range budgets {
		if b.Name != budget {
			continue
		}
		accounts, err := b.Counted(s.t.Context(), s.credits)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, a := range accounts {
			if a.Value == value {
				return int64(a.Spent / 1e6), int64(a.Reserved / 1e6)
			}
		}
		return 0, 0
	}
	s.t.Fatalf("there is no budget %s", budget)
	return 0, 0
}

// A call is made only if all budgets that count it cover the most that it can cost. The
// refusal names the budget that does not, and whose calls it counts. A call of `bounded`
// reserves 73 thousandths of a dollar, and costs 13.
func TestBudgets(t *testing.T) {
	s := serve(t, map[string][]upstream{"one": {hello}, "two": {hello}})
	ask := func(user, team, body string) (*http.Response, string) {
		return s.post(body, "Authorization", "Bearer capped", "Service-User-Id", user, "Service-Property-Team", team)
	}
	for range 2 {
		if resp, body := ask("ada", "web", bounded); resp.StatusCode != http.StatusOK {
			t.Fatalf("%d %s", resp.StatusCode, body)
		}
	}
	for _, c := range []struct{ budget, value string }{{"all", ""}, {"each", "ada"}, {"vouched", ""}} {
		if spent, reserved := s.counted("capped", c.budget, c.value); spent != 26 || reserved != 0 {
			t.Errorf("%s: spent %d, reserved %d; want 26, 0", c.budget, spent, reserved)
		}
	}
	resp, body := ask("ada", "web", bounded)
	message := gjson.Get(body, "error.message").Str
	if resp.StatusCode != http.StatusPaymentRequired || gjson.Get(body, "error.code").Str != "insufficient_quota" || resp.Header.Get("X-Should-Retry") != "false" ||
		!strings.Contains(message, "budget each") || !strings.Contains(message, `user "ada"`) || !strings.Contains(message, "The budget resets on ") {
		t.Errorf("ada beyond her limit: %d %s", resp.StatusCode, body)
	}
	if resp, body := ask("bob", "web", bounded); resp.StatusCode != http.StatusOK {
		t.Errorf("bob, who has a limit for himself: %d %s", resp.StatusCode, body)
	}
	if resp, body := ask("cleo", "free", bounded); resp.StatusCode != http.StatusOK {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	if spent, _ := s.counted("capped", "all", ""); spent != 39 {
		t.Errorf("the filter leaves %d, want 39", spent)
	}
	// Another name with each call does not find another limit where nobody vouches for names.
	for i := range 20 {
		resp, body = ask(fmt.Sprint("user", i), "free", bounded)
	}
	if resp.StatusCode != http.StatusPaymentRequired || !strings.Contains(body, "budget vouched") {
		t.Errorf("names of the caller: %d %s", resp.StatusCode, body)
	}
	if resp, body := ask("ada", "web", `{"model":"two/m","input":"hi"}`); resp.StatusCode != http.StatusBadRequest || gjson.Get(body, "error.code").Str != "model_not_priced" || !strings.Contains(body, "budget") {
		t.Errorf("a model without a price: %d %s", resp.StatusCode, body)
	}
	if resp, body := s.post(`{"model":"two/m","input":"hi"}`, "Authorization", "Bearer patient"); resp.StatusCode != http.StatusOK {
		t.Errorf("a model without a price, which the budget lets pass: %d %s", resp.StatusCode, body)
	}
	if spent, reserved := s.balance(); spent != 0 || reserved != 0 {
		t.Errorf("an organisation without budgets has spent %d", spent)
	}
}

// Many calls at once never cost more than any budget allows, and what the budgets count is
// the sum of the records.
func TestBudgetsHold(t *testing.T) {
	for _, lane := range []string{"objects", "streams", "WebSockets"} {
		t.Run(lane, func(t *testing.T) {
			s := serve(t, map[string][]upstream{"one": {hello}})
			var calls sync.WaitGroup
			var made atomic.Int64
			for i := range 64 {
				user := fmt.Sprint("user", i%8)
				calls.Go(func() {
					if lane == "WebSockets" {
						c, err := s.dial("capped", "Service-User-Id", user)
						if err != nil {
							t.Error(err)
							return
						}
						defer c.Close()
						c.say(`{"type":"response.create","model":"one/m","input":"hi","max_output_tokens":10}`)
						switch last := c.hear(); {
						case gjson.Get(last, "type").Str == "response.completed":
							made.Add(1)
						case !strings.Contains(last, "insufficient_quota") && !strings.Contains(last, "budget_reserved"):
							t.Error(last)
						}
						return
					}
					resp, body := s.post(fmt.Sprintf(`{"model":"one/m","input":"hi","max_output_tokens":10,"stream":%t}`, lane == "streams"),
						"Authorization", "Bearer capped", "Service-User-Id", user)
					switch resp.StatusCode {
					case http.StatusOK:
						made.Add(1)
					case http.StatusPaymentRequired, http.StatusTooManyRequests:
					default:
						t.Errorf("%d %s", resp.StatusCode, body)
					}
				})
			}
			calls.Wait()
			s.settled()
			for wait := time.Now().Add(10 * time.Second); time.Now().Before(wait); time.Sleep(time.Millisecond) { // a WebSocket settles after its last message
				if _, reserved := s.counted("capped", "all", ""); reserved == 0 {
					break
				}
			}
			if spent, reserved := s.counted("capped", "all", ""); spent != 13*made.Load() || reserved != 0 || spent > 400 {
				t.Errorf("all: spent %d, reserved %d; %d calls were made", spent, reserved, made.Load())
			}
			for i := range 8 {
				if spent, reserved := s.counted("capped", "each", fmt.Sprint("user", i)); spent > 90 || reserved != 0 {
					t.Errorf("user%d: spent %d, reserved %d", i, spent, reserved)
				}
			}
			if spent, reserved := s.counted("capped", "vouched", ""); spent > 200 || reserved != 0 || made.Load() == 0 {
				t.Errorf("vouched: spent %d, reserved %d", spent, reserved)
			}
		})
	}
}

// A call waits for the calls in flight that hold what it needs.
func TestWaitForABudget(t *testing.T) {
	inside, proceed := make(chan bool, 2), make(chan bool)
	s := serve(t, map[string][]upstream{"one": {func(w http.ResponseWriter, r *http.Request) {
		inside <- true
		<-proceed
		hello(w, r)
	}}})
	var calls sync.WaitGroup
	for range 2 {
		calls.Go(func() {
			if resp, body := s.post(bounded, "Authorization", "Bearer patient"); resp.StatusCode != http.StatusOK {
				t.Errorf("%d %s", resp.StatusCode, body)
			}
		})
	}
	<-inside
	select {
	case <-inside:
		t.Error("two calls hold what only one may")
	case <-time.After(10 * money.HeldInterval):
	}
	close(proceed)
	calls.Wait()
	if spent, reserved := s.counted("patient", "one", ""); spent != 26 || reserved != 0 {
		t.Errorf("spent %d, reserved %d", spent, reserved)
	}
}

// Agents that ask for far more output than they get spend a budget nearly whole, and no agent
// waits for another: a call may cost 1.60 dollars, and costs 0.0075.
func TestBudgetsDoNotStarve(t *testing.T) {
	var spent atomic.Int64 // nanodollars
	s := serve(t, map[string][]upstream{"raw": {func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		time.Sleep(5 * time.Millisecond) // the other agents' calls are in flight
		written := min(gjson.GetBytes(body, "max_output_tokens").Int(), 300)
		spent.Add(4*5_000 + written*25_000)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"resp_1","object":"response","status":"completed","model":"writes","output":[{"type":"message","id":"m","role":"assistant","content":[{"type":"output_text","text":"done"}]}],"usage":{"input_tokens":4,"output_tokens":%d}}`, written)
	}}})
	var agents sync.WaitGroup
	var made, refused atomic.Int64
	const limit = 25_000_000_000
	for range 20 {
		agents.Go(func() {
			for spent.Load() < limit/100*95 && !t.Failed() {
				resp, body := s.post(`{"model":"raw/writes","input":"hi","max_output_tokens":64000}`, "Authorization", "Bearer agents")
				switch resp.StatusCode {
				case http.StatusOK:
					made.Add(1)
				case http.StatusPaymentRequired, http.StatusTooManyRequests:
					refused.Add(1)
				default:
					t.Errorf("%d %s", resp.StatusCode, body)
				}
			}
		})
	}
	agents.Wait()
	if refused.Load()*100 > made.Load() {
		t.Errorf("%d calls were made, and %d refused before 95 %% was spent", made.Load(), refused.Load())
	}
	counted, reserved := s.counted("agents", "agents", "")
	if want := spent.Load(); counted != want/1e6 || reserved != 0 || want > limit {
		t.Errorf("the provider charged %d, the budget counts %d and has reserved %d", want/1e6, counted, reserved)
	}
}

// A call that shall not wait gets what the calls in flight leave.
func TestACallFitsBesideOthers(t *testing.T) {
	inside, proceed := make(chan bool, 3), make(chan bool)
	s := serve(t, map[string][]upstream{"one": {func(w http.ResponseWriter, r *http.Request) {
		inside <- true
		<-proceed
		hello(w, r)
	}}})
	const asks = `{"model":"one/m","input":"hi","max_output_tokens":1000}` // two dollars
	var calls sync.WaitGroup
	for _, lowered := range []bool{false, true} {
		calls.Go(func() {
			resp, body := s.post(asks, "Authorization", "Bearer brisk")
			if warned := strings.Contains(resp.Header.Get("Service-Warnings"), "lowered"); resp.StatusCode != http.StatusOK || warned != lowered {
				t.Errorf("%d %s, lowered: %t, want %t", resp.StatusCode, body, warned, lowered)
			}
		})
		<-inside
	}
	if resp, body := s.post(asks, "Authorization", "Bearer brisk"); resp.StatusCode != http.StatusTooManyRequests {
		t.Errorf("the third call: %d %s", resp.StatusCode, body)
	}
	close(proceed)
	calls.Wait()
	if spent, reserved := s.counted("brisk", "brisk", ""); spent != 26 || reserved != 0 {
		t.Errorf("spent %d, reserved %d", spent, reserved)
	}
}

// A batch whose calls are not known costs nobody knows what: a budget refuses it.
func TestBudgetsRefuseBatches(t *testing.T) {
	var asked []string
	s := serve(t, map[string][]upstream{"raw": {filesOf(&asked)}})
	create := func(key string) (*http.Response, string) {
		contentType, body := upload(t, `{"custom_id":"a"}`, "purpose", "batch")
		resp, answer := s.postTo("/v1/files?provider=raw", strings.NewReader(body), "Content-Type", contentType, "Authorization", "Bearer "+key)
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("%s uploads a file: %d %s", key, resp.StatusCode, answer)
		}
		input := gjson.Get(answer, "id").Str
		return s.postTo("/v1/batches", strings.NewReader(fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/chat/completions"}`, input)), "Authorization", "Bearer "+key)
	}
	if resp, body := create("capped"); resp.StatusCode != http.StatusBadRequest || gjson.Get(body, "error.code").Str != "model_not_priced" || !strings.Contains(body, "before the call has ended") {
		t.Errorf("a batch: %d %s", resp.StatusCode, body)
	}
	if resp, body := create("patient"); resp.StatusCode != http.StatusOK {
		t.Errorf("a batch that the budget lets pass: %d %s", resp.StatusCode, body)
	}
}

// A ledger that cannot be written lets no call pass that a budget counts.
func TestUnavailableBudgetsLetNothingPass(t *testing.T) {
	s := serve(t, map[string][]upstream{"one": {hello}})
	if err := s.credits.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if resp, body := s.post(bounded, "Authorization", "Bearer capped"); resp.StatusCode != http.StatusServiceUnavailable || gjson.Get(body, "error.code").Str != "budget_unavailable" {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	if resp, body := s.post(bounded, "Authorization", "Bearer k"); resp.StatusCode != http.StatusOK {
		t.Errorf("a call that nothing bounds: %d %s", resp.StatusCode, body)
	}
}
