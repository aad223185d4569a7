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
	CreatedAt              Timestamp `json:"created_at"`
	LatestRequestCreatedAt Timestamp `json:"latest_request_created_at"`
	SessionID              string    `json:"session_id"`
	SessionName            string    `json:"session_name"`
	// TotalCost is in US dollars.
	TotalCost        Amount        `json:"total_cost"`
	TotalRequests    int64         `json:"total_requests"`
	PromptTokens     plugins.Count `json:"prompt_tokens"`
	CompletionTokens plugins.Count `json:"completion_tokens"`
	TotalTokens      plugins.Count `json:"total_tokens"`
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
	"total_cost":                func(s *Session) attribute { return numeric(s.TotalCost) },
	"total_tokens":              func(s *Session) attribute { return numeric(scaled(s.TotalTokens, one)) },
	"prompt_tokens":             func(s *Session) attribute { return numeric(scaled(s.PromptTokens, one)) },
	"completion_tokens":         func(s *Session) attribute { return numeric(scaled(s.CompletionTokens, one)) },
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

// SessionMetricsQuery asks what sessions are like over time (interface.md,
// endpoint 2).
type SessionMetricsQuery struct {
	Org string
	// Filter has leaves about requests and about sessions; see SplitFilter.
	Filter Filter
	// Window chooses requests. Without bounds the series runs from the first to
	// the last request of the sessions.
	Window Window
	// Zone aligns the buckets.
	Zone Zone
	// NameContains is text in the session's name, whatever its case.
	NameContains string
	Series
}

// SessionMetrics is the answer to a SessionMetricsQuery. A session stands in the
// bucket in which it began.
type SessionMetrics struct {
	// SessionCount counts the sessions.
	SessionCount []Point `json:"session_count"`
	// SessionDuration is the quantile of their durations, in seconds: from the
	// start of the first request to the end of the last answer.
	SessionDuration []Point `json:"session_duration"`
	// SessionCost is the quantile of their costs, in US dollars.
	SessionCost []Point         `json:"session_cost"`
	Average     SessionAverages `json:"average"`
}

// SessionAverages are means over the window, each a list of one.
type SessionAverages struct {
	SessionCost     [1]Average `json:"session_cost"`
	SessionDuration [1]Average `json:"session_duration"`
	// SessionCount is the mean per bucket.
	SessionCount [1]Average `json:"session_count"`
}

// Average is a mean, unknown when there is nothing in it.
type Average struct {
	Average Amount `json:"average"`
}
