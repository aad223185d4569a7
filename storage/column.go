package storage

import (
	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins"
)

// The columns of each type. at is the way from a record to the value.

func textColumn[T ~string](name string, at func(*Record) *T) *Column {
	return &Column{
		Name: name,
		Type: TextColumn,
		get: func(r *Record) any {
			if s := *at(r); s != "" {
				return string(s)
			}
			return nil
		},
		set:   func(r *Record, v any) { *at(r) = T(v.(string)) },
		text:  func(r *Record) string { return string(*at(r)) },
		value: func(r *Record) Value { return textual(string(*at(r))) },
	}
}

func names(name, kind string, at func(*Record) *string) *Column {
	c := textColumn(name, at)
	c.Names = kind
	return c
}

func integerColumn[T ~int | ~int64 | ~uint8 | ~uint32 | ~uint64](name string, at func(*Record) *T) *Column {
	return &Column{
		Name: name,
		Type: IntegerColumn,
		get: func(r *Record) any {
			if i := *at(r); i != 0 {
				return int64(i)
			}
			return nil
		},
		set: func(r *Record, v any) { *at(r) = T(v.(int64)) },
	}
}

func timeColumn(name string, at func(*Record) *Timestamp) *Column {
	c := integerColumn(name, at)
	c.Type = TimeColumn
	c.time = func(r *Record) Timestamp { return *at(r) }
	c.value = func(r *Record) Value { return whole(*at(r)) }
	return c
}

func endStateColumn() *Column {
	c := integerColumn("end_state", func(r *Record) *EndState { return &r.EndState }).required()
	c.Type = EndStateColumn
	c.text = func(r *Record) string { return r.EndState.String() }
	return c
}

func quantityColumn[T plugins.Unit](name string, at func(*Record) *plugins.Quantity[T]) *Column {
	return &Column{
		Name: name,
		Type: IntegerColumn,
		get: func(r *Record) any {
			if q := at(r); q.Valid {
				return int64(q.N)
			}
			return nil
		},
		set: func(r *Record, v any) { *at(r) = plugins.Quantity[T]{N: T(v.(int64)), Valid: true} },
		number: func(r *Record) (float64, bool) {
			q := at(r)
			return q.Float(), q.Valid
		},
		value: func(r *Record) Value { return exact(*at(r)) },
	}
}

func flagColumn(name string, at func(*Record) *bool) *Column {
	return &Column{
		Name:     name,
		Type:     FlagColumn,
		Required: true,
		get: func(r *Record) any {
			if *at(r) {
				return true
			}
			return nil
		},
		set:  func(r *Record, v any) { *at(r) = v.(int64) != 0 },
		flag: func(r *Record) bool { return *at(r) },
	}
}

func idColumn(name string, at func(*Record) *uuid.UUID) *Column {
	c := &Column{Name: name, Type: IDColumn, set: func(r *Record, v any) { copy(at(r)[:], v.([]byte)) }}
	c.get = func(r *Record) any {
		if id := at(r); c.Required || *id != uuid.Nil {
			return id[:]
		}
		return nil
	}
	c.text = func(r *Record) string {
		if id := at(r); c.Required || *id != uuid.Nil {
			return id.String()
		}
		return ""
	}
	return c
}

// repeated is a column whose values many records share.
func (c *Column) repeated(kind string) *Column {
	c.Names = kind
	return c
}

func (c *Column) required() *Column {
	c.Required = true
	return c
}

// field makes the column a field of a group of filters, in its order.
func (c *Column) field(g Group, name string) *Column {
	c.fields = append(c.fields, fieldName{g, name})
	return c
}

// sortKey makes the column what a key sorts by.
func (c *Column) sortKey(k SortKey) *Column {
	c.sort = k
	return c
}

// columnFields are the fields of a group that compare columns.
func columnFields(g Group) (fields []*Field) {
	for _, c := range Columns {
		for _, f := range c.fields {
			if f.group == g {
				fields = append(fields, c.asField(f.name))
			}
		}
	}
	return fields
}

func (c *Column) asField(name string) *Field {
	f := &Field{Name: name, Column: c, time: c.time}
	switch {
	case c.text != nil:
		f.text = func(r *Record, _ *Content) string { return c.text(r) }
	case c.number != nil:
		f.Kind = Number
		f.number = func(r *Record, _ string) (float64, bool) { return c.number(r) }
	case c.time != nil:
		f.Kind = Time
	case c.flag != nil:
		f.Kind = Boolean
		f.boolean = func(r *Record) (value, known bool) { return c.flag(r), true }
	}
	return f
}
