package storage_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// asked is a record of user u in session s.
func asked(created string, change ...func(*storage.Record)) *storage.Record {
	r := &storage.Record{
		ID: uuid.New(), Org: "acme", UserID: "u", SessionID: "s", SessionName: "chat",
		CreatedAt: at(created), RespondedAt: at(created) + 1500,
		Latency: plugins.KnownDuration(1500 * time.Millisecond), Status: plugins.Known(200), Cost: plugins.KnownCost(2_000_000),
		Usage: plugins.Usage{Input: plugins.Known(100), Output: plugins.Known(20)},
	}
	for _, c := range change {
		c(r)
	}
	return r
}

func by(user string) func(*storage.Record) { return func(r *storage.Record) { r.UserID = user } }

func within(id, name string) func(*storage.Record) {
	return func(r *storage.Record) { r.SessionID, r.SessionName = id, name }
}

func costing(nanos plugins.Nanodollars) func(*storage.Record) {
	return func(r *storage.Record) { r.Cost = plugins.KnownCost(nanos) }
}

func lasting(ms int64) func(*storage.Record) {
	return func(r *storage.Record) {
		r.RespondedAt, r.Latency = r.CreatedAt+storage.Timestamp(ms), plugins.KnownDuration(time.Duration(ms)*time.Millisecond)
	}
}

func scored(scores map[string]float64) func(*storage.Record) {
	return func(r *storage.Record) { r.Scores = scores }
}

func rated(good bool) func(*storage.Record) {
	return func(r *storage.Record) { r.Feedback = &storage.Feedback{ID: 1, Rating: good, CreatedAt: 1} }
}

func unpriced(r *storage.Record) { r.Cost = plugins.Cost{} }

// unknown tells nothing but that the call was made.
func unknown(r *storage.Record) {
	r.Cost, r.Usage, r.Latency, r.RespondedAt = plugins.Cost{}, plugins.Usage{}, plugins.Duration{}, 0
}

func limited(r *storage.Record) {
	r.Status, r.Usage, r.Cost = plugins.Known(429), plugins.Usage{}, plugins.KnownCost(0)
}

// failed is an attempt that another answered for.
func failed(r *storage.Record) { r.AttemptOf = uuid.New() }

func parsed(t *testing.T, filter string) storage.Filter {
	t.Helper()
	f, err := storage.ParseFilter([]byte(filter), storage.RequestResponse)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func between(from, to string) storage.Window { return storage.Window{From: at(from), To: at(to)} }

// groups are the records as a backend has them.
func groups(records []*storage.Record) storage.Grouper {
	return storage.Records{
		All: records, Content: func(*storage.Record) *storage.Content { return nil },
		Tags: map[string]map[string]string{"acme": {"s": "prod"}},
	}
}

// answers checks an answer in JSON; white space in want is for people.
func answers(t *testing.T, name string, got any, err error, want string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	want = strings.NewReplacer("\n", "", "\t", "").Replace(want)
	if s := encoded(t, got); s != want {
		t.Errorf("%s:\ngot  %s\nwant %s", name, s, want)
	}
}

func encoded(t *testing.T, answer any) string {
	t.Helper()
	b, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestUsers(t *testing.T) {
	records := []*storage.Record{
		// The day of India ends at 18:30 in UTC.
		asked("2026-11-20T17:30:00.123Z", by("ann")),
		asked("2026-11-20T18:29:59.999Z", by("ann"), unpriced),
		asked("2026-11-20T18:30:00Z", by("ann"), limited),
		asked("2026-11-19T00:00:00Z", by("ann"), failed, costing(1)),
		asked("2026-11-20T12:00:00Z", by("bob"), unknown),
		asked("2026-11-20T12:00:00Z", by("")),
		asked("2026-11-20T12:00:00Z", by("eve"), failed),
	}
	const bob = `{"id":"bob","user_id":"bob","active_for":1,"first_active":"2026-11-20T12:00:00.000Z","last_active":"2026-11-20T12:00:00.000Z",
		"total_requests":1,"average_requests_per_day_active":1,"average_tokens_per_request":null,"total_completion_tokens":null,"total_prompt_tokens":null,
		"cost":null,"rate_limited_count":0,"requests_without_cost":1}`
	ann := func(days, perDay string) string {
		return `{"id":"ann","user_id":"ann","active_for":` + days + `,"first_active":"2026-11-20T17:30:00.123Z","last_active":"2026-11-20T18:30:00.000Z",
		"total_requests":3,"average_requests_per_day_active":` + perDay + `,"average_tokens_per_request":120,"total_completion_tokens":40,"total_prompt_tokens":200,
		"cost":0.002000001,"rate_limited_count":1,"requests_without_cost":1}`
	}
	page := func(count, users string) string {
		return `{"hasUsers":true,"count":` + count + `,"users":[` + users + `]}`
	}
	for _, test := range []struct {
		name   string
		query  storage.UserQuery
		filter string
		want   string
	}{
		{"newest first", storage.UserQuery{Limit: 9}, `"all"`, page("2", ann("1", "3")+","+bob)},
		{"in India", storage.UserQuery{Limit: 9, Zone: storage.FixedZone(-330)}, `"all"`, page("2", ann("2", "1.5")+","+bob)},
		{"in the Marquesas", storage.UserQuery{Limit: 9, Zone: storage.FixedZone(570)}, `"all"`, page("2", ann("1", "3")+","+bob)},
		{"second page", storage.UserQuery{Offset: 1, Limit: 1}, `"all"`, page("2", bob)},
		{"beyond the last page", storage.UserQuery{Offset: 7, Limit: 1}, `"all"`, page("2", "")},
		{"missing values last", storage.UserQuery{Limit: 1, Sort: []storage.UserSort{{Key: storage.UserCost}}}, `"all"`, page("2", ann("1", "3"))},
		{"missing values last, down", storage.UserQuery{Limit: 1, Sort: []storage.UserSort{{Key: storage.UserCost, Desc: true}}}, `"all"`, page("2", ann("1", "3"))},
		{"ties by id", storage.UserQuery{Limit: 1, Sort: []storage.UserSort{{Key: storage.UserActiveFor, Desc: true}}}, `"all"`, page("2", bob)},
		{"empty window", storage.UserQuery{Limit: 9, Window: storage.Window{From: 2, To: 1}}, `"all"`, page("0", "")},
		{
			"the bounds are inclusive",
			storage.UserQuery{Limit: 9, Window: between("2026-11-20T12:00:00Z", "2026-11-20T12:00:00Z")}, `"all"`, page("1", bob),
		},
		{"by what is unknown", storage.UserQuery{Limit: 9}, `{"users_view":{"user_cost":{"not-equals":1}}}`, page("2", ann("1", "3")+","+bob)},
		{"by a total", storage.UserQuery{Limit: 9}, `{"users_view":{"user_total_prompt_tokens":{"gte":200}}}`, page("1", ann("1", "3"))},
		{"by a time", storage.UserQuery{Limit: 9}, `{"users_view":{"user_first_active":{"lt":"2026-11-20T12:00:00.001Z"}}}`, page("1", bob)},
		{
			// bob has no such request, but is chosen by his name.
			"mixed", storage.UserQuery{Limit: 9},
			`{"left":{"request_response_rmt":{"status":{"equals":429}}},"operator":"or","right":{"users_view":{"user_user_id":{"contains":"BO"}}}}`,
			page("2", ann("1", "3")+","+bob),
		},
	} {
		q := test.query
		q.Org, q.Filter = "acme", parsed(t, test.filter)
		if q.Window == (storage.Window{}) {
			q.Window = storage.Always
		}
		got, err := q.Answer(t.Context(), groups(records))
		answers(t, test.name, got, err, test.want)
	}
}

func TestHasUsers(t *testing.T) {
	q := storage.UserQuery{Org: "acme", Filter: storage.All{}, Window: storage.Always}
	got, err := q.Answer(t.Context(), groups([]*storage.Record{asked("2026-11-20T12:00:00Z", by(""))}))
	answers(t, "requests without user", got, err, `{"hasUsers":false,"count":0,"users":[]}`)
	got, err = q.Answer(t.Context(), groups([]*storage.Record{asked("2026-11-20T12:00:00Z", failed)}))
	answers(t, "attempts alone", got, err, `{"hasUsers":false,"count":0,"users":[]}`)
}

func TestSessions(t *testing.T) {
	records := []*storage.Record{
		asked("2026-11-20T12:00:00Z", lasting(1000)),
		asked("2026-11-20T12:10:00Z", lasting(2000), unpriced),
		asked("2026-11-20T12:05:00Z", failed, costing(5), lasting(9e9)),
		asked("2026-11-20T12:00:00Z", within("s", "Straße"), unknown),
		asked("2026-11-20T12:20:00Z", within("", "no session")),
	}
	const (
		chat = `{"created_at":"2026-11-20T12:00:00.000Z","latest_request_created_at":"2026-11-20T12:10:00.000Z","session_id":"s","session_name":"chat",
			"total_cost":0.002000005,"total_requests":2,"prompt_tokens":200,"completion_tokens":40,"total_tokens":240,"avg_latency":1500,"requests_without_cost":1}`
		late = `{"created_at":"2026-11-20T12:10:00.000Z","latest_request_created_at":"2026-11-20T12:10:00.000Z","session_id":"s","session_name":"chat",
			"total_cost":null,"total_requests":1,"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"avg_latency":2000,"requests_without_cost":1}`
		other = `{"created_at":"2026-11-20T12:00:00.000Z","latest_request_created_at":"2026-11-20T12:00:00.000Z","session_id":"s","session_name":"Straße",
			"total_cost":null,"total_requests":1,"prompt_tokens":null,"completion_tokens":null,"total_tokens":null,"avg_latency":null,"requests_without_cost":1}`
	)
	for _, test := range []struct {
		name   string
		query  storage.SessionQuery
		filter string
		want   string
	}{
		{"ties by id and name", storage.SessionQuery{Limit: 9}, `"all"`, `[` + chat + `,` + other + `]`},
		{"second page", storage.SessionQuery{Limit: 1, Offset: 1}, `"all"`, `[` + other + `]`},
		{"a window cuts a session", storage.SessionQuery{Limit: 9, Window: between("2026-11-20T12:05:00.001Z", "2026-11-20T13:00:00Z")}, `"all"`, `[` + late + `]`},
		{"search of names", storage.SessionQuery{Limit: 9, Search: "STRA"}, `"all"`, `[` + other + `]`},
		{"search of ids", storage.SessionQuery{Limit: 1, Search: "S"}, `"all"`, `[` + chat + `]`},
		{"a name", storage.SessionQuery{Limit: 9, NameEquals: new("chat")}, `"all"`, `[` + chat + `]`},
		{"a name is exact", storage.SessionQuery{Limit: 9, NameEquals: new("Chat")}, `"all"`, `[]`},
		{"a tag", storage.SessionQuery{Limit: 1}, `{"sessions_request_response_rmt":{"session_tag":{"equals":"prod"}}}`, `[` + chat + `]`},
		{
			"requests and sessions", storage.SessionQuery{Limit: 9},
			`{"left":{"request_response_rmt":{"latency":{"equals":2000}}},"operator":"and",
				"right":{"sessions_request_response_rmt":{"session_total_requests":{"equals":1}}}}`, `[` + late + `]`,
		},
	} {
		q := test.query
		q.Org, q.Filter = "acme", parsed(t, test.filter)
		if q.Window == (storage.Window{}) {
			q.Window = storage.Always
		}
		got, err := q.Answer(t.Context(), groups(records))
		answers(t, test.name, got, err, test.want)
	}
}

// Days count once each, in whatever order requests come.
func TestActiveFor(t *testing.T) {
	var records []*storage.Record
	for i := range storage.Timestamp(300) {
		records = append(records, asked("2026-11-20T12:00:00Z", func(r *storage.Record) { r.CreatedAt -= i * 37 % 100 * 2 * day }))
	}
	q := storage.UserQuery{Org: "acme", Filter: storage.All{}, Window: storage.Always, Limit: 1}
	page, err := q.Answer(t.Context(), groups(records))
	if err != nil || page.Users[0].ActiveFor != 100 {
		t.Errorf("%+v, %v, want 100 days", page, err)
	}
}

// In a part that mixes both kinds of leaves, one request must satisfy the whole
// of a subtree about requests.
func TestMixedPartNeedsOneRequest(t *testing.T) {
	dear, slow := asked("2026-11-20T12:00:00Z", costing(5e9)), asked("2026-11-20T12:01:00Z", lasting(60_000))
	q := storage.UserQuery{Org: "acme", Window: storage.Always, Filter: parsed(t, `{
		"left":{"left":{"request_response_rmt":{"cost":{"gte":5}}},"operator":"and","right":{"request_response_rmt":{"latency":{"gte":60000}}}},
		"operator":"or","right":{"users_view":{"user_total_requests":{"gt":2}}}}`)}
	for _, test := range []struct {
		records []*storage.Record
		want    int
	}{
		{[]*storage.Record{dear, slow}, 0},
		{[]*storage.Record{dear, slow, asked("2026-11-20T12:00:00Z", costing(5e9), lasting(60_000), failed)}, 1},
		{[]*storage.Record{dear, slow, asked("2026-11-20T12:00:00Z")}, 1},
	} {
		page, err := q.Answer(t.Context(), groups(test.records))
		if err != nil || page.Count != test.want {
			t.Errorf("%d requests: %d users, %v, want %d", len(test.records), page.Count, err, test.want)
		}
	}
}

func TestSessionMetrics(t *testing.T) {
	// Two sessions begin in the first bucket, none in the second, one in the
	// third; the window is two hours in buckets of five minutes.
	records := []*storage.Record{
		asked("2026-11-20T12:00:00Z", within("a", "x"), costing(1e9), lasting(10_000)),
		asked("2026-11-20T12:09:00Z", within("a", "x"), costing(1e9), lasting(60_000)),
		asked("2026-11-20T12:04:59Z", within("b", "x"), costing(4e9), lasting(2_000)),
		asked("2026-11-20T12:10:00Z", within("c", "x"), unknown),
	}
	q := storage.SessionMetricsQuery{
		Org: "acme", Filter: storage.All{}, Window: between("2026-11-20T12:00:00Z", "2026-11-20T14:00:00Z"),
		Series: storage.Series{Quantile: storage.DefaultQuantile},
	}
	got, err := q.Answer(t.Context(), groups(records))
	if err != nil {
		t.Fatal(err)
	}
	counts, durations, costs := got.SessionCount, got.SessionDuration, got.SessionCost
	got.SessionCount, got.SessionDuration, got.SessionCost = nil, nil, nil
	answers(t, "averages", got.Average, nil, `{"session_cost":[{"average":3}],"session_duration":[{"average":301}],"session_count":[{"average":0.12}]}`)
	answers(t, "counts", counts[:4], nil, `[
		{"range_start":"2026-11-20T12:00:00.000Z","range_end":"2026-11-20T12:05:00.000Z","value":2},
		{"range_start":"2026-11-20T12:05:00.000Z","range_end":"2026-11-20T12:10:00.000Z","value":0},
		{"range_start":"2026-11-20T12:10:00.000Z","range_end":"2026-11-20T12:15:00.000Z","value":1},
		{"range_start":"2026-11-20T12:15:00.000Z","range_end":"2026-11-20T12:20:00.000Z","value":0}]`)
	// 600 s and 2 s: three quarters of the way between them.
	answers(t, "durations", durations[:3], nil, `[
		{"range_start":"2026-11-20T12:00:00.000Z","range_end":"2026-11-20T12:05:00.000Z","value":450.5},
		{"range_start":"2026-11-20T12:05:00.000Z","range_end":"2026-11-20T12:10:00.000Z","value":0},
		{"range_start":"2026-11-20T12:10:00.000Z","range_end":"2026-11-20T12:15:00.000Z","value":null}]`)
	answers(t, "costs", costs[:3], nil, `[
		{"range_start":"2026-11-20T12:00:00.000Z","range_end":"2026-11-20T12:05:00.000Z","value":3.5},
		{"range_start":"2026-11-20T12:05:00.000Z","range_end":"2026-11-20T12:10:00.000Z","value":0},
		{"range_start":"2026-11-20T12:10:00.000Z","range_end":"2026-11-20T12:15:00.000Z","value":null,"requests_without_cost":1}]`)
	if len(counts) != 25 || len(durations) != 25 || len(costs) != 25 {
		t.Errorf("%d, %d and %d buckets, want 25", len(counts), len(durations), len(costs))
	}

	// 23 buckets without a session, one with one, one with two.
	q.Distribution = true
	got, err = q.Answer(t.Context(), groups(records))
	var values []float64
	for _, p := range got.SessionCount {
		values = append(values, p.Value.N)
	}
	if want := []float64{23, 1, 1}; err != nil || !slices.Equal(values, want) {
		t.Errorf("distribution of counts %v, %v, want %v", values, err, want)
	}
}

func TestEmptySessionMetrics(t *testing.T) {
	q := storage.SessionMetricsQuery{Org: "acme", Filter: storage.All{}, Window: storage.Always}
	got, err := q.Answer(t.Context(), groups(nil))
	const nothing = `{"session_count":[],"session_duration":[],"session_cost":[],
		"average":{"session_cost":[{"average":null}],"session_duration":[{"average":null}],"session_count":[{"average":null}]}}`
	answers(t, "always", got, err, nothing)
	q.Window = storage.Window{From: 1, To: 0}
	got, err = q.Answer(t.Context(), groups(nil))
	answers(t, "empty window", got, err, nothing)

	q.Window = between("2026-11-20T12:00:00Z", "2026-11-20T12:00:59Z")
	got, err = q.Answer(t.Context(), groups(nil))
	const zero = `[{"range_start":"2026-11-20T12:00:00.000Z","range_end":"2026-11-20T12:01:00.000Z","value":0}]`
	answers(t, "empty bucket", got, err, `{"session_count":`+zero+`,"session_duration":`+zero+`,"session_cost":`+zero+`,
		"average":{"session_cost":[{"average":null}],"session_duration":[{"average":null}],"session_count":[{"average":0}]}}`)
}

// Of one, two, three, four and a hundred dollars, the quartiles are two and four.
func TestInterquartile(t *testing.T) {
	var records []*storage.Record
	for i, dollars := range []int64{100, 3, 1, 4, 2} {
		records = append(records, asked("2026-11-20T12:00:00Z", within(string(rune('a'+i)), ""), costing(plugins.Nanodollars(dollars*1e9))))
	}
	q := storage.SessionMetricsQuery{Org: "acme", Filter: storage.All{}, Window: storage.Always, Series: storage.Series{Quantile: 990}}
	for interquartile, want := range map[bool]string{
		false: `{"average":22},"value":96.16`,
		true:  `{"average":3},"value":3.98`,
	} {
		q.Interquartile = interquartile
		got, err := q.Answer(t.Context(), groups(records))
		if err != nil {
			t.Fatal(err)
		}
		if s := encoded(t, got.Average.SessionCost[0]) + `,"value":` + encoded(t, got.SessionCost[0].Value); s != want {
			t.Errorf("interquartile %v: %s, want %s", interquartile, s, want)
		}
	}
}

func TestDistribution(t *testing.T) {
	histogram := func(costs ...plugins.Nanodollars) []storage.Point {
		var records []*storage.Record
		for i, c := range costs {
			records = append(records, asked("2026-11-20T12:00:00Z", within(string(rune('a'+i)), ""), costing(c)))
		}
		q := storage.SessionMetricsQuery{Org: "acme", Filter: storage.All{}, Window: storage.Always, Series: storage.Series{Distribution: true}}
		got, err := q.Answer(t.Context(), groups(records))
		if err != nil {
			t.Fatal(err)
		}
		return got.SessionCost
	}
	answers(t, "none", histogram(), nil, `[]`)
	answers(t, "one value", histogram(25e7, 25e7), nil, `[{"range_start":"0.25","range_end":"0.25","value":2}]`)
	answers(t, "two neighbours", histogram(1, 2, 2), nil, `[{"range_start":"0.000000001","range_end":"0.0000000015","value":1},
		{"range_start":"0.0000000015","range_end":"0.000000002","value":2}]`)
	// A value on a bound stands in the upper bin, the largest in the last.
	got := histogram(0, 1e9, 15e8, 2e9, 10e9)
	answers(t, "first bins", got[:3], nil, `[{"range_start":"0","range_end":"1","value":1},
		{"range_start":"1","range_end":"2","value":2},{"range_start":"2","range_end":"3","value":1}]`)
	answers(t, "last bin", got[9:], nil, `[{"range_start":"9","range_end":"10","value":1}]`)
}

func TestUserOverview(t *testing.T) {
	records := []*storage.Record{
		asked("2026-11-20T12:00:00Z", by("ann"), costing(1e9)),
		asked("2026-11-20T12:00:30Z", by("ann"), costing(1e9)),
		asked("2026-11-20T12:00:30Z", by("bob"), costing(1e9)),
		asked("2026-11-20T12:02:00Z", by("ann"), unpriced),
		asked("2026-11-20T12:01:00Z", by("bob"), costing(5e9), failed), // nobody asks in this bucket
		asked("2026-11-20T11:00:00Z", by("bob"), costing(5e9), failed), // before the first request
	}
	q := storage.UserOverviewQuery{Org: "acme", Filter: storage.All{}, Window: storage.Always, Series: storage.Series{Quantile: 500}}
	got, err := q.Answer(t.Context(), groups(records))
	answers(t, "by time", got, err, `{"user_cost":[
		{"range_start":"2026-11-20T12:00:00.000Z","range_end":"2026-11-20T12:01:00.000Z","value":1.5},
		{"range_start":"2026-11-20T12:01:00.000Z","range_end":"2026-11-20T12:02:00.000Z","value":0},
		{"range_start":"2026-11-20T12:02:00.000Z","range_end":"2026-11-20T12:03:00.000Z","value":null,"requests_without_cost":1}],
		"request_count":[
		{"range_start":"2026-11-20T12:00:00.000Z","range_end":"2026-11-20T12:01:00.000Z","value":1.5},
		{"range_start":"2026-11-20T12:01:00.000Z","range_end":"2026-11-20T12:02:00.000Z","value":0},
		{"range_start":"2026-11-20T12:02:00.000Z","range_end":"2026-11-20T12:03:00.000Z","value":1}]}`)

	q.Filter = parsed(t, `{"users_view":{"user_total_requests":{"lt":2}}}`)
	got, err = q.Answer(t.Context(), groups(records))
	answers(t, "the window is that of the users chosen", got, err, `{"user_cost":[
		{"range_start":"2026-11-20T12:00:00.000Z","range_end":"2026-11-20T12:01:00.000Z","value":1}],
		"request_count":[
		{"range_start":"2026-11-20T12:00:00.000Z","range_end":"2026-11-20T12:01:00.000Z","value":1}]}`)

	q.Filter, q.Distribution = storage.All{}, true
	got, err = q.Answer(t.Context(), groups(records))
	answers(t, "distribution", got.RequestCount, err, `[{"range_start":"1","range_end":"1.6666666666666665","value":1},
		{"range_start":"1.6666666666666665","range_end":"2.333333333333333","value":0},
		{"range_start":"2.333333333333333","range_end":"3","value":1}]`)
}

func TestScores(t *testing.T) {
	records := []*storage.Record{
		asked("2028-02-28T18:29:59.999Z", scored(map[string]float64{"q": 0.5})),
		asked("2028-02-28T18:30:00Z", scored(map[string]float64{"q": 1, "a": -2}), rated(true)), // the leap day has begun in India
		asked("2028-02-29T18:30:00Z", rated(false), failed),
		asked("2028-02-29T18:30:00Z"),
	}
	point := func(start, key, avg, sum, count string) string {
		return `{"created_at_trunc":"` + start + `","score_key":"` + key + `","score_avg":` + avg + `,"score_sum":` + sum + `,"score_count":` + count + `}`
	}
	const feedback = storage.FeedbackScore
	for _, test := range []struct {
		by   storage.Increment
		zone int
		want []string
	}{
		{storage.ByDay, -330, []string{
			point("2028-02-27T18:30:00.000Z", "q", "0.5", "0.5", "1"),
			point("2028-02-28T18:30:00.000Z", "a", "-2", "-2", "1"),
			point("2028-02-28T18:30:00.000Z", "q", "1", "1", "1"),
			point("2028-02-28T18:30:00.000Z", feedback, "1", "1", "1"),
			point("2028-02-29T18:30:00.000Z", feedback, "0", "0", "1"),
		}},
		{storage.ByMonth, -330, []string{
			point("2028-01-31T18:30:00.000Z", "a", "-2", "-2", "1"),
			point("2028-01-31T18:30:00.000Z", "q", "0.75", "1.5", "2"),
			point("2028-01-31T18:30:00.000Z", feedback, "1", "1", "1"),
			point("2028-02-29T18:30:00.000Z", feedback, "0", "0", "1"),
		}},
		{storage.ByYear, 570, []string{
			point("2028-01-01T09:30:00.000Z", "a", "-2", "-2", "1"),
			point("2028-01-01T09:30:00.000Z", "q", "0.75", "1.5", "2"),
			point("2028-01-01T09:30:00.000Z", feedback, "0.5", "1", "2"),
		}},
		{storage.ByWeek, 0, []string{ // 28 February 2028 is a Monday
			point("2028-02-28T00:00:00.000Z", "a", "-2", "-2", "1"),
			point("2028-02-28T00:00:00.000Z", "q", "0.75", "1.5", "2"),
			point("2028-02-28T00:00:00.000Z", feedback, "0.5", "1", "2"),
		}},
		{storage.ByHour, 570, []string{
			point("2028-02-28T17:30:00.000Z", "q", "0.5", "0.5", "1"),
			point("2028-02-28T18:30:00.000Z", "a", "-2", "-2", "1"),
			point("2028-02-28T18:30:00.000Z", "q", "1", "1", "1"),
			point("2028-02-28T18:30:00.000Z", feedback, "1", "1", "1"),
			point("2028-02-29T18:30:00.000Z", feedback, "0", "0", "1"),
		}},
		{storage.ByMinute, 0, []string{
			point("2028-02-28T18:29:00.000Z", "q", "0.5", "0.5", "1"),
			point("2028-02-28T18:30:00.000Z", "a", "-2", "-2", "1"),
			point("2028-02-28T18:30:00.000Z", "q", "1", "1", "1"),
			point("2028-02-28T18:30:00.000Z", feedback, "1", "1", "1"),
			point("2028-02-29T18:30:00.000Z", feedback, "0", "0", "1"),
		}},
	} {
		q := storage.ScoreQuery{Org: "acme", Filter: storage.All{}, Window: storage.Always, Zone: storage.FixedZone(test.zone), Increment: test.by}
		got, err := q.Answer(t.Context(), groups(records))
		answers(t, string(test.by), got, err, `[`+strings.Join(test.want, ",")+`]`)
	}
}

// What is too large for a number is unknown, not infinite.
func TestScoreOverflow(t *testing.T) {
	huge := scored(map[string]float64{"q": 1.7e308})
	records := []*storage.Record{asked("2026-11-20T12:00:00Z", huge), asked("2026-11-20T12:00:00Z", huge)}
	q := storage.ScoreQuery{Org: "acme", Filter: storage.All{}, Window: storage.Always, Increment: storage.ByDay}
	got, err := q.Answer(t.Context(), groups(records))
	answers(t, "overflow", got, err, `[{"created_at_trunc":"2026-11-20T00:00:00.000Z","score_key":"q","score_avg":null,"score_sum":null,"score_count":2}]`)
}

// failingRows fail after some scans.
type failingRows struct {
	madeRows
	scans int
}

// grouped are rows as a local backend has them.
type grouped struct{ storage.Rows }

func (g grouped) Groups(_ context.Context, q *storage.GroupQuery, each func(*storage.GroupTotals) error) error {
	if _, ok := q.RowDimensions(); !ok {
		return fmt.Errorf("rows do not answer %+v", q)
	}
	return storage.GroupRows(q, g.Rows, each)
}

var errScan = errors.New("the disk is on fire")

func (f *failingRows) Scan(s *storage.Scan) error {
	if f.scans == 0 {
		return errScan
	}
	f.scans--
	if s.Window.To < s.Window.From {
		return nil
	}
	return f.madeRows.Scan(s)
}

// Whichever scan of an answer fails, the answer does.
func TestFailedScan(t *testing.T) {
	mixed := func(leaf string) storage.Filter {
		return parsed(t, `{"left":{"request_response_rmt":{"status":{"equals":200}}},"operator":"or","right":`+leaf+`}`)
	}
	users := mixed(`{"users_view":{"user_cost":{"lt":0}}}`)
	sessions := mixed(`{"sessions_request_response_rmt":{"session_total_cost":{"lt":0}}}`)
	for _, test := range []struct {
		name   string
		scans  int
		answer func(storage.Grouper) error
	}{
		{"users", 2, func(g storage.Grouper) error {
			q := storage.UserQuery{Filter: users, Window: storage.Always}
			_, err := q.Answer(t.Context(), g)
			return err
		}},
		{"no users", 3, func(g storage.Grouper) error {
			q := storage.UserQuery{Filter: users, Window: storage.Window{From: 1, To: 0}}
			_, err := q.Answer(t.Context(), g)
			return err
		}},
		{"overview", 3, func(g storage.Grouper) error {
			q := storage.UserOverviewQuery{Filter: users, Window: storage.Always}
			_, err := q.Answer(t.Context(), g)
			return err
		}},
		{"sessions", 2, func(g storage.Grouper) error {
			q := storage.SessionQuery{Filter: sessions, Window: storage.Always}
			_, err := q.Answer(t.Context(), g)
			return err
		}},
		{"metrics", 2, func(g storage.Grouper) error {
			q := storage.SessionMetricsQuery{Filter: sessions, Window: storage.Always}
			_, err := q.Answer(t.Context(), g)
			return err
		}},
		{"scores", 1, func(g storage.Grouper) error {
			q := storage.ScoreQuery{Filter: storage.All{}, Window: storage.Always, Increment: storage.ByDay}
			_, err := q.Answer(t.Context(), g)
			return err
		}},
	} {
		for scans := range test.scans + 1 {
			var want error
			if scans < test.scans {
				want = errScan
			}
			if err := test.answer(grouped{&failingRows{madeRows{1, 1}, scans}}); !errors.Is(err, want) {
				t.Errorf("%s: %v after %d scans, want %v", test.name, err, scans, want)
			}
		}
	}
}

// keyRows count the keys that are read.
type keyRows struct {
	madeRows
	read int
}

func (r *keyRows) Keys(dimension int, groups []int) []storage.Key {
	r.read += len(groups)
	return r.madeRows.Keys(dimension, groups)
}

// Keys are dear to read: only those are that an answer may show, or that decide.
func TestAnswersReadFewKeys(t *testing.T) {
	const groups = 200_000
	window := storage.Window{From: at("2026-08-20T00:00:00Z"), To: at("2026-11-20T00:00:00Z")}
	ofUser := storage.LookupField(storage.UsersView, "user_user_id")
	series := storage.Series{Quantile: storage.DefaultQuantile}
	for _, test := range []struct {
		name   string
		most   int
		answer func(storage.Grouper) error
	}{
		{"session metrics", 0, func(g storage.Grouper) error {
			_, err := (&storage.SessionMetricsQuery{Filter: storage.All{}, Window: window, Series: series}).Answer(t.Context(), g)
			return err
		}},
		{"user overview", 0, func(g storage.Grouper) error {
			_, err := (&storage.UserOverviewQuery{Filter: storage.All{}, Window: window, Series: series}).Answer(t.Context(), g)
			return err
		}},
		{"newest sessions", groups / 10, func(g storage.Grouper) error {
			_, err := (&storage.SessionQuery{Filter: storage.All{}, Window: window, Limit: 50}).Answer(t.Context(), g)
			return err
		}},
		{"sessions by latest request", groups / 2, func(g storage.Grouper) error {
			q := &storage.SessionQuery{Filter: storage.All{}, Window: window, Limit: 50, Sort: []storage.SessionSort{{Key: storage.SessionLatestRequestCreatedAt, Desc: true}}}
			_, err := q.Answer(t.Context(), g)
			return err
		}},
		{"no users", 0, func(g storage.Grouper) error {
			_, err := (&storage.UserQuery{Filter: storage.All{}, Window: window}).Answer(t.Context(), g)
			return err
		}},
		{"users by id", math.MaxInt, func(g storage.Grouper) error {
			_, err := (&storage.UserQuery{Filter: &storage.Leaf{Field: ofUser, Op: storage.Equals, Text: "7"}, Window: window, Limit: 50}).Answer(t.Context(), g)
			return err
		}},
	} {
		rows := &keyRows{madeRows: madeRows{2 * groups, groups}}
		if err := test.answer(grouped{rows}); err != nil {
			t.Fatal(err)
		}
		if rows.read > test.most || rows.read == 0 && test.most > 0 {
			t.Errorf("%s: %d keys were read of %d groups, want at most %d", test.name, rows.read, groups, test.most)
		}
	}
}

func TestParseUserSort(t *testing.T) {
	got, err := storage.ParseUserSort([]byte(`{"cost":"desc","user_id":"asc"}`))
	if err != nil || len(got) != 2 || got[0] != (storage.UserSort{Key: storage.UserCost, Desc: true}) || got[1] != (storage.UserSort{Key: storage.UserUserID}) {
		t.Errorf("sort is %v, %v", got, err)
	}
	for raw, want := range map[string]string{
		`{"price":"asc"}`:             `sort: unknown key "price"`,
		`{"cost":"up"}`:               `sort.cost: expected "asc" or "desc", got the string "up"`,
		`{"cost":"asc","cost":"asc"}`: `sort: duplicate key "cost"`,
		`[]`:                          `sort: expected an object, got an array`,
		`{"cost":"asc"} x`:            `sort: malformed JSON`,
	} {
		if _, err := storage.ParseUserSort([]byte(raw)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", raw, err, want)
		}
	}
	if got, err := storage.ParseUserSort(nil); got != nil || err != nil {
		t.Errorf("no sort is %v, %v", got, err)
	}
}

func TestParseNames(t *testing.T) {
	if q, err := storage.ParseQuantile("p99.9"); q != 999 || err != nil {
		t.Errorf("p99.9 is %d, %v", q, err)
	}
	if i, err := storage.ParseIncrement("week"); i != storage.ByWeek || err != nil {
		t.Errorf("week is %s, %v", i, err)
	}
	for _, s := range []string{"", "p999", "P50", "minute"} {
		if _, err := storage.ParseQuantile(s); err == nil {
			t.Errorf("%q is a quantile", s)
		}
		if _, err := storage.ParseIncrement(s); err == nil {
			t.Errorf("%q is an increment", s)
		}
	}
}
