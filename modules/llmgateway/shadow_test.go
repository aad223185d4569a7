package llmgateway

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/modules/internal/routing"
)

const pricedAnswer = `{"object":"chat.completion","model":"priced","choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":5}}`

// A shadow gets the call once it is answered, natively or translated. The client, its user and its
// budgets know nothing of it, and a shadow that fails harms nobody.
func TestShadows(t *testing.T) {
	answers := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, pricedAnswer) }
	for name, translated := range map[string]upstream{"that answers": hello, "that fails": status(500)} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, map[string][]upstream{"raw": {answers}, "raw2": {answers}, "one": {translated}})
			s.grant(2000)
			body := `{"model":"shadowed","messages":[{"role":"user","content":"hi"}],"max_tokens":50}`
			resp, answer := s.postTo("/v1/chat/completions", strings.NewReader(body), "Authorization", "Bearer payer", "Service-User-Id", "ada", "Service-Session-Id", "s")
			if resp.StatusCode != http.StatusOK || answer != pricedAnswer {
				t.Fatalf("%d %s", resp.StatusCode, answer)
			}
			for deadline := time.Now().Add(30 * time.Second); len(s.kept.all()) < 3 || s.kept.open() > 0; time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("%d records after 30 seconds", len(s.kept.all()))
				}
			}
			spent, reserved := s.balance()
			kept := s.kept.all()
			shadows, cost := map[string]bool{}, int64(0)
			for _, r := range kept {
				if r.Arm != routing.ShadowArm {
					if cost = int64(r.Cost.N / 1e6); r.UserID != "ada" || r.Account != "raw" {
						t.Errorf("the call is of %s at %s", r.UserID, r.Account)
					}
					continue
				}
				shadows[r.Account] = true
				if r.UserID+r.SessionID+r.AuthHash+r.KeyID != "" || r.Properties[shadowOf] != resp.Header.Get("Service-Id") || !strings.Contains(r.request, "hi") {
					t.Errorf("a shadow is recorded as %+v", r)
				}
			}
			if !shadows["one"] || !shadows["raw2"] {
				t.Errorf("shadows at %v", shadows)
			}
			if spent != cost || reserved != 0 {
				t.Errorf("the caller pays %d of %d, %d are set aside", spent, cost, reserved)
			}
		})
	}
}

// What cannot be made twice has no shadow.
func TestNoShadows(t *testing.T) {
	answers := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, pricedAnswer) }
	s := serve(t, map[string][]upstream{"raw": {answers, answers, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answered) }}})
	for _, body := range []string{
		`{"model":"shadowed","messages":[],"web_search_options":{}}`,
		`{"model":"raw/priced","messages":[]}`,
	} {
		if resp, answer := s.postTo("/v1/chat/completions", strings.NewReader(body)); resp.StatusCode != http.StatusOK {
			t.Errorf("%d %s", resp.StatusCode, answer)
		}
	}
	if resp, answer := s.post(`{"model":"shadowed","input":"hi","conversation":"` + s.conversation() + `"}`); resp.StatusCode != http.StatusOK {
		t.Errorf("%d %s", resp.StatusCode, answer)
	}
	s.settled()
	if kept := s.kept.all(); len(kept) != 3 {
		t.Errorf("%d records of three calls", len(kept))
	}
}
