package storage

import "github.com/google/uuid"

// recordRows are Rows of plain records.
type recordRows struct {
	by      Grouping
	org     string
	records []*Record
	load    func(*Record) *Content
	tags    map[string]string
	groups  map[Key]int
	keys    []Key
}

// RowsOf reads Rows from all records there are, in the plainest way: with them,
// the Answer of a query is what every backend must answer. load returns a
// record's content, nil when there is none; tags are those of the organisation's
// sessions, by session id.
func RowsOf(by Grouping, org string, records []*Record, load func(*Record) *Content, tags map[string]string) Rows {
	return &recordRows{by: by, org: org, records: records, load: load, tags: tags, groups: make(map[Key]int)}
}

func (rs *recordRows) Scan(f Filter, w Window, each func(*Row) bool) error {
	m := NewMatcher(f, nil)
	for _, r := range rs.records {
		if r.Org != rs.org || !w.Contains(r.CreatedAt) || !m.Match(r, func() *Content { return rs.load(r) }) {
			continue
		}
		if !rs.rowsOf(r, each) {
			return nil
		}
	}
	return nil
}

// rowsOf gives each the rows of one record, as long as it wants more.
func (rs *recordRows) rowsOf(r *Record, each func(*Row) bool) bool {
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
	switch rs.by {
	case ByUser:
		if r.UserID == "" {
			return true
		}
		row.Group = rs.group(Key{ID: r.UserID})
	case BySession:
		if r.SessionID == "" {
			return true
		}
		row.Group = rs.group(Key{ID: r.SessionID, Name: r.SessionName, Tag: rs.tags[r.SessionID]})
	case ByScore:
		for name, score := range r.Scores {
			row.Group, row.Score = rs.group(Key{ID: name}), score
			if !each(&row) {
				return false
			}
		}
		if r.Feedback == nil {
			return true
		}
		row.Group, row.Score = rs.group(Key{ID: FeedbackScore}), r.Feedback.score()
	}
	return each(&row)
}

func (rs *recordRows) group(k Key) int {
	g, ok := rs.groups[k]
	if !ok {
		g = len(rs.keys)
		rs.groups[k] = g
		rs.keys = append(rs.keys, k)
	}
	return g
}

func (rs *recordRows) Key(group int) Key { return rs.keys[group] }
func (rs *recordRows) Err() error        { return nil }

var _ Rows = (*recordRows)(nil)
