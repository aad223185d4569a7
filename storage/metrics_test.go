package storage_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/google/uuid"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// Sums add what is known, unknown is never 0, and attempts only cost.
func TestMetrics(t *testing.T) {
	records := []*storage.Record{
		asked("2026-11-20T10:00:00Z", func(r *storage.Record) { r.Model = "a" }),
		asked("2026-11-20T10:00:30Z", func(r *storage.Record) { r.Model = "a" }, limited, lasting(500)),
		asked("2026-11-20T10:02:00Z", func(r *storage.Record) { r.Model = "b" }, unknown),
		asked("2026-11-20T10:02:00Z", func(r *storage.Record) { r.Model = "b" }, failed),
		asked("2026-11-20T10:02:10Z", func(r *storage.Record) { r.EndState = storage.ClientAborted }, lasting(700)),
		asked("2026-11-20T09:58:00Z"),
	}
	q := &storage.MetricsQuery{
		Org: "acme", Filter: storage.All{}, Window: between("2026-11-20T10:00:00Z", "2026-11-20T10:02:59.999Z"),
		By: storage.Dimension{Name: "model"}, Bucket: storage.BucketAuto, Compare: true, Limit: 1,
	}
	got, err := q.Answer(t.Context(), groups(records))
	const nothing = `"requests":0,"errors":0,"cost":null,"requests_without_cost":0,"prompt_tokens":null,"completion_tokens":null,"total_tokens":null,
		"prompt_cache_read_tokens":null,"prompt_cache_write_tokens":null,"reasoning_tokens":null,"cache_savings":null,"cache_loss":null,"answer_cache_hits":0,"saved_cost":null,"routing_savings":null,
		"latency":{"p50":null,"p95":null,"p99":null},"time_to_first_token":{"p50":null,"p95":null,"p99":null}}`
	sums := func(requests, errors, cost, without, input, output, total, p50, p95, p99 string) string {
		return `"requests":` + requests + `,"errors":` + errors + `,"cost":` + cost + `,"requests_without_cost":` + without +
			`,"prompt_tokens":` + input + `,"completion_tokens":` + output + `,"total_tokens":` + total +
			`,"prompt_cache_read_tokens":null,"prompt_cache_write_tokens":null,"reasoning_tokens":null,"cache_savings":null,"cache_loss":null,"answer_cache_hits":0,"saved_cost":null,"routing_savings":null,
			"latency":{"p50":` + p50 + `,"p95":` + p95 + `,"p99":` + p99 + `},"time_to_first_token":{"p50":null,"p95":null,"p99":null}}`
	}
	range1, range2, range3 := `"range_start":"2026-11-20T10:00:00.000Z","range_end":"2026-11-20T10:01:00.000Z",`,
		`"range_start":"2026-11-20T10:01:00.000Z","range_end":"2026-11-20T10:02:00.000Z",`,
		`"range_start":"2026-11-20T10:02:00.000Z","range_end":"2026-11-20T10:03:00.000Z",`
	ofA := sums("2", "1", "0.002", "0", "100", "20", "120", "1000", "1450", "1490")
	others := sums("2", "1", "0.004", "1", "100", "20", "120", "700", "700", "700")
	all := sums("4", "2", "0.006", "1", "200", "40", "240", "700", "1420", "1484")
	answers(t, "metrics", got, err, `{"bucket":"1m","totals":{`+all+`,
		"points":[{`+range1+ofA+`,{`+range2+nothing+`,{`+range3+others+`],
		"previous":{`+sums("1", "0", "0.002", "0", "100", "20", "120", "1500", "1500", "1500")+`,
		"groups":[{"key":"a","totals":{`+ofA+`,"points":[{`+range1+ofA+`,{`+range2+nothing+`,{`+range3+nothing+`]},
		{"key":null,"others":2,"totals":{`+others+`,"points":[{`+range1+nothing+`,{`+range2+nothing+`,{`+range3+others+`]}]}`)
}

func TestMetricsOfNothing(t *testing.T) {
	for _, width := range storage.BucketWidths {
		q := &storage.MetricsQuery{Org: "acme", Filter: storage.All{}, Window: storage.Always, Bucket: width, Compare: true, Limit: 1}
		got, err := q.Answer(t.Context(), groups(nil))
		if err != nil || got.Bucket != storage.BucketNone || got.Previous != nil || got.Totals.Cost.Valid || len(got.Groups) != 0 || len(got.Points) != 0 {
			t.Errorf("%s: %+v, %v", width, got, err)
		}
	}
}

func TestTooManyPointsAreRefused(t *testing.T) {
	q := &storage.MetricsQuery{Filter: storage.All{}, Window: between("2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z"), Bucket: "1m", Limit: 1}
	var wrong *storage.FilterError
	if _, err := q.Answer(t.Context(), groups(nil)); !errors.As(err, &wrong) || wrong.Path != "bucket" {
		t.Errorf("a day by minutes: %v", err)
	}
	q.Bucket = storage.BucketAuto
	if got, err := q.Answer(t.Context(), groups(nil)); err != nil || got.Bucket != "5m" || len(got.Points) != 289 {
		t.Errorf("a day: %+v, %v", got, err)
	}
}

// What a chart shows are the sums over the records that a list with its filter has,
// and its parts add up to the whole.
func TestMetricsAreSumsOverRecords(t *testing.T) {
	model := func(r *storage.Record) string { return r.Model }
	property := func(r *storage.Record) string { return r.Properties["Env"] }
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 3))
		records, contents := storagetest.Records(r, 300)
		rows := storage.Records{All: records, Content: contents.Of}
		for range 40 {
			q := storagetest.MetricsQuery(r, records)
			value := model
			if q.By = (storage.Dimension{Name: "model"}); r.IntN(2) == 0 {
				q.By, value = storage.Dimension{Name: storage.ByProperty, Property: "Env"}, property
			}
			o := &oracle{org: q.Org, records: records, contents: contents}
			var listed []*storage.Record
			for _, rec := range records {
				if rec.Org == q.Org && q.Window.Contains(rec.CreatedAt) && o.match(q.Filter, rec) {
					listed = append(listed, rec)
				}
			}
			got, err := q.Answer(t.Context(), rows)
			if err != nil {
				t.Fatal(err)
			}
			check := func(what string, totals storage.MetricTotals, points []storage.MetricPoint, of []*storage.Record) {
				checkTotals(t, what, totals, of)
				for _, p := range points {
					checkTotals(t, "a point of "+what, p.MetricTotals, slices.DeleteFunc(slices.Clone(of), func(r *storage.Record) bool {
						return r.CreatedAt < p.RangeStart || r.CreatedAt >= p.RangeEnd
					}))
				}
			}
			check("all", got.Totals, got.Points, listed)
			var named []string
			for _, g := range got.Groups {
				if g.Key != nil {
					named = append(named, *g.Key)
				}
			}
			for _, g := range got.Groups {
				check("a group", g.Totals, g.Points, slices.DeleteFunc(slices.Clone(listed), func(r *storage.Record) bool {
					if g.Key == nil {
						return slices.Contains(named, value(r))
					}
					return value(r) != *g.Key
				}))
			}
			if t.Failed() {
				t.Fatalf("seed %d: %+v", seed, q)
			}
		}
	}
}

// Whatever total the groups are sorted by, pages hold all of them in its order, and the
// groups of each answer add up to the whole.
func TestPagesOfGroupsByAnyTotal(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 3))
	records, contents := storagetest.Records(r, 400)
	rows := storage.Records{All: records, Content: contents.Of}
	for _, key := range storage.TotalKeys() {
		for _, desc := range []bool{true, false} {
			q := &storage.MetricsQuery{
				Org: records[0].Org, Filter: storage.All{}, Window: storage.Always, Bucket: storage.BucketNone,
				By: storage.Dimension{Name: storage.ByUser}, Limit: 1000,
			}
			all, err := q.Answer(t.Context(), rows)
			if err != nil {
				t.Fatal(err)
			}
			total := func(g storage.MetricGroup) gjson.Result {
				encoded, _ := json.Marshal(g.Totals)
				return gjson.GetBytes(encoded, string(key))
			}
			want := slices.Clone(all.Groups)
			slices.SortFunc(want, func(a, b storage.MetricGroup) int {
				x, y := total(a), total(b)
				switch xNull, yNull := x.Type == gjson.Null, y.Type == gjson.Null; {
				case xNull != yNull && xNull:
					return 1
				case xNull != yNull:
					return -1
				case desc:
					x, y = y, x
				}
				return cmp.Or(cmp.Compare(x.Float(), y.Float()), cmp.Compare(*a.Key, *b.Key))
			})
			q.Sort, q.Limit = storage.GroupSort{Key: key, Desc: desc}, 3
			var got []storage.MetricGroup
			for {
				page, err := q.Answer(t.Context(), rows)
				if err != nil {
					t.Fatal(err)
				}
				var requests int64
				for _, g := range page.Groups {
					requests += g.Totals.Requests
				}
				if requests != page.Totals.Requests {
					t.Fatalf("sorted by %s, the groups of a page have %d requests of %d", key, requests, page.Totals.Requests)
				}
				named := page.Named()
				if got = append(got, named...); len(named) < q.Limit {
					break
				}
				if err := q.ContinueAfter(q.Cursor(&named[len(named)-1]).String()); err != nil {
					t.Fatal(err)
				}
			}
			keys := func(groups []storage.MetricGroup) (keys []string) {
				for _, g := range groups {
					keys = append(keys, *g.Key)
				}
				return keys
			}
			if !slices.Equal(keys(got), keys(want)) {
				t.Errorf("sorted by %s (descending: %v):\ngot  %q\nwant %q", key, desc, keys(got), keys(want))
			}
		}
	}
}

func checkTotals(t *testing.T, what string, got storage.MetricTotals, of []*storage.Record) {
	t.Helper()
	g := group{records: of}
	answering := g.answering()
	want := storage.MetricTotals{Requests: int64(len(answering))}
	want.Cost, want.RequestsWithoutCost = g.cost()
	want.PromptTokens, _ = sum(answering, func(r *storage.Record) plugins.Count { return r.Usage.Input })
	want.CompletionTokens, _ = sum(answering, func(r *storage.Record) plugins.Count { return r.Usage.Output })
	want.TotalTokens = want.PromptTokens.Plus(want.CompletionTokens)
	want.PromptCacheReadTokens, _ = sum(answering, func(r *storage.Record) plugins.Count { return r.Usage.CacheRead })
	want.PromptCacheWriteTokens, _ = sum(answering, func(r *storage.Record) plugins.Count { return r.Usage.CacheWrite })
	want.ReasoningTokens, _ = sum(answering, func(r *storage.Record) plugins.Count { return r.Usage.Reasoning })
	for _, r := range answering {
		if r.Status.N >= 400 || r.EndState != storage.Complete {
			want.Errors++
		}
		want.CacheSavings = want.CacheSavings.Plus(r.CacheSavings)
		want.CacheLoss = want.CacheLoss.Plus(r.CacheLoss)
		if r.CacheReferenceID != uuid.Nil {
			want.AnswerCacheHits++
		}
		want.SavedCost, want.RoutingSavings = want.SavedCost.Plus(r.SavedCost), want.RoutingSavings.Plus(r.RoutingSavings)
	}
	want.Latency, want.TimeToFirstToken = got.Latency, got.TimeToFirstToken // compared below
	if got != want {
		t.Errorf("%s: %+v, want %+v", what, got, want)
	}
	checkPercentiles(t, what, got.Latency, answering, func(r *storage.Record) plugins.Duration { return r.Latency })
	checkPercentiles(t, what, got.TimeToFirstToken, answering, func(r *storage.Record) plugins.Duration { return r.TimeToFirstToken })
}

func checkPercentiles(t *testing.T, what string, got storage.Percentiles, of []*storage.Record, duration func(*storage.Record) plugins.Duration) {
	t.Helper()
	var values []float64
	for _, r := range of {
		if d := duration(r); d.Valid {
			values = append(values, float64(d.N))
		}
	}
	for p, q := range map[float64]storage.Amount{0.5: got.P50, 0.95: got.P95, 0.99: got.P99} {
		if q.Valid != (len(values) > 0) {
			t.Errorf("%s: p%g of %d values is %v", what, 100*p, len(values), q)
		} else if q.Valid && math.Abs(q.N-interpolated(values, p)) > 1e-9*q.N {
			t.Errorf("%s: p%g = %v, want %v", what, 100*p, q.N, interpolated(values, p))
		}
	}
}

func TestFacets(t *testing.T) {
	var records []*storage.Record
	for i := range 25 { // 25 models, of which the last is asked most often
		for range i + 1 {
			records = append(records, asked("2026-11-20T10:00:00Z", func(r *storage.Record) { r.Model = string(rune('a' + i)) }))
		}
	}
	records = append(records, asked("2026-11-20T10:00:00Z", failed, func(r *storage.Record) { r.Properties = map[string]string{"Env": "test", "Team": "x"} }))
	q := &storage.FacetQuery{Org: "acme", Filter: storage.All{}, Window: storage.Always, Fields: []storage.Dimension{
		{Name: "model"}, {Name: storage.ByProperty, Property: "Env"}, {Name: storage.ByPropertyName}, {Name: "status"}, {Name: "stream"},
	}}
	got, err := q.Answer(t.Context(), groups(records))
	if err != nil {
		t.Fatal(err)
	}
	models := got.Fields[0]
	if got.Count != 326 || len(models.Values) != 20 || models.Values[0] != (storage.FacetValue{Value: "y", Count: 25}) ||
		models.Values[19] != (storage.FacetValue{Value: "f", Count: 6}) || models.Others != 1+2+3+4+5+1 {
		t.Errorf("models: %+v", got)
	}
	answers(t, "facets", got.Fields[1:], nil, `[{"field":"property:Env","values":[{"value":"","count":325},{"value":"test","count":1}],"others":0},
		{"field":"property_key","values":[{"value":"Env","count":1},{"value":"Team","count":1}],"others":0},
		{"field":"status","values":[{"value":"200","count":326}],"others":0},
		{"field":"stream","values":[{"value":"false","count":326}],"others":0}]`)
}

func TestParseDimension(t *testing.T) {
	for _, name := range append(slices.Clone(storage.Dimensions), "property:Feature", "property:property:x") {
		if d, err := storage.ParseDimension(string(name)); err != nil || d.String() != string(name) {
			t.Errorf("%s is %v, %v", name, d, err)
		}
	}
	for _, test := range []struct{ name, want string }{
		{"modell", `unknown field "modell" (did you mean "model"?)`},
		{"property:", `unknown field "property:" (did you mean "property_key"?)`},
	} {
		if _, err := storage.ParseDimension(test.name); err == nil || err.Error() != test.want {
			t.Errorf("%s: %v, want %s", test.name, err, test.want)
		}
	}
}
