package storage

import (
	"slices"

	"github.com/weirhq/weir/plugins/observe"
)

// The fields of each group: see Columns for those that compare one.
var (
	fields = slices.Concat(
		in(RequestResponse,
			&Field{Name: "scores_column", text: func(r *Record, _ *Content) string { return r.ScoresColumn() }},
			&Field{Name: "assets", list: func(r *Record) []string { return r.Assets }},
			&Field{Name: "total_tokens", Kind: Number, number: totalTokens},
			&Field{Name: "cached", Kind: Boolean, boolean: func(r *Record) (value, known bool) { return r.Cached(), true }},
			&Field{Name: FeedbackScore, Kind: Boolean, boolean: rating},
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
			&Field{Name: "body_completion", Content: ResponsePart, text: outputText},
		),
		in(RequestGroup,
			&Field{Name: "prompt", Content: RequestPart, text: inputText},
		),
		in(FeedbackGroup,
			&Field{Name: "id", Kind: Number, number: feedbackID},
			&Field{Name: "created_at", Kind: Time, time: feedbackCreatedAt},
			&Field{Name: "rating", Kind: Boolean, boolean: rating},
			&Field{Name: "response_id", text: feedbackResponseID},
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

// in are the fields of a group: those that compare columns, and others.
func in(g Group, others ...*Field) []*Field {
	fields := slices.Concat(columnFields(g), others)
	for _, f := range fields {
		f.Group = g
	}
	return fields
}

func totalTokens(r *Record, _ string) (float64, bool) {
	total := r.Usage.Total()
	return total.Float(), total.Valid
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

func feedbackResponseID(r *Record, _ *Content) string {
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
