package storage

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins"
)

// MaxSortKeys bounds the sort keys of one query.
const MaxSortKeys = 20

// Sort is one sort key.
type Sort struct {
	Key SortKey
	// Name is the property's or prompt input's for those keys.
	Name string
	Desc bool
}

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
	SortTimeToFirstToken SortKey = "time_to_first_token"
	SortProperties       SortKey = "properties"
	SortValues           SortKey = "values"
)

// NeedsContent is true when the key's value comes from the bodies.
func (k SortKey) NeedsContent() bool {
	return k == SortRequestPrompt || k == SortResponseText || k == SortValues
}

// Rank is the place of one record in the order of one query.
type Rank struct {
	sorts  []Sort
	values []sortValue
	id     uuid.UUID
}

// newestFirst is the order of a query that names none.
var newestFirst = []Sort{{Key: SortCreatedAt, Desc: true}}

// RankBy finds the place of a record by the sort keys. c is needed for keys that
// need content, and is nil when nothing was kept.
func RankBy(sorts []Sort, r *Record, c *Content) Rank {
	if len(sorts) == 0 {
		sorts = newestFirst
	}
	values := make([]sortValue, len(sorts))
	for i, s := range sorts {
		values[i] = sortValues[s.Key](r, orNone(c), s.Name)
	}
	return Rank{sorts, values, r.ID}
}

// Compare is negative when a comes before b, of the same query.
func (a Rank) Compare(b Rank) int {
	for i, s := range a.sorts {
		if d := a.values[i].compare(b.values[i], s.Desc); d != 0 {
			return d
		}
	}
	return directed(bytes.Compare(a.id[:], b.id[:]), a.sorts[0].Desc)
}

// sortValue is what one key sorts by: a number, or a text. Missing values come
// last in both directions.
type sortValue struct {
	known  bool
	number int64
	text   string
}

func (v sortValue) compare(w sortValue, desc bool) int {
	switch {
	case !v.known && !w.known:
		return 0
	case !w.known:
		return -1
	case !v.known:
		return 1
	}
	return directed(cmp.Or(cmp.Compare(v.number, w.number), strings.Compare(v.text, w.text)), desc)
}

func directed(order int, desc bool) int {
	if desc {
		return -order
	}
	return order
}

func byEntry(m map[string]string, name string) sortValue {
	s, known := m[name]
	return sortValue{known: known, text: s}
}
func byText(s string) sortValue { return sortValue{known: s != "", text: s} }
func byNumber[T plugins.Unit](q plugins.Quantity[T]) sortValue {
	return sortValue{known: q.Valid, number: int64(q.N)}
}

func byTime(t Timestamp, known bool) sortValue {
	return sortValue{known: known, number: int64(t)}
}

var sortValues = map[SortKey]func(r *Record, c *Content, name string) sortValue{
	SortCreatedAt:      func(r *Record, _ *Content, _ string) sortValue { return byTime(r.CreatedAt, true) },
	SortCacheCreatedAt: func(r *Record, _ *Content, _ string) sortValue { return byTime(r.CreatedAt, r.Cached()) },
	SortLastActive: func(r *Record, _ *Content, _ string) sortValue {
		return byTime(cmp.Or(r.RespondedAt, r.CreatedAt), true)
	},
	SortLatency:          func(r *Record, _ *Content, _ string) sortValue { return byNumber(r.Latency) },
	SortTimeToFirstToken: func(r *Record, _ *Content, _ string) sortValue { return byNumber(r.TimeToFirstToken) },
	SortTotalTokens:      func(r *Record, _ *Content, _ string) sortValue { return byNumber(r.Usage.Total()) },
	SortCompletionTokens: func(r *Record, _ *Content, _ string) sortValue { return byNumber(r.Usage.Output) },
	SortPromptTokens:     func(r *Record, _ *Content, _ string) sortValue { return byNumber(r.Usage.Input) },
	SortCost:             func(r *Record, _ *Content, _ string) sortValue { return byNumber(r.Cost) },
	SortUserID:           func(r *Record, _ *Content, _ string) sortValue { return byText(r.UserID) },
	SortBodyModel:        func(r *Record, _ *Content, _ string) sortValue { return byText(r.ResponseModel) },
	SortIsCached: func(r *Record, _ *Content, _ string) sortValue {
		if r.Cached() {
			return byNumber(plugins.Known(1))
		}
		return byNumber(plugins.Known(0))
	},
	SortRequestPrompt: func(r *Record, c *Content, _ string) sortValue { return byText(inputText(r, c)) },
	SortResponseText:  func(r *Record, c *Content, _ string) sortValue { return byText(outputText(r, c)) },
	SortProperties:    func(r *Record, _ *Content, name string) sortValue { return byEntry(r.Properties, name) },
	SortValues:        func(_ *Record, c *Content, name string) sortValue { return byEntry(c.Inputs, name) },
}

// ParseSort reads the field sort of a request query: an object of keys with
// their directions, in the order in which they apply. Absent raw is no key.
// Errors are *FilterError.
func ParseSort(raw []byte) (sorts []Sort, random bool, err error) {
	p := newParser("sort", raw)
	if p.absent() {
		return nil, false, nil
	}
	add := func(s Sort) (err error) {
		if len(sorts) == MaxSortKeys {
			return p.fail("more than %d sort keys", MaxSortKeys)
		}
		s.Desc, err = p.direction()
		sorts = append(sorts, s)
		return err
	}
	err = p.object(func(key string) error {
		if key == "random" {
			return p.into(key, func() error {
				random, err = p.boolean()
				return err
			})
		}
		k := SortKey(key)
		if _, ok := sortValues[k]; !ok {
			return p.fail("%s", Unknown("key", key, append(slices.Sorted(maps.Keys(sortValues)), "random")))
		}
		return p.into(key, func() error {
			if k != SortProperties && k != SortValues {
				return add(Sort{Key: k})
			}
			return p.object(func(name string) error {
				return p.into(name, func() error { return add(Sort{Key: k, Name: name}) })
			})
		})
	})
	if err == nil {
		err = p.end()
	}
	if err != nil {
		return nil, false, err
	}
	return sorts, random, nil
}
