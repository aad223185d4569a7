package storage

import (
	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins"
)

// Column is one value of a record, with all that is known of it. The codec of the
// journal, the databases, filters, sorts, answers, tables, and the documentation are
// made of the columns of Schema.
type Column struct {
	// Wire is the value's number in journals, which stays taken for ever. A value with
	// Wire 0 is not kept.
	Wire int
	// Name is the column of a database, "" if databases have no column for the value.
	Name string
	// Names is the kind of names in a column of text, such as "model", "" if its texts do
	// not repeat. Columns of the same kind share their texts.
	Names string
	// Detail columns are not added up: answers show them. A Detail column with Filter has
	// values that do not repeat, and an index in databases.
	Detail bool
	// Required columns have their zero value if the value is missing, also in answers.
	Required bool

	// Field is the name in filters and tables, "" if neither has the value.
	Field string
	// Answer is the name in answers, "" if the name is Field.
	Answer string
	// Filter is true for fields of the group RequestResponse; others are the names in
	// other groups.
	Filter bool
	others []fieldName
	// Sort is the key that sorts by the column, "" if no key does.
	Sort SortKey
	// About is a sentence for users. Units are in it.
	About string

	// At returns a pointer to the value in a record. The pointer's type says what the column
	// holds. The pointer to a computed value is new, and nil when the value is unknown.
	At func(*Record) any
}

// ColumnType is what a column of a database holds.
type ColumnType uint8

const (
	// TextColumn is text, "" for none.
	TextColumn ColumnType = iota
	// IntegerColumn is a whole number, which may be unknown.
	IntegerColumn
	// TimeColumn is a Timestamp, 0 for none.
	TimeColumn
	// FlagColumn is true or false.
	FlagColumn
	// IDColumn is a UUID, the zero UUID for none.
	IDColumn
	// EndStateColumn is an EndState.
	EndStateColumn
)

// blank is a record from which columns, also computed columns, tell their types.
var blank = Record{Stream: true, Feedback: new(Feedback)}

// Zero returns a pointer to a value of the column's type, not to be changed: nil if the
// column never has a value.
func (c *Column) Zero() any { return c.At(&blank) }

// Columns are the columns of databases that filters, sorts and groups compare.
// DetailColumns are the columns that only answers show.
var Columns, DetailColumns = func() (compared, details []*Column) {
	for _, c := range Schema {
		switch {
		case c.Name == "":
		case c.Detail:
			details = append(details, c)
		default:
			compared = append(compared, c)
		}
	}
	return compared, details
}()

// Shown is the name in answers, "" if they do not have the value.
func (c *Column) Shown() string {
	if c.Answer != "" {
		return c.Answer
	}
	return c.Field
}

// Type is what a database holds.
func (c *Column) Type() ColumnType {
	switch c.Zero().(type) {
	case *string, *plugins.Dialect, *JSONText:
		return TextColumn
	case *Timestamp:
		return TimeColumn
	case *bool:
		return FlagColumn
	case *uuid.UUID:
		return IDColumn
	case *EndState:
		return EndStateColumn
	}
	return IntegerColumn
}

// NotNull reports whether a database has 0 in the column, not NULL, for a zero value.
func (c *Column) NotNull() bool {
	switch c.Zero().(type) {
	case *bool, *EndState, *int, *int64:
		return true
	case *string:
		return false
	}
	return c.Required
}

// Get is the record's value as a database takes it: an int64, a string, true or
// bytes; nil where it is zero or unknown.
func (c *Column) Get(r *Record) any {
	switch v := c.At(r).(type) {
	case *string:
		return textOrNil(*v)
	case *plugins.Dialect:
		return textOrNil(*v)
	case *JSONText:
		return textOrNil(*v)
	case *plugins.Count:
		return quantityOrNil(*v)
	case *plugins.Duration:
		return quantityOrNil(*v)
	case *plugins.Cost:
		return quantityOrNil(*v)
	case *bool:
		if *v {
			return true
		}
	case *uuid.UUID:
		if c.Required || *v != uuid.Nil {
			return v[:]
		}
	case *Timestamp:
		return integerOrNil(*v)
	case *EndState:
		return integerOrNil(*v)
	case *int:
		return integerOrNil(*v)
	case *int64:
		return integerOrNil(*v)
	case *uint32:
		return integerOrNil(*v)
	case *uint64:
		return integerOrNil(*v)
	}
	return nil
}

func textOrNil[T ~string](s T) any {
	if s == "" {
		return nil
	}
	return string(s)
}

func integerOrNil[T ~int | ~int64 | ~uint8 | ~uint32 | ~uint64](n T) any {
	if n == 0 {
		return nil
	}
	return int64(n)
}

func quantityOrNil[T plugins.Unit](q plugins.Quantity[T]) any {
	if !q.Valid {
		return nil
	}
	return int64(q.N)
}

// Set sets the record's value to what a database answers: what Get answered, or 1 or
// 0 for a flag. It panics when value is of another type.
func (c *Column) Set(r *Record, value any) {
	switch v := c.At(r).(type) {
	case *string:
		*v = value.(string)
	case *plugins.Dialect:
		*v = plugins.Dialect(value.(string))
	case *JSONText:
		*v = JSONText(value.(string))
	case *plugins.Count:
		*v = plugins.Known(value.(int64))
	case *plugins.Duration:
		*v = plugins.Duration{N: plugins.Milliseconds(value.(int64)), Valid: true}
	case *plugins.Cost:
		*v = plugins.KnownCost(plugins.Nanodollars(value.(int64)))
	case *bool:
		*v = value.(int64) != 0
	case *uuid.UUID:
		copy(v[:], value.([]byte))
	case *Timestamp:
		*v = Timestamp(value.(int64))
	case *EndState:
		*v = EndState(value.(int64))
	case *int:
		*v = int(value.(int64))
	case *int64:
		*v = value.(int64)
	case *uint32:
		*v = uint32(value.(int64))
	case *uint64:
		*v = uint64(value.(int64))
	}
}

// Text is the value of a column of text, or of an id or an end state as text.
func (c *Column) Text(r *Record) string {
	switch v := c.At(r).(type) {
	case *string:
		return *v
	case *EndState:
		return v.String()
	case *uuid.UUID:
		if c.Required || *v != uuid.Nil {
			return v.String()
		}
	}
	return ""
}

// value is a record's value for sorting by the column.
func (c *Column) value(r *Record) Value {
	switch v := c.At(r).(type) {
	case *string:
		return textual(*v)
	case *Timestamp:
		return integer(*v)
	case *plugins.Count:
		return exact(*v)
	case *plugins.Duration:
		return exact(*v)
	case *plugins.Cost:
		return exact(*v)
	}
	return Value{}
}

// columnFields are the fields of a group that columns have.
func columnFields(g Group) (fields []*Field) {
	for _, c := range Schema {
		if c.Filter && g == RequestResponse {
			fields = append(fields, c.asField(c.Field))
		}
		for _, f := range c.others {
			if f.group == g {
				fields = append(fields, c.asField(f.name))
			}
		}
	}
	return fields
}

func (c *Column) asField(name string) *Field {
	f := &Field{Name: name, About: c.About}
	if c.Name != "" {
		f.Column = c
	}
	switch c.Zero().(type) {
	case *plugins.Count, *plugins.Duration, *plugins.Cost:
		_, f.Money = c.Zero().(*plugins.Cost)
		f.Kind = Number
		f.number = func(r *Record, _ string) Value { return c.value(r) }
	case *Timestamp:
		f.Kind = Time
		f.time = func(r *Record) Timestamp { return *c.At(r).(*Timestamp) }
	case *bool:
		f.Kind = Boolean
		f.boolean = func(r *Record) (value, known bool) { return *c.At(r).(*bool), true }
	default:
		f.text = func(r *Record, _ *Content) string { return c.Text(r) }
	}
	return f
}
