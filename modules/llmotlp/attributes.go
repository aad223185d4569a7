package llmotlp

import (
	"encoding/json"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// attributes are values by their key. If a method takes several keys, they are the names that
// conventions have for one thing: the first key with a value counts.
type attributes map[string]*commonpb.AnyValue

// add adds the attributes whose keys are not known yet.
func (a attributes) add(list []*commonpb.KeyValue) {
	for _, kv := range list {
		if _, known := a[kv.GetKey()]; !known && kv.GetValue() != nil {
			a[kv.Key] = kv.Value
		}
	}
}

// text is a scalar as text, "" without one.
func (a attributes) text(keys ...string) string {
	for _, key := range keys {
		if text := scalar(a[key]); text != "" {
			return text
		}
	}
	return ""
}

// texts is a list of scalars; one scalar is a list, too.
func (a attributes) texts(key string) []string {
	list := a[key].GetArrayValue()
	if list == nil {
		if text := scalar(a[key]); text != "" {
			return []string{text}
		}
		return nil
	}
	var texts []string
	for _, v := range list.Values {
		texts = append(texts, scalar(v))
	}
	return texts
}

// identity is a text that is equal for equal attributes.
func (a attributes) identity() string {
	var b []byte
	for _, key := range slices.Sorted(maps.Keys(a)) {
		b = appendJSON(append(appendText(b, key), ':'), a[key], 0)
	}
	return string(b)
}

func stringValue(text string) *commonpb.AnyValue {
	return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: text}}
}

func scalar(v *commonpb.AnyValue) string {
	switch v := v.GetValue().(type) {
	case *commonpb.AnyValue_StringValue:
		return v.StringValue
	case *commonpb.AnyValue_IntValue:
		return strconv.FormatInt(v.IntValue, 10)
	case *commonpb.AnyValue_DoubleValue:
		return strconv.FormatFloat(v.DoubleValue, 'g', -1, 64)
	case *commonpb.AnyValue_BoolValue:
		return strconv.FormatBool(v.BoolValue)
	}
	return ""
}

// number is a number, also one that came as text.
func (a attributes) number(keys ...string) (float64, bool) {
	n, err := strconv.ParseFloat(a.text(keys...), 64)
	return n, err == nil && !math.IsNaN(n) && !math.IsInf(n, 0)
}

// count is a whole number that is not negative.
func (a attributes) count(keys ...string) plugins.Count {
	n, ok := a.number(keys...)
	if !ok || n < 0 || n >= 1<<53 || n != math.Trunc(n) {
		return plugins.Count{}
	}
	return plugins.Known(int64(n))
}

func (a attributes) flag(keys ...string) bool { return strings.EqualFold(a.text(keys...), "true") }

// json returns a value as JSON, nil for a text that is not JSON. A text may be JSON already:
// conventions write lists and objects as text for SDKs without structured values.
func (a attributes) json(keys ...string) json.RawMessage {
	for _, key := range keys {
		v := a[key]
		if v == nil {
			continue
		}
		text, ok := v.Value.(*commonpb.AnyValue_StringValue)
		if !ok {
			return appendJSON(nil, v, 0)
		}
		if json.Valid([]byte(text.StringValue)) { // bounds the depth, too
			return []byte(text.StringValue)
		}
	}
	return nil
}

// object are the members of an object, as text.
func (a attributes) object(keys ...string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		v := gjson.ParseBytes(a.json(keys...))
		if !v.IsObject() {
			return
		}
		v.ForEach(func(name, value gjson.Result) bool { return yield(name.Str, value.String()) })
	}
}

// list has an element for each n of the attributes `<prefix><n>.<rest>`, in the
// order of n, with its values by `<rest>`.
func (a attributes) list(prefix string) []attributes {
	var elements map[int]attributes // most messages have none
	for key, v := range a {
		rest, ok := strings.CutPrefix(key, prefix)
		if !ok {
			continue
		}
		index, rest, ok := strings.Cut(rest, ".")
		n, err := strconv.Atoi(index)
		if !ok || err != nil || n < 0 {
			continue
		}
		if elements == nil {
			elements = make(map[int]attributes)
		}
		if elements[n] == nil {
			elements[n] = make(attributes)
		}
		elements[n][rest] = v
	}
	if elements == nil {
		return nil
	}
	var list []attributes
	for _, n := range slices.Sorted(maps.Keys(elements)) {
		list = append(list, elements[n])
	}
	return list
}

// deepest is how far values may be nested. Deeper values become null.
const deepest = 64

func appendJSON(b []byte, v *commonpb.AnyValue, depth int) []byte {
	if depth > deepest {
		return append(b, "null"...)
	}
	switch kind := v.GetValue().(type) {
	case *commonpb.AnyValue_StringValue:
		return appendText(b, kind.StringValue)
	case *commonpb.AnyValue_ArrayValue:
		b = append(b, '[')
		for i, element := range kind.ArrayValue.GetValues() {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, element, depth+1)
		}
		return append(b, ']')
	case *commonpb.AnyValue_KvlistValue:
		b = append(b, '{')
		for i, kv := range kind.KvlistValue.GetValues() {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendText(b, kv.GetKey()), ':')
			b = appendJSON(b, kv.GetValue(), depth+1)
		}
		return append(b, '}')
	case *commonpb.AnyValue_DoubleValue:
		if math.IsNaN(kind.DoubleValue) || math.IsInf(kind.DoubleValue, 0) {
			return append(b, "null"...)
		}
		number, _ := json.Marshal(kind.DoubleValue) // every other number marshals
		return append(b, number...)
	case *commonpb.AnyValue_BytesValue:
		text, _ := json.Marshal(kind.BytesValue) // bytes always marshal
		return append(b, text...)
	}
	if text := scalar(v); text != "" {
		return append(b, text...)
	}
	return append(b, "null"...)
}

func appendText(b []byte, text string) []byte {
	quoted, _ := translate.Encode(text) // text always marshals
	return append(b, quoted...)
}
