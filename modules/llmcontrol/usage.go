package llmcontrol

import (
	"cmp"
	"context"
	"errors"
	"math/bits"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/lowpriority"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// usageTimeout is how long usage may take.
const usageTimeout = 10 * time.Second

// usageKind is what one of OpenAI's endpoints of usage counts.
type usageKind struct {
	// object is what OpenAI calls a result.
	object string
	// paths are patterns of the paths of counted requests, nil for all paths that no other kind has.
	paths []string
	// groups are the fields to group by, each with the dimension of records.
	groups map[string]storage.DimensionName
	// widths are the widths that buckets may have.
	widths []usageWidth
	// describe adds to a result what it counts.
	describe func(result map[string]any, c *storage.Counts, d *storage.Details)
}

// usageWidth is the width of buckets.
type usageWidth struct {
	name              string
	width             time.Duration
	standard, maximum int // how many a page has
}

var (
	usageWidths = []usageWidth{{"1d", 24 * time.Hour, 7, 31}, {"1h", time.Hour, 24, 168}, {"1m", time.Minute, 60, 1440}}
	costWidths  = []usageWidth{{"1d", 24 * time.Hour, 7, 180}}
	usageGroups = map[string]storage.DimensionName{"project_id": "project", "user_id": storage.ByUser, "api_key_id": "key_id", "model": "model"}
	costGroups  = map[string]storage.DimensionName{"project_id": "project", "user_id": storage.ByUser, "api_key_id": "key_id", "line_item": "model"}

	embeddingPaths  = []string{"%/embeddings", "%:embedContent", "%:batchEmbedContents", "%/embed"}
	moderationPaths = []string{"%/moderations"}
	// mediaPaths are counted in pictures and seconds, and records have neither.
	mediaPaths = []string{"%/images/%", "%/audio/%"}
)

var (
	completionUsage = usageKind{"organization.usage.completions.result", nil, usageGroups, usageWidths, func(result map[string]any, c *storage.Counts, d *storage.Details) {
		result["input_tokens"], result["output_tokens"], result["num_model_requests"] = d.Input.N, d.Output.N, c.Requests
		result["input_cached_tokens"], result["input_cache_write_tokens"] = d.CacheRead.N, d.CacheWrite.N
	}}
	embeddingUsage  = usageKind{"organization.usage.embeddings.result", embeddingPaths, usageGroups, usageWidths, describeInput}
	moderationUsage = usageKind{"organization.usage.moderations.result", moderationPaths, usageGroups, usageWidths, describeInput}
	costUsage       = usageKind{"organization.costs.result", nil, costGroups, costWidths, func(result map[string]any, c *storage.Counts, _ *storage.Details) {
		result["amount"] = map[string]any{"value": plugins.KnownCost(c.Cost.N), "currency": "usd"}
	}}
)

func describeInput(result map[string]any, c *storage.Counts, d *storage.Details) {
	result["input_tokens"], result["num_model_requests"] = d.Input.N, c.Requests
}

// usageQuery is one page of usage.
type usageQuery struct {
	kind    usageKind
	filter  storage.Filter
	buckets storage.Buckets
	by      []string // fields of results
	more    bool     // there is time after the buckets
}

// either is a filter that any of some texts satisfies.
func either(field string, op storage.Operator, texts []string) (f storage.Filter) {
	for _, text := range texts {
		f = storage.Or(f, compare(field, op, text))
	}
	return f
}

// calls is the filter for the calls that a kind counts. Costs count all calls, and usage counts
// calls with a status below 400.
func (k usageKind) calls() storage.Filter {
	if k.object == costUsage.object {
		return storage.All{}
	}
	status := storage.LookupField(storage.RequestResponse, "status")
	f := storage.Filter(&storage.Leaf{Field: status, Op: storage.LT, Number: storage.DecimalOf(http.StatusBadRequest)})
	if k.paths != nil {
		return storage.And(f, either("request_path", storage.Like, k.paths))
	}
	f = storage.And(f, compare("model", storage.NotEquals, ""))
	for _, path := range slices.Concat(embeddingPaths, moderationPaths, mediaPaths) {
		f = storage.And(f, compare("request_path", storage.NotContains, strings.Trim(path, "%")))
	}
	return f
}

// readUsage reads the query of the URL.
func (c *call) readUsage(kind usageKind) (q usageQuery, err error) {
	q.kind, q.filter = kind, kind.calls()
	given := c.r.URL.Query()
	lists := make(map[string][]string)
	for _, name := range []string{"group_by", "project_ids", "user_ids", "api_key_ids", "models", "line_items"} {
		lists[name] = slices.Concat(given[name], given[name+"[]"])
		given.Del(name)
		given.Del(name + "[]")
	}
	for _, field := range lists["group_by"] {
		if kind.groups[field] == "" || slices.Contains(q.by, field) {
			return q, bad("group_by: %s is not taken here", field)
		}
		q.by = append(q.by, field)
	}
	if lists["project_ids"], err = c.labels(lists["project_ids"]); err != nil {
		return q, err
	}
	for name, field := range map[string]string{"project_ids": "project", "user_ids": "user_id", "api_key_ids": "key_id", "models": "model", "line_items": "model"} {
		if f := either(field, storage.Equals, lists[name]); f != nil {
			q.filter = storage.And(q.filter, f)
		}
	}
	return q, q.readTime(given)
}

// number reads a whole number of the query, absent if it is not there.
func number(given url.Values, name string, absent int64) (int64, error) {
	text := given.Get(name)
	if text == "" {
		return absent, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || bits.Len64(uint64(n)) > 40 {
		return 0, bad("%s: a whole number is expected", name)
	}
	return n, nil
}

// readTime reads when the buckets begin and end.
func (q *usageQuery) readTime(given url.Values) error {
	for name := range given {
		if !slices.Contains([]string{"start_time", "end_time", "bucket_width", "limit", "page"}, name) {
			return bad("%s: there is no such option here", name)
		}
	}
	width := q.kind.widths[0]
	if name := given.Get("bucket_width"); name != "" {
		i := slices.IndexFunc(q.kind.widths, func(w usageWidth) bool { return w.name == name })
		if i < 0 {
			return bad("bucket_width: %s is not taken here", name)
		}
		width = q.kind.widths[i]
	}
	limit, err := number(given, "limit", int64(width.standard))
	if err != nil || limit < 1 || limit > int64(width.maximum) {
		return bad("limit: a number from 1 to %d is expected", width.maximum)
	}
	start, err := number(given, "start_time", 0)
	if err != nil || !given.Has("start_time") {
		return bad("start_time: a time in Unix seconds is expected")
	}
	end, err := number(given, "end_time", time.Now().Unix()+1)
	if err != nil {
		return err
	}
	if start, err = number(given, "page", start); err != nil {
		return err
	}
	step := int64(width.width / time.Second)
	start -= start % step
	count := max(0, (end-start+step-1)/step)
	q.more = count > limit
	q.buckets = storage.Buckets{Start: storage.Timestamp(start * 1000), Width: storage.Timestamp(step * 1000), Len: int(min(count, limit))}
	return nil
}

// usageBucket is what was used in a part of the time.
type usageBucket struct {
	Object    string           `json:"object"`
	StartTime int64            `json:"start_time"`
	EndTime   int64            `json:"end_time"`
	Results   []map[string]any `json:"results"`
}

// usagePage is how OpenAI writes usage.
type usagePage struct {
	Object   string        `json:"object"`
	Data     []usageBucket `json:"data"`
	HasMore  bool          `json:"has_more"`
	NextPage *string       `json:"next_page"` // null at the end
}

// usage returns a page of what a kind counts.
func usage(kind usageKind) func(*call) (any, error) {
	return func(c *call) (any, error) {
		q, err := c.readUsage(kind)
		if err != nil {
			return nil, err
		}
		over, ok := c.app.Turns().Queries.Take(c.ctx, c.key.Hash())
		if !ok {
			return nil, &plugins.Error{Status: http.StatusTooManyRequests, RetryAfter: 5 * time.Second, Message: "too many queries of this API key, or in all, are waiting; ask fewer at a time"}
		}
		defer over()
		ctx, cancel := context.WithTimeout(c.ctx, usageTimeout)
		defer cancel()
		var page usagePage
		lowpriority.Run(func() { page, err = q.answer(ctx, c) })
		switch {
		case errors.Is(err, storage.ErrTooManyGroups):
			return nil, bad("%v", err)
		case errors.Is(err, context.DeadlineExceeded):
			return nil, &plugins.Error{Status: http.StatusGatewayTimeout, Message: "the usage takes longer than " + usageTimeout.String() + "; ask for less time, or fewer groups"}
		}
		return page, err
	}
}

func (q *usageQuery) answer(ctx context.Context, c *call) (page usagePage, err error) {
	page = usagePage{Object: "page", Data: make([]usageBucket, q.buckets.Len)}
	for i := range page.Data {
		start, end := q.buckets.Bounds(i)
		page.Data[i] = usageBucket{"bucket", int64(start) / 1000, int64(end) / 1000, []map[string]any{}}
	}
	_, end := q.buckets.Bounds(q.buckets.Len - 1)
	if q.more {
		next := strconv.FormatInt(int64(end)/1000, 10)
		page.HasMore, page.NextPage = true, &next
	}
	if q.buckets.Len == 0 {
		return page, nil
	}
	j, err := c.store.Journal()
	if err != nil {
		return page, err
	}
	if err := j.Connected(ctx); err != nil {
		return page, err
	}
	question := &storage.GroupQuery{
		Org: c.org.Name, Filter: q.filter, Window: storage.Window{From: q.buckets.Start, To: end - 1}, Buckets: q.buckets, Details: true,
	}
	for _, field := range q.by {
		question.By = append(question.By, storage.Dimension{Name: q.kind.groups[field]})
	}
	projects := projectNames{ctx: ctx, org: c.org}
	err = j.Backend().Groups(ctx, question, func(group *storage.GroupTotals) error {
		for i := range group.Cells {
			cell := &group.Cells[i]
			result := map[string]any{"object": q.kind.object}
			for n, field := range q.by {
				if result[field], err = q.value(field, group.Key[n], &projects); err != nil {
					return err
				}
			}
			q.kind.describe(result, &cell.Counts, cell.Details)
			at := q.buckets.Index(cell.Start)
			page.Data[at].Results = append(page.Data[at].Results, result)
		}
		return nil
	})
	for _, b := range page.Data {
		slices.SortFunc(b.Results, func(a, b map[string]any) int {
			for _, field := range q.by {
				one, _ := a[field].(string)
				other, _ := b[field].(string)
				if order := cmp.Compare(one, other); order != 0 {
					return order
				}
			}
			return 0
		})
	}
	return page, err
}

// value is a result's value of a field that results are grouped by, null for calls without a
// value. A project that is no object, such as a project that only tokens name, stands with its
// name.
func (q *usageQuery) value(field, text string, projects *projectNames) (any, error) {
	if text == "" {
		return nil, nil
	}
	if field == "project_id" {
		p, err := projects.find(text)
		if err != nil {
			return nil, err
		}
		if p != nil {
			return p.ID, nil
		}
	}
	return text, nil
}
