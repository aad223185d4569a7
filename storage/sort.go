package storage

import (
	"cmp"
	"maps"
	"slices"

	"github.com/weirhq/weir/plugins"
)

// Sort is a sort key of a RequestQuery.
type Sort = OrderBy[SortKey]

// SortKey names what records are ordered by.
// Records without the value come last in both directions; text sorts by bytes.
type SortKey string

// The sort keys of request queries. A last_active is the end of the response,
// else the start of the request; a cache_created_at is the start of a request
// that the cache answered.
const (
	SortCreatedAt        SortKey = "created_at"
	SortCacheCreatedAt   SortKey = "cache_created_at"
	SortLatency          SortKey = "latency"
	SortLastActive       SortKey = "last_active"
	SortTotalTokens      SortKey = "total_tokens"
	SortCompletionTokens SortKey = "completion_tokens"
	SortPromptTokens     SortKey = "prompt_tokens"
	SortUserID           SortKey = "user_id"
	SortBodyModel        SortKey = "body_model"
	SortIsCached         SortKey = "is_cached"
	SortRequestPrompt    SortKey = "request_prompt"
	SortResponseText     SortKey = "response_text"
	SortCost             SortKey = "cost"
	SortCacheLoss        SortKey = "cache_loss"
	SortTimeToFirstToken SortKey = "time_to_first_token"
	SortProperties       SortKey = "properties"
	SortScores           SortKey = "scores"
	SortValues           SortKey = "values"
)

// NeedsContent is true when the key's value comes from the bodies.
func (k SortKey) NeedsContent() bool {
	return k == SortRequestPrompt || k == SortResponseText || k == SortValues
}

// SortKeys are all sort keys of request queries.
func SortKeys() []SortKey { return slices.Sorted(maps.Keys(sortValues)) }

// Named is true when the key sorts by one name in a map.
func (k SortKey) Named() bool { return k == SortProperties || k == SortScores || k == SortValues }

// newestFirst is the order of a query that names no order.
var newestFirst = []Sort{{Key: SortCreatedAt, Desc: true}}

// order is the keys of the query, or its standard order.
func (q *RequestQuery) order() []Sort {
	if len(q.Sort) == 0 {
		return newestFirst
	}
	return q.Sort
}

// Cursor is the place of a record in the order of the query. c is needed for keys
// that need content, and is nil when nothing was kept.
func (q *RequestQuery) Cursor(r *Record, c *Content) *Cursor[SortKey] {
	sorts := q.order()
	values := make([]Value, len(sorts))
	for i, s := range sorts {
		values[i] = sortValues[s.Key](r, orNone(c), s.Name)
	}
	return &Cursor[SortKey]{Sorts: sorts, Values: values, Tie: [2]string{string(r.ID[:])}}
}

// ContinueAfter sets After to a cursor of a query with the same sort, in the form of
// its String; otherwise the error is ErrCursor. A cursor of a sort by content may
// have no Values: whoever asks the query makes the cursor anew from the record that the
// cursor names.
func (q *RequestQuery) ContinueAfter(cursor string) (err error) {
	q.After, err = parseCursor(cursor, q.order(), q.SortsByContent())
	return err
}

func byEntry(m map[string]string, name string) Value {
	s, known := m[name]
	if !known {
		return Value{}
	}
	return Value{kind: someText, text: s}
}

// exact is a quantity in its own unit.
func exact[T plugins.Unit](q plugins.Quantity[T]) Value {
	if !q.Valid {
		return Value{}
	}
	return integer(q.N)
}

// Column is the column of a database that the key sorts by, nil if no column is.
func (k SortKey) Column() *Column {
	if c := sortColumns[k]; c != nil && c.Name != "" {
		return c
	}
	return nil
}

var sortColumns = func() map[SortKey]*Column {
	m := make(map[SortKey]*Column)
	for _, c := range Schema {
		if c.Sort != "" {
			m[c.Sort] = c
		}
	}
	return m
}()

// sortValues are the values of all sort keys.
var sortValues = func() map[SortKey]func(r *Record, c *Content, name string) Value {
	values := map[SortKey]func(r *Record, c *Content, name string) Value{
		SortCacheCreatedAt: func(r *Record, _ *Content, _ string) Value {
			if !r.Cached() {
				return Value{}
			}
			return integer(r.CreatedAt)
		},
		SortLastActive: func(r *Record, _ *Content, _ string) Value { return integer(cmp.Or(r.RespondedAt, r.CreatedAt)) },
		SortIsCached: func(r *Record, _ *Content, _ string) Value {
			if r.Cached() {
				return integer[int64](1)
			}
			return integer[int64](0)
		},
		SortRequestPrompt: func(r *Record, c *Content, _ string) Value { return textual(inputText(r, c)) },
		SortResponseText:  func(r *Record, c *Content, _ string) Value { return textual(outputText(r, c)) },
		SortProperties:    func(r *Record, _ *Content, name string) Value { return byEntry(r.Properties, name) },
		SortScores:        func(r *Record, _ *Content, name string) Value { return score(r, name) },
		SortValues:        func(_ *Record, c *Content, name string) Value { return byEntry(c.Inputs, name) },
	}
	for k, column := range sortColumns {
		values[k] = func(r *Record, _ *Content, _ string) Value { return column.value(r) }
	}
	return values
}()

// ParseSort reads the field sort of a request query: an object of keys with
// their directions, in the order in which they apply. Absent raw is no key.
// Errors are *FilterError.
func ParseSort(raw []byte) (sorts []Sort, random bool, err error) {
	sorts, err = parseOrder(raw, sortValues, slices.DeleteFunc(SortKeys(), func(k SortKey) bool { return !k.Named() }), map[string]func(*parser) error{
		"random": func(p *parser) (err error) {
			random, err = p.boolean()
			return err
		},
	})
	return sorts, random && err == nil, err
}
