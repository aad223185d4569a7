package storage

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/weirhq/weir/plugins"
)

// SessionQuery asks for sessions.
type SessionQuery struct {
	Org string
	// Filter has leaves about requests and about sessions; see SplitFilter.
	Filter Filter
	// Derived adds the sessions that no caller named: the trees of requests which name
	// no session, see ByTree.
	Derived bool
	// Window chooses requests: a session that straddles a bound is cut there.
	Window Window
	// Search is text in the session's id or name, whatever its case; "" chooses
	// all.
	Search string
	// NameEquals is the session's name; "" chooses sessions without a name, nil
	// chooses all.
	NameEquals *string
	// Sort orders the sessions; ties break by session id and name in the
	// direction of the first key. No key means created_at, newest first.
	Sort []SessionSort
	// After, if not nil, is the place after which the answer begins.
	After         *Cursor[SessionSortKey]
	Offset, Limit int
}

// Session is what the requests of one session add up to: the requests with the
// same id and name, or the requests of a tree. Sums add what is known.
type Session struct {
	CreatedAt              Timestamp `json:"created_at"`
	LatestRequestCreatedAt Timestamp `json:"latest_request_created_at"`
	SessionID              string    `json:"session_id"`
	SessionName            string    `json:"session_name"`
	// IsDerived is true for a tree of requests that name no session; SessionID is then
	// the id of the tree's first request.
	IsDerived        bool          `json:"is_derived,omitempty"`
	TotalCost        plugins.Cost  `json:"total_cost"`
	TotalRequests    int64         `json:"total_requests"`
	PromptTokens     plugins.Count `json:"prompt_tokens"`
	CompletionTokens plugins.Count `json:"completion_tokens"`
	TotalTokens      plugins.Count `json:"total_tokens"`
	// AvgLatency is in milliseconds, over the requests with known latency.
	AvgLatency Amount `json:"avg_latency"`
	// RequestsWithoutCost counts the requests of unknown cost, which TotalCost lacks.
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
	SessionTotalCost:              func(s *Session) Value { return exact(s.TotalCost) },
	SessionTotalTokens:            func(s *Session) Value { return exact(s.TotalTokens) },
	SessionPromptTokens:           func(s *Session) Value { return exact(s.PromptTokens) },
	SessionCompletionTokens:       func(s *Session) Value { return exact(s.CompletionTokens) },
	SessionTotalRequests:          func(s *Session) Value { return integer(s.TotalRequests) },
	SessionAvgLatency:             func(s *Session) Value { return numeric(s.AvgLatency) },
	SessionCreatedAt:              func(s *Session) Value { return integer(s.CreatedAt) },
	SessionLatestRequestCreatedAt: func(s *Session) Value { return integer(s.LatestRequestCreatedAt) },
}

// SessionSortKeys are all sort keys of sessions.
func SessionSortKeys() []SessionSortKey { return slices.Sorted(maps.Keys(sessionValues)) }

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
	p := NewCancelCheck(ctx.Err)
	page := sessionOrder.pager(q.Sort, q.After, q.Offset, q.Limit, p)
	c := &choice[Session]{
		byKey: page.sorts[0].Key == SessionID || page.sorts[0].Key == SessionName,
		take:  func(_ *GroupTotals, s *Session) bool { return page.mayHold(s) },
		keep:  page.add, cancel: p,
	}
	if q.Search != "" || q.NameEquals != nil {
		c.named = func(s *Session) bool {
			return (q.NameEquals == nil || *q.NameEquals == s.SessionName) &&
				(containsFold(s.SessionID, q.Search, p) || containsFold(s.SessionName, q.Search, p))
		}
	}
	question := &GroupQuery{Org: q.Org, Window: q.Window}
	if q.Filter == (All{}) && c.named == nil && len(q.Sort) == 0 {
		question.Top = Top{Count: q.Offset + min(q.Limit, math.MaxInt-q.Offset), By: NewestGroups}
		if q.After != nil {
			at, _ := q.After.Values[0].Any().(int64)
			question.Top.Until = new(Timestamp(at))
		}
	}
	if err := chooseSessions(ctx, g, question, q.Filter, q.Derived, c); err != nil {
		return nil, err
	}
	return page.rows(), p.ended
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

// chooseSessions finds the sessions that match a filter, and the derived ones if derived is true.
func chooseSessions(ctx context.Context, g Grouper, q *GroupQuery, f Filter, derived bool, c *choice[Session]) error {
	split := SplitFilter(f)
	c.row, c.filter, c.value = newSession, split.groupFilter(c.cancel), (*Session).value
	q.Filter, q.Any, q.Known = split.Requests, c.filter.questions, true
	q.By = []Dimension{{Name: BySession}, {Name: BySessionName}}
	if comparesTag(f) {
		q.By = append(q.By, Dimension{Name: BySessionTag})
	}
	if err := c.ask(ctx, g, q); err != nil || !derived {
		return err
	}
	trees := *q
	trees.Filter = And(q.Filter, &Leaf{Field: LookupField(RequestResponse, "session_id"), Op: Equals})
	trees.By, trees.Top = []Dimension{{Name: ByTree}}, Top{}
	return c.ask(ctx, g, &trees)
}

// comparesTag reports whether the filter compares the tags of sessions.
func comparesTag(f Filter) bool {
	for l := range Leaves(f) {
		if l.Field.Group == SessionsView && l.Field.Name == "session_tag" {
			return true
		}
	}
	return false
}

// newSession returns the session of a group. It has no id and name if the group has no Key yet.
func newSession(g *GroupTotals) Session {
	s := Session{
		CreatedAt:              g.First,
		LatestRequestCreatedAt: g.Last,
		TotalCost:              g.Cost,
		TotalRequests:          g.Requests,
		PromptTokens:           g.Input,
		CompletionTokens:       g.Output,
		TotalTokens:            g.tokens(),
		AvgLatency:             mean(g.Latency, g.WithLatency),
		RequestsWithoutCost:    g.WithoutCost,
	}
	switch key := g.Key; len(key) {
	case 1:
		s.SessionID, s.IsDerived = key[0], true
	case 2:
		s.SessionID, s.SessionName = key[0], key[1]
	case 3:
		s.SessionID, s.SessionName, s.tag = key[0], key[1], key[2]
	}
	return s
}
