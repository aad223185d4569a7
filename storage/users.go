package storage

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/weirhq/weir/plugins"
)

// UserQuery asks for users.
type UserQuery struct {
	Org string
	// Filter has leaves about requests and about users; see SplitFilter.
	Filter Filter
	// Window chooses requests.
	Window Window
	// Zone decides what a day is.
	Zone Zone
	// Sort orders the users; ties break by user id in the direction of the
	// first key. No key means last_active, newest first.
	Sort []UserSort
	// After, if not nil, is the place after which the answer begins.
	After         *Cursor[UserSortKey]
	Offset, Limit int
}

// UserPage is the answer to a UserQuery.
type UserPage struct {
	// HasUsers is true when the organisation has any user at all.
	HasUsers bool `json:"hasUsers"`
	// Count is the number of users that match, on all pages.
	Count int    `json:"count"`
	Users []User `json:"users"`
}

// User is what the requests of one user add up to. Sums add what is known.
type User struct {
	ID     string `json:"id"`
	UserID string `json:"user_id"`
	// ActiveFor counts the days with a request.
	ActiveFor     int64     `json:"active_for"`
	FirstActive   Timestamp `json:"first_active"`
	LastActive    Timestamp `json:"last_active"`
	TotalRequests int64     `json:"total_requests"`
	// AverageRequestsPerDayActive is TotalRequests over ActiveFor.
	AverageRequestsPerDayActive Amount `json:"average_requests_per_day_active"`
	// AverageTokensPerRequest is over the requests with known tokens.
	AverageTokensPerRequest Amount        `json:"average_tokens_per_request"`
	TotalCompletionTokens   plugins.Count `json:"total_completion_tokens"`
	TotalPromptTokens       plugins.Count `json:"total_prompt_tokens"`
	Cost                    plugins.Cost  `json:"cost"`
	// RateLimitedCount counts the requests that were answered with status 429.
	RateLimitedCount int64 `json:"rate_limited_count"`
	// RequestsWithoutCost counts the requests of unknown cost, which Cost lacks.
	RequestsWithoutCost int64 `json:"requests_without_cost"`
}

// UserSort is one sort key of a UserQuery.
type UserSort = OrderBy[UserSortKey]

// UserSortKey names what users are ordered by.
type UserSortKey string

// The sort keys of users.
const (
	UserID                          UserSortKey = "id"
	UserUserID                      UserSortKey = "user_id"
	UserActiveFor                   UserSortKey = "active_for"
	UserFirstActive                 UserSortKey = "first_active"
	UserLastActive                  UserSortKey = "last_active"
	UserTotalRequests               UserSortKey = "total_requests"
	UserAverageRequestsPerDayActive UserSortKey = "average_requests_per_day_active"
	UserAverageTokensPerRequest     UserSortKey = "average_tokens_per_request"
	UserTotalPromptTokens           UserSortKey = "total_prompt_tokens"
	UserTotalCompletionTokens       UserSortKey = "total_completion_tokens"
	UserCost                        UserSortKey = "cost"
	UserRateLimitedCount            UserSortKey = "rate_limited_count"
)

// userValues are what users are sorted by and, with the prefix user_, what
// the leaves of a filter compare.
var userValues = map[UserSortKey]func(*User) Value{
	UserID:                          func(u *User) Value { return textual(u.ID) },
	UserUserID:                      func(u *User) Value { return textual(u.UserID) },
	UserActiveFor:                   func(u *User) Value { return integer(u.ActiveFor) },
	UserFirstActive:                 func(u *User) Value { return integer(u.FirstActive) },
	UserLastActive:                  func(u *User) Value { return integer(u.LastActive) },
	UserTotalRequests:               func(u *User) Value { return integer(u.TotalRequests) },
	UserAverageRequestsPerDayActive: func(u *User) Value { return numeric(u.AverageRequestsPerDayActive) },
	UserAverageTokensPerRequest:     func(u *User) Value { return numeric(u.AverageTokensPerRequest) },
	UserTotalPromptTokens:           func(u *User) Value { return exact(u.TotalPromptTokens) },
	UserTotalCompletionTokens:       func(u *User) Value { return exact(u.TotalCompletionTokens) },
	UserCost:                        func(u *User) Value { return exact(u.Cost) },
	UserRateLimitedCount:            func(u *User) Value { return integer(u.RateLimitedCount) },
}

// UserSortKeys are all sort keys of users.
func UserSortKeys() []UserSortKey { return slices.Sorted(maps.Keys(userValues)) }

// value is what a leaf of users_view compares.
func (u *User) value(f *Field) Value {
	if f.Group != UsersView {
		return Value{}
	}
	return userValues[UserSortKey(strings.TrimPrefix(f.Name, "user_"))](u)
}

// Answer finds the users among the groups of requests by user.
func (q *UserQuery) Answer(ctx context.Context, g Grouper) (*UserPage, error) {
	p := NewCancelCheck(ctx.Err)
	page := userOrder.pager(q.Sort, q.After, q.Offset, q.Limit, p)
	count := 0
	c := &choice[User]{
		byKey: page.sorts[0].Key == UserID || page.sorts[0].Key == UserUserID,
		take: func(_ *GroupTotals, u *User) bool {
			count++
			return page.mayHold(u)
		},
		keep: page.add, cancel: p,
	}
	if err := chooseUsers(ctx, g, &GroupQuery{Org: q.Org, Window: q.Window, Zone: q.Zone}, q.Filter, c); err != nil {
		return nil, err
	}
	if !c.found {
		everybody := &GroupQuery{Org: q.Org, Filter: All{}, Window: Always, By: []Dimension{{Name: ByUser}}, Known: true, Top: Top{Count: 1}}
		err := g.Groups(ctx, everybody, func(u *GroupTotals) error {
			c.found = c.found || u.Requests > 0
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return &UserPage{HasUsers: c.found, Count: count, Users: page.rows()}, p.ended
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

// chooseUsers finds the users that a filter chooses.
func chooseUsers(ctx context.Context, g Grouper, q *GroupQuery, f Filter, c *choice[User]) error {
	split := SplitFilter(f)
	c.row, c.filter, c.value = newUser, split.groupFilter(c.cancel), (*User).value
	q.Filter, q.Any, q.By, q.Known, q.ActiveDays = split.Requests, c.filter.questions, []Dimension{{Name: ByUser}}, true, true
	return c.ask(ctx, g, q)
}

// newUser is without an id if the group has no Key yet.
func newUser(g *GroupTotals) User {
	id := ""
	if len(g.Key) > 0 {
		id = g.Key[0]
	}
	return User{
		ID:                          id,
		UserID:                      id,
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
