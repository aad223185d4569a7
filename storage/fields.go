package storage

import (
	"slices"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
)

// The fields of each group, and where each is found in a record.
var (
	fields = slices.Concat(
		in(RequestResponse,
			text("country_code", func(r *Record) string { return r.CountryCode }),
			text("provider", func(r *Record) string { return r.Provider }),
			text("model", func(r *Record) string { return r.Model }),
			text("user_id", func(r *Record) string { return r.UserID }),
			text("organization_id", func(r *Record) string { return r.Org }),
			text("node_id", func(r *Record) string { return r.NodeID }),
			text("job_id", func(r *Record) string { return r.JobID }),
			text("request_id", requestID),
			text("target_url", func(r *Record) string { return r.TargetURL }),
			text("scores_column", (*Record).ScoresColumn),
			text("cache_reference_id", cacheReferenceID),
			&Field{Name: "assets", list: func(r *Record) []string { return r.Assets }},
			text("prompt_id", func(r *Record) string { return r.PromptID }),
			text("prompt_version", func(r *Record) string { return r.PromptVersion }),
			text("request_referrer", func(r *Record) string { return r.Referrer }),
			text("end_state", func(r *Record) string { return r.EndState.String() }),
			text("finish_reason", func(r *Record) string { return r.Finish }),
			text("error_type", func(r *Record) string { return r.ErrorType }),
			text("request_model", func(r *Record) string { return r.RequestModel }),
			text("request_path", func(r *Record) string { return r.Path }),
			text("session_id", func(r *Record) string { return r.SessionID }),
			number("latency", func(r *Record) plugins.Duration { return r.Latency }),
			number("cost", func(r *Record) plugins.Cost { return r.Cost }),
			number("time_to_first_token", func(r *Record) plugins.Duration { return r.TimeToFirstToken }),
			number("status", func(r *Record) plugins.Count { return r.Status }),
			number("prompt_tokens", func(r *Record) plugins.Count { return r.Usage.Input }),
			number("completion_tokens", func(r *Record) plugins.Count { return r.Usage.Output }),
			number("prompt_cache_read_tokens", func(r *Record) plugins.Count { return r.Usage.CacheRead }),
			number("prompt_cache_write_tokens", func(r *Record) plugins.Count { return r.Usage.CacheWrite }),
			number("total_tokens", func(r *Record) plugins.Count { return r.Usage.Total() }),
			timestamp("request_created_at", func(r *Record) Timestamp { return r.CreatedAt }),
			timestamp("response_created_at", func(r *Record) Timestamp { return r.RespondedAt }),
			boolean("threat", func(r *Record) bool { return r.Threat }),
			boolean("cache_enabled", func(r *Record) bool { return r.CacheEnabled }),
			boolean("cached", (*Record).Cached),
			&Field{Name: FeedbackScore, Kind: Boolean, boolean: rating},
			boolean("is_passthrough_billing", func(r *Record) bool { return r.PassthroughBilling }),
			boolean("stream", func(r *Record) bool { return r.Stream }),
			&Field{Name: "request_body", Kind: ContainsText, Content: RequestPart, body: func(c *Content) *Body { return &c.Request }},
			&Field{Name: "response_body", Kind: ContainsText, Content: ResponsePart, body: func(c *Content) *Body { return &c.Response }},
			&Field{Name: "property_key", Kind: PropertyKey},
			&Field{Name: "properties", Map: true, entries: properties},
			&Field{Name: "search_properties", Map: true, entries: properties},
			&Field{Name: "scores", Kind: Number, Map: true, number: (*Record).Score},
		),
		in(UsersView,
			&Field{Name: "user_user_id"},
			&Field{Name: "user_active_for", Kind: Number},
			&Field{Name: "user_total_requests", Kind: Number},
			&Field{Name: "user_average_requests_per_day_active", Kind: Number},
			&Field{Name: "user_average_tokens_per_request", Kind: Number},
			&Field{Name: "user_total_completion_tokens", Kind: Number},
			&Field{Name: "user_total_prompt_tokens", Kind: Number},
			&Field{Name: "user_cost", Kind: Number},
			&Field{Name: "user_first_active", Kind: Time},
			&Field{Name: "user_last_active", Kind: Time},
		),
		in(SessionsView,
			&Field{Name: "session_session_id"},
			&Field{Name: "session_session_name"},
			&Field{Name: "session_tag"},
			&Field{Name: "session_total_cost", Kind: Number},
			&Field{Name: "session_total_tokens", Kind: Number},
			&Field{Name: "session_prompt_tokens", Kind: Number},
			&Field{Name: "session_completion_tokens", Kind: Number},
			&Field{Name: "session_total_requests", Kind: Number},
			&Field{Name: "session_created_at", Kind: Time},
			&Field{Name: "session_latest_request_created_at", Kind: Time},
		),
		in(ResponseGroup,
			text("body_model", func(r *Record) string { return r.ResponseModel }),
			&Field{Name: "body_completion", Content: ResponsePart, text: outputText},
			text("model", func(r *Record) string { return r.ResponseModel }),
			number("body_tokens", func(r *Record) plugins.Count { return r.Usage.Output }),
			number("status", func(r *Record) plugins.Count { return r.Status }),
		),
		in(RequestGroup,
			&Field{Name: "prompt", Content: RequestPart, text: inputText},
			text("user_id", func(r *Record) string { return r.UserID }),
			text("auth_hash", func(r *Record) string { return r.AuthHash }),
			text("org_id", func(r *Record) string { return r.Org }),
			text("id", requestID),
			text("node_id", func(r *Record) string { return r.NodeID }),
			text("model", func(r *Record) string { return r.RequestModel }),
			text("modelOverride", func(r *Record) string { return r.ModelOverride }),
			text("path", func(r *Record) string { return r.Path }),
			text("country_code", func(r *Record) string { return r.CountryCode }),
			text("prompt_id", func(r *Record) string { return r.PromptID }),
			timestamp("created_at", func(r *Record) Timestamp { return r.CreatedAt }),
		),
		in(FeedbackGroup,
			&Field{Name: "id", Kind: Number, number: feedbackID},
			timestamp("created_at", feedbackCreatedAt),
			&Field{Name: "rating", Kind: Boolean, boolean: rating},
			text("response_id", feedbackResponseID),
		),
		in(PropertiesGroup, &Field{Map: true, entries: properties}),
		in(ValuesGroup, &Field{Map: true, Content: RequestPart, entries: func(_ *Record, c *Content) map[string]string { return c.Inputs }}),
	)

	fieldsByName = func() map[fieldName]*Field {
		m := make(map[fieldName]*Field, len(fields))
		for _, f := range fields {
			m[fieldName{f.Group, f.Name}] = f
		}
		return m
	}()
)

type fieldName struct {
	group Group
	name  string
}

func in(g Group, fields ...*Field) []*Field {
	for _, f := range fields {
		f.Group = g
	}
	return fields
}

func text(name string, value func(*Record) string) *Field {
	return &Field{Name: name, text: func(r *Record, _ *Content) string { return value(r) }}
}

func number[T plugins.Unit](name string, value func(*Record) plugins.Quantity[T]) *Field {
	return &Field{Name: name, Kind: Number, number: func(r *Record, _ string) (float64, bool) {
		q := value(r)
		return q.Float(), q.Valid
	}}
}

func timestamp(name string, value func(*Record) Timestamp) *Field {
	return &Field{Name: name, Kind: Time, time: value}
}

func boolean(name string, value func(*Record) bool) *Field {
	return &Field{Name: name, Kind: Boolean, boolean: func(r *Record) (bool, bool) { return value(r), true }}
}

func requestID(r *Record) string { return r.ID.String() }

func cacheReferenceID(r *Record) string {
	if !r.Cached() {
		return ""
	}
	return r.CacheReferenceID.String()
}

func properties(r *Record, _ *Content) map[string]string { return r.Properties }

func rating(r *Record) (value, known bool) {
	if r.Feedback == nil {
		return false, false
	}
	return r.Feedback.Rating, true
}

func feedbackID(r *Record, _ string) (float64, bool) {
	if r.Feedback == nil {
		return 0, false
	}
	return float64(r.Feedback.ID), true
}

func feedbackCreatedAt(r *Record) Timestamp {
	if r.Feedback == nil {
		return 0
	}
	return r.Feedback.CreatedAt
}

func feedbackResponseID(r *Record) string {
	if r.Feedback == nil {
		return ""
	}
	return r.ID.String()
}

func inputText(r *Record, c *Content) string {
	return observe.Transcript(r.Dialect).InputText(c.Request.Data)
}
func outputText(r *Record, c *Content) string {
	return observe.Transcript(r.Dialect).OutputText(c.Response.Data)
}
