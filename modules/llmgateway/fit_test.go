package llmgateway

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// A call whose output may cost more than is left gets a lower limit: the highest that the
// credits cover, in the field that the client used. Without room for an answer of use, or
// if the client wants the call as it is, the call is refused.
func TestOutputIsFitted(t *testing.T) {
	const chat, responses = "/v1/chat/completions", "/v1/responses"
	for name, c := range map[string]struct {
		path, body string
		header     []string
		grant      int64
		sent       []string // the fields that have the lower limit
		fitted     bool
		status     int
	}{
		"covered":            {chat, `{"model":"raw/priced","messages":[],"max_tokens":400}`, nil, 1000, nil, false, 200},
		"native":             {chat, `{"model":"raw/priced","messages":[],"max_tokens":900}`, nil, 1000, []string{"max_tokens"}, true, 200},
		"native, both":       {chat, `{"model":"raw/priced","messages":[],"max_tokens":900,"max_completion_tokens":900}`, nil, 1000, []string{"max_completion_tokens", "max_tokens"}, true, 200},
		"native, none asked": {chat, `{"model":"raw/priced","messages":[]}`, nil, 1000, []string{"max_completion_tokens"}, true, 200},
		"two answers":        {chat, `{"model":"raw/priced","messages":[],"max_tokens":900,"n":2}`, nil, 1500, []string{"max_tokens"}, true, 200},
		"translated":         {responses, `{"model":"one/m","input":"hi","max_output_tokens":900}`, nil, 1000, nil, true, 200},
		"strict":             {chat, `{"model":"raw/priced","messages":[],"max_tokens":900}`, []string{"Service-Strict", "true"}, 1000, nil, false, 402},
		"strict, none asked": {chat, `{"model":"raw/priced","messages":[]}`, []string{"Service-Strict", "true"}, 1000, nil, false, 402},
		"of no use":          {chat, `{"model":"raw/priced","messages":[],"max_tokens":900}`, nil, 300, nil, false, 402},
		"asked for less":     {chat, `{"model":"raw/priced","messages":[],"max_tokens":200}`, nil, 300, nil, false, 402},
		"thinks too much":    {chat, `{"model":"raw/priced","messages":[],"max_tokens":900,"thinking":{"type":"enabled","budget_tokens":500}}`, nil, 1000, nil, false, 402},
	} {
		t.Run(name, func(t *testing.T) {
			var sent string
			answer := func(next upstream) []upstream {
				return []upstream{func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					sent = string(body)
					next(w, r)
				}}
			}
			s := serve(t, map[string][]upstream{"one": answer(hello), "raw": answer(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, `{"object":"chat.completion","model":"priced","choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":5}}`)
			})})
			s.grant(c.grant)
			resp, body := s.postTo(c.path, strings.NewReader(c.body), append([]string{"Authorization", "Bearer payer"}, c.header...)...)
			if resp.StatusCode != c.status {
				t.Fatalf("%d %s", resp.StatusCode, body)
			}
			warning := resp.Header.Get("Service-Warnings")
			var limit int64
			_, _ = fmt.Sscanf(warning[strings.Index(warning, ":")+1:], " lowered to %d, for which budgets and credits have room", &limit)
			if (limit > 0) != c.fitted {
				t.Fatalf("warning %q, fitted %v", warning, c.fitted)
			}
			answers := max(gjson.Get(c.body, "n").Int(), 1)
			input := int64(len(c.body))
			if most := (c.grant - input) / 2 / answers; c.fitted && (limit > most || limit < most-2) {
				t.Errorf("lowered to %d; the credits cover %d", limit, most)
			}
			for _, field := range c.sent {
				if got := gjson.Get(sent, field).Int(); got != limit {
					t.Errorf("lowered to %d, and sent %s", limit, sent)
				}
			}
			if spent, reserved := s.balance(); c.status == 200 && (spent != 13 || reserved != 0) || c.status != 200 && spent != 0 {
				t.Errorf("spent %d, reserved %d", spent, reserved)
			}
		})
	}
}

// A call that fits as soon as others have ended is told to come back: it is not cut short if
// it then fits as it is, and not refused for good if it then fits with a lower limit.
func TestHeldCreditsLowerNothing(t *testing.T) {
	for name, c := range map[string]struct {
		grant, asked int64
		lowered      bool
	}{
		"as it is":           {2000, 600, false},
		"with a lower limit": {2000, 1000, true},
	} {
		t.Run(name, func(t *testing.T) { testHeld(t, c.grant, c.asked, c.lowered) })
	}
}

func testHeld(t *testing.T, grant, asked int64, lowered bool) {
	proceed, inside := make(chan bool), make(chan bool)
	s := serve(t, map[string][]upstream{"one": {func(w http.ResponseWriter, r *http.Request) {
		close(inside)
		<-proceed
		hello(w, r)
	}, hello}})
	s.grant(grant)
	body := fmt.Sprintf(`{"model":"one/m","input":"hi","max_output_tokens":%d}`, asked)
	first := make(chan int)
	go func() {
		resp, _ := s.post(body, "Authorization", "Bearer payer")
		first <- resp.StatusCode
	}()
	<-inside
	resp, got := s.post(body, "Authorization", "Bearer payer")
	if resp.StatusCode != http.StatusTooManyRequests || gjson.Get(got, "error.code").Str != "budget_reserved" {
		t.Errorf("%d %s", resp.StatusCode, got)
	}
	close(proceed)
	if status := <-first; status != http.StatusOK {
		t.Errorf("the first call got %d", status)
	}
	resp, got = s.post(body, "Authorization", "Bearer payer")
	if resp.StatusCode != http.StatusOK || (resp.Header.Get("Service-Warnings") != "") != lowered || s.account().Spent != 26*plugins.Nanodollars(1e6) {
		t.Errorf("%d %s, warnings %q", resp.StatusCode, got, resp.Header.Get("Service-Warnings"))
	}
}
