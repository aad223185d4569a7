package storage_test

import (
	"cmp"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// oracle computes answers once more, from whole records and with none of the
// code that it checks but Match.
type oracle struct {
	org      string
	records  []*storage.Record
	contents storagetest.Contents
	trees    map[uuid.UUID]bool // of the requests that were chosen last
}

func (o *oracle) match(f storage.Filter, r *storage.Record) bool {
	return storage.Match(f, r, func() *storage.Content { return o.contents.Of(r) })
}

// group is a user or session with its records, attempts included.
type group struct {
	id, name string
	records  []*storage.Record
}

// groups are those that a filter chooses,. is tells whether a leaf about groups is
// true of one.
func (o *oracle) groups(f storage.Filter, w storage.Window, key func(*storage.Record) (id, name string), is func(*group, *storage.Leaf) bool) []*group {
	var parts []storage.Filter
	var take func(storage.Filter)
	take = func(f storage.Filter) {
		if b, ok := f.(*storage.Branch); ok && !b.Or {
			take(b.Left)
			take(b.Right)
			return
		}
		parts = append(parts, f)
	}
	take(f)
	about := func(f storage.Filter) (requests, groups bool) {
		for l := range storage.Leaves(f) {
			requests = requests || l.Field.Applies()
			groups = groups || !l.Field.Applies()
		}
		return requests, groups
	}
	found := make(map[[2]string]*group)
	var chosenRecords []*storage.Record
	o.trees = make(map[uuid.UUID]bool)
	for _, r := range o.records {
		chosen := r.Org == o.org && w.From <= r.CreatedAt && r.CreatedAt <= w.To
		for _, p := range parts {
			if _, groups := about(p); !groups {
				chosen = chosen && o.match(p, r)
			}
		}
		if !chosen {
			continue
		}
		chosenRecords = append(chosenRecords, r)
		if r.SessionID == "" {
			o.trees[r.RootID] = true
		}
	}
	for _, r := range chosenRecords {
		id, name := key(r)
		if id == "" {
			continue
		}
		k := [2]string{id, name}
		if found[k] == nil {
			found[k] = &group{id: id, name: name}
		}
		found[k].records = append(found[k].records, r)
	}
	var holds func(f storage.Filter, g *group) bool
	holds = func(f storage.Filter, g *group) bool {
		requests, groups := about(f)
		if requests && !groups {
			return slices.ContainsFunc(g.records, func(r *storage.Record) bool { return o.match(f, r) })
		}
		switch f := f.(type) {
		case *storage.Branch:
			if f.Or {
				return holds(f.Left, g) || holds(f.Right, g)
			}
			return holds(f.Left, g) && holds(f.Right, g)
		case *storage.Leaf:
			return is(g, f)
		}
		return true
	}
	var chosen []*group
	for _, g := range found {
		ok := len(g.answering()) > 0
		for _, p := range parts {
			if _, groups := about(p); groups {
				ok = ok && holds(p, g)
			}
		}
		if ok {
			chosen = append(chosen, g)
		}
	}
	return chosen
}

func (g *group) answering() (records []*storage.Record) {
	for _, r := range g.records {
		if r.AttemptOf == [16]byte{} {
			records = append(records, r)
		}
	}
	return records
}

// sum adds what is known of the records.
func sum[T plugins.Unit](records []*storage.Record, quantity func(*storage.Record) plugins.Quantity[T]) (total plugins.Quantity[T], known int) {
	exact := new(big.Int)
	for _, r := range records {
		if q := quantity(r); q.Valid {
			exact.Add(exact, big.NewInt(int64(q.N)))
			known++
		}
	}
	return plugins.Quantity[T]{N: T(exact.Int64()), Valid: known > 0}, known
}

func costOf(r *storage.Record) plugins.Cost { return r.Cost }

func (g *group) cost() (total plugins.Cost, without int64) {
	total, known := sum(g.records, costOf)
	return total, int64(len(g.records) - known)
}

func (g *group) span() (first, last storage.Timestamp) {
	times := g.times()
	return slices.Min(times), slices.Max(times)
}

func (g *group) times() (times []storage.Timestamp) {
	for _, r := range g.answering() {
		times = append(times, r.CreatedAt)
	}
	return times
}

func (g *group) tokens() (prompt, completion, total plugins.Count, perRequest storage.Amount) {
	answering := g.answering()
	prompt, _ = sum(answering, func(r *storage.Record) plugins.Count { return r.Usage.Input })
	completion, _ = sum(answering, func(r *storage.Record) plugins.Count { return r.Usage.Output })
	total, known := sum(answering, func(r *storage.Record) plugins.Count { return r.Usage.Input.Plus(r.Usage.Output) })
	return prompt, completion, total, over(total.N, known)
}

func over[T plugins.Unit](sum T, n int) storage.Amount {
	if n == 0 {
		return storage.Amount{}
	}
	return storage.Amount{N: float64(sum) / float64(n), Valid: true}
}

func (g *group) user(z storage.Zone) storage.User {
	u := storage.User{ID: g.id, UserID: g.id}
	days := make(map[string]bool)
	for _, r := range g.answering() {
		days[(r.CreatedAt + z.Offset(r.CreatedAt)).Time().Format(time.DateOnly)] = true
		u.TotalRequests++
		if r.Status == plugins.Known(429) {
			u.RateLimitedCount++
		}
	}
	u.ActiveFor = int64(len(days))
	u.FirstActive, u.LastActive = g.span()
	u.AverageRequestsPerDayActive = over(u.TotalRequests, len(days))
	u.TotalPromptTokens, u.TotalCompletionTokens, _, u.AverageTokensPerRequest = g.tokens()
	u.Cost, u.RequestsWithoutCost = g.cost()
	return u
}

func (g *group) session() storage.Session {
	s := storage.Session{SessionID: g.id, SessionName: g.name, IsDerived: g.records[0].SessionID == "", TotalRequests: int64(len(g.answering()))}
	s.CreatedAt, s.LatestRequestCreatedAt = g.span()
	s.PromptTokens, s.CompletionTokens, s.TotalTokens, _ = g.tokens()
	s.TotalCost, s.RequestsWithoutCost = g.cost()
	latency, known := sum(g.answering(), func(r *storage.Record) plugins.Duration { return r.Latency })
	s.AvgLatency = over(latency.N, known)
	return s
}

// seconds is how long a session lasts, unknown without an end.
func (g *group) seconds() storage.Amount {
	first, _ := g.span()
	end := storage.Timestamp(0)
	for _, r := range g.answering() {
		end = max(end, r.RespondedAt)
	}
	return storage.Amount{N: float64(end-first) / 1e3, Valid: end != 0}
}

// holds compares as leaves about requests do. A sum is exact, and an average a
// floating-point number.
func holds(l *storage.Leaf, text string, number *big.Rat, at storage.Timestamp) bool {
	switch l.Field.Kind {
	case storage.Text:
		return storage.TextMatcher(l.Op, l.Text, nil)(text)
	case storage.Time:
		return storage.Compare(l.Op, at, l.Time)
	}
	if l.Op == storage.IsNull {
		return (number != nil) != l.Bool
	}
	if number == nil {
		return l.Op == storage.NotEquals
	}
	to, _ := new(big.Rat).SetString(l.Number.String())
	if strings.Contains(l.Field.Name, "average") {
		to.SetFloat64(l.Number.Float())
	}
	return storage.Compare(l.Op, int64(number.Cmp(to)), 0)
}

// exactly is a sum in the unit of answers, nil if it is unknown.
func exactly[T plugins.Unit](q plugins.Quantity[T]) *big.Rat {
	unit := int64(1)
	if _, money := any(q.N).(plugins.Nanodollars); money {
		unit = 1e9
	}
	if !q.Valid {
		return nil
	}
	return big.NewRat(int64(q.N), unit)
}

func average(a storage.Amount) *big.Rat {
	if !a.Valid {
		return nil
	}
	return new(big.Rat).SetFloat64(a.N)
}

func number[T plugins.Unit](q plugins.Quantity[T]) storage.Amount {
	return storage.Amount{N: q.Float(), Valid: q.Valid}
}

func userIs(z storage.Zone) func(*group, *storage.Leaf) bool {
	return func(g *group, l *storage.Leaf) bool {
		u := g.user(z)
		numbers := map[string]*big.Rat{
			"user_active_for":                      exactly(plugins.Known(u.ActiveFor)),
			"user_total_requests":                  exactly(plugins.Known(u.TotalRequests)),
			"user_average_requests_per_day_active": average(u.AverageRequestsPerDayActive),
			"user_average_tokens_per_request":      average(u.AverageTokensPerRequest),
			"user_total_completion_tokens":         exactly(u.TotalCompletionTokens),
			"user_total_prompt_tokens":             exactly(u.TotalPromptTokens),
			"user_cost":                            exactly(u.Cost),
		}
		times := map[string]storage.Timestamp{"user_first_active": u.FirstActive, "user_last_active": u.LastActive}
		return holds(l, u.UserID, numbers[l.Field.Name], times[l.Field.Name])
	}
}

func sessionIs(tags map[string]string) func(*group, *storage.Leaf) bool {
	return func(g *group, l *storage.Leaf) bool {
		s := g.session()
		texts := map[string]string{"session_session_id": s.SessionID, "session_session_name": s.SessionName, "session_tag": tags[s.SessionID]}
		numbers := map[string]*big.Rat{
			"session_total_cost":        exactly(s.TotalCost),
			"session_total_tokens":      exactly(s.TotalTokens),
			"session_prompt_tokens":     exactly(s.PromptTokens),
			"session_completion_tokens": exactly(s.CompletionTokens),
			"session_total_requests":    exactly(plugins.Known(s.TotalRequests)),
		}
		times := map[string]storage.Timestamp{
			"session_created_at": s.CreatedAt, "session_latest_request_created_at": s.LatestRequestCreatedAt,
		}
		return holds(l, texts[l.Field.Name], numbers[l.Field.Name], times[l.Field.Name])
	}
}

func userKey(r *storage.Record) (id, name string) { return r.UserID, "" }

// sessionKey is that of named sessions, and of derived ones if so.
func (o *oracle) sessionKey(derived bool) func(*storage.Record) (id, name string) {
	return func(r *storage.Record) (id, name string) {
		switch {
		case r.SessionID != "" || !derived:
			return r.SessionID, r.SessionName
		case r.RootID != uuid.Nil:
			return r.RootID.String(), ""
		case o.trees[r.ID]:
			return r.ID.String(), ""
		}
		return "", ""
	}
}

// windowOf is the time of the groups, where the query has no bounds.
func windowOf(w storage.Window, groups []*group) (_ storage.Window, ok bool) {
	var times []storage.Timestamp
	for _, g := range groups {
		times = append(times, g.times()...)
	}
	if len(times) == 0 && (w.From == math.MinInt64 || w.To == math.MaxInt64) {
		return w, false
	}
	if w.From == math.MinInt64 {
		w.From = slices.Min(times)
	}
	if w.To == math.MaxInt64 {
		w.To = slices.Max(times)
	}
	return w, w.From <= w.To
}

// interpolated is the quantile as textbooks have it.
func interpolated(values []float64, p float64) float64 {
	sort.Float64s(values)
	h := p * float64(len(values)-1)
	i := int(math.Floor(h + 1e-9))
	if i+1 >= len(values) {
		return values[len(values)-1]
	}
	return values[i] + max(0, h-float64(i))*(values[i+1]-values[i])
}

func known(amounts []storage.Amount) (values []float64) {
	for _, a := range amounts {
		if a.Valid {
			values = append(values, a.N)
		}
	}
	return values
}

// checkSeries compares points with the values of each bucket: what inside tells
// for the moments from start until before end.
func checkSeries(t *testing.T, what string, q storage.Series, points []storage.Point, inside func(start, end storage.Timestamp) []storage.Amount) {
	t.Helper()
	if len(points) > 60 {
		t.Errorf("%s: %d points", what, len(points))
	}
	for i, p := range points {
		start, end := at(p.RangeStart), at(p.RangeEnd)
		if i > 0 && p.RangeStart != points[i-1].RangeEnd {
			t.Errorf("%s: a gap before %s", what, p.RangeStart)
		}
		amounts := inside(start, end)
		want := storage.Amount{Valid: len(amounts) == 0}
		if values := known(amounts); len(values) > 0 {
			want = storage.Amount{N: interpolated(values, float64(q.Quantile)/1000), Valid: true}
		}
		if p.Value.Valid != want.Valid || math.Abs(p.Value.N-want.N) > 1e-9*math.Abs(want.N) {
			t.Errorf("%s from %s: %v, want %v (of %v)", what, p.RangeStart, p.Value, want, amounts)
		}
	}
}

// quartered drops what an interquartile query does not want.
func quartered(q storage.Series, groups []*group, measure func(*group) storage.Amount) []*group {
	var amounts []storage.Amount
	for _, g := range groups {
		amounts = append(amounts, measure(g))
	}
	values := known(amounts)
	if !q.Interquartile || len(values) == 0 {
		return groups
	}
	low, high := interpolated(values, 0.25), interpolated(values, 0.75)
	return slices.DeleteFunc(slices.Clone(groups), func(g *group) bool {
		a := measure(g)
		return a.Valid && (a.N < low-1e-12*math.Abs(low) || a.N > high+1e-12*math.Abs(high))
	})
}

// checkHistogram compares bins with the values, all of which they must count.
func checkHistogram(t *testing.T, what string, points []storage.Point, groups []*group, measure func(*group) storage.Amount) {
	t.Helper()
	var amounts []storage.Amount
	for _, g := range groups {
		amounts = append(amounts, measure(g))
	}
	counted := 0.0
	for _, p := range points {
		counted += p.Value.N
	}
	if values := known(amounts); len(points) > 10 || counted != float64(len(values)) ||
		len(values) > 0 && (points[0].RangeStart != big.NewFloat(slices.Min(values)).Text('f', -1) ||
			points[len(points)-1].RangeEnd != big.NewFloat(slices.Max(values)).Text('f', -1)) {
		t.Errorf("%s: %v, of %v", what, points, values)
	}
}

func TestAnalyticsAgainstOracle(t *testing.T) {
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 1))
		records, contents := storagetest.Records(r, 200)
		tags := make(map[string]string)
		for i, rec := range records {
			if rec.SessionID != "" && i%3 == 0 {
				tags[rec.SessionID] = []string{"prod", "Prod", "100%"}[i%9/3]
			}
		}
		shuffled := func(org string) storage.Grouper {
			r.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
			return storage.Records{All: records, Content: contents.Of, Tags: map[string]map[string]string{org: tags}}
		}
		for range 50 {
			users := storagetest.UserQuery(r, records)
			checkUsers(t, users, shuffled(users.Org), &oracle{org: users.Org, records: records, contents: contents})
			sessions := storagetest.SessionQuery(r, records)
			checkSessions(t, sessions, shuffled(sessions.Org), &oracle{org: sessions.Org, records: records, contents: contents}, tags)
			overview := storagetest.UserOverviewQuery(r, records)
			checkOverview(t, overview, shuffled(overview.Org), &oracle{org: overview.Org, records: records, contents: contents})
			metrics := storagetest.SessionMetricsQuery(r, records)
			checkMetrics(t, metrics, shuffled(metrics.Org), &oracle{org: metrics.Org, records: records, contents: contents}, tags)
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	}
}

func checkUsers(t *testing.T, q *storage.UserQuery, rows storage.Grouper, o *oracle) {
	t.Helper()
	q.Offset, q.Limit = 0, len(o.records) // the pages are storagetest's
	want := make(map[string]storage.User)
	for _, g := range o.groups(q.Filter, q.Window, userKey, userIs(q.Zone)) {
		want[g.id] = g.user(q.Zone)
	}
	page, err := q.Answer(t.Context(), rows)
	if err != nil || page.Count != len(want) || len(page.Users) != len(want) {
		t.Fatalf("%d users, %d on the page, %v, want %d\nfilter %s", page.Count, len(page.Users), err, len(want), storage.AppendJSON(nil, q.Filter))
	}
	for _, u := range page.Users {
		if u != want[u.ID] {
			t.Errorf("got  %+v\nwant %+v", u, want[u.ID])
		}
	}
}

func checkSessions(t *testing.T, q *storage.SessionQuery, rows storage.Grouper, o *oracle, tags map[string]string) {
	t.Helper()
	q.Offset, q.Limit = 0, len(o.records)
	groups := o.groups(q.Filter, q.Window, o.sessionKey(q.Derived), sessionIs(tags))
	contains := storage.TextMatcher(storage.Contains, q.Search, nil)
	groups = slices.DeleteFunc(groups, func(g *group) bool {
		return q.NameEquals != nil && *q.NameEquals != g.name || !contains(g.id) && !contains(g.name)
	})
	keys := q.Sort
	if len(keys) == 0 {
		keys = []storage.SessionSort{{Key: storage.SessionCreatedAt, Desc: true}}
	}
	slices.SortFunc(groups, func(a, b *group) int {
		x, y := gjson.Parse(encoded(t, a.session())), gjson.Parse(encoded(t, b.session()))
		for _, key := range keys {
			x, y := x.Get(string(key.Key)), y.Get(string(key.Key))
			order := cmp.Or(cmp.Compare(x.Num, y.Num), strings.Compare(x.Str, y.Str))
			if key.Desc {
				order = -order
			}
			unknown := func(v gjson.Result) int {
				if v.Type == gjson.Null || v.Type == gjson.String && v.Str == "" {
					return 1
				}
				return 0
			}
			if order := cmp.Or(unknown(x)-unknown(y), order); order != 0 {
				return order
			}
		}
		order := cmp.Or(strings.Compare(a.id, b.id), strings.Compare(a.name, b.name))
		if keys[0].Desc {
			return -order
		}
		return order
	})
	got, err := q.Answer(t.Context(), rows)
	if err != nil || len(got) != len(groups) {
		t.Fatalf("%d sessions, %v, want %d\nfilter %s", len(got), err, len(groups), storage.AppendJSON(nil, q.Filter))
	}
	for i, g := range groups {
		if a, b := encoded(t, got[i]), encoded(t, g.session()); a != b {
			t.Errorf("got  %s\nwant %s", a, b)
		}
	}
}

func checkOverview(t *testing.T, q *storage.UserOverviewQuery, rows storage.Grouper, o *oracle) {
	t.Helper()
	groups := o.groups(q.Filter, q.Window, userKey, userIs(q.Zone))
	got, err := q.Answer(t.Context(), rows)
	if err != nil {
		t.Fatal(err)
	}
	cost := func(g *group) storage.Amount { c, _ := g.cost(); return number(c) }
	count := func(g *group) storage.Amount { return number(plugins.Known(int64(len(g.answering())))) }
	for _, m := range []struct {
		name    string
		points  []storage.Point
		measure func(*group) storage.Amount
	}{{"user_cost", got.UserCost, cost}, {"request_count", got.RequestCount, count}} {
		kept := quartered(q.Series, groups, m.measure)
		if q.Distribution {
			checkHistogram(t, m.name, m.points, kept, m.measure)
			continue
		}
		w, ok := windowOf(q.Window, groups)
		if ok != (len(m.points) > 0) {
			t.Errorf("%s: %d points over %v", m.name, len(m.points), w)
		}
		checkSeries(t, m.name, q.Series, m.points, func(start, end storage.Timestamp) (amounts []storage.Amount) {
			for _, g := range kept {
				part := &group{}
				for _, r := range g.records {
					if start <= r.CreatedAt && r.CreatedAt < end && w.Contains(r.CreatedAt) {
						part.records = append(part.records, r)
					}
				}
				if len(part.answering()) > 0 {
					amounts = append(amounts, m.measure(part))
				}
			}
			return amounts
		})
	}
}

func checkMetrics(t *testing.T, q *storage.SessionMetricsQuery, rows storage.Grouper, o *oracle, tags map[string]string) {
	t.Helper()
	groups := o.groups(q.Filter, q.Window, o.sessionKey(q.Derived), sessionIs(tags))
	contains := storage.TextMatcher(storage.Contains, q.NameContains, nil)
	groups = slices.DeleteFunc(groups, func(g *group) bool { return !contains(g.name) })
	got, err := q.Answer(t.Context(), rows)
	if err != nil {
		t.Fatal(err)
	}
	cost := func(g *group) storage.Amount { c, _ := g.cost(); return number(c) }
	for _, m := range []struct {
		name    string
		points  []storage.Point
		average storage.Amount
		measure func(*group) storage.Amount
	}{
		{"session_cost", got.SessionCost, got.Average.SessionCost[0].Average, cost},
		{"session_duration", got.SessionDuration, got.Average.SessionDuration[0].Average, (*group).seconds},
	} {
		kept := quartered(q.Series, groups, m.measure)
		var amounts []storage.Amount
		for _, g := range kept {
			amounts = append(amounts, m.measure(g))
		}
		total, values := 0.0, known(amounts)
		for _, v := range values {
			total += v
		}
		if a := m.average; a.Valid != (len(values) > 0) || a.Valid && math.Abs(a.N-total/float64(len(values))) > 1e-9*math.Abs(a.N) {
			t.Errorf("average of %s: %v, of %v", m.name, a, values)
		}
		if q.Distribution {
			checkHistogram(t, m.name, m.points, kept, m.measure)
			continue
		}
		checkSeries(t, m.name, q.Series, m.points, func(start, end storage.Timestamp) []storage.Amount { return begun(kept, start, end, m.measure) })
	}
	if q.Distribution {
		return
	}
	counted := 0.0
	for _, p := range got.SessionCount {
		inside := begun(groups, at(p.RangeStart), at(p.RangeEnd), cost)
		if p.Value.N != float64(len(inside)) {
			t.Errorf("%v sessions from %s, want %d", p.Value.N, p.RangeStart, len(inside))
		}
		counted += p.Value.N
	}
	if counted != float64(len(groups)) {
		t.Errorf("%v sessions in all buckets, want %d", counted, len(groups))
	}
}

// begun are the measures of the groups that began in a bucket.
func begun(groups []*group, start, end storage.Timestamp, measure func(*group) storage.Amount) (amounts []storage.Amount) {
	for _, g := range groups {
		if first, _ := g.span(); start <= first && first < end {
			amounts = append(amounts, measure(g))
		}
	}
	return amounts
}
