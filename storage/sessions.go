package storage

// Answer finds the sessions in rows grouped BySession.
func (q *SessionQuery) Answer(rows Rows) ([]Session, error) {
	var chosen []*Session
	p := NewCancelCheck(rows.Err)
	named := func(k Key) bool {
		return (q.NameEquals == nil || *q.NameEquals == k.Name) &&
			(containsFold(k.ID, q.Search, p) || containsFold(k.Name, q.Search, p))
	}
	err := chooseSessions(rows, q.Filter, q.Window, p, named, func(group int, t *totals) {
		s := newSession(rows.Key(group), t)
		chosen = append(chosen, &s)
	})
	if err != nil {
		return nil, err
	}
	sortBy(chosen, q.Sort, SessionCreatedAt, sessionAttributes, bySessionName, p)
	return pageOf(chosen, q.Offset, q.Limit), p.ended
}

// chooseSessions adds the requests up and gives each the sessions of a name that
// the filter chooses.
func chooseSessions(rows Rows, f Filter, w Window, p *CancelCheck, named func(Key) bool, each func(group int, t *totals)) error {
	var sums byGroup
	split := SplitFilter(f)
	err := rows.Scan(split.Requests, w, func(r *Row) bool {
		sums.at(r.Group).add(r)
		return true
	})
	if err != nil {
		return err
	}
	chosen, err := split.groupFilter(rows, w, p)
	if err != nil {
		return err
	}
	for group, t := range sums.all() {
		if p.over(groupSteps) {
			return p.ended
		}
		if key := rows.Key(group); named(key) && (chosen.all() || chosen.matches(group, sessionAttribute(key, t))) {
			each(group, t)
		}
	}
	return nil
}

// groupSteps is about what Patience a user or session takes.
const groupSteps = 64

func sessionAttribute(k Key, t *totals) func(*Field) attribute {
	s := newSession(k, t)
	return s.attribute
}

func newSession(k Key, t *totals) Session {
	return Session{
		CreatedAt:              t.first,
		LatestRequestCreatedAt: t.last,
		SessionID:              k.ID,
		SessionName:            k.Name,
		TotalCost:              t.cost,
		TotalRequests:          t.requests,
		PromptTokens:           t.input,
		CompletionTokens:       t.output,
		TotalTokens:            t.tokens(),
		AvgLatency:             mean(t.latency, t.withLatency),
		RequestsWithoutCost:    t.withoutCost,
		tag:                    k.Tag,
	}
}
