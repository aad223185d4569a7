package storage

import (
	"strings"

	"github.com/weirhq/weir/plugins"
)

// SessionQuery asks for sessions, newest first (interface.md, endpoint 3).
type SessionQuery struct {
	Org string
	// Filter has leaves about requests and about sessions; see SplitFilter.
	Filter Filter
	// Window chooses requests: a session that straddles a bound is cut there.
	Window Window
	// Search is text in the session's id or name, whatever its case; "" chooses
	// all.
	Search string
	// NameEquals is the session's name; "" chooses all.
	NameEquals    string
	Offset, Limit int
}

// Session is what the requests of one session add up to: those that carry the
// same id and name. Sums add what is known.
type Session struct {
	CreatedAt              Timestamp     `json:"created_at"`
	LatestRequestCreatedAt Timestamp     `json:"latest_request_created_at"`
	SessionID              string        `json:"session_id"`
	SessionName            string        `json:"session_name"`
	TotalCost              plugins.Cost  `json:"total_cost"`
	TotalRequests          int64         `json:"total_requests"`
	PromptTokens           plugins.Count `json:"prompt_tokens"`
	CompletionTokens       plugins.Count `json:"completion_tokens"`
	TotalTokens            plugins.Count `json:"total_tokens"`
	// AvgLatency is in milliseconds, over the requests whose latency is known.
	AvgLatency Amount `json:"avg_latency"`
	// RequestsWithoutCost counts the requests that TotalCost lacks.
	RequestsWithoutCost int64 `json:"requests_without_cost"`

	tag string
}

// sessionAttributes are what the leaves of a filter compare, without the prefix
// session_.
var sessionAttributes = map[string]func(*Session) attribute{
	"session_id":                func(s *Session) attribute { return textual(s.SessionID) },
	"session_name":              func(s *Session) attribute { return textual(s.SessionName) },
	"tag":                       func(s *Session) attribute { return textual(s.tag) },
	"total_cost":                func(s *Session) attribute { return quantity(s.TotalCost) },
	"total_tokens":              func(s *Session) attribute { return quantity(s.TotalTokens) },
	"prompt_tokens":             func(s *Session) attribute { return quantity(s.PromptTokens) },
	"completion_tokens":         func(s *Session) attribute { return quantity(s.CompletionTokens) },
	"total_requests":            func(s *Session) attribute { return whole(s.TotalRequests) },
	"created_at":                func(s *Session) attribute { return whole(s.CreatedAt) },
	"latest_request_created_at": func(s *Session) attribute { return whole(s.LatestRequestCreatedAt) },
}

// attribute finds what a leaf of sessions_request_response_rmt compares.
func (s *Session) attribute(f *Field) attribute {
	if f.Group != SessionsView {
		return attribute{}
	}
	return sessionAttributes[strings.TrimPrefix(f.Name, "session_")](s)
}
