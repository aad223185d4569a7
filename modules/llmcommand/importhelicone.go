package llmcommand

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// helicone reads what `npx @helicone/export` writes, and the answers of its
// /v1/request/query-clickhouse.
// https://docs.helicone.ai/tools/export
type helicone struct{}

// heliconeFields end with two lines of what other fields say, or Helicone's own storage.
var heliconeFields = strings.Fields(`request_id request_created_at response_created_at delay_ms time_to_first_token response_status provider
	target_url request_path model request_model response_model model_override prompt_tokens completion_tokens prompt_cache_read_tokens
	prompt_cache_write_tokens reasoning_tokens cost costUSD request_user_id properties request_properties prompt_id prompt_version
	cache_enabled scores feedback_rating request_body response_body
	total_tokens response_id helicone_user signed_body_url llmSchema updated_at feedback_id feedback_created_at
	asset_ids asset_urls assets storage_location size_bytes ai_gateway_body_mapping`)

func (helicone) kept(field string) bool { return slices.Contains(heliconeFields, field) }

func (helicone) call(row gjson.Result) (*span, string, error) {
	begin, end := timeOf(row.Get("request_created_at")), timeOf(row.Get("response_created_at"))
	if delay := row.Get("delay_ms"); delay.Num > 0 {
		end = begin.Add(time.Duration(delay.Int()) * time.Millisecond)
	}
	id := row.Get("request_id").Str
	s, err := spanOf(id, id, begin, end)
	if err != nil {
		return nil, "", err
	}
	s.text("gen_ai.operation.name", "chat")
	s.text("gen_ai.provider.name", strings.ToLower(row.Get("provider").Str))
	if target, err := url.Parse(row.Get("target_url").Str); err == nil && target.Host != "" {
		s.text("url.full", target.String())
	}
	path, _ := url.Parse(row.Get("request_path").Str)
	if path != nil {
		s.text("url.path", path.Path)
	}
	s.text("gen_ai.request.model", row.Get("request_model").Str)
	s.text("gen_ai.response.model", row.Get("response_model").Str)
	s.label("Model-Override", row.Get("model_override").Str)
	if row.Get("request_model").Str == "" {
		s.text("gen_ai.request.model", row.Get("model").Str)
	}
	for field, key := range map[string]string{
		"prompt_tokens":             "gen_ai.usage.input_tokens",
		"completion_tokens":         "gen_ai.usage.output_tokens",
		"prompt_cache_read_tokens":  "gen_ai.usage.cache_read.input_tokens",
		"prompt_cache_write_tokens": "gen_ai.usage.cache_creation.input_tokens",
		"reasoning_tokens":          "gen_ai.usage.reasoning.output_tokens",
	} {
		if tokens := row.Get(field); tokens.Type == gjson.Number {
			s.count(key, tokens.Int())
		}
	}
	if first := row.Get("time_to_first_token"); first.Num > 0 {
		s.number("gen_ai.server.time_to_first_token", first.Num/1000)
	}
	// A cost of 0 is that of an answer from the cache, or of a model without a price.
	cost := max(row.Get("costUSD").Num, row.Get("cost").Num)
	if cost > 0 || !blank(row.Get("cache_reference_id")) {
		s.number("gen_ai.usage.cost", cost)
	}
	if status := row.Get("response_status"); status.Num >= 100 {
		s.count("http.response.status_code", status.Int())
	} else {
		s.failed("no answer, Helicone has the status " + status.Raw)
	}
	s.setCaller(row)
	for name, value := range row.Get("scores").Map() {
		if value.IsObject() {
			value = value.Get("value")
		}
		if name != "helicone-score-feedback" {
			s.score(name, value.Float())
		}
	}
	if rating := row.Get("feedback_rating"); rating.IsBool() {
		s.score("service-score-feedback", rating.Float())
	}
	s.text("weir.request.body", bodyOf(row.Get("request_body")))
	s.text("weir.response.body", bodyOf(row.Get("response_body")))
	return s, "", nil
}

// setCaller sets what Helicone's headers said of the call.
func (s *span) setCaller(row gjson.Result) {
	s.label("User-Id", row.Get("request_user_id").Str)
	s.label("Prompt-Id", row.Get("prompt_id").Str)
	s.label("Prompt-Version", row.Get("prompt_version").String())
	if row.Get("cache_enabled").Bool() {
		s.label("Cache-Enabled", "true")
	}
	labels := make(map[string]string)
	for _, field := range []string{"request_properties", "properties"} {
		for name, value := range row.Get(field).Map() {
			labels[name] = value.String()
		}
	}
	for _, name := range []string{"Session-Id", "Session-Name", "Session-Path"} {
		s.label(name, labels["Helicone-"+name])
		delete(labels, "Helicone-"+name)
	}
	s.properties(labels)
}
