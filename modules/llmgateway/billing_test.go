package llmgateway

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/storage/credits"
)

const bounded = `{"model":"one/m","input":"hi","max_output_tokens":10}`

// balance is that of the organisation with credits, in thousandths of a dollar.
func (s *site) balance() (spent, reserved int64) {
	for _, b := range s.credits.Balances() {
		if b.Org == "payer" {
			return b.Spent / 1e6, b.Reserved / 1e6
		}
	}
	return 0, 0
}

func (s *site) grant(thousandths int64) {
	s.t.Helper()
	if err := s.credits.Grant("payer", thousandths*1e6); err != nil {
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
		paid      bool // by the house
	}{
		"charged":                {"payer", bounded, 1000, 200, "", 13, true},
		"charged stream":         {"payer", `{"model":"one/m","input":"hi","max_output_tokens":10,"stream":true}`, 1000, 200, "", 13, true},
		"too little":             {"payer", bounded, 33, 402, "insufficient_quota", 0, false},
		"just enough":            {"payer", bounded, 34, 200, "", 13, true},
		"unbounded output":       {"payer", ask, 8000, 402, "insufficient_quota", 0, false},
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
	s := serve(t, map[string][]upstream{"one": {status(500), says("model m-1"), hello}})
	s.grant(1000)
	for range 2 {
		s.post(bounded, "Authorization", "Bearer payer")
	}
	if spent, reserved := s.balance(); spent != 13 || reserved != 0 {
		t.Errorf("spent %d, reserved %d", spent, reserved)
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
	s.grant(70) // two of 34
	var calls sync.WaitGroup
	for range 2 {
		calls.Go(func() {
			if resp, body := s.post(bounded, "Authorization", "Bearer payer"); resp.StatusCode != 200 {
				t.Errorf("%d %s", resp.StatusCode, body)
			}
		})
	}
	inside.Wait()
	if resp, _ := s.post(bounded, "Authorization", "Bearer payer"); resp.StatusCode != http.StatusPaymentRequired {
		t.Errorf("the third call got %d", resp.StatusCode)
	}
	close(proceed)
	calls.Wait()
	if spent, reserved := s.balance(); spent != 26 || reserved != 0 {
		t.Errorf("spent %d, reserved %d", spent, reserved)
	}
}

// Who leaves before the provider tells its usage pays for what has passed.
func TestLeavingIsNotFree(t *testing.T) {
	s := serve(t, map[string][]upstream{"one": {func(w http.ResponseWriter, r *http.Request) {
		says("text "+strings.Repeat("word ", 20))(w, r)
		<-r.Context().Done()
	}}})
	s.grant(1000)
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "POST", s.URL+"/v1/responses", strings.NewReader(`{"model":"one/m","input":"hi","max_output_tokens":10,"stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer payer")
	resp, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = resp.Body.Read(make([]byte, 1))
	cancel()
	resp.Body.Close()
	for spent, reserved := s.balance(); spent == 0 || reserved != 0; spent, reserved = s.balance() {
		time.Sleep(time.Millisecond)
	}
	if spent, _ := s.balance(); spent > 40 {
		t.Errorf("spent %d, more than was reserved", spent)
	}
}

// The charge is on disk before the client has the end of its answer.
func TestChargeBeforeEnd(t *testing.T) {
	s := serve(t, map[string][]upstream{"one": {hello}})
	s.grant(1000)
	s.post(bounded, "Authorization", "Bearer payer")
	again, err := credits.Open(s.creditsFile)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if list := again.Balances(); len(list) != 1 || list[0].Spent != 13e6 {
		t.Errorf("on disk there is %s", fmt.Sprint(list))
	}
}
