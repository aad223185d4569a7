package llmgateway

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage/credits"
)

// counts is what a limit counts of a value now.
func (s *site) counts(org, limit, value string) (spent, reserved plugins.Nanodollars) {
	s.t.Helper()
	budgets, err := s.handler.site.App.Money().Of(org)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, b := range budgets {
		if b.Name != limit {
			continue
		}
		list, err := b.Counted(s.t.Context(), s.credits)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, a := range list {
			if a.Value == value {
				return a.Spent, a.Reserved
			}
		}
	}
	return 0, 0
}

// The record of an attempt that another one follows comes after the end of the attempt's bill, and
// notes what the limit has counted for it.
func TestRecordsNoteTheChargesOfEachAttempt(t *testing.T) {
	s := serve(t, map[string][]upstream{"one": {status(500), hello}})
	if resp, body := s.post(bounded, "Authorization", "Bearer limited", "Service-User-Id", "ada"); resp.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	records := s.kept.all()
	if len(records) != 2 {
		t.Fatalf("%d records, want 2", len(records))
	}
	for _, r := range records {
		if n := noted(t, &r.Record); n != 1 {
			t.Errorf("attempt %d notes %d requests, want 1", r.Attempt, n)
		}
	}
	if spent, _ := s.counts("limited", "calls", "ada"); spent != 2 {
		t.Errorf("the limit counts %d, want 2", spent)
	}
}

// Each user may make three calls in an hour. A client is told what is left, and how long it
// has to wait: longer than clients wait by themselves.
func TestLimitOfRequests(t *testing.T) {
	s := serve(t, map[string][]upstream{"one": {hello}})
	ask := func(user string) (*http.Response, string) {
		return s.post(bounded, "Authorization", "Bearer limited", "Service-User-Id", user)
	}
	for left := 2; left >= 0; left-- {
		resp, body := ask("ada")
		h := resp.Header
		if resp.StatusCode != http.StatusOK || h.Get("X-Ratelimit-Limit-Requests") != "3" || h.Get("X-Ratelimit-Remaining-Requests") != strconv.Itoa(left) ||
			h.Get("Ratelimit-Policy") != `"calls";q=3;qu="requests";w=3600` || h.Get("Ratelimit") != `"calls";r=`+strconv.Itoa(left)+`;t=3600` {
			t.Fatalf("%d %s %v", resp.StatusCode, body, h)
		}
	}
	resp, body := ask("ada")
	after, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
	message := gjson.Get(body, "error.message").Str
	if resp.StatusCode != http.StatusTooManyRequests || gjson.Get(body, "error.code").Str != "rate_limit_exceeded" || after < 3500 || after > 3660 ||
		resp.Header.Get("X-Should-Retry") != "false" || !strings.Contains(message, "The limit calls allows 3 requests for user \"ada\" in a window of 1h: 3 requests are used") {
		t.Errorf("beyond the limit: %d %s %v", resp.StatusCode, body, resp.Header)
	}
	if resp, body := ask("bob"); resp.StatusCode != http.StatusOK {
		t.Errorf("bob, who has a limit for himself: %d %s", resp.StatusCode, body)
	}
	if spent, reserved := s.counts("limited", "calls", "ada"); spent != 3 || reserved != 0 {
		t.Errorf("%d are counted, %d held", spent, reserved)
	}
}

// A call counts the tokens that the provider has stated. A call that asks for more than is
// left asks for less output, and is refused if too little is left for any.
func TestLimitOfTokens(t *testing.T) {
	s := serve(t, map[string][]upstream{"one": {hello}})
	ask := func(most string) (*http.Response, string) {
		return s.post(`{"model":"one/m","input":"hi","max_output_tokens":`+most+`}`, "Authorization", "Bearer limited", "Service-User-Id", "talker")
	}
	var tokens plugins.Nanodollars
	for range 3 {
		resp, body := ask("1000")
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("%d %s", resp.StatusCode, body)
		}
		if !strings.Contains(resp.Header.Get("Service-Warnings"), "max_output_tokens") {
			t.Errorf("the call was not lowered: %v", resp.Header)
		}
		tokens += plugins.Nanodollars(gjson.Get(body, "usage.total_tokens").Int())
	}
	if spent, reserved := s.counts("limited", "words", ""); spent != tokens || reserved != 0 || tokens == 0 {
		t.Errorf("%d are counted, %d held, want %d", spent, reserved, tokens)
	}
	resp, body := ask("1000")
	for range 20 {
		if resp.StatusCode != http.StatusOK {
			break
		}
		resp, body = ask("1000")
	}
	if resp.StatusCode != http.StatusTooManyRequests || gjson.Get(body, "error.code").Str != "rate_limit_exceeded" || !strings.Contains(body, "360 tokens") {
		t.Errorf("beyond the limit: %d %s", resp.StatusCode, body)
	}
	if spent, reserved := s.counts("limited", "words", ""); spent > 320 || reserved != 0 {
		t.Errorf("%d of 320 are counted, %d held", spent, reserved)
	}
}

// Two calls run at once, and the third passes when one has ended.
func TestLimitOfConcurrentCalls(t *testing.T) {
	inside, proceed := make(chan bool, 2), make(chan bool)
	s := serve(t, map[string][]upstream{"one": {func(w http.ResponseWriter, r *http.Request) {
		inside <- true
		<-proceed
		hello(w, r)
	}}})
	ask := func() (*http.Response, string) { return s.post(bounded, "Authorization", "Bearer slow") }
	var calls sync.WaitGroup
	for range 2 {
		calls.Go(func() {
			if resp, body := ask(); resp.StatusCode != http.StatusOK {
				t.Errorf("%d %s", resp.StatusCode, body)
			}
		})
		<-inside
	}
	resp, body := ask()
	if resp.StatusCode != http.StatusTooManyRequests || gjson.Get(body, "error.code").Str != "rate_limit_exceeded" || resp.Header.Get("Retry-After") != "1" || !strings.Contains(body, "2 run") {
		t.Errorf("a third call: %d %s %v", resp.StatusCode, body, resp.Header)
	}
	if spent, _ := s.counts("slow", "all", ""); spent != 2 {
		t.Errorf("%d requests are counted, and one of three was refused", spent)
	}
	close(proceed)
	calls.Wait()
	s.settled()
	if resp, body := ask(); resp.StatusCode != http.StatusOK {
		t.Errorf("after two have ended: %d %s", resp.StatusCode, body)
	}
	if spent, reserved := s.counts("slow", `two "at" once`, ""); spent != 0 || reserved != 0 {
		t.Errorf("%d are counted, %d held", spent, reserved)
	}
}

// A caller can narrow what its calls may use, and is told what is left. A policy without sense
// is an error.
func TestLimitOfTheCaller(t *testing.T) {
	s := serve(t, map[string][]upstream{"one": {hello}})
	for i, c := range []struct {
		key, user, policy string
		status            int
		limit, left       string
	}{
		{"k", "ada", "2;w=60;s=user", 200, "2", "1"},
		{"k", "ada", "2;w=60;s=user", 200, "2", "0"},
		{"k", "ada", "2;w=60;s=user", 429, "", ""},
		{"k", "bob", "2;w=60;s=user", 200, "2", "1"},
		{"k", "ada", "9;w=3600;u=Cents", 200, "9", "1"}, // 7.3 are held, and 1.3 spent
		{"k", "ada", "9;w=3600;u=Cents", 200, "9", "0"},
		{"k", "ada", "9;w=3600;u=Cents", 402, "", ""},
		{"k", "ada", "", 200, "", ""},
		{"limited", "eve", "100;w=60", 200, "100", "99"},
		{"limited", "eve", "100;w=60", 200, "100", "98"},
		{"limited", "eve", "100;w=60", 200, "100", "97"},
		{"limited", "eve", "100;w=60", 429, "", ""}, // three an hour are what the organisation allows
		{"k", "ada", "0;w=60", 400, "", ""},
		{"k", "ada", "5", 400, "", ""},
		{"k", "ada", "5;w=59", 400, "", ""},
		{"k", "ada", "5;w=60;u=tokens", 400, "", ""},
		{"k", "ada", "5;w=60;x=y", 400, "", ""},
	} {
		resp, body := s.post(bounded, "Authorization", "Bearer "+c.key, "Service-User-Id", c.user, "Service-RateLimit-Policy", c.policy)
		h := resp.Header
		if resp.StatusCode != c.status || h.Get("Service-RateLimit-Limit") != c.limit || h.Get("Service-RateLimit-Remaining") != c.left || c.limit != "" && h.Get("Service-RateLimit-Policy") != c.policy {
			t.Errorf("call %d, %s: %d %s %v", i, c.policy, resp.StatusCode, body, h)
		}
	}
}

// A call waits until enough has left a rolling window.
func TestWaitForARate(t *testing.T) {
	s := serve(t, map[string][]upstream{"one": {hello}})
	began := time.Now()
	for range 2 {
		if resp, body := s.post(bounded, "Authorization", "Bearer slow", "Service-User-Id", "patient"); resp.StatusCode != http.StatusOK {
			t.Fatalf("%d %s", resp.StatusCode, body)
		}
	}
	if took := time.Since(began); took < time.Second {
		t.Errorf("two calls took %s, and only one may be made in a second", took)
	}
}

// A budget tells once that a part of its limit is spent, whoever runs beside.
func TestAlerts(t *testing.T) {
	s := serve(t, map[string][]upstream{"one": {hello}})
	var calls sync.WaitGroup
	for i := range 20 {
		calls.Go(func() {
			if resp, body := s.post(bounded, "Authorization", "Bearer warned", "Service-User-Id", []string{"ada", "bob"}[i%2]); resp.StatusCode != http.StatusOK {
				t.Errorf("%d %s", resp.StatusCode, body)
			}
		})
	}
	calls.Wait()
	s.settled()
	for _, c := range []struct {
		value, budget string
		told          plugins.Nanodollars
	}{{"ada", "each at 10%", 1}, {"bob", "each at 10%", 1}, {"ada", "each at 50%", 0}, {"", "pace\nrequests at 100%", 1}} {
		list, err := s.credits.Counted(t.Context(), credits.Hold{Account: credits.Account{Org: "warned", Budget: c.budget}})
		var told plugins.Nanodollars
		for _, a := range list {
			if a.Value == c.value {
				told = a.Spent
			}
		}
		if err != nil || told != c.told {
			t.Errorf("%s of %q was told %d times, %v; want %d", c.budget, c.value, told, err, c.told)
		}
	}
	if lines := s.logs.FilterMessage("a budget is spent to a part of its limit").Len(); lines != 3 {
		t.Errorf("%d lines tell of it, want 3", lines)
	}
}

// When much of a budget is spent, calls go to the models of an alias, and the budget is spent
// on. Others keep their model.
func TestBudgetsUseOtherModels(t *testing.T) {
	var called string
	s := serve(t, map[string][]upstream{"one": {func(w http.ResponseWriter, r *http.Request) {
		called, _, _ = strings.Cut(readAndRestore(r), " ")
		hello(w, r)
	}}})
	for i, want := range []string{"m", "brief", "brief", "cheap", "cheap"} { // each of the first three costs 13 of 100
		resp, body := s.post(bounded, "Authorization", "Bearer thrifty", "Service-User-Id", "ada")
		if resp.StatusCode != http.StatusOK || called != want {
			t.Errorf("call %d of ada is one of %s, want %s: %d %s", i, called, want, resp.StatusCode, body)
		}
		if warned := strings.Contains(resp.Header.Get("Service-Warnings"), "budget thrift is spent"); warned != (want != "m") {
			t.Errorf("call %d of ada warns %q", i, resp.Header.Get("Service-Warnings"))
		}
	}
	if _, _ = s.post(bounded, "Authorization", "Bearer thrifty", "Service-User-Id", "bob"); called != "m" {
		t.Errorf("bob, who has spent nothing, calls %s", called)
	}
}
