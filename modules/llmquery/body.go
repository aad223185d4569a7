package llmquery

import (
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/intake"
	"github.com/weirhq/weir/storage"
)

// body reads the fields of a JSON object in a query's body. Fields are optional, and null counts
// as absent. A field that no method reads is an error: spelt right, it would change the answer.
// The first error is kept.
type body struct {
	fields    map[string]gjson.Result
	names     []string // of the fields, in their order
	readNames []string // the names that were read, whether or not the body has them
	path      string   // in front of the names of fields
	place     string   // in front of errors about the object
	inner     []*body
	call      *call // nil for an object within another
	err       *error
}

func (c *call) body() (*body, error) {
	if err := intake.CheckJSON(c.sent); err != nil {
		return nil, badRequest("%v", err)
	}
	object := gjson.ParseBytes(c.sent)
	if !object.IsObject() {
		return nil, badRequest("the body is no JSON object")
	}
	b := newBody(object, new(error))
	b.call = c
	return b, nil
}

func newBody(object gjson.Result, err *error) *body {
	b := &body{fields: make(map[string]gjson.Result), err: err}
	object.ForEach(func(name, field gjson.Result) bool {
		b.names = append(b.names, name.Str)
		b.fields[name.Str] = field
		return true
	})
	return b
}

// finish returns the first error. An unknown field comes before other errors. finish must be
// called after all fields were read.
func (b *body) finish() error {
	if err := b.unknown(); err != nil {
		return err
	}
	return *b.err
}

func (b *body) unknown() error {
	for _, name := range b.names {
		if !slices.Contains(b.readNames, name) {
			return badRequest("%s%s", b.place, storage.Unknown("field", name, b.readNames))
		}
	}
	for _, inner := range b.inner {
		if err := inner.unknown(); err != nil {
			return err
		}
	}
	return nil
}

// json is the JSON text of a field, nil when it is absent.
func (b *body) json(name string) []byte {
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
		b.expect(name, "an object", field)
	}
	inner := newBody(field, b.err)
	inner.path, inner.place = name+".", name+": "
	b.inner = append(b.inner, inner)
	return inner
}

// text is false when the field is absent.
func (b *body) text(name string) (string, bool) {
	field, ok := b.field(name)
	if ok && field.Type != gjson.String {
		b.expect(name, "a string", field)
	}
	return field.Str, ok
}

// texts reads an array of one to most texts.
func (b *body) texts(name string, limit int) (texts []string) {
	field, _ := b.field(name)
	for _, element := range field.Array() {
		if element.Type != gjson.String || !field.IsArray() {
			b.expect(name, "an array of strings", field)
			return nil
		}
		texts = append(texts, element.Str)
	}
	if len(texts) == 0 || len(texts) > limit {
		b.fail(name, "an array of 1 to %d strings is expected", limit)
	}
	return texts
}

// boolean is nil when the field is absent.
func (b *body) boolean(name string) *bool {
	field, ok := b.field(name)
	if !ok {
		return nil
	}
	if !field.IsBool() {
		b.expect(name, "a boolean", field)
		return nil
	}
	value := field.Bool()
	return &value
}

// flag is a boolean that is false when it is absent.
func (b *body) flag(name string) bool {
	value := b.boolean(name)
	return value != nil && *value
}

// includeContent reports whether records come with their bodies: they do unless the body says no.
func (b *body) includeContent() bool {
	value := b.boolean("includeContent")
	return value == nil || *value
}

// number is absent when the field is.
func (b *body) number(name string, absent float64) float64 {
	field, ok := b.field(name)
	if !ok {
		return absent
	}
	if field.Type != gjson.Number {
		b.expect(name, "a number", field)
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

// zone reads the name of a time zone, or its difference in minutes; absent, it is UTC.
func (b *body) zone(difference string) storage.Zone {
	const name = "timezone"
	_, fixed := b.field(difference)
	if _, named := b.field(name); named && !fixed {
		return parsed(b, name, storage.ParseTimezone, storage.Zone{})
	} else if named {
		b.fail(name, "a time zone has a name or a %s, not both", difference)
	}
	zone, err := storage.ParseZone(b.number(difference, 0))
	if err != nil {
		b.fail(difference, "%v", err)
	}
	return zone
}

// window reads the time filter of most queries.
func (b *body) window() storage.Window {
	return b.unixWindow("startTimeUnixMs", "endTimeUnixMs", time.Millisecond)
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
	if _, ok := b.field(name); !ok {
		return absent
	}
	at, err := storage.ParseUnixTime(b.number(name, 0), unit)
	if err != nil {
		b.fail(name, "%v", err)
	}
	return at
}

// readCursor reads the cursor after which a query continues.
func (b *body) readCursor(q interface{ ContinueAfter(string) error }) {
	if cursor, ok := b.text("after"); ok {
		if err := q.ContinueAfter(cursor); err != nil {
			b.fail("after", "%v", err)
		}
	}
}

// parsed reads a text field by a function; absent, it is the value given.
func parsed[T any](b *body, name string, parse func(string) (T, error), absent T) T {
	text, ok := b.text(name)
	if !ok {
		return absent
	}
	value, err := parse(text)
	if err != nil {
		b.fail(name, "%v", err)
	}
	return value
}

// series reads what the queries over time have in common.
func (b *body) series() storage.Series {
	return storage.Series{
		Quantile:      parsed(b, "pSize", storage.ParseQuantile, storage.DefaultQuantile),
		Interquartile: b.flag("useInterquartile"),
		Distribution:  b.flag("distribution"),
	}
}

func (b *body) field(name string) (gjson.Result, bool) {
	if !slices.Contains(b.readNames, name) {
		b.readNames = append(b.readNames, name)
	}
	field := b.fields[name]
	if field.Type == gjson.Null {
		return gjson.Result{}, false
	}
	return field, true
}

// expect rejects the body because a field has the wrong type.
func (b *body) expect(name, what string, got gjson.Result) {
	text := got.Raw
	switch {
	case got.IsObject():
		text = "an object"
	case got.IsArray():
		text = "an array"
	case len(text) > 80:
		text = "a longer " + strings.ToLower(got.Type.String())
	}
	b.fail(name, "%s is expected, not %s", what, text)
}

// fail rejects the body because of the value of a field.
func (b *body) fail(name, format string, args ...any) {
	b.reject("%s%s: "+format, append([]any{b.path, name}, args...)...)
}

// refuse rejects the body because a part of the body could not be read.
func (b *body) refuse(err error) {
	if errors.Is(err, errContent) && *b.err == nil {
		*b.err = err
	}
	b.reject("%v", err)
}

func (b *body) reject(format string, args ...any) {
	if *b.err == nil {
		*b.err = badRequest(format, args...)
	}
}
