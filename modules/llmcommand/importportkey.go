package llmcommand

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/tidwall/gjson"
)

// newPortkey reads the files of Portkey's logs export.
// https://portkey.ai/docs/product/observability/logs-export
func newPortkey() *source {
	return &source{call: portkeyCall, name: portkeyName, repeats: strings.Fields("total_units total_tokens request_method stream_mode")}
}

// portkeyNames are the names of fields in the description of the API, by the names in the
// API's examples and in older exports.
var portkeyNames = map[string]string{
	"request.body": "request", "response.body": "response", "ai_provider": "ai_org", "request_tokens": "req_units",
	"response_tokens": "res_units", "status_code": "response_status_code",
}

func portkeyName(field string) string { return cmp.Or(portkeyNames[field], field) }

func portkeyCall(r *row) (*span, string, error) {
	begin, id := r.time("created_at"), r.text("id")
	took, _ := r.milliseconds("response_time")
	s, err := spanOf(cmp.Or(r.text("trace_id"), id), id, begin, begin.Add(took))
	if err != nil {
		return nil, "", err
	}
	s.text("gen_ai.operation.name", "chat")
	s.text("gen_ai.provider.name", r.text("ai_org"))
	if target, err := url.Parse(r.text("request_url")); err == nil {
		s.text("url.full", target.String())
		s.text("url.path", target.Path)
	}
	s.text("gen_ai.request.model", r.text("ai_model"))
	s.counts(r, map[string]string{"req_units": "gen_ai.usage.input_tokens", "res_units": "gen_ai.usage.output_tokens"})
	// A cost of 0 means an answer from the cache, or a model without a price.
	if strings.EqualFold(cmp.Or(r.text("cost_currency"), "USD"), "USD") {
		cached := strings.HasSuffix(strings.ToUpper(r.text("cache_status")), "HIT")
		if cents, ok := r.number("cost"); ok && (cents > 0 || cached) {
			s.number("gen_ai.usage.cost", cents/100)
		}
	}
	success := strings.ToLower(r.text("is_success"))
	if status, ok := r.count("response_status_code"); ok && status >= 100 {
		s.count("http.response.status_code", status)
	} else if success == "0" || success == "false" {
		s.setError("failure")
	}
	portkeyCaller(s, r)
	s.text("weir.request.body", portkeyBody(r.get("request")))
	s.text("weir.response.body", portkeyBody(r.get("response")))
	return s, "", nil
}

// portkeyCaller sets what the headers and the metadata said of the call.
func portkeyCaller(s *span, r *row) {
	s.label("Prompt-Id", r.text("prompt_slug"))
	s.label("Prompt-Version", r.text("prompt_version_id"))
	labels := map[string]string{"config": r.text("config")}
	for name, value := range r.members("metadata") {
		labels[name] = value.String()
	}
	s.label("User-Id", labels["_user"])
	delete(labels, "_user")
	s.properties(labels)
}

// portkeyBody is a body, which may stand beside its URL and headers.
func portkeyBody(v gjson.Result) string {
	if body := structure(v).Get("body"); body.Exists() {
		v = body
	}
	return bodyOf(v)
}
