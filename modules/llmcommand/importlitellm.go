package llmcommand

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// litellm reads rows of the table LiteLLM_SpendLogs, as JSON or CSV, and the answers
// of /spend/logs.
// https://docs.litellm.ai/docs/proxy/cost_tracking
type litellm struct{}

// litellmFields end with a line of what other fields say, and the hash of a key that is
// none of Weir's.
var litellmFields = strings.Fields(`request_id call_type spend prompt_tokens completion_tokens startTime endTime completionStartTime model
	custom_llm_provider api_base user end_user metadata cache_hit request_tags team_id organization_id model_group session_id status
	messages response proxy_server_request
	total_tokens request_duration_ms api_key`)

func (litellm) kept(field string) bool { return slices.Contains(litellmFields, field) }

const embeddingsPath = "/v1/embeddings"

// litellmPaths are the paths of the calls whose bodies are kept, by call_type without
// the "a" of the asynchronous ones. LiteLLM keeps bodies in the form of these, whatever
// the provider.
var litellmPaths = map[string]string{
	"completion":         "/v1/chat/completions",
	"text_completion":    "/v1/completions",
	"embedding":          embeddingsPath,
	"responses":          "/v1/responses",
	"image_generation":   "/v1/images/generations",
	"transcription":      "/v1/audio/transcriptions",
	"moderation":         "/v1/moderations",
	"speech":             "/v1/audio/speech",
	"rerank":             "/v1/rerank",
	"anthropic_messages": "/v1/messages",
}

func (litellm) call(row gjson.Result) (*span, string, error) {
	begin, end := timeOf(row.Get("startTime")), timeOf(row.Get("endTime"))
	id := row.Get("request_id").String()
	s, err := spanOf(id, id, begin, end)
	if err != nil {
		return nil, "", err
	}
	metadata := row.Get("metadata")
	provider := row.Get("custom_llm_provider").Str
	kind := row.Get("call_type").Str
	path := cmp.Or(litellmPaths[kind], litellmPaths[strings.TrimPrefix(kind, "a")])
	operation := "chat"
	if path == embeddingsPath {
		operation = "embeddings"
	}
	s.text("gen_ai.operation.name", operation)
	s.text("gen_ai.provider.name", provider)
	s.text("url.full", row.Get("api_base").Str)
	s.text("url.path", path)
	s.text("gen_ai.request.model", strings.TrimPrefix(row.Get("model").Str, provider+"/"))
	s.text("gen_ai.response.model", row.Get("response.model").Str)
	if first := timeOf(row.Get("completionStartTime")); first.After(begin) && first.Before(end) {
		s.number("gen_ai.server.time_to_first_token", first.Sub(begin).Seconds())
	}
	s.usage(row, metadata.Get("usage_object"))
	if row.Get("status").Str == "failure" {
		failure := metadata.Get("error_information")
		s.failed(failure.Get("error_class").Str)
		if code := failure.Get("error_code").Int(); code >= 100 {
			s.count("http.response.status_code", code)
		}
	}
	user, endUser := row.Get("user").Str, row.Get("end_user").Str
	if endUser == "" {
		user, endUser = "", user
	}
	s.label("User-Id", endUser)
	s.label("Session-Id", row.Get("session_id").Str)
	labels := map[string]string{
		"user": user, "team_id": row.Get("team_id").Str, "organization_id": row.Get("organization_id").Str, "model_group": row.Get("model_group").Str,
		"team": metadata.Get("user_api_key_team_alias").Str, "request_tags": strings.Join(texts(row.Get("request_tags")), ","),
		"caller": metadata.Get("user_api_key_alias").Str,
	}
	for _, field := range []string{"requester_metadata", "spend_logs_metadata"} {
		for name, value := range metadata.Get(field).Map() {
			labels[name] = value.String()
		}
	}
	s.properties(labels)
	s.text("weir.request.body", litellmRequest(row))
	s.text("weir.response.body", bodyOf(row.Get("response")))
	return s, "", nil
}

func (s *span) usage(row, report gjson.Result) {
	s.count("gen_ai.usage.input_tokens", row.Get("prompt_tokens").Int())
	s.count("gen_ai.usage.output_tokens", row.Get("completion_tokens").Int())
	for _, detail := range []struct{ path, key string }{
		{"prompt_tokens_details.cached_tokens", "gen_ai.usage.cache_read.input_tokens"},
		{"cache_creation_input_tokens", "gen_ai.usage.cache_creation.input_tokens"},
		{"completion_tokens_details.reasoning_tokens", "gen_ai.usage.reasoning.output_tokens"},
	} {
		if n := report.Get(detail.path).Int(); n > 0 {
			s.count(detail.key, n)
		}
	}
	// LiteLLM writes 0 for a model without a price, too.
	if spend := row.Get("spend").Float(); spend > 0 || strings.EqualFold(row.Get("cache_hit").Str, "true") {
		s.number("gen_ai.usage.cost", spend)
	}
}

// litellmRequest is the body of the request: whole where LiteLLM kept it, else the
// messages.
func litellmRequest(row gjson.Result) string {
	if whole := row.Get("proxy_server_request"); !blank(whole) {
		if body := whole.Get("body"); body.IsObject() {
			whole = body
		}
		return bodyOf(whole)
	}
	messages := row.Get("messages")
	if blank(messages) {
		return ""
	}
	return `{"model":` + row.Get("model").Raw + `,"messages":` + messages.Raw + `}`
}

func texts(list gjson.Result) []string {
	var all []string
	for _, v := range list.Array() {
		all = append(all, v.String())
	}
	return all
}
