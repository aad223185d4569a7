package storage

import (
	"cmp"
	"slices"
)

// Answer finds the sessions in rows grouped BySession.
func (q *SessionQuery) Answer(rows Rows) ([]Session, error) {
	chosen, err := chooseSessions(rows, q.Filter, q.Window, func(k Key) bool {
		return (q.NameEquals == "" || q.NameEquals == k.Name) &&
			(containsFold(k.ID, q.Search) || containsFold(k.Name, q.Search))
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(chosen, func(a, b *chosenSession) int {
		return -cmp.Or(
			cmp.Compare(a.CreatedAt, b.CreatedAt),
			cmp.Compare(a.SessionID, b.SessionID),
			cmp.Compare(a.SessionName, b.SessionName),
		)
	})
	sessions := make([]*Session, len(chosen))
	for i, s := range chosen {
		sessions[i] = &s.Session
	}
	return pageOf(sessions, q.Offset, q.Limit), nil
}

// chosenSession is a session that a query chooses.
type chosenSession struct {
	Session
	*totals
}

// chooseSessions adds the requests up and chooses among the sessions.
func chooseSessions(rows Rows, f Filter, w Window, named func(Key) bool) ([]*chosenSession, error) {
	var sums byGroup
	split := SplitFilter(f)
	err := rows.Scan(split.Requests, w, func(r *Row) bool {
		sums.at(r.Group).add(r)
		return true
	})
	if err != nil {
		return nil, err
	}
	chooser, err := split.choose(rows, w)
	if err != nil {
		return nil, err
	}
	var chosen []*chosenSession
	for group, t := range sums.all() {
		key := rows.Key(group)
		if !named(key) {
			continue
		}
		if s := (&chosenSession{newSession(key, t), t}); chooser.matches(group, s.attribute) {
			chosen = append(chosen, s)
		}
	}
	return chosen, nil
}

func newSession(k Key, t *totals) Session {
	return Session{
		CreatedAt:              t.first,
		LatestRequestCreatedAt: t.last,
		SessionID:              k.ID,
		SessionName:            k.Name,
		TotalCost:              scaled(t.cost, nanosPerDollar),
		TotalRequests:          t.requests,
		PromptTokens:           t.input,
		CompletionTokens:       t.output,
		TotalTokens:            t.tokens(),
		AvgLatency:             mean(t.latency, t.withLatency),
		RequestsWithoutCost:    t.withoutCost,
		tag:                    k.Tag,
	}
}
