package storage

import (
	"context"
	"math"
)

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
	}
	err := chooseSessions(ctx, g, question, q.Filter, p, named, func(g *GroupTotals) {
		s := newSession(g)
		chosen = append(chosen, &s)
	})
	if err != nil {
		return nil, err
	}
	sortBy(chosen, q.Sort, SessionCreatedAt, sessionAttributes, bySessionName, p)
	return pageOf(chosen, q.Offset, q.Limit), p.ended
}

// chooseSessions asks for the sessions and gives each those of a name that the
// filter chooses.
func chooseSessions(ctx context.Context, g Grouper, q *GroupQuery, f Filter, p *CancelCheck, named func(id, name string) bool, each func(*GroupTotals)) error {
	split := SplitFilter(f)
	filter := split.groupFilter(p)
	q.Filter, q.Any, q.Known = split.Requests, filter.questions, true
	q.By = []Dimension{{Name: BySession}, {Name: BySessionName}}
	if comparesTag(f) {
		q.By = append(q.By, Dimension{Name: BySessionTag})
	}
	err := g.Groups(ctx, q, func(g *GroupTotals) error {
		if p.over(groupSteps) {
			return p.ended
		}
		if g.Requests > 0 && named(g.Key[0], g.Key[1]) && (filter.all() || filter.matches(g, sessionAttribute(g))) {
			each(g)
		}
		return nil
	})
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

// groupSteps is about what Patience a user or session takes.
const groupSteps = 64

func sessionAttribute(g *GroupTotals) func(*Field) attribute {
	s := newSession(g)
	return s.attribute
}

func newSession(g *GroupTotals) Session {
	s := Session{
		CreatedAt:              g.First,
		LatestRequestCreatedAt: g.Last,
		SessionID:              g.Key[0],
		SessionName:            g.Key[1],
		TotalCost:              g.Cost,
		TotalRequests:          g.Requests,
		PromptTokens:           g.Input,
		CompletionTokens:       g.Output,
		TotalTokens:            g.tokens(),
		AvgLatency:             mean(g.Latency, g.WithLatency),
		RequestsWithoutCost:    g.WithoutCost,
	}
	if len(g.Key) > 2 {
		s.tag = g.Key[2]
	}
	return s
}
