package llmlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/credits"
)

// priced answers calls of the model m, which costs a thousandth of a dollar for a token in and
// two for one out: 3 tokens and 5 cost 13. It counts its calls, and keeps the last body.
type priced struct {
	*httptest.Server
	calls atomic.Int64
	body  atomic.Value
	left  atomic.Bool // by a client of a stream
}

func newPriced(t *testing.T) *priced {
	p := new(priced)
	const usage = `"usage":{"prompt_tokens":3,"completion_tokens":5,"total_tokens":8}`
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		p.calls.Add(1)
		p.body.Store(string(body))
		switch gjson.GetBytes(body, "user").Str {
		case "failing":
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, `{"error":{"message":"no","type":"server_error"}}`)
			return
		case "silent":
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
			return
		case "chatty": // until the client leaves
			w.Header().Set("Content-Type", "text/event-stream")
			for delta := `"role":"assistant","content":""`; r.Context().Err() == nil; delta = `"content":"a word "` {
				_, _ = io.WriteString(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{"+delta+"},\"logprobs\":null,\"finish_reason\":null}]}\n\n")
				w.(http.Flusher).Flush()
			}
			p.left.Store(true)
			return
		case "hanging":
			<-r.Context().Done()
			return
		case "beginning": // an answer whose end its client does not wait for
			time.Sleep(500 * time.Millisecond)
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"id":"c",`)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		case "thinking", "endless":
			if gjson.GetBytes(body, "user").Str == "thinking" {
				time.Sleep(500 * time.Millisecond)
			}
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"}}]}\n\n")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],`+usage+`}`)
	}))
	t.Cleanup(p.Close)
	return p
}

// budgeted is a proxy to p whose calls a budget counts, in US dollars.
func budgeted(t *testing.T, p *priced, budget object) *site {
	t.Helper()
	prices := filepath.Join(t.TempDir(), "prices.json")
	if err := os.WriteFile(prices, []byte(`{"providers": [{"id": "one", "models": [{"id": "deep", "context": 1000, "max_output": 1000, "input": ["text"], "output": ["text"], "reasoning": true,
		"prices": [{"input": "1000", "output": "2000"}]}, {"id": "m", "context": 1000, "max_output": 1000, "input": ["text"], "output": ["text"],
		"prices": [{"input": "1000", "output": "2000"}, {"tier": "batch", "input": "1000", "output": "2000"}, {"tier": "priority", "input": "9000", "output": "9000"}]}, {"id": "cheap", "context": 1000, "max_output": 1000, "input": ["text"], "output": ["text"],
		"prices": [{"input": "1", "output": "2"}]}]}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	budget["name"] = "all"
	return serve(t, options{
		upstream: strings.TrimPrefix(p.URL, "http://"), config: object{"provider": "one"}, flush: true,
		app: object{"catalog": prices, "budgets": []object{budget}},
	})
}

// store is the ledger of the site.
func store(t *testing.T) credits.Ledger {
	t.Helper()
	app, err := caddy.ActiveContext().App("llm")
	if err != nil {
		t.Fatal(err)
	}
	kept, err := app.(*llmapp.App).Store("")
	if err != nil {
		t.Fatal(err)
	}
	ledger, err := kept.Credits()
	if err != nil {
		t.Fatal(err)
	}
	return ledger
}

// counted is what the budget counts, in thousandths of a dollar.
func counted(t *testing.T) (spent, reserved int64) {
	t.Helper()
	b, err := store(t).Balance(t.Context(), credits.Hold{Account: credits.Account{Org: "default", Budget: "all"}})
	if err != nil {
		t.Fatal(err)
	}
	return int64(b.Spent / 1e6), int64(b.Reserved / 1e6)
}

// within is a call that takes 37 bytes and at most 10 tokens of output, or the fields of more.
func within(more string) string {
	return `{"model":"m","max_tokens":10,"messages":[]` + more + `}`
}

// A proxied call is made only if the budget covers the most that the call can cost. Its bytes
// pass as they are.
func TestBudgetsBoundProxies(t *testing.T) {
	p := newPriced(t)
	s := budgeted(t, p, object{"limit": "0.12", "window": "total"})
	ask := func(body string, header ...string) (int, gjson.Result) {
		resp, answer := s.do("POST", "/v1/chat/completions", body, append(header, "Content-Type", "application/json")...)
		return resp.StatusCode, gjson.Parse(answer)
	}
	body := " " + within("") + "\n"
	for i := range 5 {
		if status, answer := ask(body); status != http.StatusOK || p.body.Load() != body {
			t.Fatalf("call %d: %d %s; the provider got %q", i, status, answer.Raw, p.body.Load())
		}
		if spent, reserved := counted(t); spent != int64(13*(i+1)) || reserved != 0 {
			t.Errorf("call %d: spent %d, reserved %d", i, spent, reserved)
		}
	}
	status, answer := ask(body) // 65 are spent, and the call may cost 65
	if status != http.StatusPaymentRequired || answer.Get("error.code").Str != "insufficient_quota" || !strings.Contains(answer.Get("error.message").Str, "budget all") || p.calls.Load() != 5 {
		t.Errorf("beyond the limit: %d %s, and the provider got %d calls", status, answer.Raw, p.calls.Load())
	}
	eventually(t, s.kept.ended)
	if r := s.kept.entries[len(s.kept.entries)-1]; r.Status.N != http.StatusPaymentRequired || r.Cost.N != 0 {
		t.Errorf("the record of the refusal is %+v", r)
	}
	for name, c := range map[string]struct {
		body   string
		header []string
		status int
		code   string
	}{
		"a model without a price":   {`{"model":"n","messages":[]}`, nil, 400, "model_not_priced"},
		"no model":                  {`{"messages":[]}`, nil, 400, "model_not_priced"},
		"no JSON":                   {`{"model":"m"`, nil, 400, "model_not_priced"},
		"a limit that stands twice": {`{"model":"m","max_tokens":1,"max_tokens":1000,"messages":[]}`, nil, 400, ""},
		"the higher of two limits":  {`{"model":"m","max_completion_tokens":1,"max_tokens":1000,"messages":[]}`, nil, 402, "insufficient_quota"},
		"other models":              {within(`,"models":["dear"]`), nil, 400, "unsupported_parameter"},
		"a coded body":              {within(""), []string{"Content-Encoding", "gzip"}, 415, ""},
		"a tier without a price":    {within(`,"service_tier":"warp"`), nil, 402, ""},
	} {
		if status, answer := ask(c.body, c.header...); status != c.status || c.code != "" && answer.Get("error.code").Str != c.code || p.calls.Load() != 5 {
			t.Errorf("%s: %d %s", name, status, answer.Raw)
		}
	}
	if resp, answer := s.do("GET", "/v1/models", ""); resp.StatusCode != http.StatusOK {
		t.Errorf("a list of models: %d %s", resp.StatusCode, answer)
	}
	for _, method := range []string{"GET", "DELETE"} {
		if resp, answer := s.do(method, "/v1/chat/completions", `{"model":"none","messages":[]}`, "X-HTTP-Method-Override", "POST"); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s for a POST: %d %s", method, resp.StatusCode, answer)
		}
		if resp, answer := s.do(method, "/v1/chat/completions?%24httpMethod=POST", `{"model":"none","messages":[]}`); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s for a POST by its query: %d %s", method, resp.StatusCode, answer)
		}
	}
	for _, hidden := range []string{"/v1/chat/completions%2Fbatches%2Fa%2Fcancel", "/v1/messages%2Fcount_tokens", "/v1/chat/completions%2F..%2Ffiles"} {
		if resp, answer := s.do("POST", hidden, `{"model":"none","messages":[]}`); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d %s", hidden, resp.StatusCode, answer)
		}
	}
	for _, upgrade := range []string{"websocket", "WebSocket", "h2c, websocket", "websocket/13"} {
		if resp, answer := s.do("GET", "/v1/responses", "", "Upgrade", upgrade, "Connection", "Upgrade"); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d %s", upgrade, resp.StatusCode, answer)
		}
	}
	if spent, reserved := counted(t); spent != 65 || reserved != 0 {
		t.Errorf("what was refused has spent: %d, reserved %d", spent, reserved)
	}
}

// A tier is set aside at its price in whatever way a client asks for it: a call that
// costs 56 at most costs twice as much.
func TestTiersAreSetAsideAtTheirPrice(t *testing.T) {
	p := newPriced(t)
	s := budgeted(t, p, object{"limit": "0.1", "window": "total"})
	for name, c := range map[string]struct {
		fields string
		header []string
	}{
		"beside a speed":   {fields: `,"speed":"a","service_tier":"priority"`},
		"as Google spells": {fields: `,"serviceTier":"priority"`},
		"in a header":      {header: []string{"X-Vertex-AI-LLM-Shared-Request-Type", "priority"}},
	} {
		resp, answer := s.do("POST", "/v1/chat/completions", `{"model":"m","max_tokens":1`+c.fields+`}`, c.header...)
		if resp.StatusCode != http.StatusPaymentRequired {
			t.Errorf("%s: %d %s", name, resp.StatusCode, answer)
		}
	}
	if resp, answer := s.do("POST", "/v1/chat/completions", `{"model":"m","max_tokens":1,"metadata":{"a":"`+strings.Repeat("a", 20)+`"}}`); resp.StatusCode != http.StatusOK {
		t.Errorf("without a tier: %d %s", resp.StatusCode, answer)
	}
}

// The model that a caller says it was does not choose what a budget counts.
func TestOverridesChangeNoCharge(t *testing.T) {
	s := budgeted(t, newPriced(t), object{"limit": "1", "window": "total"})
	if resp, answer := s.do("POST", "/v1/chat/completions", within(""), "Service-Model-Override", "cheap"); resp.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", resp.StatusCode, answer)
	}
	eventually(t, s.kept.ended)
	if spent, _ := counted(t); spent != 13 {
		t.Errorf("%d thousandths of a dollar are spent, not 13", spent)
	}
}

// A call of Gemini sets aside what it has and at most writes, as calls of other APIs do.
func TestBudgetsBoundGemini(t *testing.T) {
	s := budgeted(t, newPriced(t), object{"limit": "0.2", "window": "total"})
	for config, status := range map[string]int{`{}`: 402, `{"maxOutputTokens":100}`: 402, `{"maxOutputTokens":10}`: 200} {
		body := `{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"generationConfig":` + config + `}`
		if resp, answer := s.do("POST", "/v1beta/models/m:generateContent", body); resp.StatusCode != status {
			t.Errorf("%s: %d %s", config, resp.StatusCode, answer)
		}
	}
}

// Each run of an agent has the limit: the turns of a conversation are counted together, and
// another conversation begins anew.
func TestBudgetsOfRuns(t *testing.T) {
	p := newPriced(t)
	s := budgeted(t, p, object{"limit": "0.2", "window": "total", "per": "tree"})
	first := `{"role":"user","content":"find the bug in the parser of the configuration"}`
	turns := []string{first, first + `,{"role":"assistant","content":"hi"},{"role":"user","content":"and mend the bug"}`, `{"role":"user","content":"write a poem about weirs in spring"}`}
	for _, messages := range turns {
		if resp, answer := s.do("POST", "/v1/chat/completions", `{"model":"m","max_tokens":10,"messages":[`+messages+`]}`); resp.StatusCode != http.StatusOK {
			t.Fatalf("%d %s", resp.StatusCode, answer)
		}
	}
	eventually(t, s.kept.ended)
	accounts, err := store(t).Counted(t.Context(), credits.Hold{Account: credits.Account{Org: "default", Budget: "all"}})
	if err != nil || len(accounts) != 2 {
		t.Fatalf("%+v, %v", accounts, err)
	}
	want := map[string]int64{s.kept.entries[0].ID.String(): 26, s.kept.entries[len(s.kept.entries)-1].ID.String(): 13}
	for _, a := range accounts {
		if spent := int64(a.Spent / 1e6); spent != want[a.Value] {
			t.Errorf("the run that began with %s has spent %d, want %d", a.Value, spent, want[a.Value])
		}
	}
}

// The next turn of a conversation sets aside what the provider counted for the turn before, and
// the bytes that it adds. The same text in another conversation counts by its bytes.
func TestTheNextTurnSetsAsideWhatIsNew(t *testing.T) {
	p := newPriced(t)
	s := budgeted(t, p, object{"limit": "0.8", "window": "total"})
	first := `{"role":"user","content":"` + strings.Repeat("a ", 300) + `"}`
	next := first + `,{"role":"assistant","content":"hi"},{"role":"user","content":"` + strings.Repeat("b ", 50) + `"}`
	for _, c := range []struct {
		name, messages string
		status         int
	}{
		{"not known", strings.ReplaceAll(next, "a ", "c "), 402}, {"the first turn", first, 200}, {"the next", next, 200},
		{"a branch", first + `,{"role":"user","content":"` + strings.Repeat("d ", 100) + `"}`, 200}, {"another", strings.ReplaceAll(next, "a ", "c "), 402},
	} {
		if resp, answer := s.do("POST", "/v1/chat/completions", `{"model":"m","max_tokens":10,"messages":[`+c.messages+`]}`); resp.StatusCode != c.status {
			t.Errorf("%s: %d %s", c.name, resp.StatusCode, answer)
		}
	}
	if spent, reserved := counted(t); spent != 3*13 || reserved != 0 {
		t.Errorf("spent %d, reserved %d", spent, reserved)
	}
}

// Many calls at once never cost more than the limit.
func TestBudgetsHoldInProxies(t *testing.T) {
	p := newPriced(t)
	s := budgeted(t, p, object{"limit": "0.2", "window": "total"})
	var calls sync.WaitGroup
	for range 64 {
		calls.Go(func() {
			resp, answer := s.do("POST", "/v1/chat/completions", within(""))
			if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusPaymentRequired && resp.StatusCode != http.StatusTooManyRequests {
				t.Errorf("%d %s", resp.StatusCode, answer)
			}
		})
	}
	calls.Wait()
	eventually(t, func() bool { _, reserved := counted(t); return reserved == 0 })
	if spent, _ := counted(t); spent != 13*p.calls.Load() || spent > 200 || spent == 0 {
		t.Errorf("%d calls, spent %d", p.calls.Load(), spent)
	}
}

// eventually waits for what comes after an answer.
func eventually(t *testing.T, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it has not come about within 10 seconds")
		}
	}
}

// A failure costs nothing. A stream that does not state its usage counts as the most that it
// can have cost, and one that its client leaves by its length; their records say the same.
func TestWhatIsNotStatedCounts(t *testing.T) {
	for name, c := range map[string]struct {
		user        string
		least, most int64
	}{
		"a failure":                     {"failing", 0, 0},
		"a stream without usage":        {"silent", 80, 100},
		"a stream that its client left": {"endless", 60, 100},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPriced(t)
			s := budgeted(t, p, object{"limit": "1", "window": "total"})
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			r, err := http.NewRequestWithContext(ctx, "POST", s.url("/v1/chat/completions"), strings.NewReader(within(fmt.Sprintf(`,"stream":true,"user":%q`, c.user))))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := s.client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			if c.user == "endless" {
				if _, err := resp.Body.Read(make([]byte, 8)); err != nil {
					t.Fatal(err)
				}
				leave()
			}
			if _, err := io.Copy(io.Discard, resp.Body); err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			resp.Body.Close()
			eventually(t, func() bool { _, reserved := counted(t); return reserved == 0 })
			spent, _ := counted(t)
			record := s.record()
			if spent < c.least || spent > c.most || int64(record.Cost.N/1e6) != spent || record.CostCounted != (spent > 0) {
				t.Errorf("spent %d, want %d to %d; the record's cost is %v", spent, c.least, c.most, record.Cost)
			}
		})
	}
}

// Who leaves a stream before the provider states the usage pays for thoughts that the stream
// does not show, by the time that they took.
func TestThoughtsOfAStreamThatIsLeftCount(t *testing.T) {
	p := newPriced(t)
	s := budgeted(t, p, object{"limit": "5", "window": "total"})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	const body = `{"model":"deep","max_tokens":1000,"messages":[],"stream":true,"user":"thinking"}`
	r, err := http.NewRequestWithContext(ctx, "POST", s.url("/v1/chat/completions"), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = resp.Body.Read(make([]byte, 8))
	leave()
	eventually(t, s.kept.ended)
	eventually(t, func() bool { _, reserved := counted(t); return reserved == 0 })
	if spent, _ := counted(t); spent < 2*50 || spent > 2*500 || int64(s.record().Cost.N/1e6) != spent {
		t.Errorf("spent %d, the record's cost is %v", spent, s.record().Cost)
	}
}

// Who leaves before the provider answers, or before the end of what is no stream, pays what was set
// aside: the provider works on, or has written all of it.
func TestLeavingBeforeTheAnswerCounts(t *testing.T) {
	for _, user := range []string{"hanging", "beginning"} {
		t.Run(user, func(t *testing.T) {
			p := newPriced(t)
			s := budgeted(t, p, object{"limit": "5", "window": "total"})
			ctx, leave := context.WithTimeout(t.Context(), 600*time.Millisecond)
			defer leave()
			r, err := http.NewRequestWithContext(ctx, "POST", s.url("/v1/chat/completions"), strings.NewReader(`{"model":"m","max_tokens":1000,"messages":[],"user":"`+user+`"}`))
			if err != nil {
				t.Fatal(err)
			}
			if resp, err := s.client().Do(r); err == nil {
				_, err = io.ReadAll(resp.Body)
				if resp.Body.Close(); err == nil {
					t.Fatal("the answer has ended")
				}
			}
			eventually(t, s.kept.ended)
			eventually(t, func() bool { _, reserved := counted(t); return reserved == 0 })
			record := s.record()
			if spent, _ := counted(t); spent < 2*1000 || spent > 2*1000+100 || int64(record.Cost.N/1e6) != spent || !record.CostCounted || record.EndState != storage.ClientAborted {
				t.Errorf("spent %d, the record's cost is %v", spent, record.Cost)
			}
		})
	}
}

// A budget that cuts streams lets one begin that does not fit, and ends the stream before it
// costs more than what is left. The provider is told to stop. An answer that is no stream is refused.
func TestBudgetsCutProxiedStreams(t *testing.T) {
	p := newPriced(t)
	s := budgeted(t, p, object{"limit": "0.8", "window": "total", "cut": true})
	const asks = `{"model":"m","max_tokens":1000,"messages":[],"user":"chatty"`
	if resp, answer := s.do("POST", "/v1/chat/completions", asks+`}`); resp.StatusCode != http.StatusPaymentRequired {
		t.Errorf("no stream: %d %s", resp.StatusCode, answer)
	}
	resp, answer := s.do("POST", "/v1/chat/completions", asks+`,"stream":true}`, "Accept-Encoding", "gzip")
	message, err := plugintest.CheckChat([]byte(answer))
	if resp.StatusCode != http.StatusOK || err != nil || message.Finish != "length" || len(message.Text) < 300 || len(message.Text) > 400 {
		t.Fatalf("%d, %v, %s", resp.StatusCode, err, answer)
	}
	eventually(t, p.left.Load)
	eventually(t, s.kept.ended)
	eventually(t, func() bool { _, reserved := counted(t); return reserved == 0 })
	spent, _ := counted(t)
	if r := s.kept.entries[len(s.kept.entries)-1]; spent < 150 || spent > 800 || int64(r.Cost.N/1e6) != spent || !r.CostCounted || r.Finish != "budget_cut" || r.EndState != storage.Complete {
		t.Errorf("spent %d; the record costs %v, and ended %s by %s", spent, r.Cost, r.EndState, r.Finish)
	}
	if resp, answer := s.do("POST", "/v1/chat/completions", asks+`,"stream":true}`); resp.StatusCode != http.StatusPaymentRequired {
		t.Errorf("what is left is of no use: %d %s", resp.StatusCode, answer)
	}
}

// What creates or wakes an agent that runs at the provider is refused where a budget counts, and the
// error of a session names its field. Reading a session is free.
func TestHostedAgentsAreRefusedWhereABudgetCounts(t *testing.T) {
	for provider, sessions := range map[string]string{"openai": "/v1/agents/sessions", "anthropic": "/v1/sessions"} {
		t.Run(provider, func(t *testing.T) { // one server at a time
			p := newPriced(t)
			s := serve(t, options{
				upstream: strings.TrimPrefix(p.URL, "http://"), config: object{"provider": provider}, flush: true,
				app: object{"budgets": []object{{"name": "all", "limit": "100", "window": "total"}}},
			})
			for path, field := range map[string]string{sessions: "agent", sessions + "/": "agent", sessions + "/s_1/events": "", sessions + "/s_1": "", "/v1/agents": "", "/v1/live/sessions": "", "/v1/decisions": ""} {
				resp, answer := s.do("POST", path, `{"model":"gpt-4o","agent":{"model":"gpt-4o"},"budget":{"max_list_cost":{"amount":"1","currency":"USD"}},"events":[]}`)
				if resp.StatusCode != http.StatusBadRequest || !strings.Contains(answer, "model_not_priced") || field != "" && !strings.Contains(answer, "The agent runs at the provider") || p.calls.Load() != 0 {
					t.Errorf("%s: %d %s", path, resp.StatusCode, answer)
				}
			}
			if resp, answer := s.do("GET", sessions+"/s_1", ""); resp.StatusCode != http.StatusOK {
				t.Errorf("a session: %d %s", resp.StatusCode, answer)
			}
		})
	}
}

// A budget that lets calls without a price pass lets pass what has none.
func TestUnpricedProxiedCallsPass(t *testing.T) {
	p := newPriced(t)
	s := budgeted(t, p, object{"limit": "1", "window": "total", "on_unpriced": "pass"})
	for _, body := range []string{`{"model":"n","messages":[]}`, `no JSON`} {
		if resp, answer := s.do("POST", "/v1/chat/completions", body); resp.StatusCode != http.StatusOK || p.body.Load() != body {
			t.Errorf("%s: %d %s", body, resp.StatusCode, answer)
		}
	}
}

// A limit of requests or of calls at once needs nothing of the body, and a proxy leaves the
// provider's own fields about its limits as they are.
func TestLimitsBoundProxies(t *testing.T) {
	p := newPriced(t)
	s := budgeted(t, p, object{"limit": "2", "quantity": "requests", "window": "1h"})
	for i := range 3 {
		resp, answer := s.do("POST", "/v1/anything", "\x1f\x8b", "Content-Encoding", "gzip")
		if i < 2 && (resp.StatusCode != http.StatusOK || p.body.Load() != "\x1f\x8b" || resp.Header.Get("Ratelimit") != "") {
			t.Errorf("call %d: %d %s %v", i, resp.StatusCode, answer, resp.Header)
		}
		if i == 2 && (resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" || p.calls.Load() != 2) {
			t.Errorf("beyond the limit: %d %s", resp.StatusCode, answer)
		}
	}
	if resp, _ := s.do("GET", "/v1/models", ""); resp.StatusCode != http.StatusOK {
		t.Errorf("what only reads: %d", resp.StatusCode)
	}
}

// A proxied call counts the tokens that the provider states, or else the most that it can have
// used.
func TestLimitsCountProxiedTokens(t *testing.T) {
	p := newPriced(t)
	s := budgeted(t, p, object{"limit": "100", "quantity": "tokens", "window": "total"})
	for i, c := range []struct {
		body   string
		status int
		spent  int64
	}{{within(""), 200, 8}, {within(`,"user":"failing"`), 500, 8}, {within(`,"user":"silent","stream":true`), 200, 91}, {within(""), 429, 91}} {
		resp, answer := s.do("POST", "/v1/chat/completions", c.body, "Content-Type", "application/json")
		if resp.StatusCode != c.status {
			t.Errorf("call %d: %d %s", i, resp.StatusCode, answer)
		}
		b, err := store(t).Balance(t.Context(), credits.Hold{Account: credits.Account{Org: "default", Budget: "all\ntokens"}})
		if err != nil || int64(b.Spent) != c.spent || b.Reserved != 0 {
			t.Errorf("call %d: %d tokens are counted, %d held, %v; want %d", i, b.Spent, b.Reserved, err, c.spent)
		}
	}
}

// A budget that observes stops no proxied call, not even one that cannot be read, and the record
// names the budget if it would have refused the call.
func TestObservingBudgetsLetProxiedCallsPass(t *testing.T) {
	p := newPriced(t)
	s := budgeted(t, p, object{"limit": "0.07", "window": "total", "observe": true})
	for i, c := range []struct{ body, encoding, refused string }{
		{within(""), "", ""}, {within(""), "", "all"}, {"\x1f\x8b", "gzip", "all"}, {strings.Repeat(" ", 3<<20) + within(""), "", "all"},
	} {
		header := []string{"Content-Type", "application/json"}
		if c.encoding != "" {
			header = append(header, "Content-Encoding", c.encoding)
		}
		if resp, answer := s.do("POST", "/v1/chat/completions", c.body, header...); resp.StatusCode != http.StatusOK || p.body.Load() != c.body {
			t.Errorf("call %d: %d %s", i, resp.StatusCode, answer)
		}
		eventually(t, s.kept.ended)
		if r := s.kept.entries[len(s.kept.entries)-1]; r.WouldRefuse != c.refused {
			t.Errorf("call %d: the record names %q, want %q", i, r.WouldRefuse, c.refused)
		}
	}
}
