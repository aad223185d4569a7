package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
)

// month is the month of the tests.
var month = Window{mustDay("2026-10-01"), mustDay("2026-11-01")}

func mustDay(text string) Day {
	d, err := ParseDay(text)
	if err != nil {
		panic(err)
	}
	return d
}

// billedCall is a call as a provider bills it.
type billedCall struct {
	Call
	key string
}

// traffic is a month of calls, with some of the days before and after.
func traffic(provider string) (calls []Call) {
	random := rand.New(rand.NewPCG(1, 2))
	models := map[string][]string{
		"openai": {"gpt-4o-mini-2024-07-18", "gpt-5-2025-08-07"}, "anthropic": {"claude-haiku-4-5-20251001", "claude-sonnet-4-20250514"},
		"openrouter": {"openai/gpt-4o-mini", "anthropic/claude-sonnet-4"}, "bedrock": {"amazon.nova-lite-v1:0", "anthropic.claude-sonnet-4-5-20250929-v1:0"},
		"vertex": {"gemini-2.5-flash", "claude-sonnet-4-5@20250929"},
	}[provider]
	for day := month.From - padding; day < month.To+padding; day++ {
		for i := range 24 {
			at := day.Time().Add(time.Duration(i)*time.Hour + time.Duration(random.IntN(50))*time.Minute)
			u := plugins.Usage{
				Input: plugins.Known(1000 + random.Int64N(1000)), Output: plugins.Known(500 + random.Int64N(100)), CacheRead: plugins.Known(random.Int64N(500)),
				Reasoning: plugins.Known(1 + random.Int64N(99)),
			}
			if provider != "openrouter" && strings.Contains(models[i%2], "claude") {
				u.CacheWrite = plugins.Known(random.Int64N(400))
				u.CacheWrite1h = plugins.Known(0)
			}
			id := fmt.Sprint(provider, day, i)
			if provider == "bedrock" && i%2 == 0 { // Converse gives its answers no id
				id = ""
			}
			calls = append(calls, priced(Call{
				Start: at, End: at.Add(time.Minute), Provider: provider, Model: models[i%2], Name: models[i%2], Tier: "default",
				ResponseID: id, Status: 200, Complete: true, Usage: u,
			}))
		}
	}
	return calls
}

func priced(c Call) Call {
	c.Cost = catalog.Default().Cost(c.Provider, c.Model, c.Usage, catalog.Conditions{At: c.Start, Tier: c.Tier})
	if !c.Cost.Valid {
		panic(fmt.Sprintf("no price of %s in %q", c.Model, c.Tier))
	}
	return c
}

// vendor plays the APIs of a provider over calls.
type vendor struct {
	provider string
	calls    []billedCall
	// rate is by what costs are multiplied, and decimals what they are rounded to.
	rate     float64
	decimals int
	// decision is the id of the response that is of Decisions, whose usage OpenAI states apart.
	decision string
	// byDay leaves out what the costs are of.
	byDay bool
	// zone is the time zone of the bill's days, in hours. clocks change it by an hour from changed on.
	zone, clocks int
	changed      time.Time
	// hides is the status that the provider answers to questions for single calls, 0 if it states them.
	hides int
	// lines are further lines of the costs.
	lines map[string]float64
}

func (v *vendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer admin" && r.Header.Get("X-Api-Key") != "admin" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if v.provider == "openrouter" {
		v.openRouter(w, r)
		return
	}
	results := make(map[Day][]any)
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/completions"), strings.HasSuffix(path, "/usage_report/messages"):
		v.usage(results, false)
	case strings.HasSuffix(path, "/decisions"):
		v.usage(results, true)
	case strings.HasSuffix(path, "/costs"), strings.HasSuffix(path, "/cost_report"):
		v.costs(results)
	}
	days := slices.Sorted(maps.Keys(results))
	first := slices.Index(days, mustDayOr(r.URL.Query().Get("page"), days))
	first = max(first, 0)
	last := min(first+20, len(days)) // several pages
	var data []any
	for _, d := range days[first:last] {
		data = append(data, map[string]any{
			"start_time": d.Time().Unix(), "starting_at": d.Time().Format(time.RFC3339), "results": results[d],
		})
	}
	page := map[string]any{"data": data, "has_more": last < len(days), "next_page": nil}
	if data == nil {
		page["data"] = []any{}
	}
	if last < len(days) {
		page["next_page"] = days[last].String()
	}
	json.NewEncoder(w).Encode(page)
}

func mustDayOr(text string, days []Day) Day {
	if text == "" {
		return append(days, 0)[0]
	}
	return mustDay(text)
}

func (v *vendor) day(c *billedCall) Day {
	zone := v.zone
	if !c.Start.Before(v.changed) {
		zone += v.clocks
	}
	return DayOf(c.Start.Add(time.Duration(zone) * time.Hour))
}

func (v *vendor) usage(results map[Day][]any, decisions bool) {
	type key struct {
		day              Day
		model, tier, key string
	}
	sums := make(map[key]count)
	for _, c := range v.calls {
		if (v.decision != "" && c.ResponseID == v.decision) != decisions {
			continue
		}
		k := key{v.day(&c), c.Model, c.Tier, c.key}
		states := [kinds]bool{true, true, true, v.provider == "anthropic", true}
		sums[k] = sums[k].plus(count{1, tokensOf(c.Usage, states)})
	}
	for k, n := range sums {
		t := n.tokens
		result := map[string]any{"model": k.model, "api_key_id": k.key, "service_tier": k.tier, "output_tokens": t[Output]}
		if v.provider == "openai" {
			result["input_tokens"] = t[Input] + t[CacheRead] + t[CacheWrite]
			result["input_cached_tokens"], result["input_cache_write_tokens"] = t[CacheRead], t[CacheWrite]
			result["num_model_requests"] = n.requests
			result["batch"] = k.tier == plugins.BatchTier
		} else {
			result["uncached_input_tokens"], result["cache_read_input_tokens"] = t[Input], t[CacheRead]
			result["cache_creation"] = map[string]any{"ephemeral_5m_input_tokens": t[CacheWrite], "ephemeral_1h_input_tokens": t[CacheWrite1h]}
		}
		results[k.day] = append(results[k.day], result)
	}
}

func (v *vendor) costs(results map[Day][]any) {
	sums := make(map[Day]map[string]plugins.Nanodollars)
	for _, c := range v.calls {
		d := v.day(&c)
		if sums[d] == nil {
			sums[d] = make(map[string]plugins.Nanodollars)
		}
		if c.Usage.WebSearches.N > 0 {
			rest := priced(with(c.Call, func(c *Call) { c.Usage.WebSearches = plugins.Count{} }))
			results[d] = append(results[d], map[string]any{
				"amount": strconv.FormatFloat((c.Cost.N-rest.Cost.N).Dollars()*100, 'f', 7, 64), "currency": "USD", "cost_type": "web_search", "description": "Web Search Usage",
			})
			c.Cost = rest.Cost
		}
		sums[d][c.Model] += c.Cost.N
	}
	for d, models := range sums {
		if v.byDay {
			var sum plugins.Nanodollars
			for _, n := range models {
				sum += n
			}
			models = map[string]plugins.Nanodollars{"": sum}
		}
		for model, n := range models {
			dollars := n.Dollars() * v.rate
			if v.provider == "openai" {
				value := json.Number(strconv.FormatFloat(dollars, 'f', v.decimals, 64))
				results[d] = append(results[d], map[string]any{"amount": map[string]any{"value": value, "currency": "usd"}, "line_item": lineItem(model)})
			} else {
				results[d] = append(results[d], map[string]any{
					"amount": strconv.FormatFloat(dollars*100, 'f', v.decimals-2, 64), "currency": "USD", "model": model, "cost_type": "tokens", "description": model,
				})
			}
		}
	}
	for item, dollars := range v.lines {
		results[month.From] = append(results[month.From], map[string]any{"amount": map[string]any{"value": dollars, "currency": "usd"}, "line_item": item})
	}
}

func lineItem(model string) any {
	if model == "" {
		return nil
	}
	return model + ", all"
}

// scene is what is recorded and what is billed.
type scene struct {
	recorded []Call
	vendor   vendor
	options  Options
}

func newScene(provider string) *scene {
	s := &scene{recorded: traffic(provider), vendor: vendor{provider: provider, rate: 1, decimals: 9}, options: Options{Window: month}}
	for _, c := range s.recorded {
		s.vendor.calls = append(s.vendor.calls, billedCall{c, "key_weir"})
	}
	return s
}

func (s *scene) compare(t *testing.T) *Report {
	t.Helper()
	server := httptest.NewServer(&s.vendor)
	defer server.Close()
	source := Source{Provider: s.vendor.provider, API: API{URL: server.URL, Key: "admin"}}
	if export := exports[s.vendor.provider]; export.provider != "" {
		path := filepath.Join(t.TempDir(), "bill")
		if err := os.WriteFile(path, []byte(export.write(&s.vendor)), 0o600); err != nil {
			t.Fatal(err)
		}
		source = Source{Provider: export.provider, Files: []string{path}}
	}
	bill, err := source.Read(context.Background(), month)
	if source.Provider == "openrouter" { // which has no month by now
		bill, err = source.API.OpenRouter(context.Background(), month)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s.compareWith(t, bill)
}

// compareWith compares what the scene has recorded with a bill.
func (s *scene) compareWith(t *testing.T, bill *Bill) *Report {
	t.Helper()
	records := NewRecords(catalog.Default(), bill, false)
	slices.SortStableFunc(s.recorded, func(a, b Call) int { return a.Start.Compare(b.Start) })
	for _, c := range s.recorded {
		records.Add(&c)
	}
	report, err := Compare(t.Context(), bill, records, s.options)
	if err != nil {
		t.Fatal(err)
	}
	checkSums(t, report)
	return report
}

// checkSums checks that what was billed is what was recorded and the differences.
func checkSums(t *testing.T, r *Report) {
	t.Helper()
	type sum struct {
		tokens int64
		cost   plugins.Nanodollars
	}
	tokens, cost := r.Recorded.Tokens.Total, r.Recorded.Cost.N+r.Rounding.N
	explained, costsByDay := make(map[modelDay]sum), false
	for _, d := range r.Differences {
		tokens += d.Tokens.Total
		cost += d.Cost.N
		of := explained[modelDay{d.Day, d.Model}]
		explained[modelDay{d.Day, d.Model}] = sum{of.tokens + d.Tokens.Total, of.cost + d.Cost.N}
	}
	var lines sum
	for _, l := range r.Lines {
		costsByDay = costsByDay || l.Model == ""
	}
	for _, l := range r.Lines {
		d := explained[modelDay{l.Day, l.Model}]
		if l.Recorded.Tokens.Total+d.tokens != l.Billed.Tokens.Total || !costsByDay && l.Recorded.Cost.N+d.cost+l.Rounding.N != l.Billed.Cost.N {
			t.Errorf("%s %s: %+v recorded, %+v explained, %s rounding, %+v billed", l.Day, l.Model, l.Recorded, d, l.Rounding.N, l.Billed)
		}
		lines = sum{lines.tokens + l.Billed.Tokens.Total, lines.cost + l.Billed.Cost.N}
	}
	if lines != (sum{r.Billed.Tokens.Total, r.Billed.Cost.N}) {
		t.Errorf("the lines are %+v, billed are %d and %s", lines, r.Billed.Tokens.Total, r.Billed.Cost.N)
	}
	if tokens != r.Billed.Tokens.Total || cost != r.Billed.Cost.N {
		t.Errorf("recorded and differences are %d tokens and %s, billed are %d and %s", tokens, cost, r.Billed.Tokens.Total, r.Billed.Cost.N)
	}
}

// on returns the index of the nth call of a day of October.
func (s *scene) on(day, n int) int {
	i := slices.IndexFunc(s.recorded, func(c Call) bool { return DayOf(c.Start) == month.From+Day(day-1) })
	return i + n
}

// furtherPlants are differences that the table of plants does not have.
var furtherPlants = map[string]struct {
	provider string
	plant    func(s *scene)
	// want are the differences, as reason and days of October.
	want []string
	// listed is in what cannot be compared.
	listed string
}{
	"a key that is not named": {"openai", func(s *scene) {
		s.vendor.calls = append(s.vendor.calls, billedCall{s.recorded[s.on(3, 2)], "key_other"})
		s.options.Keys = map[string]string{"key_weir": ""}
	}, []string{"outside 3"}, ""},
	"a batch that ends after the month": {"openai", func(s *scene) {
		c := priced(with(s.recorded[s.on(31, 0)], func(c *Call) { c.Tier, c.ResponseID = plugins.BatchTier, "late" }))
		s.recorded = append(s.recorded, c)
		c.Start = c.Start.AddDate(0, 0, 1)
		s.vendor.calls = append(s.vendor.calls, billedCall{c, "key_weir"})
	}, []string{"timing 31"}, ""},
	"a stream without a usage": {"anthropic", func(s *scene) {
		c := &s.recorded[s.on(22, 4)]
		c.Usage, c.Cost, c.Tier = plugins.Usage{}, plugins.Cost{}, ""
	}, []string{"no_usage 22"}, ""},
	"a credit":   {"openai", func(s *scene) { s.vendor.lines = map[string]float64{"promotional credit": -5} }, nil, "promotional credit"},
	"a decision": {"openai", func(s *scene) { s.vendor.decision = s.recorded[s.on(2, 2)].ResponseID }, nil, ""},
	"costs of days alone": {"openai", func(s *scene) {
		s.vendor.byDay = true
		s.vendor.calls[s.on(3, 2)].Cost.N *= 2
	}, []string{"price 3"}, ""},
	"searches": {"anthropic", func(s *scene) {
		for _, day := range []int{17, 18} {
			i := s.on(day, 0)
			s.recorded[i].Usage.WebSearches = plugins.Known(3)
			s.recorded[i] = priced(s.recorded[i])
			s.vendor.calls[i].Call = s.recorded[i]
		}
		c := &s.vendor.calls[s.on(18, 0)]
		c.Usage.WebSearches.N++
		c.Call = priced(c.Call)
	}, []string{"price 18"}, ""},
	"a record twice, of an answer without an id": {"bedrock", func(s *scene) {
		s.recorded = append(s.recorded, s.recorded[s.on(21, 2)])
	}, []string{"unbilled 21"}, ""},
	"another price": {"openai", func(s *scene) {
		for i := range s.vendor.calls {
			if c := &s.vendor.calls[i]; c.Model == "gpt-5-2025-08-07" && DayOf(c.Start) == mustDay("2026-10-14") {
				c.Cost.N *= 2
			}
		}
	}, []string{"price 14"}, ""},
	"a model without a price": {"openai", func(s *scene) {
		for i := range s.recorded {
			if c := &s.recorded[i]; DayOf(c.Start) == mustDay("2026-10-15") && c.Model == "gpt-5-2025-08-07" {
				c.Cost = plugins.Cost{}
			}
		}
	}, []string{"unpriced 15"}, ""},
	"calls that end on the next day": {"anthropic", func(s *scene) {
		for _, day := range []int{16, 20} {
			i := s.on(day, 23)
			s.recorded[i].Start = (mustDay("2026-10-01") + Day(day)).Time().Add(-time.Minute)
			s.recorded[i].End = s.recorded[i].Start.Add(2 * time.Minute)
			s.vendor.calls[i].Start = s.recorded[i].End
		}
	}, []string{"timing 16", "timing 17", "timing 20", "timing 21"}, ""},
}

func with(c Call, change func(*Call)) Call {
	change(&c)
	return c
}

// checkListed checks that what cannot be compared has a description with a text, unless it is "".
func checkListed(t *testing.T, r *Report, text string) {
	t.Helper()
	if text != "" && !slices.ContainsFunc(r.Incomparable, func(i Item) bool { return strings.Contains(i.Description, text) }) {
		t.Errorf("what cannot be compared is %v, without %q", r.Incomparable, text)
	}
}

// reasonsOf are the differences, as reason and day of October.
func reasonsOf(r *Report) (found []string) {
	for _, d := range r.Differences {
		found = append(found, fmt.Sprintf("%s %d", d.Reason, d.Day-month.From+1))
	}
	return found
}

// The days of a bill are those of a time zone whose clocks are changed within the month. What else differs is
// found.
func TestSummerTime(t *testing.T) {
	for city, c := range map[string]struct {
		provider     string
		zone, clocks int
		changed      time.Time
	}{
		"Berlin":   {"anthropic", 2, -1, time.Date(2026, 10, 25, 1, 0, 0, 0, time.UTC)},
		"London":   {"vertex", 1, -1, time.Date(2026, 10, 25, 1, 0, 0, 0, time.UTC)},
		"Sydney":   {"openai", 10, 1, time.Date(2026, 10, 3, 16, 0, 0, 0, time.UTC)},
		"a spring": {"bedrock", 0, 1, time.Date(2026, 10, 25, 1, 0, 0, 0, time.UTC)},
	} {
		s := newScene(c.provider)
		s.vendor.zone, s.vendor.clocks, s.vendor.changed = c.zone, c.clocks, c.changed
		s.vendor.calls = append(s.vendor.calls, billedCall{s.recorded[s.on(20, 12)], "key_other"})
		report := s.compare(t)
		others := slices.DeleteFunc(slices.Clone(report.Differences), func(d Difference) bool { return d.Reason == TimeZone })
		if len(others) != 1 || others[0].Reason != Outside || others[0].Day != mustDay("2026-10-20") || len(report.Differences) < 8 {
			t.Errorf("%s: found %q", city, reasonsOf(report))
		}
	}
}

// TestSums checks that the differences add up, whatever they are.
func TestSums(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		s := newScene([]string{"openai", "anthropic"}[seed%2])
		s.vendor.decimals, s.vendor.zone = 2+random.IntN(8), random.IntN(3)-1
		s.vendor.rate = 1 + float64(random.IntN(3))/7
		for range 40 {
			recorded, billed := &s.recorded[random.IntN(len(s.recorded))], &s.vendor.calls[random.IntN(len(s.vendor.calls))]
			switch random.IntN(6) {
			case 0:
				recorded.Usage, recorded.Complete = plugins.Usage{}, false
			case 1:
				recorded.Usage.Output.N += random.Int64N(200) - 100
			case 2:
				billed.Usage.Input.N += random.Int64N(1000)
				billed.Tier = "batch"
			case 3:
				billed.Start = billed.Start.Add(time.Duration(random.IntN(100)-50) * time.Hour)
			case 4:
				billed.key = "key_other"
				billed.Model = "unheard-of"
			case 5:
				recorded.ResponseID = "one of two"
				recorded.Cost = plugins.Cost{}
			}
		}
		for i := range s.vendor.calls {
			if c := &s.vendor.calls[i]; c.Model == "unheard-of" {
				c.Cost = plugins.KnownCost(12345)
			}
		}
		if seed%3 == 0 {
			s.options.Keys = map[string]string{"key_weir": ""}
		}
		s.compare(t)
	}
}

func TestAMonthWithoutDifferences(t *testing.T) {
	incomparable := map[string]int{"openrouter": 1} // its credits, which are of all days
	for _, provider := range []string{"openai", "anthropic", "openrouter", "bedrock", "vertex"} {
		if report := newScene(provider).compare(t); !report.Agrees || len(report.Incomparable) != incomparable[provider] || report.Billed.Tokens != report.Recorded.Tokens || report.Billed.Tokens.Total == 0 {
			t.Errorf("%s: %+v", provider, report)
		}
	}
}

// OpenRouter has 30 days alone: the days before are refused, and no difference.
func TestDaysThatABillLacks(t *testing.T) {
	now := time.Date(2026, 11, 29, 21, 0, 0, 0, time.UTC)
	source := Source{Provider: "openrouter", API: API{URL: "http://127.0.0.1:1"}}
	if got, want := source.LastWindow(now), (Window{mustDay("2026-10-30"), mustDay("2026-11-28")}); got != want || source.First(now) != want.From {
		t.Errorf("the days to compare are %v, want %v", got, want)
	}
	if got := (Source{Provider: "openai"}).LastWindow(now); got != month {
		t.Errorf("the last month is %v", got)
	}
	last := source.LastWindow(time.Now())
	_, err := source.Read(t.Context(), Window{last.From - 1, last.To})
	if early, ok := errors.AsType[*TooEarlyError](err); !ok || early.First != last.From || !strings.Contains(err.Error(), last.From.String()) {
		t.Error(err)
	}
	if _, err = source.Read(t.Context(), last); err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("the days that there are: %v", err)
	}
}

// A key without a label would be compared with no account's calls beside keys that have one.
func TestCheckKeys(t *testing.T) {
	for want, all := range map[bool][]map[string]string{
		true:  {nil, {"a": "", "b": ""}, {"a": "eu", "b": "us"}},
		false: {{"a": "", "b": "eu"}},
	} {
		for _, keys := range all {
			if err := CheckKeys(keys); (err == nil) != want {
				t.Errorf("%v: %v", keys, err)
			}
		}
	}
}

// Whatever a provider answers, a bill ends, and takes bounded memory.
func TestBillIsBounded(t *testing.T) {
	day := func(gjson.Result) (Day, error) { return month.From, nil }
	for name, c := range map[string]struct {
		before reading
		page   string // a format for its number
	}{
		"pages without an end":        {reading{count: maxLines - 100}, `{"data":[],"has_more":true,"next_page":"%d"}`},
		"more lines than can be kept": {reading{}, `{"data":[{"results":[{}` + strings.Repeat(",{}", maxLines) + `]}],"x":%d}`},
		"more bytes than are read":    {reading{bytes: maxBytes - 100_000}, `{"data":[],"has_more":true,"next_page":"%d","x":"` + strings.Repeat("x", 10_000) + `"}`},
	} {
		page := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			page++
			fmt.Fprintf(w, c.page, page)
		}))
		read := c.before
		read.API = API{URL: server.URL, Key: "admin"}
		err := read.buckets(t.Context(), "/costs", url.Values{}, nil, day, func(Day, gjson.Result) error { return nil })
		if server.Close(); !errors.Is(err, errTooLarge) {
			t.Errorf("%s: after %d pages %v", name, page, err)
		}
	}
}

// handlerTransport answers by a handler without a network, so that time can be that of synctest.
type handlerTransport struct{ http.Handler }

func (h handlerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, r)
	return answer.Result(), nil
}

// A provider that is asked too often is asked again when it says so, or else ever later. A page that was
// read is not read again.
func TestPagesOfABusyProvider(t *testing.T) {
	day := func(gjson.Result) (Day, error) { return month.From, nil }
	page := func(next string) string {
		return fmt.Sprintf(`{"data":[{"results":[{}]}],"has_more":%t,"next_page":%q}`, next != "", next)
	}
	date := func(in time.Duration) func() string {
		return func() string { return time.Now().Add(in).UTC().Format(http.TimeFormat) }
	}
	text := func(retryAfter string) func() string { return func() string { return retryAfter } }
	for name, c := range map[string]struct {
		retryAfter func() string
		refusals   int // before each page
		pages      []string
		asked      int
		waited     time.Duration
		err        string
	}{
		"seconds":             {text("7"), 1, []string{page("a"), page("")}, 4, 14 * time.Second, ""},
		"none":                {text("0"), 1, []string{page("a"), page("")}, 4, 2 * time.Second, ""},
		"less than a second":  {text("0.1"), 1, []string{page("")}, 2, time.Second, ""},
		"a date":              {date(9 * time.Second), 2, []string{page("")}, 3, 18 * time.Second, ""},
		"no header":           {text(""), 4, []string{page("")}, 5, 15 * time.Second, ""},
		"too many refusals":   {text(""), 5, []string{page("")}, 5, 15 * time.Second, "429"},
		"an hour":             {text("3600"), 1, []string{page("")}, 1, 0, "429"},
		"a date in a day":     {date(24 * time.Hour), 1, []string{page("")}, 1, 0, "429"},
		"seconds of 30 years": {text("999999999"), 1, []string{page("")}, 1, 0, "429"},
		"pages in a circle":   {text("1"), 1, []string{page("a"), page("b"), page("a")}, 6, 3 * time.Second, errNoNextPage.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				before := client.Transport
				defer func() { client.Transport = before }()
				client.Transport = handlerTransport{http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					if asked++; asked%(c.refusals+1) != 0 {
						w.Header().Set("Retry-After", c.retryAfter())
						w.WriteHeader(http.StatusTooManyRequests)
						return
					}
					fmt.Fprint(w, c.pages[asked/(c.refusals+1)-1])
				})}
				r, lines, start := reading{API: API{URL: "http://provider.test", Key: "admin"}}, 0, time.Now()
				err := r.buckets(t.Context(), "/costs", url.Values{}, nil, day, func(Day, gjson.Result) error { lines++; return nil })
				if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) || err == nil && lines != len(c.pages) {
					t.Errorf("%d lines, %v", lines, err)
				}
				if waited := time.Since(start); asked != c.asked || waited != c.waited {
					t.Errorf("asked %d times in %v, expected %d in %v", asked, waited, c.asked, c.waited)
				}
			})
		})
	}
}

// TestPairsOfDifferences plants two differences that may hide each other.
func TestPairsOfDifferences(t *testing.T) {
	shiftBy := func(s *scene, zone int) { s.vendor.zone = zone }
	bypass := func(s *scene, days ...int) {
		for _, day := range days {
			s.vendor.calls = append(s.vendor.calls, billedCall{s.recorded[s.on(day, 2)], "key_other"})
		}
	}
	// beside are the differences that are not of the time zone, as reason and day of October.
	beside := func(r *Report) (found []string) {
		for i, name := range reasonsOf(r) {
			if r.Differences[i].Reason != TimeZone {
				found = append(found, name)
			}
		}
		return found
	}
	for name, c := range map[string]struct {
		provider     string
		plant        func(*scene)
		shifted      bool
		want         []string
		incomparable string
	}{
		"days of another zone, and a key that bypasses Weir": {"openai", func(s *scene) {
			bypass(s, 9, 12)
			shiftBy(s, 9)
		}, true, []string{"outside 9", "outside 12"}, ""},
		"days of another zone, and a key that is not named": {"anthropic", func(s *scene) {
			bypass(s, 9)
			shiftBy(s, -8)
			s.options.Keys = map[string]string{"key_weir": ""}
		}, true, []string{"outside 8"}, ""}, // at 18 o'clock of the 8th
		"a refund, and a record twice": {"openai", func(s *scene) {
			s.vendor.lines = map[string]float64{"gpt-5-2025-08-07, refund": -0.5}
			s.recorded = append(s.recorded, s.recorded[s.on(5, 3)])
		}, false, []string{"duplicate 5"}, "gpt-5-2025-08-07, refund"},
		"names without dates on the bill, and another tier": {"openai", func(s *scene) {
			for i := range s.vendor.calls {
				name, _, _ := strings.Cut(s.vendor.calls[i].Model, "-2")
				s.vendor.calls[i].Model = name
			}
			c := &s.vendor.calls[s.on(6, 1)]
			c.Tier = "flex"
			c.Call = priced(c.Call)
		}, false, []string{"tier 6", "tier 6"}, ""},
		"names without dates in the records, and reasoning": {"openai", func(s *scene) {
			for i := range s.recorded {
				name, _, _ := strings.Cut(s.recorded[i].Model, "-2")
				s.recorded[i].Model, s.recorded[i].Name = name, name
			}
			c := &s.vendor.calls[s.on(11, 5)]
			c.Usage.Output.N += c.Usage.Reasoning.N
			c.Call = priced(c.Call)
		}, false, []string{"reasoning 11"}, ""},
		"a discount, and a key that bypasses Weir": {"openai", func(s *scene) {
			bypass(s, 9)
			s.vendor.rate = 0.9
		}, false, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(c.provider)
			c.plant(s)
			r := s.compare(t)
			if name == "a discount, and a key that bypasses Weir" {
				outside := slices.DeleteFunc(slices.Clone(r.Differences), func(d Difference) bool { return d.Reason == Discount })
				if len(r.Differences) != 63 || len(outside) != 1 || outside[0].Reason != Outside {
					t.Errorf("found %q", reasonsOf(r))
				}
				return
			}
			if found := beside(r); !slices.Equal(found, c.want) || (len(found) < len(r.Differences)) != c.shifted {
				t.Errorf("found %q among %d differences, expected %q: %+v", found, len(r.Differences), c.want, r.Differences)
			}
			if c.incomparable != "" && !slices.ContainsFunc(r.Incomparable, func(i Item) bool { return i.Description == c.incomparable }) {
				t.Errorf("what cannot be compared is %v", r.Incomparable)
			}
		})
	}
}
