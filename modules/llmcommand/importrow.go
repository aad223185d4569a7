package llmcommand

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// row is a row of an export. It remembers which fields were read, and which values had a wrong
// type: such values are unknown. CSV, and some databases, write numbers and times as texts.
type row struct {
	fields map[string]gjson.Result
	read   map[string]bool // names of fields
	wrong  map[string]bool // paths of values
}

// newRow names the fields by name.
func newRow(object gjson.Result, name func(string) string) *row {
	r := &row{make(map[string]gjson.Result), make(map[string]bool), make(map[string]bool)}
	object.ForEach(func(field, value gjson.Result) bool {
		r.fields[name(field.Str)] = value
		return true
	})
	return r
}

// get returns the value at a path of names with dots between them.
func (r *row) get(path string) gjson.Result {
	name, rest, nested := strings.Cut(path, ".")
	r.read[name] = true
	if nested {
		return structure(r.fields[name]).Get(rest)
	}
	return r.fields[name]
}

// keep returns the named fields that the row has. The rest of the row need not stay in memory.
func (r *row) keep(names ...string) map[string]gjson.Result {
	fields := make(map[string]gjson.Result)
	for _, name := range names {
		if value := r.get(name); value.Exists() {
			text, _ := json.Marshal(json.RawMessage(value.Raw)) // cannot fail: the value was JSON
			fields[name] = gjson.ParseBytes(text)
		}
	}
	return fields
}

// structure is an object or an array that a text may hold.
func structure(v gjson.Result) gjson.Result {
	if v.Type == gjson.String && plugins.ValidJSON([]byte(v.Str)) {
		return gjson.Parse(v.Str)
	}
	return v
}

// members returns the members of an object, none if there is no object.
func (r *row) members(path string) map[string]gjson.Result {
	v := structure(r.get(path))
	switch {
	case v.IsObject():
		return v.Map()
	case !blank(v):
		r.wrong[path] = true
	}
	return nil
}

// list returns the elements of an array, none if there is no array.
func (r *row) list(path string) []gjson.Result {
	v := structure(r.get(path))
	switch {
	case v.IsArray():
		return v.Array()
	case !blank(v):
		r.wrong[path] = true
	}
	return nil
}

// text returns a text, or a number or a truth value as text.
func (r *row) text(path string) string {
	v := r.get(path)
	if v.IsObject() || v.IsArray() {
		if !blank(v) {
			r.wrong[path] = true
		}
		return ""
	}
	return v.String()
}

// number returns a number. It is false if the row has none.
func (r *row) number(path string) (float64, bool) { return r.asNumber(path, r.get(path)) }

// asNumber is number for a value that was read.
func (r *row) asNumber(path string, v gjson.Result) (float64, bool) {
	switch text := strings.TrimSpace(v.String()); {
	case text == "" || strings.EqualFold(text, "null"):
		return 0, false
	case v.Type == gjson.Number || v.Type == gjson.String:
		if n, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(n) && !math.IsInf(n, 0) {
			return n, true
		}
	}
	r.wrong[path] = true
	return 0, false
}

// asScore is asNumber for a score, which may be a truth value.
func (r *row) asScore(path string, v gjson.Result) (float64, bool) {
	if v.IsBool() {
		return v.Float(), true
	}
	return r.asNumber(path, v)
}

// count returns a whole number that is not negative. It is false if the row has none.
func (r *row) count(path string) (int64, bool) {
	n, ok := r.number(path)
	if ok && (n < 0 || n >= 1<<53 || n != math.Trunc(n)) {
		r.wrong[path] = true
		return 0, false
	}
	return int64(n), ok
}

// milliseconds returns a duration of at most a year. It is false if the row has none.
func (r *row) milliseconds(path string) (time.Duration, bool) {
	n, ok := r.count(path)
	if n > (365 * 24 * time.Hour).Milliseconds() {
		r.wrong[path] = true
		return 0, false
	}
	return time.Duration(n) * time.Millisecond, ok
}

// flag is true if the value is true.
func (r *row) flag(path string) bool {
	yes, _ := r.truth(path)
	return yes
}

// truth returns a truth value. It is known if the row has one.
func (r *row) truth(path string) (yes, known bool) {
	switch v := r.get(path); strings.ToLower(v.String()) {
	case "true", "false":
		return strings.EqualFold(v.String(), "true"), true
	case "", "null", "none":
	default:
		r.wrong[path] = true
	}
	return false, false
}

// timeLayouts are the forms of times in exports: RFC 3339, and SQL's form, which is in UTC.
var timeLayouts = []string{time.RFC3339, "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05Z07", "2006-01-02T15:04:05", time.DateTime}

// time returns a time, zero if the row has none.
func (r *row) time(path string) time.Time {
	v := r.get(path)
	for _, layout := range timeLayouts {
		if at, err := time.Parse(layout, v.String()); err == nil {
			return at
		}
	}
	if !blank(v) {
		r.wrong[path] = true
	}
	return time.Time{}
}

// body returns a body as text, "" if it is empty.
func (r *row) body(path string) string { return bodyOf(r.get(path)) }

func bodyOf(v gjson.Result) string {
	if blank(v) {
		return ""
	}
	return v.String()
}

const noUUID = "00000000-0000-0000-0000-000000000000"

// blank reports whether a value says nothing: null, "", {}, [], 0, false or the zero UUID.
func blank(v gjson.Result) bool {
	switch {
	case v.IsObject():
		return len(v.Map()) == 0
	case v.IsArray():
		return len(v.Array()) == 0
	}
	return v.String() == "" || v.Str == noUUID || v.Type == gjson.Number && v.Num == 0 || v.Type == gjson.False
}
