package storage

import (
	"context"
	"math"
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

// Answer finds the sessions among the groups of requests by session.
func (q *SessionQuery) Answer(ctx context.Context, g Grouper) ([]Session, error) {
	var chosen []*Session
	p := NewCancelCheck(ctx.Err)
	named := func(id, name string) bool {
		return (q.NameEquals == nil || *q.NameEquals == name) &&
			(containsFold(id, q.Search, p) || containsFold(name, q.Search, p))
	}
	question := &GroupQuery{Org: q.Org, Window: q.Window}
	if q.Filter == (All{}) && q.Search == "" && q.NameEquals == nil && len(q.Sort) == 0 {
		question.Top = Top{Count: q.Offset + min(q.Limit, math.MaxInt-q.Offset), By: NewestGroups}
		if q.After != nil {
			at, _ := q.After.Values[0].Any().(int64)
			question.Top.Until = new(Timestamp(at))
		}
	}
	err := chooseSessions(ctx, g, question, q.Filter, q.Derived, p, named, func(_ *GroupTotals, s Session) {
		chosen = append(chosen, &s)
	})
	if err != nil {
		return nil, err
	}
	return sessionOrder.page(chosen, q.Sort, q.After, q.Offset, q.Limit, p), p.ended
}

// Cursor is the place of a session in the order of the query.
func (q *SessionQuery) Cursor(s *Session) *Cursor[SessionSortKey] {
	return sessionOrder.cursor(s, q.Sort)
}

// ContinueAfter sets After to a cursor of a query with the same sort, in the form of
// its String; otherwise the error is ErrCursor.
func (q *SessionQuery) ContinueAfter(cursor string) (err error) {
	q.After, err = parseCursor(cursor, sessionOrder.keys(q.Sort), false)
	return err
}

var sessionOrder = ordering[SessionSortKey, Session]{
	SessionCreatedAt, sessionValues, func(s *Session) [2]string { return [2]string{s.SessionID, s.SessionName} },
}

// chooseSessions asks for the sessions, also for derived ones if so, and gives each
// those of a name that the filter chooses.
func chooseSessions(ctx context.Context, g Grouper, q *GroupQuery, f Filter, derived bool, p *CancelCheck, named func(id, name string) bool, each func(*GroupTotals, Session)) error {
	split := SplitFilter(f)
	filter := split.groupFilter(p)
	q.Filter, q.Any, q.Known = split.Requests, filter.questions, true
	q.By = []Dimension{{Name: BySession}, {Name: BySessionName}}
	if comparesTag(f) {
		q.By = append(q.By, Dimension{Name: BySessionTag})
	}
	choose := func(g *GroupTotals) error {
		if p.over(groupSteps) {
			return p.ended
		}
		s := newSession(g)
		if g.Requests > 0 && named(s.SessionID, s.SessionName) && (filter.all() || filter.matches(g, s.value)) {
			each(g, s)
		}
		return nil
	}
	err := g.Groups(ctx, q, choose)
	if err == nil && derived {
		trees := *q
		trees.Filter = And(q.Filter, &Leaf{Field: LookupField(RequestResponse, "session_id"), Op: Equals})
		trees.By, trees.Top = []Dimension{{Name: ByTree}}, Top{}
		err = g.Groups(ctx, &trees, choose)
	}
	if err == nil {
		err = p.ended
	}
	return err
}

// comparesTag tells whether the filter compares the tags of sessions.
func comparesTag(f Filter) bool {
	for l := range Leaves(f) {
		if l.Field.Group == SessionsView && l.Field.Name == "session_tag" {
			return true
		}
	}
	return false
}

// groupSteps is about what steps a user or session takes.
const groupSteps = 64

func newSession(g *GroupTotals) Session {
	s := Session{
		CreatedAt:              g.First,
		LatestRequestCreatedAt: g.Last,
		SessionID:              g.Key[0],
		IsDerived:              len(g.Key) == 1,
		TotalCost:              g.Cost,
		TotalRequests:          g.Requests,
		PromptTokens:           g.Input,
		CompletionTokens:       g.Output,
		TotalTokens:            g.tokens(),
		AvgLatency:             mean(g.Latency, g.WithLatency),
		RequestsWithoutCost:    g.WithoutCost,
	}
	if !s.IsDerived {
		s.SessionName = g.Key[1]
	}
	if len(g.Key) > 2 {
		s.tag = g.Key[2]
	}
	return s
}
