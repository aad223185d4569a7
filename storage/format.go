package storage

import (
	"encoding/json"
	"strconv"
)

// AppendJSON appends a filter in the form that ParseFilter reads.
func AppendJSON(b []byte, f Filter) []byte {
	type piece struct {
		before string
		filter Filter // nil for none
	}
	rest := []piece{{filter: f}}
	for len(rest) > 0 {
		next := rest[len(rest)-1]
		rest = rest[:len(rest)-1]
		b = append(b, next.before...)
		switch f := next.filter.(type) {
		case *Branch:
			operator := `,"operator":"and","right":`
			if f.Or {
				operator = `,"operator":"or","right":`
			}
			rest = append(rest, piece{before: "}"}, piece{operator, f.Right}, piece{`{"left":`, f.Left})
		case *Leaf:
			b = f.appendJSON(b)
		case All:
			b = append(b, `"all"`...)
		}
	}
	return b
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
	switch kind := l.Field.Kind; {
	case kind == Boolean || l.Op == IsNull:
		b = strconv.AppendBool(b, l.Bool)
	case kind == Number:
		b = strconv.AppendFloat(b, l.Number, 'g', -1, 64)
	case kind == Time:
		b = appendString(b, l.Time.String())
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
