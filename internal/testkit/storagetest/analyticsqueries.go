package storagetest

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/storage"
)

// UserQuery makes a random query about the users of the records.
func UserQuery(r *rand.Rand, records []*storage.Record) *storage.UserQuery {
	q := &storage.UserQuery{
		Org:    organisation(r),
		Window: window(r),
		Zone:   zone(r),
		Offset: pick(r, []int{0, 0, 0, 1, 10, 500}),
		Limit:  pick(r, []int{0, 1, 7, 50, 1000, 1000}),
	}
	q.Filter = groupFilter(r, records, q.Org, storage.UsersView)
	for range r.IntN(4) {
		q.Sort = append(q.Sort, storage.UserSort{Key: pick(r, storage.UserSortKeys()), Desc: chance(r, 2)})
	}
	return q
}

// UserOverviewQuery makes a random query about what users do over time.
func UserOverviewQuery(r *rand.Rand, records []*storage.Record) *storage.UserOverviewQuery {
	org := organisation(r)
	return &storage.UserOverviewQuery{
		Org: org, Filter: groupFilter(r, records, org, storage.UsersView), Window: window(r), Zone: zone(r), Series: series(r),
	}
}

// SessionQuery makes a random query about the sessions of the records.
func SessionQuery(r *rand.Rand, records []*storage.Record) *storage.SessionQuery {
	q := &storage.SessionQuery{
		Org:    organisation(r),
		Window: window(r),
		Offset: pick(r, []int{0, 0, 0, 1, 10, 500}),
		Limit:  pick(r, []int{0, 1, 7, 50, 1000, 1000}),
	}
	q.Derived = chance(r, 2)
	q.Filter = groupFilter(r, records, q.Org, storage.SessionsView)
	if chance(r, 3) {
		q.Search = search(r)
	}
	if chance(r, 4) {
		q.NameEquals = new(word(r))
	}
	for range r.IntN(3) {
		q.Sort = append(q.Sort, storage.SessionSort{Key: pick(r, storage.SessionSortKeys()), Desc: chance(r, 2)})
	}
	return q
}

// SessionMetricsQuery makes a random query about sessions over time.
func SessionMetricsQuery(r *rand.Rand, records []*storage.Record) *storage.SessionMetricsQuery {
	org := organisation(r)
	q := &storage.SessionMetricsQuery{
		Org: org, Filter: groupFilter(r, records, org, storage.SessionsView), Window: window(r), Zone: zone(r), Series: series(r),
	}
	q.Derived = chance(r, 2)
	if chance(r, 3) {
		q.NameContains = search(r)
	}
	return q
}

// ScoreQuery makes a random query about the scores of the records.
func ScoreQuery(r *rand.Rand, records []*storage.Record) *storage.ScoreQuery {
	q := &storage.ScoreQuery{
		Org: organisation(r), Filter: storage.All{}, Window: window(r), Zone: zone(r), Increment: pick(r, storage.Increments),
	}
	if !chance(r, 3) {
		q.Filter = requestFilter(r, records)
	}
	return q
}

// MetricsQuery makes a random query about what requests add up to.
func MetricsQuery(r *rand.Rand, records []*storage.Record) *storage.MetricsQuery {
	q := &storage.MetricsQuery{
		Org: organisation(r), Filter: storage.All{}, Window: window(r), Zone: zone(r),
		Bucket: pick(r, []storage.BucketWidth{storage.BucketAuto, storage.BucketAuto, storage.BucketNone}), Compare: chance(r, 2), Limit: 1 + r.IntN(12),
	}
	if !chance(r, 3) {
		q.By = dimension(r)
	}
	if chance(r, 2) {
		q.Sort = storage.GroupSort{Key: pick(r, storage.TotalKeys()), Desc: chance(r, 2)}
	}
	if !chance(r, 3) {
		q.Filter = requestFilter(r, records)
	}
	return q
}

// FacetQuery makes a random query about the values of requests.
func FacetQuery(r *rand.Rand, records []*storage.Record) *storage.FacetQuery {
	q := &storage.FacetQuery{Org: organisation(r), Filter: storage.All{}, Window: window(r)}
	for range 1 + r.IntN(4) {
		q.Fields = append(q.Fields, dimension(r))
	}
	if !chance(r, 3) {
		q.Filter = requestFilter(r, records)
	}
	return q
}

// requestFilter is a random tree over all fields of requests.
func requestFilter(r *rand.Rand, records []*storage.Record) storage.Filter {
	if !chance(r, 3) {
		return leafOf(r, records, pick(r, requestFields))
	}
	return &storage.Branch{Or: chance(r, 2), Left: requestFilter(r, records), Right: requestFilter(r, records)}
}

// dimension is one that a caller may name.
func dimension(r *rand.Rand) storage.Dimension {
	if chance(r, 5) {
		return storage.Dimension{Name: storage.ByProperty, Property: pick(r, propertyNames[:7])}
	}
	return storage.Dimension{Name: pick(r, storage.Dimensions)}
}

var requestFields = fieldsOf(storage.RequestResponse)

func fieldsOf(g storage.Group) []*storage.Field {
	return slices.DeleteFunc(slices.Clone(storage.Fields()), func(f *storage.Field) bool { return f.Group != g })
}

func organisation(r *rand.Rand) string {
	return pick(r, []string{orgs[0], orgs[0], orgs[0], orgs[1], orgs[2], "nobody"})
}

func search(r *rand.Rand) string { return otherCase(r, part(r, pick(r, words))) }

// window is empty, of one moment, without a bound, or of any length.
func window(r *rand.Rand) storage.Window {
	const day = 24 * 60 * 60 * 1000
	w := storage.Window{From: instant(r), To: instant(r)}
	switch r.IntN(8) {
	case 0, 1, 2:
		return storage.Always
	case 3:
		w.From = storage.Always.From
	case 4:
		w.To = storage.Always.To
	case 5:
		w.To = w.From + storage.Timestamp(r.Int64N(10*365*day))
	case 6:
		w.To = w.From + storage.Timestamp(r.IntN(3)-1)
	}
	return w
}

func zone(r *rand.Rand) storage.Zone {
	if chance(r, 3) {
		z, err := storage.ParseTimezone(pick(r, []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "America/Havana", "Asia/Kolkata"}))
		if err != nil {
			panic(err)
		}
		return z
	}
	return storage.FixedZone(pick(r, []int{0, 0, -330, 570, 210, -345, 300, -60, 1, storage.MaxZone, -storage.MaxZone}))
}

func series(r *rand.Rand) storage.Series {
	return storage.Series{
		Quantile:      pick(r, []storage.Quantile{500, 750, 950, 990, 999}),
		Interquartile: chance(r, 3),
		Distribution:  chance(r, 4),
	}
}

// groupFilter makes a random tree over leaves about requests and about what they
// add up to in the view.
func groupFilter(r *rand.Rand, records []*storage.Record, org string, view storage.Group) storage.Filter {
	switch r.IntN(8) {
	case 0:
		return storage.All{}
	case 1, 2, 3:
		return aggregateLeaf(r, records, org, view)
	case 4:
		return leafOf(r, records, pick(r, requestFields))
	}
	return &storage.Branch{
		Or: chance(r, 2), Left: groupFilter(r, records, org, view), Right: groupFilter(r, records, org, view),
	}
}

// aggregateLeaf compares with a value of one of the groups, or with a value a little
// beside it.
func aggregateLeaf(r *rand.Rand, records []*storage.Record, org string, view storage.Group) storage.Filter {
	f := pick(r, fieldsOf(view))
	if f.Name == "session_tag" {
		return &storage.Leaf{Field: f, Op: pick(r, f.Kind.Operators()), Text: pick(r, tags)}
	}
	l := leafOf(r, nil, f)
	groups := groupsIn(records, org, view)
	if len(groups) == 0 || chance(r, 4) {
		return l
	}
	_, name, _ := strings.Cut(f.Name, "_") // without user_ or session_
	group, err := json.Marshal(pick(r, groups))
	if err != nil {
		panic("plain records cannot fail")
	}
	value := gjson.GetBytes(group, name)
	switch f.Kind {
	case storage.Number:
		l.Number = beside(r, value.Raw)
	case storage.Time:
		t, err := storage.ParseTimestamp(value.String())
		if err != nil {
			panic(err) // every group has begun
		}
		l.Time = t + storage.Timestamp(r.IntN(3)-1)
	default:
		l.Text = value.String()
	}
	return l
}

// groupsIn are the users or sessions of the records.
func groupsIn(records []*storage.Record, org string, view storage.Group) (groups []any) {
	plain := storage.Records{All: records}
	if view == storage.SessionsView {
		q := storage.SessionQuery{Org: org, Filter: storage.All{}, Window: storage.Always, Derived: true, Limit: len(records)}
		sessions, err := q.Answer(context.Background(), plain)
		if err != nil {
			panic("plain records cannot fail")
		}
		for _, s := range sessions {
			groups = append(groups, s)
		}
		return groups
	}
	q := storage.UserQuery{Org: org, Filter: storage.All{}, Window: storage.Always, Limit: len(records)}
	page, err := q.Answer(context.Background(), plain)
	if err != nil {
		panic("plain records cannot fail")
	}
	for _, u := range page.Users {
		groups = append(groups, u)
	}
	return groups
}

// tags are the tags of sessions.
var tags = []string{"", "prod", "Prod", "staging", "100%", "日本"}
