package llmgateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/credits"
	"github.com/weirhq/weir/storage/credits/embedded"
)

const bounded = `{"model":"one/m","input":"hi","max_output_tokens":10}`

// balance is that of the organisation with credits, in thousandths of a dollar.
func (s *site) balance() (spent, reserved int64) {
	b := s.account()
	return int64(b.Spent / 1e6), int64(b.Reserved / 1e6)
}

// awaitRelease waits until nothing is reserved: records and answers come before.
func (s *site) awaitRelease() {
	s.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, reserved := s.balance(); reserved == 0 {
			return
		} else if time.Now().After(deadline) {
			s.t.Fatalf("%d are reserved", reserved)
		}
	}
}

func (s *site) account() credits.Balance {
	b, err := s.credits.Balance(context.Background(), credits.Hold{Account: credits.Account{Org: "payer"}})
	if err != nil {
		s.t.Error(err)
	}
	return b
}

func (s *site) grant(thousandths int64) {
	s.t.Helper()
	if err := s.credits.Grant(s.t.Context(), "payer", plugins.Nanodollars(thousandths*1e6)); err != nil {
		s.t.Fatal(err)
	}
}

// The model `one/m` costs a thousandth of a dollar for a token in, and two for
// one out. The upstream reports 3 and 5.
func TestCredits(t *testing.T) {
	for name, c := range map[string]struct {
		key, body string
		grant     int64
		status    int
		code      string
		spent     int64
		paid      bool // with credits
	}{
		"charged":                {"payer", bounded, 1000, 200, "", 13, true},
		"charged stream":         {"payer", `{"model":"one/m","input":"hi","max_output_tokens":10,"stream":true}`, 1000, 200, "", 13, true},
		"too little":             {"payer", bounded, 72, 402, "insufficient_quota", 0, false},
		"just enough":            {"payer", bounded, 73, 200, "", 13, true},
		"unbounded output":       {"payer", ask, 2000, 200, "", 13, true},
		"bounded by the model":   {"payer", `{"model":"one/brief","input":"hi"}`, 300, 200, "", 13, true},
		"no price":               {"payer", `{"model":"two/m","input":"hi"}`, 1000, 400, "model_not_priced", 0, false},
		"beside the schema":      {"payer", `{"model":"one/m","input":"hi","service_tier":"warp"}`, 10000, 400, "invalid_value", 0, false},
		"any schema, own bill":   {"k", `{"model":"one/m","input":"hi","service_tier":"warp"}`, 0, 200, "", 0, false},
		"dearer, then what fits": {"payer", `{"model":"one/m,one/brief","input":"hi"}`, 300, 200, "", 13, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, map[string][]upstream{"one": {hello}, "two": {hello}})
			s.grant(c.grant)
			resp, body := s.post(c.body, "Authorization", "Bearer "+c.key)
			if resp.StatusCode != c.status || gjson.Get(body, "error.code").Str != c.code {
				t.Fatalf("%d %s", resp.StatusCode, body)
			}
			if spent, reserved := s.balance(); spent != c.spent || reserved != 0 {
				t.Errorf("spent %d, reserved %d; want %d, 0", spent, reserved, c.spent)
			}
			if r := s.kept.all()[0]; r.PassthroughBilling != c.paid {
				t.Errorf("pass-through billing %v", r.PassthroughBilling)
			}
		})
	}
}

func TestFailuresCostNothing(t *testing.T) {
	s := serve(t, map[string][]upstream{"one": {status(500), says("model m-1"), hello, status(400)}})
	core, logs := observer.New(zapcore.ErrorLevel)
	s.handler.site.Logger = zap.New(core)
	s.grant(1000)
	for range 3 {
		s.post(bounded, "Authorization", "Bearer payer")
	}
	if spent, reserved := s.balance(); spent != 13 || reserved != 0 {
		t.Errorf("spent %d, reserved %d", spent, reserved)
	}
	if logged := logs.FilterMessage("a charge is not on disk").Len(); logged > 0 {
		t.Errorf("%d charges are said to be lost", logged)
	}
}

// The next turn of a conversation sets aside what the provider counted for the turn before, and
// the bytes that it adds: in each API, as it is and translated.
func TestTheNextTurnSetsAsideWhatIsNew(t *testing.T) {
	first := `{"role":"user","content":"` + strings.Repeat("a ", 300) + `"}`
	next := first + `,{"role":"assistant","content":"hi"},{"role":"user","content":"` + strings.Repeat("b ", 50) + `"}`
	for path, fields := range map[string]string{
		"/v1/responses": `"max_output_tokens":10,"input"`, "/v1/messages": `"max_tokens":10,"messages"`, "/v1/chat/completions": `"max_tokens":10,"messages"`,
	} {
		for _, model := range []string{"one/m", "raw/priced"} {
			t.Run(path+" of "+model, func(t *testing.T) {
				s := serve(t, map[string][]upstream{"one": {hello}, "raw": {speaksResponses}})
				s.grant(800)
				for _, c := range []struct {
					name, model, messages string
					status                int
				}{
					{"not known", model, next, 402}, {"the first turn", model, first, 200}, {"the next", model, next, 200},
					{"of another model", "one/brief", next, 402},
				} {
					body := `{"model":"` + c.model + `",` + fields + `:[` + c.messages + `]}`
					if resp, answer := s.postTo(path, strings.NewReader(body), "Authorization", "Bearer payer"); resp.StatusCode != c.status {
						t.Errorf("%s: %d %s", c.name, resp.StatusCode, answer)
					}
				}
			})
		}
	}
}

// Calls at the same time reserve what each may cost: none is let in that the
// others leave no room for.
func TestReservationsHold(t *testing.T) {
	proceed := make(chan bool)
	var inside sync.WaitGroup
	inside.Add(2)
	s := serve(t, map[string][]upstream{"one": {func(w http.ResponseWriter, r *http.Request) {
		inside.Done()
		<-proceed
		hello(w, r)
	}}})
	s.grant(150) // two of 73
	var calls sync.WaitGroup
	for range 2 {
		calls.Go(func() {
			if resp, body := s.post(bounded, "Authorization", "Bearer payer"); resp.StatusCode != 200 {
				t.Errorf("%d %s", resp.StatusCode, body)
			}
		})
	}
	inside.Wait()
	resp, body := s.post(bounded, "Authorization", "Bearer payer")
	if resp.StatusCode != http.StatusTooManyRequests || gjson.Get(body, "error.code").Str != "budget_reserved" || resp.Header.Get("Retry-After") == "" {
		t.Errorf("the third call got %d %s", resp.StatusCode, body)
	}
	close(proceed)
	calls.Wait()
	if spent, reserved := s.balance(); spent != 26 || reserved != 0 {
		t.Errorf("spent %d, reserved %d", spent, reserved)
	}
}

// Of many calls at the same time exactly those are let in whose reservations the
// credits cover.
func TestCallsThatFit(t *testing.T) {
	const calls, fit, reserved, cost = 100, 10, 68 + 2*10, 13
	for name, mode := range map[string]string{"objects": "false", "streams": "true "} {
		t.Run(name, func(t *testing.T) {
			var decided sync.WaitGroup
			decided.Add(calls)
			s := serve(t, map[string][]upstream{"one": {func(w http.ResponseWriter, r *http.Request) {
				decided.Done()
				decided.Wait()
				hello(w, r)
			}}})
			s.grant(fit*reserved + reserved - 1)
			var in atomic.Int64
			var group sync.WaitGroup
			for range calls {
				group.Go(func() {
					resp, _ := s.post(`{"model":"one/m","input":"hi","max_output_tokens":10,"stream":`+mode+`}`, "Authorization", "Bearer payer")
					if resp.StatusCode == http.StatusTooManyRequests {
						decided.Done()
					} else {
						in.Add(1)
					}
				})
			}
			group.Wait()
			if got := in.Load(); got != fit {
				t.Errorf("%d calls were let in, want %d", got, fit)
			}
			if spent := s.audit(); spent != fit*cost {
				t.Errorf("spent %d, want %d", spent, fit*cost)
			}
		})
	}
}

// Whatever becomes of the attempts, what is spent is the sum of what the records
// say, and no more than was granted.
func TestChargesAreRecords(t *testing.T) {
	const calls = 100
	brokenOff := says("model m-1", "text hel", "usage 3 5")
	script := []upstream{status(500), hello, brokenOff, says("model m-1"), hello, status(429), hello}
	var n atomic.Int64
	s := serve(t, map[string][]upstream{"one": {func(w http.ResponseWriter, r *http.Request) {
		script[int(n.Add(1))%len(script)](w, r)
	}}})
	s.grant(10 * 54)
	var group sync.WaitGroup
	for i := range calls {
		group.Go(func() {
			s.post(fmt.Sprintf(`{"model":"one/m","input":"hi","max_output_tokens":10,"stream":%v}`, i%2 == 0), "Authorization", "Bearer payer")
		})
	}
	watched := make(chan struct{})
	go func() {
		group.Wait()
		close(watched)
	}()
	for done := false; !done; {
		select {
		case <-watched:
			done = true
		case <-time.After(time.Millisecond):
		}
		if b := s.account(); b.Available() < 0 || b.Reserved < 0 {
			t.Fatalf("the balance is %+v", b)
		}
	}
	if spent := s.audit(); spent < 13 {
		t.Errorf("spent %d", spent)
	}
}

// audit returns what was spent when the calls have ended, in thousandths of a
// dollar: it must be the sum of the records' costs.
func (s *site) audit() int64 {
	s.t.Helper()
	s.Close()
	spent, reserved := s.balance()
	var sum int64
	for _, r := range s.kept.all() {
		if !r.Cost.Valid && r.EndState == storage.Complete {
			s.t.Errorf("the cost of %+v is unknown", r.Record)
		}
		sum += int64(r.Cost.N / 1e6)
	}
	if spent != sum || reserved != 0 {
		s.t.Errorf("spent %d, reserved %d; the records cost %d", spent, reserved, sum)
	}
	return spent
}

// Who leaves pays for what has passed, though the provider has told no usage yet,
// or what it began with.
func TestLeavingIsNotFree(t *testing.T) {
	const words = "text word word word word word word word word "
	for name, c := range map[string]struct {
		says  []string
		least int64
	}{
		"no usage yet":     {[]string{words}, 10},
		"an early usage":   {[]string{"usage 3 1", words}, 10},
		"usage of it all":  {[]string{words, "usage 20 5"}, 30},
		"nothing was kept": {[]string{"usage 3 1", words}, 10},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, map[string][]upstream{"one": {func(w http.ResponseWriter, r *http.Request) {
				says(c.says...)(w, r)
				<-r.Context().Done()
			}}})
			s.grant(1000)
			ctx, cancel := context.WithCancel(t.Context())
			r, err := http.NewRequestWithContext(ctx, "POST", s.URL+"/v1/responses", strings.NewReader(`{"model":"one/m","input":"hi","max_output_tokens":10,"stream":true}`))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer payer")
			if name == "nothing was kept" {
				r.Header.Set("Service-Omit-Response", "true")
			}
			resp, err := s.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = resp.Body.Read(make([]byte, 1))
			cancel()
			resp.Body.Close()
			spent, reserved := s.balance()
			for ; spent == 0 || reserved != 0; spent, reserved = s.balance() {
				time.Sleep(time.Millisecond)
			}
			if spent < c.least || spent > 67+2*10 { // what was set aside
				t.Errorf("spent %d", spent)
			}
			if audited := s.audit(); audited != spent {
				t.Errorf("spent %d, and %d in the end", spent, audited)
			}
		})
	}
}

// Who leaves before any of the answer comes pays for what the provider has read, and for what it
// can have written meanwhile: the provider works on, or thinks after the header of its answer.
func TestLeavingBeforeTheAnswerIsNotFree(t *testing.T) {
	for name, c := range map[string]struct{ model, header, begin string }{
		"no header":                       {model: "one/m"},
		"a header":                        {"one/m", "application/json", ""},
		"a header, native":                {"raw/priced", "application/json", ""},
		"the begin of an answer, native":  {"raw/priced", "application/json", `{"id":"resp_1",`},
		"a header of a stream":            {"one/m", "text/event-stream", ""},
		"a header of a stream, native":    {"raw/priced", "text/event-stream", ""},
		"an event before content, native": {"raw/priced", "text/event-stream", "data: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_1\"}}\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			silent := func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if c.header != "" {
					w.Header().Set("Content-Type", c.header)
					io.WriteString(w, c.begin)
					w.(http.Flusher).Flush() //nolint:forcetypeassert // the server's
				}
				time.AfterFunc(100*time.Millisecond, leave) // when the gateway has read what there is
				<-r.Context().Done()
			}
			s := serve(t, map[string][]upstream{"one": {silent}, "raw": {silent}})
			s.grant(1000)
			r, err := http.NewRequestWithContext(ctx, "POST", s.URL+"/v1/responses", strings.NewReader(
				fmt.Sprintf(`{"model":%q,"input":"hi","max_output_tokens":10,"stream":%t}`, c.model, strings.HasPrefix(c.header, "text"))))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer payer")
			if resp, err := s.Client().Do(r); err == nil {
				t.Fatal(resp.Status)
			}
			s.settled()
			spent, reserved := s.balance()
			if spent < 20 || spent > 100 || reserved != 0 {
				t.Errorf("spent %d, reserved %d", spent, reserved)
			}
			if audited := s.audit(); audited != spent {
				t.Errorf("spent %d, and %d in the end", spent, audited)
			}
			if r := s.kept.all(); len(r) == 0 || !r[len(r)-1].CostCounted || r[len(r)-1].EndState != storage.ClientAborted {
				t.Errorf("%+v", r)
			}
		})
	}
}

// A provider that does not begin its answer in time works on, too: neither the call nor its
// record is free.
func TestAnswersThatAreNotWaitedForAreNotFree(t *testing.T) {
	s := serve(t, map[string][]upstream{"one": {func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}}})
	s.handler.policy.FirstByteTimeout = 300 * time.Millisecond
	s.grant(1000)
	if resp, body := s.post(`{"model":"one/m","input":"hi","max_output_tokens":10}`, "Authorization", "Bearer payer"); resp.StatusCode != http.StatusGatewayTimeout {
		t.Fatal(resp.Status, body)
	}
	s.settled()
	var recorded int64
	for _, r := range s.kept.all() {
		recorded += int64(r.Cost.N / 1e6)
		if !r.CostCounted || r.EndState != storage.Failed {
			t.Errorf("%+v", r)
		}
	}
	if spent, reserved := s.balance(); spent < 20 || spent != recorded || reserved != 0 {
		t.Errorf("spent %d, records say %d, reserved %d", spent, recorded, reserved)
	}
}

// The charge is on disk before the client has the end of its answer.
func TestChargeBeforeEnd(t *testing.T) {
	s := serve(t, map[string][]upstream{"one": {hello}})
	s.grant(1000)
	s.post(bounded, "Authorization", "Bearer payer")
	again, err := embedded.Open(s.creditsDir, nil, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close(t.Context())
	if b, err := again.Balance(t.Context(), credits.Hold{Account: credits.Account{Org: "payer"}}); err != nil || b.Spent != 13e6 {
		t.Errorf("on disk there is %+v, %v", b, err)
	}
}

// While the credits are unavailable, what they would pay for is refused, and all
// else served.
func TestUnavailableCreditsPayForNothing(t *testing.T) {
	s := serve(t, map[string][]upstream{"one": {hello}})
	s.grant(1000)
	if err := s.credits.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	resp, body := s.post(bounded, "Authorization", "Bearer payer")
	if resp.StatusCode != http.StatusServiceUnavailable || gjson.Get(body, "error.code").Str != "budget_unavailable" {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	if resp, body := s.post(bounded); resp.StatusCode != http.StatusOK {
		t.Errorf("a call that is not paid from credits: %d %s", resp.StatusCode, body)
	}
}

// The name under which a client wants a call recorded is not the price it pays.
func TestOverrideIsNoPrice(t *testing.T) {
	s := serve(t, map[string][]upstream{"one": {hello}})
	s.grant(1000)
	s.post(bounded, "Authorization", "Bearer payer", "Service-Model-Override", "cheap")
	if spent := s.audit(); spent != 13 {
		t.Errorf("spent %d", spent)
	}
	if r := s.kept.all()[0]; r.Model != "cheap" {
		t.Errorf("it is recorded as %s", r.Model)
	}
}

// A provider that serves another tier than was asked for, at a price that nobody
// knows, is not free: what was set aside is charged.
func TestUnpricedTierIsNotFree(t *testing.T) {
	s := serve(t, map[string][]upstream{"raw": {func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"object":"chat.completion","model":"priced","service_tier":"scale","choices":[{"message":{"content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":5}}`))
	}}})
	s.grant(1000)
	s.postTo("/v1/chat/completions", strings.NewReader(`{"model":"raw/priced","messages":[],"max_tokens":10}`), "Authorization", "Bearer payer")
	if spent, reserved := s.balance(); spent != 52+2*10 || reserved != 0 {
		t.Errorf("spent %d, reserved %d", spent, reserved)
	}
}

// A client that asks gets the tokens and the cost of its call, in headers or after a
// stream in trailers.
func TestCostIsTold(t *testing.T) {
	s := serve(t, map[string][]upstream{"one": {says("text hi", "usage 3 5", "stop")}})
	want := map[string]string{"Service-Cost": "0.013", "Service-Prompt-Tokens": "3", "Service-Completion-Tokens": "5"}
	for _, body := range []string{`{"model":"one/m","input":"hi"}`, `{"model":"one/m","input":"hi","stream":true}`} {
		told, _ := s.post(body, "Service-Cost", "true")
		silent, _ := s.post(body)
		for name, value := range want {
			if got := told.Header.Get(name) + told.Trailer.Get(name); got != value {
				t.Errorf("%s: %s is %q, want %q", body, name, got, value)
			}
			if got := silent.Header.Get(name) + silent.Trailer.Get(name); got != "" {
				t.Errorf("%s: %s is %q, and nobody asked", body, name, got)
			}
		}
	}
}

// What a model thinks is paid though no client asks for the usage of a stream; the client
// gets nothing that it did not ask for.
func TestUsageOfStreamsIsAskedFor(t *testing.T) {
	const delta, done = `data: {"choices":[{"index":0,"delta":{"content":"ok"},"finish_reason":"stop"}]}` + "\n\n", "data: [DONE]\n\n"
	const usage = `data: {"choices":[],"model":"priced","usage":{"prompt_tokens":3,"completion_tokens":400}}` + "\n\n"
	for options, want := range map[string]string{
		"": delta + done, `,"stream_options":{"include_usage":false}`: delta + done, `,"stream_options":{"include_usage":true}`: delta + usage + done,
		`,"stream_options":{"include_usage":true,"include_usage":false}`: delta + done,
	} {
		for _, path := range []string{"/v1/chat/completions", "/v1/completions"} {
			s := serve(t, map[string][]upstream{"raw": {func(w http.ResponseWriter, r *http.Request) {
				answer := delta + usage + done
				if body := readAndRestore(r); strings.Count(body, `"include_usage":true`) != 1 || strings.Contains(body, "false") {
					answer = delta + done
				}
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = w.Write([]byte(answer))
			}}})
			s.grant(10_000)
			_, got := s.postTo(path, strings.NewReader(`{"model":"raw/priced","messages":[],"stream":true,"max_tokens":500`+options+`}`), "Authorization", "Bearer payer")
			if got != want {
				t.Errorf("%s%s: the client gets %q", path, options, got)
			}
			if spent := s.audit(); spent != 3+2*400 {
				t.Errorf("%s%s: spent %d", path, options, spent)
			}
		}
	}
}

// What is broken off is billed by providers, though they have not stated its usage, or only
// what they began with. Without credits, too, its cost is counted, and the record says so.
func TestTheCostOfABrokenOffAnswerIsCounted(t *testing.T) {
	const words = "word word word word word word word word "
	chat := says(`{"id":"c","object":"chat.completion.chunk","model":"priced","choices":[{"index":0,"delta":{"content":"` + words + `"}}]}`)
	messages := says(`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"priced","content":[],"usage":{"input_tokens":3,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"`+words+`"}}`)
	digits := says(append([]string{`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"priced","content":[],"usage":{"input_tokens":3,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`},
		slices.Repeat([]string{`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"1"}}`}, 90)...)...)
	const hi, picture = `"hi"`, `[{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}]`
	for name, c := range map[string]struct {
		path, model, content string
		answer               upstream
		leaves               bool
		least, most          int64 // thousandths of a dollar; 0 if the cost is unknown
		counted              bool
	}{
		"nothing stated":         {"/v1/chat/completions", "raw/priced", hi, chat, true, 30, 200, true},
		"the provider broke off": {"/v1/chat/completions", "raw/priced", hi, chat, false, 30, 200, true},
		"an early usage":         {"/v1/messages", "raw/priced", hi, messages, true, 3 + 2*8, 3 + 2*60, true},
		"digits":                 {"/v1/messages", "raw/priced", hi, digits, true, 3 + 2*60, 3 + 2*100, true},
		"digits, translated":     {"/v1/messages", "one/m", hi, says(append([]string{"usage 3 0"}, slices.Repeat([]string{"text 1"}, 90)...)...), true, 3 + 2*60, 3 + 2*100, true},
		"early, then broken off": {"/v1/messages", "raw/priced", hi, messages, false, 3 + 2*8, 3 + 2*60, true},
		"early, and not kept":    {"/v1/messages", "raw/priced", hi, messages, true, 0, 0, false},
		"translated":             {"/v1/chat/completions", "one/m", hi, says("text "+words, "usage 3 0"), true, 3 + 2*8, 3 + 2*60, true},
		"thoughts, unseen":       {"/v1/chat/completions", "raw/thinks", hi, after(500*time.Millisecond, chat), true, 3 + 2*50, 3 + 2*100, true},
		"a picture of any size":  {"/v1/chat/completions", "raw/priced", picture, chat, true, 0, 0, false},
		"no price":               {"/v1/chat/completions", "raw/m", hi, chat, true, 0, 0, false},
		"stated":                 {"/v1/chat/completions", "one/m", hi, says("text "+words, "usage 3 5", "stop"), false, 13, 13, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, map[string][]upstream{"one": {c.answer}, "raw": {c.answer}})
			if c.leaves {
				leave := func(w http.ResponseWriter, r *http.Request) {
					c.answer(w, r)
					<-r.Context().Done()
				}
				s = serve(t, map[string][]upstream{"one": {leave}, "raw": {leave}})
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, "POST", s.URL+c.path, strings.NewReader(
				`{"model":"`+c.model+`","max_tokens":100,"stream":true,"messages":[{"role":"user","content":`+c.content+`}]}`))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer k")
			if strings.HasSuffix(name, "not kept") {
				r.Header.Set("Service-Omit-Response", "true")
			}
			resp, err := s.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			if c.leaves {
				awaited, reads := 1, bufio.NewReader(resp.Body)
				if strings.HasPrefix(name, "digits") {
					awaited = 65
				}
				for events := 0; events < awaited; {
					line, err := reads.ReadString('\n')
					if err != nil {
						t.Fatal(err)
					}
					events += strings.Count(line, "data:")
				}
				cancel()
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			s.settled()
			s.Close()
			got := s.kept.all()[0]
			if cost := int64(got.Cost.N / 1e6); got.Cost.Valid != (c.most > 0) || cost < c.least || cost > c.most || got.CostCounted != c.counted {
				t.Errorf("%s: cost %+v, counted %v; want %d to %d, %v", got.EndState, got.Cost, got.CostCounted, c.least, c.most, c.counted)
			}
		})
	}
}

// after is an upstream that thinks before it says anything.
func after(thought time.Duration, says upstream) upstream {
	return func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(thought)
		says(w, r)
	}
}
