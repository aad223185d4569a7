package control

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func TestSubscriptions(t *testing.T) {
	for name, c := range map[string]struct {
		header http.Header
		want   bool
	}{
		"Claude's":           {http.Header{"Authorization": {"Bearer sk-ant-oat01-x"}}, true},
		"ChatGPT's":          {http.Header{"Authorization": {"Bearer eyJ"}, "Chatgpt-Account-Id": {"a"}}, true},
		"a key of Anthropic": {http.Header{"X-Api-Key": {"sk-ant-api03-x"}}, false},
		"a key as a bearer":  {http.Header{"Authorization": {"Bearer sk-ant-api03-x"}}, false},
		"a key of OpenAI":    {http.Header{"Authorization": {"Bearer sk-proj-x"}}, false},
		"none":               {nil, false},
	} {
		if got := IsSubscription(c.header); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestRateLimits(t *testing.T) {
	header := http.Header{
		"Anthropic-Ratelimit-Unified-5h-Utilization": {"0.42"}, "X-Codex-Primary-Used-Percent": {"7"},
		"X-Codex-Turn-State": {"secret"}, "Set-Cookie": {"a"}, "X-Ratelimit-Long": {strings.Repeat("x", 1000)},
	}
	if got, want := RateLimits(header), `{"anthropic-ratelimit-unified-5h-utilization":"0.42","x-codex-primary-used-percent":"7"}`; got != want {
		t.Errorf("got %s", got)
	}
	for i := range 1000 {
		header.Set(fmt.Sprintf("X-Ratelimit-%d", i), "1")
	}
	if got := strings.Count(RateLimits(header), ":"); got != maxRateLimits {
		t.Errorf("%d are kept", got)
	}
	if got := RateLimits(http.Header{"Date": {"x"}}); got != "" {
		t.Errorf("got %s of none", got)
	}
}
