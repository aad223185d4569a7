package storage

import (
	"context"
	"math/bits"
)

// Answer finds the users among the groups of requests by user.
func (q *UserQuery) Answer(ctx context.Context, g Grouper) (*UserPage, error) {
	var chosen []*User
	p := NewCancelCheck(ctx.Err)
	question := &GroupQuery{Org: q.Org, Window: q.Window, Zone: q.Zone}
	hasUsers, err := chooseUsers(ctx, g, question, q.Filter, p, func(u User, _ *GroupTotals) { chosen = append(chosen, &u) })
	if err != nil {
		return nil, err
	}
	if !hasUsers {
		everybody := &GroupQuery{Org: q.Org, Filter: All{}, Window: Always, By: []Dimension{{Name: ByUser}}, Known: true, Top: Top{Count: 1}}
		err := g.Groups(ctx, everybody, func(u *GroupTotals) error {
			hasUsers = hasUsers || u.Requests > 0
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	users := userOrder.page(chosen, q.Sort, q.After, q.Offset, q.Limit, p)
	return &UserPage{HasUsers: hasUsers, Count: len(chosen), Users: users}, p.ended
}

// Cursor is the place of a user in the order of the query.
func (q *UserQuery) Cursor(u *User) *Cursor[UserSortKey] { return userOrder.cursor(u, q.Sort) }

// ContinueAfter sets After to a cursor of a query with the same sort, in the form of
// its String; otherwise the error is ErrCursor.
func (q *UserQuery) ContinueAfter(cursor string) (err error) {
	q.After, err = parseCursor(cursor, userOrder.keys(q.Sort), false)
	return err
}

var userOrder = ordering[UserSortKey, User]{
	UserLastActive, userValues, func(u *User) [2]string { return [2]string{u.ID} },
}

// chooseUsers asks for the users and gives each those whom the filter chooses.
// found is true when there were any to choose from.
func chooseUsers(ctx context.Context, g Grouper, q *GroupQuery, f Filter, p *CancelCheck, each func(User, *GroupTotals)) (found bool, err error) {
	split := SplitFilter(f)
	filter := split.groupFilter(p)
	q.Filter, q.Any, q.By, q.Known, q.ActiveDays = split.Requests, filter.questions, []Dimension{{Name: ByUser}}, true, true
	err = g.Groups(ctx, q, func(group *GroupTotals) error {
		if group.Requests == 0 {
			return nil
		}
		found = true
		if p.over(groupSteps) {
			return p.ended
		}
		if u := newUser(group); filter.matches(group, u.value) {
			each(u, group)
		}
		return nil
	})
	if err == nil {
		err = p.ended
	}
	return found, err
}

func newUser(g *GroupTotals) User {
	return User{
		ID:                          g.Key[0],
		UserID:                      g.Key[0],
		ActiveFor:                   g.ActiveDays,
		FirstActive:                 g.First,
		LastActive:                  g.Last,
		TotalRequests:               g.Requests,
		AverageRequestsPerDayActive: mean(g.Requests, g.ActiveDays),
		AverageTokensPerRequest:     mean(g.tokens().N, g.WithTokens),
		TotalCompletionTokens:       g.Output,
		TotalPromptTokens:           g.Input,
		Cost:                        g.Cost,
		RateLimitedCount:            g.RateLimited,
		RequestsWithoutCost:         g.WithoutCost,
	}
}

// activeDays are sets of days, a bit for each.
type activeDays struct{ sets chains[uint64] }

func (a *activeDays) add(group, day int) {
	*a.sets.at(group, int32(day>>6)) |= 1 << (day & 63)
}

func (a *activeDays) count(group int) (days int64) {
	for _, set := range a.sets.of(group) {
		days += int64(bits.OnesCount64(*set))
	}
	return days
}
