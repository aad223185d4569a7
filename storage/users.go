package storage

import "math/bits"

// Answer finds the users in rows grouped ByUser.
func (q *UserQuery) Answer(rows Rows) (*UserPage, error) {
	var found userTotals
	if err := found.scan(rows, q.Filter, q.Window, q.Zone); err != nil {
		return nil, err
	}
	hasUsers := !found.totals.empty()
	if !hasUsers {
		err := rows.Scan(All{}, Always, func(r *Row) bool {
			hasUsers = !r.Attempt
			return !hasUsers
		})
		if err != nil {
			return nil, err
		}
	}
	users := make([]*User, len(found.chosen))
	for i, u := range found.chosen {
		users[i] = &u.User
	}
	p := NewCancelCheck(rows.Err)
	sortBy(users, q.Sort, UserLastActive, userAttributes, byUserID, p)
	return &UserPage{HasUsers: hasUsers, Count: len(users), Users: pageOf(users, q.Offset, q.Limit)}, p.ended
}

// userTotals are what the requests of each user add up to, by group.
type userTotals struct {
	totals byGroup
	days   activeDays
	split  *Split
	chosen []*chosenUser
}

// chosenUser is a user whom the filter chooses.
type chosenUser struct {
	User
	group int
}

// scan adds the requests up and chooses the users.
func (u *userTotals) scan(rows Rows, f Filter, w Window, z Zone) error {
	u.split = SplitFilter(f)
	err := rows.Scan(u.split.Requests, w, func(r *Row) bool {
		u.add(r, z)
		return true
	})
	if err != nil {
		return err
	}
	p := NewCancelCheck(rows.Err)
	chosen, err := u.split.groupFilter(rows, w, p)
	if err != nil {
		return err
	}
	for group, t := range u.totals.all() {
		if p.over(groupSteps) {
			return p.ended
		}
		if user := u.user(group, t, rows.Key(group)); chosen.matches(group, user.attribute) {
			u.chosen = append(u.chosen, &chosenUser{user, group})
		}
	}
	return nil
}

func (u *userTotals) add(r *Row, z Zone) {
	u.totals.at(r.Group).add(r)
	if !r.Attempt {
		u.days.add(r.Group, z.day(r.CreatedAt))
	}
}

func (u *userTotals) user(group int, t *totals, k Key) User {
	days := u.days.count(group)
	return User{
		ID:                          k.ID,
		UserID:                      k.ID,
		ActiveFor:                   days,
		FirstActive:                 t.first,
		LastActive:                  t.last,
		TotalRequests:               t.requests,
		AverageRequestsPerDayActive: mean(t.requests, days),
		AverageTokensPerRequest:     mean(t.tokens().N, t.withTokens),
		TotalCompletionTokens:       t.output,
		TotalPromptTokens:           t.input,
		Cost:                        t.cost,
		RateLimitedCount:            t.rateLimited,
		RequestsWithoutCost:         t.withoutCost,
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
