package sqlite

import (
	"bytes"
	"database/sql/driver"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/storage"
)

// row is a record with what only the database knows of the record.
type row struct {
	record storage.Record
	// n is the key of the table requests; 0 before the record has a key.
	n int64
	// annotated are the properties that annotations set, which also stand in
	// Properties, and annotatedAt is when the newest annotation arrived.
	annotated   map[string]string
	annotatedAt storage.Timestamp
}

// column is one column of requests or details. Zero values are encoded as nil.
// The database has NULL for them where zero means that there is no value.
type column struct {
	name   string
	encode func(*row) driver.Value
	decode func(*row, driver.Value)
	// names is what the column refers to by id, and text the name that a row has
	// there. Such a column decodes a text and encodes nothing.
	names string
	text  func(*row) string
	// required columns have 0 in place of NULL.
	required bool
	// definition is the type in the table.
	definition string
	// seed is the sum of the name, with which the sum of a value begins.
	seed uint32
}

// requestColumns and detailColumns are the columns of the tables but n, which holds
// created_at. The last column is the sum of the others.
var (
	requestColumns = summed(append(columns(storage.Columns), propertyNames))
	detailColumns  = summed(append(columns(storage.DetailColumns), annotationColumns...))
)

// journalColumns and itemColumns are the columns of smaller tables that have a sum, too.
var (
	journalColumns = summed([]column{{name: "journal"}, {name: "segment"}, {name: "ordinal"}})
	itemColumns    = summed([]column{{name: "org"}, {name: "conversation"}, {name: "id"}, {name: "item"}, {name: "added_at"}, {name: "record", definition: "BLOB"}})
)

// summedTables are the tables whose rows have a sum.
var summedTables = map[string][]column{
	"requests": requestColumns, "details": detailColumns, "journals": journalColumns, "conversation_items": itemColumns,
}

func columns(of []*storage.Column) (columns []column) {
	for _, c := range of {
		if c.Name == "created_at" {
			continue
		}
		decode := func(r *row, v driver.Value) { c.Set(&r.record, v) }
		if c.Type() == storage.IDColumn && c.Names != "" {
			decode = func(r *row, v driver.Value) {
				id, _ := uuid.Parse(v.(string))
				c.Set(&r.record, id[:])
			}
		}
		columns = append(columns, column{
			name:       c.Name,
			encode:     func(r *row) driver.Value { return c.Get(&r.record) },
			decode:     decode,
			names:      c.Names,
			text:       func(r *row) string { return c.Text(&r.record) },
			required:   c.NotNull(),
			definition: definition(c),
		})
	}
	return columns
}

// definition is the type of a column that is added to a table, with what the rows have
// that are there.
func definition(c *storage.Column) string {
	switch {
	case c.NotNull():
		return "INTEGER NOT NULL DEFAULT 0"
	case c.Names != "":
		return "INTEGER"
	case c.Type() == storage.TextColumn:
		return "TEXT"
	case c.Type() == storage.IDColumn:
		return "BLOB"
	}
	return "INTEGER"
}

// propertyNames has the names of the properties of a request, without the values. The labels
// have both. There are few different sets of names, so that counting by names is fast.
var propertyNames = column{
	name: "property_names", names: "property_names",
	text: func(r *row) string {
		if len(r.record.Properties) == 0 {
			return ""
		}
		return compactJSON(slices.Sorted(maps.Keys(r.record.Properties)))
	},
}

// annotationColumns are what annotations change, and lists.
var annotationColumns = []column{
	feedback("feedback_id", func(f *storage.Feedback) driver.Value { return f.ID },
		func(f *storage.Feedback, v int64) { f.ID = v }),
	feedback("feedback_rating", func(f *storage.Feedback) driver.Value { return f.Rating },
		func(f *storage.Feedback, v int64) { f.Rating = v != 0 }),
	feedback("feedback_created_at", func(f *storage.Feedback) driver.Value { return int64(f.CreatedAt) },
		func(f *storage.Feedback, v int64) { f.CreatedAt = storage.Timestamp(v) }),
	object("properties", func(r *row) *map[string]string { return &r.record.Properties }, gjson.Result.String),
	object("annotated_properties", func(r *row) *map[string]string { return &r.annotated }, gjson.Result.String),
	{
		name: "annotated_at",
		encode: func(r *row) driver.Value {
			if r.annotatedAt == 0 {
				return nil
			}
			return int64(r.annotatedAt)
		},
		decode: func(r *row, v driver.Value) { r.annotatedAt = storage.Timestamp(v.(int64)) },
	},
	object("scores", func(r *row) *map[string]float64 { return &r.record.Scores }, gjson.Result.Float),
	{
		name: "assets",
		encode: func(r *row) driver.Value {
			if len(r.record.Assets) == 0 {
				return nil
			}
			return compactJSON(r.record.Assets)
		},
		decode: func(r *row, v driver.Value) { _ = json.Unmarshal([]byte(v.(string)), &r.record.Assets) },
	},
}

func feedback(name string, get func(*storage.Feedback) driver.Value, set func(*storage.Feedback, int64)) column {
	return column{
		name: name,
		encode: func(r *row) driver.Value {
			if r.record.Feedback == nil {
				return nil
			}
			return get(r.record.Feedback)
		},
		decode: func(r *row, v driver.Value) {
			if r.record.Feedback == nil {
				r.record.Feedback = new(storage.Feedback)
			}
			set(r.record.Feedback, v.(int64))
		},
	}
}

func object[V any](name string, at func(*row) *map[string]V, value func(gjson.Result) V) column {
	return column{
		name: name,
		encode: func(r *row) driver.Value {
			if m := *at(r); len(m) > 0 {
				return compactJSON(m)
			}
			return nil
		},
		decode: func(r *row, v driver.Value) {
			m := make(map[string]V)
			gjson.Parse(v.(string)).ForEach(func(k, v gjson.Result) bool {
				m[k.String()] = value(v)
				return true
			})
			*at(r) = m
		},
	}
}

// compactJSON writes texts and finite numbers, which never fails.
func compactJSON(v any) string {
	switch v := v.(type) {
	case []string: // this case and the next are written for each record
		b := []byte{'['}
		for i, text := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendText(b, text)
		}
		return string(append(b, ']'))
	case map[string]string:
		b := []byte{'{'}
		for i, name := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendText(b, name), ':')
			b = appendText(b, v[name])
		}
		return string(append(b, '}'))
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // for whoever reads the database
	_ = e.Encode(v)
	return strings.TrimSuffix(b.String(), "\n")
}

// appendText appends a JSON string. Most texts stand in it as they are.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return append(b, compactJSON(s)...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// only are the columns with the given names.
func only(columns []column, names ...string) []column {
	return slices.DeleteFunc(slices.Clone(columns), func(c column) bool { return !slices.Contains(names, c.name) })
}

// columnList is the columns' names, each after the prefix.
func columnList(columns []column, prefix string) string {
	var b strings.Builder
	for i, c := range columns {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(prefix + c.name)
	}
	return b.String()
}

// parameterList is a parameter for each column. What nothing is bound to is NULL.
func parameterList(columns []column) string {
	list := make([]string, len(columns))
	for i, c := range columns {
		if list[i] = "?"; c.required {
			list[i] = "coalesce(?, 0)"
		}
	}
	return strings.Join(list, ", ")
}
