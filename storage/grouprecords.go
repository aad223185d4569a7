package storage

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins"
)

// RecordGrouper adds records up in the simplest way. It is the reference: every backend must return
// the same groups. The caller adds only records that match the query's Filter and Window.
type RecordGrouper struct {
	query  *GroupQuery
	tags   map[string]string       // tags of the organisation's sessions, by session id
	roots  map[uuid.UUID]bool      // roots of the trees, from AddRoot
	any    []*Matcher              // one for each filter of query.Any
	groups map[string]*recordGroup // by set and key, as group encodes them
	cancel *CancelCheck
}

// NewRecordGrouper makes the grouper of a query. tags are the tags of the
// organisation's sessions, by session id. When the query of cancel is over,
// Answer returns the error of cancel.
func NewRecordGrouper(q *GroupQuery, tags map[string]string, cancel *CancelCheck) *RecordGrouper {
	g := &RecordGrouper{query: q, tags: tags, groups: make(map[string]*recordGroup), roots: make(map[uuid.UUID]bool), cancel: cancel}
	for _, f := range q.Any {
		g.any = append(g.any, NewMatcher(f, cancel))
	}
	if len(q.By) == 0 {
		g.group(0, nil)
	}
	for set, d := range q.By {
		if q.Apart && d == (Dimension{}) {
			g.group(set, []string{""})
		}
	}
	return g
}

// recordGroup is one group: its sums so far, and the GroupTotals that Answer makes of them.
type recordGroup struct {
	GroupTotals
	recordSums
	days  map[int]bool              // days with a request that is no attempt
	cells map[Timestamp]*recordSums // by the start of the cell
}

// recordSums are the sums of a group or a cell.
type recordSums struct {
	totals  Totals
	details detailSums
	scores  []float64 // not added up yet: sumOf does so in one order, since the sum depends on it
}

// AddRoot notes the root of a record's tree. If a query groups ByTree, call it for all records before the
// first Add.
func (g *RecordGrouper) AddRoot(r *Record) {
	if r.RootID != uuid.Nil {
		g.roots[r.RootID] = true
	}
}

// Add adds a record to its groups. load returns the record's content, nil when the
// record has no content.
func (g *RecordGrouper) Add(r *Record, load func() *Content) {
	row := newRow(r)
	if !g.query.Apart {
		g.addTo(nil, r, row, load)
		return
	}
	for set, d := range g.query.By {
		for _, value := range g.values(d, r) {
			g.add(g.group(set, []string{value}), r, row, load)
		}
	}
}

// newRow returns a batch of one record, without Groups.
func newRow(r *Record) *RowBatch {
	return &RowBatch{
		Len:         1,
		Attempt:     []bool{r.AttemptOf != uuid.Nil},
		Status:      []plugins.Count{r.Status},
		CreatedAt:   []Timestamp{r.CreatedAt},
		RespondedAt: []Timestamp{r.RespondedAt},
		Cost:        []plugins.Cost{r.Cost},
		Input:       []plugins.Count{r.Usage.Input},
		Output:      []plugins.Count{r.Usage.Output},
		Latency:     []plugins.Duration{r.Latency},

		EndState: []EndState{r.EndState}, TimeToFirstToken: []plugins.Duration{r.TimeToFirstToken},
		CacheRead: []plugins.Count{r.Usage.CacheRead}, CacheWrite: []plugins.Count{r.Usage.CacheWrite},
		Reasoning:    []plugins.Count{r.Usage.Reasoning},
		CacheSavings: []plugins.Cost{r.CacheSavings}, CacheLoss: []plugins.Cost{r.CacheLoss},
		Cached: []bool{r.CacheReferenceID != uuid.Nil}, SavedCost: []plugins.Cost{r.SavedCost},
		RoutingSavings: []plugins.Cost{r.RoutingSavings}, Score: make([]float64, 1),
	}
}

// addTo adds a record to the groups whose keys begin with key.
func (g *RecordGrouper) addTo(key []string, r *Record, row *RowBatch, load func() *Content) {
	i := len(key)
	if i == len(g.query.By) {
		g.add(g.group(0, key), r, row, load)
		return
	}
	byScore := g.query.By[i].Name == ByScore
	for _, value := range g.values(g.query.By[i], r) {
		if i == 0 && g.query.Known && value == "" && !byScore {
			continue
		}
		if byScore {
			row.Score[0], _ = r.Score(value)
			row.Attempt[0] = false // scores of attempts count as any score
		}
		g.addTo(append(key, value), r, row, load)
	}
}

// group returns the group of a key in a set, and makes it if it is new. In the id, the length stands
// before each value, so that no two keys have the same id.
func (g *RecordGrouper) group(set int, key []string) *recordGroup {
	id := []byte{byte(set)}
	for _, value := range key {
		id = append(strconv.AppendInt(id, int64(len(value)), 10), ' ')
		id = append(id, value...)
	}
	x, ok := g.groups[string(id)]
	if !ok {
		x = &recordGroup{days: make(map[int]bool), cells: make(map[Timestamp]*recordSums)}
		x.Set, x.Key, x.Any = set, slices.Clone(key), make([]bool, len(g.any))
		g.groups[string(id)] = x
	}
	return x
}

func (g *RecordGrouper) add(x *recordGroup, r *Record, row *RowBatch, load func() *Content) {
	q := g.query
	if q.CountOnly {
		x.totals.merge(&Totals{Counts: Counts{Requests: 1}, First: r.CreatedAt, Last: r.CreatedAt})
		return
	}
	x.recordSums.add(q, row)
	if q.ActiveDays && !row.Attempt[0] {
		x.days[q.Zone.day(r.CreatedAt)] = true
	}
	for i, m := range g.any {
		x.Any[i] = x.Any[i] || m.Match(r, load)
	}
	start, ok := q.cellOf(r.CreatedAt)
	if !ok {
		return
	}
	cell := x.cells[start]
	if cell == nil {
		cell = new(recordSums)
		x.cells[start] = cell
	}
	cell.add(q, row)
}

// cellOf returns the start of the cell that contains t. ok is false if the query has no cells.
func (q *GroupQuery) cellOf(t Timestamp) (start Timestamp, ok bool) {
	switch {
	case q.Increment != "":
		start, _ = q.Increment.Around(t, q.Zone)
	case q.Buckets.Len > 0:
		start, _ = q.Buckets.Bounds(q.Buckets.Index(t))
	default:
		return 0, false
	}
	return start, true
}

func (s *recordSums) add(q *GroupQuery, row *RowBatch) {
	addTotals([]*Totals{&s.totals}, row)
	if q.GroupsBy(ByScore) {
		s.scores = append(s.scores, row.Score[0])
	}
	if q.Details {
		s.details.add(row, 0)
	}
}

func (s *recordSums) merge(o *recordSums) {
	s.totals.merge(&o.totals)
	s.details.merge(&o.details)
	s.scores = append(s.scores, o.scores...)
}

// merge adds the sums of another group, and counts it in Others.
func (x *recordGroup) merge(o *recordGroup) {
	x.Others++
	x.recordSums.merge(&o.recordSums)
	for i := range o.Any {
		x.Any[i] = x.Any[i] || o.Any[i]
	}
	for start, cell := range o.cells {
		if x.cells[start] == nil {
			x.cells[start] = new(recordSums)
		}
		x.cells[start].merge(cell)
	}
}

// largest returns the Top.Count largest groups of each set, the largest first, and one group for the others.
func (g *RecordGrouper) largest() (groups []*recordGroup) {
	bySet := make([][]*recordGroup, max(1, len(g.query.By)))
	for _, x := range g.groups {
		bySet[x.Set] = append(bySet[x.Set], x)
	}
	top := &g.query.Top
	for set, all := range bySet {
		totals := make(map[*recordGroup]plugins.Count, len(all))
		for _, x := range all {
			totals[x] = top.total(&x.totals.Counts, x.details.answer(g.query))
		}
		slices.SortFunc(all, func(a, b *recordGroup) int {
			return cmp.Or(top.compare(totals[a], totals[b]), slices.Compare(a.Key, b.Key))
		})
		others := &recordGroup{cells: make(map[Timestamp]*recordSums)}
		others.Set, others.Any = set, make([]bool, len(g.any))
		wanted := top.Count
		for _, x := range all {
			if wanted > 0 && (top.After == nil || g.query.isAfter(set, totals[x], x.Key[0])) {
				wanted--
				groups = append(groups, x)
			} else {
				others.merge(x)
			}
		}
		if others.Others > 0 {
			groups = append(groups, others)
		}
	}
	return groups
}

// Answer calls each with the groups, and ends with the first error of each.
func (g *RecordGrouper) Answer(each func(*GroupTotals) error) error {
	groups := slices.Collect(maps.Values(g.groups))
	if g.query.Top.By == LargestGroups {
		groups = g.largest()
	}
	for _, x := range groups {
		if g.cancel.over(groupSteps) {
			return g.cancel.ended
		}
		x.Totals, x.ActiveDays, x.Details = x.totals, int64(len(x.days)), x.details.answer(g.query)
		for start, cell := range x.cells {
			c := Cell{Start: start, Counts: cell.totals.Counts, Details: cell.details.answer(g.query)}
			if len(cell.scores) > 0 {
				c.ScoreSum = sumOf(cell.scores, g.cancel)
			}
			x.Cells = append(x.Cells, c)
		}
		if !g.query.Chooses(&x.GroupTotals) {
			continue
		}
		if err := each(&x.GroupTotals); err != nil {
			return err
		}
	}
	return g.cancel.ended
}

// Records is a store in memory. It implements Grouper.
type Records struct {
	All []*Record
	// Content returns a record's content, nil when the record has no content.
	Content func(*Record) *Content
	// Tags are the tags of sessions, by organisation and session id.
	Tags map[string]map[string]string
}

// Groups implements Grouper.
func (rs Records) Groups(ctx context.Context, q *GroupQuery, each func(*GroupTotals) error) error {
	g := NewRecordGrouper(q, rs.Tags[q.Org], NewCancelCheck(ctx.Err))
	m := NewMatcher(q.Filter, nil)
	var chosen []*Record
	for _, r := range rs.All {
		if r.Org == q.Org && q.Window.Contains(r.CreatedAt) && m.Match(r, func() *Content { return rs.Content(r) }) {
			chosen = append(chosen, r)
			g.AddRoot(r)
		}
	}
	for _, r := range chosen {
		g.Add(r, func() *Content { return rs.Content(r) })
	}
	return g.Answer(each)
}
