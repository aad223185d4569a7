package llmgateway

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// What a model thought comes back to its provider, and to no other; the client
// cannot read it.
func TestReasoningRoundTrip(t *testing.T) {
	listens, received := listener("think canary", "text hello", "stop")
	s := serve(t, map[string][]upstream{"one": {listens}, "two": {listens}})
	_, first := s.post(ask)
	content := gjson.Get(first, "output.0.encrypted_content").Str
	if content == "" || strings.Contains(first, "canary") {
		t.Fatalf("the answer is %s", first)
	}
	for model, want := range map[string]string{"one/m": "m canary", "two/m": "m"} {
		resp, body := s.post(fmt.Sprintf(`{"model":%q,"input":[{"role":"user","content":"hi"},
			{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":%q},{"role":"user","content":"go on"}]}`, model, content))
		if resp.StatusCode != 200 {
			t.Fatalf("%s: %d %s", model, resp.StatusCode, body)
		}
		if got := received(); got != want {
			t.Errorf("%s received %q, want %q", model, got, want)
		}
		if warned := resp.Header.Get("Service-Warnings") != ""; warned != (model == "two/m") {
			t.Errorf("%s: warnings %q", model, resp.Header["Service-Warnings"])
		}
	}
}
