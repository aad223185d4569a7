package llmcommand

import (
	"cmp"
	"net/url"
	"strings"
)

// newHelicone reads what `npx @helicone/export` writes, and the answers of Helicone's
// /v1/request/query-clickhouse.
// https://docs.helicone.ai/tools/export
func newHelicone() *source {
	return &source{call: heliconeCall, name: sameName, repeats: strings.Fields(`total_tokens response_id helicone_user signed_body_url llmSchema
		updated_at feedback_id feedback_created_at asset_ids asset_urls assets storage_location size_bytes ai_gateway_body_mapping`)}
}

func heliconeCall(r *row) (*span, string, error) {
	begin, end := r.time("request_created_at"), r.time("response_created_at")
	if delay, ok := r.milliseconds("delay_ms"); ok && delay > 0 {
		end = begin.Add(delay)
	}
	id := r.text("request_id")
	s, err := spanOf(id, id, begin, end)
	if err != nil {
		return nil, "", err
	}
	s.text("gen_ai.operation.name", "chat")
	s.text("gen_ai.provider.name", strings.ToLower(r.text("provider")))
	if target, err := url.Parse(r.text("target_url")); err == nil && target.Host != "" {
		s.text("url.full", target.String())
	}
	if path, err := url.Parse(r.text("request_path")); err == nil {
		s.text("url.path", path.Path)
	}
	model := r.text("model")
	s.text("gen_ai.request.model", cmp.Or(r.text("request_model"), model))
	s.text("gen_ai.response.model", r.text("response_model"))
	s.label("Model-Override", r.text("model_override"))
	s.counts(r, map[string]string{
		"prompt_tokens":             "gen_ai.usage.input_tokens",
		"completion_tokens":         "gen_ai.usage.output_tokens",
		"prompt_cache_read_tokens":  "gen_ai.usage.cache_read.input_tokens",
		"prompt_cache_write_tokens": "gen_ai.usage.cache_creation.input_tokens",
		"reasoning_tokens":          "gen_ai.usage.reasoning.output_tokens",
	})
	if first, ok := r.number("time_to_first_token"); ok && first > 0 {
		s.number("gen_ai.server.time_to_first_token", first/1000)
	}
	// A cost of 0 means an answer from the cache, or a model without a price.
	dollars, _ := r.number("costUSD")
	cost, _ := r.number("cost")
	if cost = max(dollars, cost); cost > 0 || !blank(r.get("cache_reference_id")) {
		s.number("gen_ai.usage.cost", cost)
	}
	switch status, ok := r.number("response_status"); {
	case r.wrong["response_status"]:
		return nil, "", &refusal{"response_status is no number", r.text("response_status")}
	case ok && status >= 100:
		s.count("http.response.status_code", int64(status))
	default:
		s.setError("no answer, Helicone has the status " + cmp.Or(r.text("response_status"), "null"))
	}
	heliconeCaller(s, r)
	heliconeScores(s, r)
	s.text("weir.request.body", r.body("request_body"))
	s.text("weir.response.body", r.body("response_body"))
	return s, "", nil
}

func heliconeScores(s *span, r *row) {
	for name, value := range r.members("scores") {
		if value.IsObject() {
			value = value.Get("value")
		}
		if name != "helicone-score-feedback" {
			if n, ok := r.asScore("scores."+name, value); ok {
				s.score(name, n)
			}
		}
	}
	if rating, known := r.truth("feedback_rating"); known {
		value := 0.0
		if rating {
			value = 1
		}
		s.score("service-score-feedback", value)
	}
}

// heliconeCaller sets what Helicone's headers said of the call.
func heliconeCaller(s *span, r *row) {
	s.label("User-Id", r.text("request_user_id"))
	s.label("Prompt-Id", r.text("prompt_id"))
	s.label("Prompt-Version", r.text("prompt_version"))
	if r.flag("cache_enabled") {
		s.label("Cache-Enabled", "true")
	}
	labels := make(map[string]string)
	for _, field := range []string{"request_properties", "properties"} {
		for name, value := range r.members(field) {
			labels[name] = value.String()
		}
	}
	for _, name := range []string{"Session-Id", "Session-Name", "Session-Path"} {
		s.label(name, labels["Helicone-"+name])
		delete(labels, "Helicone-"+name)
	}
	s.properties(labels)
}
