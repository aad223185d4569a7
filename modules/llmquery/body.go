package llmquery

import (
	"encoding/json"
	"math"

	"github.com/tidwall/gjson"
)

// body reads the fields of a query's JSON body. Fields are optional, null
// counts as absent, and unknown ones are ignored (decisions, "Envelope"). The
// first field that is wrong is kept as the error.
type body struct {
	fields gjson.Result
	err    error
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
	return &body{fields: fields}, nil
}

// raw is the JSON text of a field, nil when it is absent.
func (b *body) raw(name string) []byte {
	field, ok := b.field(name)
	if !ok {
		return nil
	}
	return []byte(field.Raw)
}

// boolean is nil when the field is absent.
func (b *body) boolean(name string) *bool {
	field, ok := b.field(name)
	if !ok {
		return nil
	}
	if !field.IsBool() {
		b.fail("%s: a boolean is expected, not %s", name, field.Raw)
		return nil
	}
	value := field.Bool()
	return &value
}

// integer reads a whole number from zero to limit, both included.
func (b *body) integer(name string, absent, limit int) int {
	field, ok := b.field(name)
	if !ok {
		return absent
	}
	n := field.Float()
	if field.Type != gjson.Number || n != math.Trunc(n) || n < 0 || n > float64(limit) {
		if limit == math.MaxInt {
			b.fail("%s: a whole number that is not negative is expected, not %s", name, field.Raw)
		} else {
			b.fail("%s: a whole number from 0 to %d is expected, not %s", name, limit, field.Raw)
		}
		return absent
	}
	return int(n)
}

func (b *body) field(name string) (gjson.Result, bool) {
	field := b.fields.Get(gjson.Escape(name))
	return field, field.Exists() && field.Type != gjson.Null
}

func (b *body) fail(format string, args ...any) {
	if b.err == nil {
		b.err = badRequest(format, args...)
	}
}
