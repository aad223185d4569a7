package storage

import (
	"encoding/json"
	"strconv"
)

// AppendJSON appends a filter in the form that ParseFilter reads.
func AppendJSON(b []byte, f Filter) []byte {
	switch f := f.(type) {
	case *Branch:
		b = AppendJSON(append(b, `{"left":`...), f.Left)
		if f.Or {
			b = append(b, `,"operator":"or","right":`...)
		} else {
			b = append(b, `,"operator":"and","right":`...)
		}
		return append(AppendJSON(b, f.Right), '}')
	case *Leaf:
		return f.appendJSON(b)
	}
	return append(b, `"all"`...)
}

func (l *Leaf) appendJSON(b []byte) []byte {
	keys := []string{string(l.Field.Group)}
	if l.Field.Name != "" {
		keys = append(keys, l.Field.Name)
	}
	if l.Field.Map {
		keys = append(keys, l.Key)
	}
	keys = append(keys, l.Op.String())
	for _, k := range keys {
		b = append(appendString(append(b, '{'), k), ':')
	}
	switch l.Field.Kind {
	case Number:
		b = strconv.AppendFloat(b, l.Number, 'g', -1, 64)
	case Time:
		b = appendString(b, l.Time.String())
	case Boolean:
		b = strconv.AppendBool(b, l.Bool)
	default:
		b = appendString(b, l.Text)
	}
	for range keys {
		b = append(b, '}')
	}
	return b
}

func appendString(b []byte, s string) []byte {
	quoted, _ := json.Marshal(s) // no string fails
	return append(b, quoted...)
}
