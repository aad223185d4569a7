package storage

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins"
)

// RecordGrouper adds records up, in the plainest way: what it answers is what
// every backend must answer. It takes those that the query's Filter and Window
// choose.
type RecordGrouper struct {
	query *GroupQuery
	// tags are those of the organisation's sessions, by session id.
	tags   map[string]string
	any    []*Matcher
	groups map[string]*recordGroup
	cancel *CancelCheck
}

// NewRecordGrouper makes the grouper of a query. tags are those of the
// organisation's sessions, by session id. When the query of cancel is over,
// Answer returns its error.
func NewRecordGrouper(q *GroupQuery, tags map[string]string, cancel *CancelCheck) *RecordGrouper {
	g := &RecordGrouper{query: q, tags: tags, groups: make(map[string]*recordGroup), cancel: cancel}
	for _, f := range q.Any {
		g.any = append(g.any, NewMatcher(f, cancel))
	}
	if len(q.By) == 0 {
		g.group(nil)
	}
	return g
}

// recordGroup is what was added up of one group.
type recordGroup struct {
	GroupTotals
	recordSums
	days  map[int]bool
	cells map[Timestamp]*recordSums
}

// recordSums are totals with the values that have an order.
type recordSums struct {
	totals           Totals
	details          Details
	latencies, ttfts []plugins.Milliseconds
	scores           []float64
}

// Add adds a record to its groups. load returns its content, nil when there is
// none.
func (g *RecordGrouper) Add(r *Record, load func() *Content) {
	row := Row{
		Attempt:     r.AttemptOf != uuid.Nil,
		Status:      r.Status,
		CreatedAt:   r.CreatedAt,
		RespondedAt: r.RespondedAt,
		Cost:        r.Cost,
		Input:       r.Usage.Input,
		Output:      r.Usage.Output,
		Latency:     r.Latency,
	}
	g.addTo(nil, r, &row, load)
}

// addTo adds a record to the groups whose keys begin so.
func (g *RecordGrouper) addTo(key []string, r *Record, row *Row, load func() *Content) {
	i := len(key)
	if i == len(g.query.By) {
		g.add(g.group(key), r, row, load)
		return
	}
	byScore := g.query.By[i].Name == ByScore
	for _, value := range g.query.By[i].values(r, g.tags) {
		if i == 0 && g.query.Known && value == "" && !byScore {
			continue
		}
		if byScore {
			row.Score, _ = r.Score(value)
			row.Attempt = false // its scores count as any
		}
		g.addTo(append(key, value), r, row, load)
	}
}

// values are what the record has of the dimension.
func (d Dimension) values(r *Record, tags map[string]string) []string {
	switch d.Name {
	case ByUser:
		return []string{r.UserID}
	case BySession:
		return []string{r.SessionID}
	case BySessionName:
		return []string{r.SessionName}
	case BySessionTag:
		return []string{tags[r.SessionID]}
	case ByModel:
		return []string{r.Model}
	case ByProvider:
		return []string{r.Provider}
	case ByStatus:
		if !r.Status.Valid {
			return []string{""}
		}
		return []string{strconv.FormatInt(r.Status.N, 10)}
	case ByEndState:
		return []string{r.EndState.String()}
	case ByFinish:
		return []string{r.Finish}
	case ByPath:
		return []string{r.Path}
	case ByProperty:
		return []string{r.Properties[d.Property]}
	case ByPropertyName:
		return slices.Collect(maps.Keys(r.Properties))
	case ByScore:
		names := slices.Collect(maps.Keys(r.Scores))
		if r.Feedback != nil {
			names = append(names, FeedbackScore)
		}
		return names
	}
	return nil
}

// group is the group of a key.
func (g *RecordGrouper) group(key []string) *recordGroup {
	var id []byte
	for _, value := range key {
		id = append(strconv.AppendInt(id, int64(len(value)), 10), ' ')
		id = append(id, value...)
	}
	x, ok := g.groups[string(id)]
	if !ok {
		x = &recordGroup{days: make(map[int]bool), cells: make(map[Timestamp]*recordSums)}
		x.Key, x.Any = slices.Clone(key), make([]bool, len(g.any))
		g.groups[string(id)] = x
	}
	return x
}

func (g *RecordGrouper) add(x *recordGroup, r *Record, row *Row, load func() *Content) {
	q := g.query
	x.recordSums.add(q, r, row)
	if q.ActiveDays && !row.Attempt {
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
	cell.add(q, r, row)
}

// cellOf is the start of the cell around a moment, false if there are no cells.
func (q *GroupQuery) cellOf(t Timestamp) (start Timestamp, ok bool) {
	switch {
	case q.Increment != "":
		start, _ = q.Increment.around(t, q.Zone)
	case q.Buckets.Len > 0:
		start, _ = q.Buckets.Bounds(q.Buckets.Index(t))
	default:
		return 0, false
	}
	return start, true
}

func (s *recordSums) add(q *GroupQuery, r *Record, row *Row) {
	s.totals.add(row)
	if slices.ContainsFunc(q.By, func(d Dimension) bool { return d.Name == ByScore }) {
		s.scores = append(s.scores, row.Score)
	}
	if !q.Details || row.Attempt {
		return
	}
	d, u := &s.details, &r.Usage
	if r.Status.Valid && r.Status.N >= http.StatusBadRequest || r.EndState != Complete {
		d.Errors++
	}
	d.Input, d.Output = d.Input.Plus(u.Input), d.Output.Plus(u.Output)
	d.CacheRead, d.CacheWrite = d.CacheRead.Plus(u.CacheRead), d.CacheWrite.Plus(u.CacheWrite)
	d.Reasoning = d.Reasoning.Plus(u.Reasoning)
	if r.Latency.Valid {
		s.latencies = append(s.latencies, r.Latency.N)
	}
	if r.TimeToFirstToken.Valid {
		s.ttfts = append(s.ttfts, r.TimeToFirstToken.N)
	}
}

// detailsOf are the details, nil if the query does not ask for them.
func (s *recordSums) detailsOf(q *GroupQuery) *Details {
	if !q.Details {
		return nil
	}
	s.details.Latency, s.details.TimeToFirstToken = percentilesOf(s.latencies), percentilesOf(s.ttfts)
	return &s.details
}

// Answer calls each with the groups.
func (g *RecordGrouper) Answer(each func(*GroupTotals) error) error {
	for _, x := range g.groups {
		if g.cancel.over(groupSteps) {
			return g.cancel.ended
		}
		x.Totals, x.ActiveDays, x.Details = x.totals, int64(len(x.days)), x.detailsOf(g.query)
		for start, cell := range x.cells {
			x.Cells = append(x.Cells, Cell{
				Start: start, Counts: cell.totals.Counts, ScoreSum: sumOf(cell.scores, g.cancel), Details: cell.detailsOf(g.query),
			})
		}
		if err := each(&x.GroupTotals); err != nil {
			return err
		}
	}
	return g.cancel.ended
}

// Records are all records there are, as a Grouper.
type Records struct {
	All []*Record
	// Content returns a record's content, nil when there is none.
	Content func(*Record) *Content
	// Tags are those of sessions, by organisation and session id.
	Tags map[string]map[string]string
}

// Groups adds up what the query chooses.
func (rs Records) Groups(ctx context.Context, q *GroupQuery, each func(*GroupTotals) error) error {
	g := NewRecordGrouper(q, rs.Tags[q.Org], NewCancelCheck(ctx.Err))
	m := NewMatcher(q.Filter, nil)
	for _, r := range rs.All {
		load := func() *Content { return rs.Content(r) }
		if r.Org == q.Org && q.Window.Contains(r.CreatedAt) && m.Match(r, load) {
			g.Add(r, load)
		}
	}
	return g.Answer(each)
}
