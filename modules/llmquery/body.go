package llmquery

import (
	"encoding/json"
	"math"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/storage"
)

// body reads the fields of a JSON object in a query's body. Fields are
// optional, null counts as absent, and unknown ones are ignored (decisions,
// "Envelope"). The first field that is wrong is kept as the error.
type body struct {
	fields gjson.Result
	path   string // of the object within the body, with a dot behind it
	err    *error
}

func parseBody(raw []byte) (*body, error) {
	var syntax json.RawMessage
	if err := json.Unmarshal(raw, &syntax); err != nil {
		return nil, badRequest("malformed JSON: %v", err)
	}
	fields := gjson.ParseBytes(raw)
	if !fields.IsObject() {
		return nil, badRequest("the body is no JSON object")
	}
	return &body{fields: fields, err: new(error)}, nil
}

// raw is the JSON text of a field, nil when it is absent.
func (b *body) raw(name string) []byte {
	field, ok := b.field(name)
	if !ok {
		return nil
	}
	return []byte(field.Raw)
}

// object is a field that holds another object, empty when it is absent.
func (b *body) object(name string) *body {
	field, ok := b.field(name)
	if ok && !field.IsObject() {
		b.fail(name, "an object is expected, not %s", field.Raw)
	}
	return &body{fields: field, path: b.path + name + ".", err: b.err}
}

// text is "" when the field is absent.
func (b *body) text(name string) string {
	field, ok := b.field(name)
	if !ok {
		return ""
	}
	if field.Type != gjson.String {
		b.fail(name, "a string is expected, not %s", field.Raw)
	}
	return field.Str
}

// boolean is nil when the field is absent.
func (b *body) boolean(name string) *bool {
	field, ok := b.field(name)
	if !ok {
		return nil
	}
	if !field.IsBool() {
		b.fail(name, "a boolean is expected, not %s", field.Raw)
		return nil
	}
	value := field.Bool()
	return &value
}

// flag is a boolean that is off when it is absent.
func (b *body) flag(name string) bool {
	value := b.boolean(name)
	return value != nil && *value
}

// number is absent when the field is.
func (b *body) number(name string, absent float64) float64 {
	field, ok := b.field(name)
	if !ok {
		return absent
	}
	if field.Type != gjson.Number {
		b.fail(name, "a number is expected, not %s", field.Raw)
		return absent
	}
	return field.Num
}

// integer reads a whole number from zero to limit, both included.
func (b *body) integer(name string, absent, limit int) int {
	n := b.number(name, float64(absent))
	switch {
	case n == math.Trunc(n) && n >= 0 && n <= float64(limit):
		return int(min(n, math.MaxInt32))
	case limit == math.MaxInt:
		b.fail(name, "a whole number that is not negative is expected, not %v", n)
	default:
		b.fail(name, "a whole number from 0 to %d is expected, not %v", limit, n)
	}
	return absent
}

// zone reads a time zone difference in minutes; absent, it is UTC.
func (b *body) zone(name string) storage.Zone {
	zone, err := storage.ParseZone(b.number(name, 0))
	if err != nil {
		b.fail(name, "%v", err)
	}
	return zone
}

// unixWindow reads a time filter whose bounds are Unix times. Without a bound,
// the window is open there.
func (b *body) unixWindow(start, end string, unit time.Duration) storage.Window {
	times := b.object("timeFilter")
	return storage.Window{
		From: times.unixTime(start, unit, storage.Always.From),
		To:   times.unixTime(end, unit, storage.Always.To),
	}
}

func (b *body) unixTime(name string, unit time.Duration, absent storage.Timestamp) storage.Timestamp {
	if b.raw(name) == nil {
		return absent
	}
	at, err := storage.ParseUnixTime(b.number(name, 0), unit)
	if err != nil {
		b.fail(name, "%v", err)
	}
	return at
}

// time reads a timestamp.
func (b *body) time(name string, absent storage.Timestamp) storage.Timestamp {
	text := b.text(name)
	if text == "" {
		return absent
	}
	at, err := storage.ParseTimestamp(text)
	if err != nil {
		b.fail(name, "%v", err)
	}
	return at
}

// increment reads the width of calendar buckets; absent, it is a day.
func (b *body) increment(name string) storage.Increment {
	text := b.text(name)
	if text == "" {
		return storage.ByDay
	}
	increment, err := storage.ParseIncrement(text)
	if err != nil {
		b.fail(name, "%v", err)
	}
	return increment
}

// series reads what the queries over time have in common.
func (b *body) series() storage.Series {
	s := storage.Series{
		Quantile:      storage.DefaultQuantile,
		Interquartile: b.flag("useInterquartile"),
		Distribution:  b.flag("distribution"),
	}
	if pSize := b.text("pSize"); pSize != "" {
		q, err := storage.ParseQuantile(pSize)
		if err != nil {
			b.fail("pSize", "%v", err)
		}
		s.Quantile = q
	}
	return s
}

func (b *body) field(name string) (gjson.Result, bool) {
	field := b.fields.Get(gjson.Escape(name))
	return field, field.Exists() && field.Type != gjson.Null
}

// fail rejects the body for what stands in a field.
func (b *body) fail(name, format string, args ...any) {
	b.reject("%s%s: "+format, append([]any{b.path, name}, args...)...)
}

func (b *body) reject(format string, args ...any) {
	if *b.err == nil {
		*b.err = badRequest(format, args...)
	}
}
