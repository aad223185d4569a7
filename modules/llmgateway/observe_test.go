package llmgateway

import (
	"net/http"
	"slices"
	"testing"

	"github.com/weirhq/weir/modules/internal/money"
)

// Budgets that observe refuse no call, over HTTP or in a WebSocket, and are in no header. The
// record names the budget that would have refused the call.
func TestObservingBudgets(t *testing.T) {
	s := serve(t, map[string][]upstream{"one": {hello}, "two": {hello}})
	for _, body := range []string{bounded, bounded, `{"model":"two/m","input":"hi"}`} {
		resp, answer := s.post(body, "Authorization", "Bearer watched")
		if resp.StatusCode != http.StatusOK || resp.Header.Get("Ratelimit") != "" || resp.Header.Get("X-Ratelimit-Limit-Requests") != "" {
			t.Fatalf("%d %v %s", resp.StatusCode, resp.Header, answer)
		}
	}
	c, err := s.dial("watched")
	if err != nil {
		t.Fatal(err)
	}
	c.say(`{"type":"response.create","model":"one/m","input":"hi","max_output_tokens":16}`)
	c.hear()
	c.Close()
	s.settled()
	var refused []string
	for _, r := range s.kept.all() {
		refused = append(refused, r.WouldRefuse)
	}
	if !slices.Equal(refused, []string{"", "pace", "dollars", "pace"}) {
		t.Errorf("the records name %q", refused)
	}
	budgets, err := s.handler.site.App.Money().Of("watched")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range budgets {
		want := money.Refusals{Calls: 1, Callers: 1}
		if b.Name == "pace" {
			want.Calls = 2
		}
		if got, err := b.WouldRefuse(t.Context(), s.credits); err != nil || *got != want {
			t.Errorf("%s would have refused %+v, %v", b.Name, got, err)
		}
	}
	if spent, reserved := s.counts("watched", "pace", ""); spent != 4 || reserved != 0 {
		t.Errorf("pace counts %d calls, and %d run", spent, reserved)
	}
}
