package llmquery_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/storage"
)

var bodies = flag.Int("bodies", 200, "how many generated bodies TestOracle sends")

// TestOracle sends generated bodies to every query endpoint, and compares the
// answers with what the reference evaluator makes of the same records.
func TestOracle(t *testing.T) {
	const perSite = 250
	for seed := range (*bodies + perSite - 1) / perSite {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			o := newOracle(t, uint64(seed))
			for range min(perSite, *bodies) {
				o.ask()
			}
		})
	}
}

// oracle knows what the site should answer to the organisation acme.
type oracle struct {
	*site
	random   *rand.Rand
	records  []*storage.Record
	later    []*storage.Record // which are written while pages are read
	contents storagetest.Contents
}

func newOracle(t *testing.T, seed uint64) *oracle {
	o := &oracle{site: newSite(t), random: rand.New(rand.NewPCG(seed, 7))}
	const first, all = 200, 260
	records, contents := storagetest.Records(o.random, all)
	o.later, o.contents = records[first:], contents
	o.write(records[:first])
	return o
}

// write writes records.
func (o *oracle) write(records []*storage.Record) {
	o.t.Helper()
	batch := storagetest.Batch(records, storage.Position{})
	j := o.journal("default")
	for i, r := range batch.Records {
		written := *r
		if err := j.Append(&written, storagetest.Kept(&written, o.contents.Of(records[i]))); err != nil {
			o.t.Fatal(err)
		}
	}
	for _, f := range batch.Annotations {
		if err := j.AppendAnnotation(f); err != nil {
			o.t.Fatal(err)
		}
	}
	if err := j.Flush(o.t.Context()); err != nil {
		o.t.Fatal(err)
	}
	o.records = append(o.records, records...)
}

// fields are members of a JSON object, in their order.
type fields []string

func (f *fields) add(name string, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	*f = append(*f, fmt.Sprintf("%q:%s", name, text))
}

func (f *fields) filter(name string, filter storage.Filter) {
	*f = append(*f, fmt.Sprintf("%q:%s", name, storage.AppendJSON(nil, filter)))
}

func (f *fields) page(offset, limit int) {
	f.add("offset", offset)
	f.add("limit", limit)
}

func (f *fields) window(start, end string, w storage.Window, unit storage.Timestamp) {
	var times fields
	if w.From != storage.Always.From {
		times.add(start, int64(w.From/unit))
	}
	if w.To != storage.Always.To {
		times.add(end, int64(w.To/unit))
	}
	*f = append(*f, `"timeFilter":`+times.String())
}

func (f *fields) series(s storage.Series) {
	names := map[storage.Quantile]string{500: "p50", 750: "p75", 950: "p95", 990: "p99", 999: "p99.9"}
	f.add("pSize", names[s.Quantile])
	f.add("useInterquartile", s.Interquartile)
	f.add("distribution", s.Distribution)
}

func (f *fields) zone(difference string, z storage.Zone) {
	if z.Named() {
		difference = "timezone"
	}
	f.add(difference, z)
}

func (f fields) String() string { return "{" + strings.Join(f, ",") + "}" }

// ask sends one body to an endpoint by chance.
func (o *oracle) ask() {
	const org = "acme"
	reference := storage.Records{All: o.records, Content: o.contents.Of}
	var f fields
	switch o.random.IntN(12) {
	case 11:
		o.export()
	case 10:
		o.pages()
	case 9:
		o.tree()
	case 8:
		q := storagetest.FacetQuery(o.random, o.records)
		q.Org = org
		f.filter("filter", q.Filter)
		f.window("startTimeUnixMs", "endTimeUnixMs", q.Window, 1)
		var names []string
		for _, d := range q.Fields {
			names = append(names, d.String())
		}
		f.add("fields", names)
		want, err := q.Answer(o.t.Context(), reference)
		o.same("/v1/facets/query", f, want, err)
	case 7:
		q := storagetest.MetricsQuery(o.random, o.records)
		q.Org = org
		f.filter("filter", q.Filter)
		f.window("startTimeUnixMs", "endTimeUnixMs", q.Window, 1)
		f.zone("timezoneDifference", q.Zone)
		if q.By != (storage.Dimension{}) {
			f.add("groupBy", q.By.String())
		}
		f.add("bucket", q.Bucket)
		f.add("compare", q.Compare)
		f.add("limit", q.Limit)
		if name, percentile, ok := strings.Cut(string(q.Sort.Key), "."); ok {
			f.add("sort", map[string]any{name: map[string]any{percentile: direction(q.Sort.Desc)}})
		} else if name != "" {
			f.add("sort", map[string]any{name: direction(q.Sort.Desc)})
		}
		want, err := q.Answer(o.t.Context(), reference)
		o.same("/v1/metrics/query", f, want, err)
	case 0:
		q := storagetest.UserQuery(o.random, o.records)
		q.Org = org
		q.Window = storage.Window{From: seconds(q.Window.From), To: seconds(q.Window.To)}
		f.filter("filter", q.Filter)
		f.window("startTimeUnixSeconds", "endTimeUnixSeconds", q.Window, 1000)
		f.zone("timeZoneDifferenceMinutes", q.Zone)
		f.page(q.Offset, q.Limit)
		var sort fields
		for _, s := range distinct(q.Sort, func(s storage.UserSort) string { return string(s.Key) }) {
			sort.add(string(s.Key), direction(s.Desc))
		}
		q.Sort = distinct(q.Sort, func(s storage.UserSort) string { return string(s.Key) })
		f = append(f, `"sort":`+sort.String())
		want, err := q.Answer(o.t.Context(), reference)
		o.same("/v1/user/metrics/query", f, want, err)
	case 1:
		q := storagetest.UserOverviewQuery(o.random, o.records)
		q.Org = org
		f.filter("filter", q.Filter)
		f.window("startTimeUnixMs", "endTimeUnixMs", q.Window, 1)
		f.zone("timezoneDifference", q.Zone)
		f.series(q.Series)
		want, err := q.Answer(o.t.Context(), reference)
		o.same("/v1/user/metrics-overview/query", f, want, err)
	case 2:
		q := storagetest.SessionQuery(o.random, o.records)
		q.Org = org
		f.filter("filter", q.Filter)
		f.window("startTimeUnixMs", "endTimeUnixMs", q.Window, 1)
		f.add("search", q.Search)
		f.add("derived", q.Derived)
		f.add("nameEquals", q.NameEquals)
		f.page(q.Offset, q.Limit)
		q.Sort = distinct(q.Sort, func(s storage.SessionSort) string { return string(s.Key) })
		var sort fields
		for _, s := range q.Sort {
			sort.add(string(s.Key), direction(s.Desc))
		}
		f = append(f, `"sort":`+sort.String())
		want, err := q.Answer(o.t.Context(), reference)
		o.same("/v1/session/query", f, want, err)
	case 3:
		q := storagetest.SessionMetricsQuery(o.random, o.records)
		q.Org = org
		f.filter("filter", q.Filter)
		f.window("startTimeUnixMs", "endTimeUnixMs", q.Window, 1)
		f.zone("timezoneDifference", q.Zone)
		f.add("derived", q.Derived)
		f.add("nameContains", q.NameContains)
		f.series(q.Series)
		want, err := q.Answer(o.t.Context(), reference)
		o.same("/v1/session/metrics/query", f, want, err)
	case 4:
		q := storagetest.ScoreQuery(o.random, o.records)
		q.Org = org
		f.filter("userFilter", q.Filter)
		var times fields
		if q.Window.From != storage.Always.From {
			times.add("start", q.Window.From)
		}
		if q.Window.To != storage.Always.To {
			times.add("end", q.Window.To)
		}
		f = append(f, `"timeFilter":`+times.String())
		f.zone("timeZoneDifference", q.Zone)
		f.add("dbIncrement", q.Increment)
		want, err := q.Answer(o.t.Context(), reference)
		o.same("/v1/dashboard/scores/query", f, want, err)
	case 5:
		o.requests(legacy, org, storage.RequestResponse, storage.RequestGroup, storage.ResponseGroup,
			storage.FeedbackGroup, storage.PropertiesGroup, storage.ValuesGroup)
	case 6:
		o.requests(bulk, org, storage.RequestResponse)
	}
}

func (o *oracle) requests(path, org string, groups ...storage.Group) {
	o.t.Helper()
	q := storagetest.Query(o.random, o.records)
	q.Org, q.Random = org, false
	q.Sort = distinct(q.Sort, func(s storage.Sort) string { return string(s.Key) })
	var f, sort fields
	for _, s := range q.Sort {
		if s.Key.Named() {
			sort.add(string(s.Key), map[string]string{s.Name: direction(s.Desc)})
		} else {
			sort.add(string(s.Key), direction(s.Desc))
		}
	}
	f.filter("filter", q.Filter)
	f = append(f, `"sort":`+sort.String())
	f.page(q.Offset, q.Limit)
	f.add("isCached", q.Cached)
	f.add("isScored", q.Scored)
	f.add("isPartOfExperiment", q.Experiment)

	want := []string{}
	foreign := false
	for group := range storage.Groups(q.Filter) {
		foreign = foreign || !slices.Contains(groups, group)
	}
	if !foreign {
		for _, r := range storage.Evaluate(q, o.records, o.contents.Of) {
			want = append(want, r.ID.String())
		}
	}
	response, answer := o.do("POST", path, org, f.String())
	got := []string{}
	for _, id := range answer.Get("data.#.request_id").Array() {
		got = append(got, id.Str)
	}
	if response.StatusCode != 200 || !slices.Equal(got, want) {
		o.t.Errorf("%s %s\nanswers %d %v %s\nwant %v", path, f, response.StatusCode, got, answer.Get("error"), want)
	}
}

// same compares the whole data of an answer.
func (o *oracle) same(path string, f fields, want any, err error) {
	o.t.Helper()
	if err != nil {
		o.t.Fatal(err)
	}
	text, err := json.Marshal(want)
	if err != nil {
		o.t.Fatal(err)
	}
	response, answer := o.do("POST", path, "acme", f.String())
	if response.StatusCode != 200 || answer.Get("data").Raw != string(text) {
		o.t.Errorf("%s %s\nanswers %d %.2000s\nwant %.2000s", path, f, response.StatusCode, answer.Raw, text)
	}
}

// seconds cuts a bound to what the endpoint of users can be told.
func seconds(t storage.Timestamp) storage.Timestamp {
	if t == storage.Always.From || t == storage.Always.To {
		return t
	}
	return t / 1000 * 1000
}

// distinct keeps the first of each sort key: JSON has no second.
func distinct[S any](sorts []S, key func(S) string) []S {
	seen := make(map[string]bool)
	return slices.DeleteFunc(slices.Clone(sorts), func(s S) bool {
		again := seen[key(s)]
		seen[key(s)] = true
		return again
	})
}

func direction(desc bool) string {
	if desc {
		return "desc"
	}
	return "asc"
}
