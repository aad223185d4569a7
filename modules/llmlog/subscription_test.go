package llmlog

import (
	"io"
	"net/http"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/weirhq/weir/plugins"
)

// What a subscription pays for is no spending: it has a list price, and no cost.
func TestSubscriptionsCostNothing(t *testing.T) {
	upstream := caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Anthropic-Ratelimit-Unified-5h-Utilization", "0.42")
		_, _ = io.WriteString(w, `{"type":"message","model":"claude-haiku-4-5","content":[],"usage":{"input_tokens":1000000,"output_tokens":0}}`)
		return nil
	})
	for key, subscription := range map[string]bool{"Bearer sk-ant-oat01-canary": true, "Bearer sk-ant-api03-canary": false} {
		t.Run(key, func(t *testing.T) {
			s := serve(t, options{handler: upstream, config: object{"provider": "anthropic"}})
			resp, _ := s.do("POST", "/v1/messages", `{"model":"claude-haiku-4-5"}`, "Authorization", key)
			if resp.Header.Get("Anthropic-Ratelimit-Unified-5h-Utilization") != "0.42" {
				t.Error("the client does not get what is left")
			}
			r := s.record()
			dollar, limits := plugins.KnownCost(1_000_000_000), `{"anthropic-ratelimit-unified-5h-utilization":"0.42"}`
			switch {
			case r.Subscription != subscription:
				t.Errorf("subscription is %v", r.Subscription)
			case subscription && (r.Cost.Valid || r.CacheSavings.Valid || r.ListCost != dollar || r.PriceVersion == "" || string(r.RateLimits) != limits):
				t.Errorf("the record is %+v", r.Record)
			case !subscription && (r.Cost != dollar || r.ListCost.Valid || r.RateLimits != ""):
				t.Errorf("the record is %+v", r.Record)
			}
		})
	}
}
