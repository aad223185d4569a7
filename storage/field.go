package storage

import (
	"iter"
	"slices"

	"github.com/weirhq/weir/plugins/transcript"
)

// Field is one field of one group. Fields are compared by pointer: there is one
// *Field for each field of a group.
type Field struct {
	Group Group
	// Name is empty where the group itself is a map (properties, values).
	Name string
	Kind Kind
	// Map is true when leaves name a key within the field (properties, scores).
	Map bool
	// Content is what the value comes from of the bodies, which costs reading
	// them; 0 when it comes from the record.
	Content ContentPart
	// Column is what the field compares, nil if that is no column.
	Column *Column

	// At most one of these is set, none for the groups of aggregates.
	text    func(*Record, *Content) string
	body    func(*Content) *Body
	list    func(*Record) []string
	entries func(*Record, *Content) map[string]string
	number  func(r *Record, key string) (float64, bool)
	time    func(*Record) Timestamp
	boolean func(*Record) (value, known bool)
}

// Fields are the fields of all groups, group by group. The slice
// is the package's own; do not change it.
func Fields() []*Field { return fields }

// LookupField finds a field by its group and name, nil if there is none.
func LookupField(g Group, name string) *Field {
	return fieldsByName[fieldName{g, name}]
}

// Applies is false for the fields of users and sessions, which no single record
// has.
func (f *Field) Applies() bool {
	return f.Group != UsersView && f.Group != SessionsView
}

// Texts yields the texts which a leaf with this field and key compares, any of
// which makes it true: the one text of a plain field, "" when the record lacks
// it; the value under key of a map, none when it lacks the key; each of a list. c
// is needed for content fields alone, and is nil when nothing was kept.
func (f *Field) Texts(r *Record, c *Content, key string) iter.Seq[string] {
	return func(yield func(string) bool) {
		switch {
		case f.text != nil:
			yield(f.text(r, orNone(c)))
		case f.body != nil:
			yield(string(new(transcript.Unescaper).SearchText(f.body(orNone(c)).Data)))
		case f.list != nil:
			slices.Values(f.list(r))(yield)
		case f.entries != nil:
			if s, ok := f.entries(r, orNone(c))[key]; ok {
				yield(s)
			}
		}
	}
}

// none is the content of records without any.
var none Content

func orNone(c *Content) *Content {
	if c == nil {
		return &none
	}
	return c
}

// Number is the value of a number field, false when the record lacks it. key
// names the score for the field scores.
func (f *Field) Number(r *Record, key string) (float64, bool) {
	if f.number == nil {
		return 0, false
	}
	return f.number(r, key)
}

// Time is the value of a timestamp field, 0 when the record lacks it.
func (f *Field) Time(r *Record) Timestamp {
	if f.time == nil {
		return 0
	}
	return f.time(r)
}

// Bool is the value of a boolean field; known is false when the record lacks it.
func (f *Field) Bool(r *Record) (value, known bool) {
	if f.boolean == nil {
		return false, false
	}
	return f.boolean(r)
}
