package llmcommand

import (
	"cmp"
	"strings"

	"github.com/tidwall/gjson"
)

// newLiteLLM reads rows of the table LiteLLM_SpendLogs, as JSON or CSV, and the answers
// of /spend/logs. The hash in api_key is of no key of Weir's.
// https://docs.litellm.ai/docs/proxy/cost_tracking
func newLiteLLM() *source {
	return &source{call: litellmCall, name: sameName, repeats: strings.Fields("total_tokens request_duration_ms api_key")}
}

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

func litellmCall(r *row) (*span, string, error) {
	begin, end := r.time("startTime"), r.time("endTime")
	id := r.text("request_id")
	s, err := spanOf(id, id, begin, end)
	if err != nil {
		return nil, "", err
	}
	provider := r.text("custom_llm_provider")
	kind := r.text("call_type")
	path := cmp.Or(litellmPaths[kind], litellmPaths[strings.TrimPrefix(kind, "a")])
	operation := "chat"
	if path == embeddingsPath {
		operation = "embeddings"
	}
	s.text("gen_ai.operation.name", operation)
	s.text("gen_ai.provider.name", provider)
	s.text("url.full", r.text("api_base"))
	s.text("url.path", path)
	s.text("gen_ai.request.model", strings.TrimPrefix(r.text("model"), provider+"/"))
	s.text("gen_ai.response.model", r.text("response.model"))
	if first := r.time("completionStartTime"); first.After(begin) && first.Before(end) {
		s.number("gen_ai.server.time_to_first_token", first.Sub(begin).Seconds())
	}
	litellmUsage(s, r)
	if r.text("status") == "failure" {
		s.setError(r.text("metadata.error_information.error_class"))
		if code, ok := r.count("metadata.error_information.error_code"); ok && code >= 100 {
			s.count("http.response.status_code", code)
		}
	}
	litellmCaller(s, r)
	s.text("weir.request.body", litellmRequest(r))
	s.text("weir.response.body", r.body("response"))
	return s, "", nil
}

// litellmCaller sets who made the call.
func litellmCaller(s *span, r *row) {
	user, endUser := r.text("user"), r.text("end_user")
	if endUser == "" {
		user, endUser = "", user
	}
	s.label("User-Id", endUser)
	s.label("Session-Id", r.text("session_id"))
	labels := map[string]string{
		"user": user, "team_id": r.text("team_id"), "organization_id": r.text("organization_id"), "model_group": r.text("model_group"),
		"team": r.text("metadata.user_api_key_team_alias"), "request_tags": strings.Join(texts(r.list("request_tags")), ","),
		"caller": r.text("metadata.user_api_key_alias"),
	}
	for _, path := range []string{"metadata.requester_metadata", "metadata.spend_logs_metadata"} {
		for name, value := range r.members(path) {
			labels[name] = value.String()
		}
	}
	s.properties(labels)
}

func litellmUsage(s *span, r *row) {
	s.counts(r, map[string]string{
		"prompt_tokens":     "gen_ai.usage.input_tokens",
		"completion_tokens": "gen_ai.usage.output_tokens",
		"metadata.usage_object.prompt_tokens_details.cached_tokens":        "gen_ai.usage.cache_read.input_tokens",
		"metadata.usage_object.cache_creation_input_tokens":                "gen_ai.usage.cache_creation.input_tokens",
		"metadata.usage_object.completion_tokens_details.reasoning_tokens": "gen_ai.usage.reasoning.output_tokens",
	})
	// LiteLLM writes 0 for a model without a price, too.
	cached := strings.EqualFold(r.text("cache_hit"), "true")
	if spend, ok := r.number("spend"); ok && (spend > 0 || cached) {
		s.number("gen_ai.usage.cost", spend)
	}
}

// litellmRequest is the body of the request: whole where LiteLLM kept it, else the
// messages.
func litellmRequest(r *row) string {
	messages, model := r.get("messages"), r.get("model")
	if request := structure(r.get("proxy_server_request")); !blank(request) {
		if body := request.Get("body"); body.IsObject() {
			request = body
		}
		return bodyOf(request)
	}
	if blank(messages) {
		return ""
	}
	return `{"model":` + model.Raw + `,"messages":` + messages.Raw + `}`
}

func texts(list []gjson.Result) []string {
	var all []string
	for _, v := range list {
		all = append(all, v.String())
	}
	return all
}
