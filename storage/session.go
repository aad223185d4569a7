package storage

import (
	"strings"

	"github.com/weirhq/weir/plugins"
)

// SessionQuery asks for sessions.
type SessionQuery struct {
	Org string
	// Filter has leaves about requests and about sessions; see SplitFilter.
	Filter Filter
	// Derived adds the sessions that no caller named: the trees of requests which name
	// none, see ByTree.
	Derived bool
	// Window chooses requests: a session that straddles a bound is cut there.
	Window Window
	// Search is text in the session's id or name, whatever its case; "" chooses
	// all.
	Search string
	// NameEquals is the session's name, "" that of sessions without one; nil
	// chooses all.
	NameEquals *string
	// Sort orders the sessions; ties break by session id and name in the
	// direction of the first key. No key means created_at, newest first.
	Sort []SessionSort
	// After, if not nil, is the place behind which the answer begins.
	After         *Cursor[SessionSortKey]
	Offset, Limit int
}

// Session is what the requests of one session add up to: those that carry the
// same id and name, or those of a tree. Sums add what is known.
type Session struct {
	CreatedAt              Timestamp `json:"created_at"`
	LatestRequestCreatedAt Timestamp `json:"latest_request_created_at"`
	SessionID              string    `json:"session_id"`
	SessionName            string    `json:"session_name"`
	// IsDerived is true of a tree of requests that name no session; SessionID is then
	// the id of its first request.
	IsDerived        bool          `json:"is_derived,omitempty"`
	TotalCost        plugins.Cost  `json:"total_cost"`
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

// SessionSort is one sort key of a SessionQuery.
type SessionSort = OrderBy[SessionSortKey]

// SessionSortKey names what sessions are ordered by: the fields of the answer.
type SessionSortKey string

// The sort keys of sessions.
const (
	SessionCreatedAt              SessionSortKey = "created_at"
	SessionLatestRequestCreatedAt SessionSortKey = "latest_request_created_at"
	SessionID                     SessionSortKey = "session_id"
	SessionName                   SessionSortKey = "session_name"
	SessionTotalCost              SessionSortKey = "total_cost"
	SessionTotalRequests          SessionSortKey = "total_requests"
	SessionPromptTokens           SessionSortKey = "prompt_tokens"
	SessionCompletionTokens       SessionSortKey = "completion_tokens"
	SessionTotalTokens            SessionSortKey = "total_tokens"
	SessionAvgLatency             SessionSortKey = "avg_latency"
)

// sessionValues are what sessions are sorted by and, with the prefix
// session_, what the leaves of a filter compare.
var sessionValues = map[SessionSortKey]func(*Session) Value{
	SessionID:                     func(s *Session) Value { return textual(s.SessionID) },
	SessionName:                   func(s *Session) Value { return textual(s.SessionName) },
	SessionTotalCost:              func(s *Session) Value { return quantity(s.TotalCost) },
	SessionTotalTokens:            func(s *Session) Value { return quantity(s.TotalTokens) },
	SessionPromptTokens:           func(s *Session) Value { return quantity(s.PromptTokens) },
	SessionCompletionTokens:       func(s *Session) Value { return quantity(s.CompletionTokens) },
	SessionTotalRequests:          func(s *Session) Value { return whole(s.TotalRequests) },
	SessionAvgLatency:             func(s *Session) Value { return numeric(s.AvgLatency) },
	SessionCreatedAt:              func(s *Session) Value { return whole(s.CreatedAt) },
	SessionLatestRequestCreatedAt: func(s *Session) Value { return whole(s.LatestRequestCreatedAt) },
}

// value is what a leaf of sessions_request_response_rmt compares.
func (s *Session) value(f *Field) Value {
	switch {
	case f.Group != SessionsView:
		return Value{}
	case f.Name == "session_tag":
		return textual(s.tag)
	}
	return sessionValues[SessionSortKey(strings.TrimPrefix(f.Name, "session_"))](s)
}
