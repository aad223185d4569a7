package plugins

import (
	"unsafe"

	"github.com/tidwall/gjson"
)

// MaxHead is how many bytes of a text Heads looks at. An escape counts as one.
const MaxHead = 64

// Heads calls f for each member of an object, or each element of an array with an empty key, as
// gjson's ForEach does, but the Str of a long text is no more than its beginning: to unescape
// whole texts takes most of the time of reading a conversation. Raw has all of a text. Heads
// reports whether v is JSON. There is nothing in a scalar.
func Heads(v gjson.Result, f func(key string, value gjson.Result)) (valid bool) {
	raw := v.Raw
	r := jsonReader{data: unsafe.Slice(unsafe.StringData(raw), len(raw)), deepest: maxDepth}
	var end int
	i := r.space(0)
	switch {
	case i == len(raw):
		return false
	case raw[i] == '{':
		end = r.object(i+1, 1, func(key, keyEnd, value, valueEnd int) {
			f(gjson.Parse(raw[key:keyEnd]).Str, head(raw[value:valueEnd]))
		})
	case raw[i] == '[':
		end = r.array(i+1, 1, func(value, valueEnd int) { f("", head(raw[value:valueEnd])) })
	default:
		end = r.value(i, 0)
	}
	return end >= 0 && r.space(end) == len(raw)
}

// head is gjson.Parse of a valid value, but for the end of a long text.
func head(raw string) gjson.Result {
	switch raw[0] {
	case '{', '[':
		return gjson.Result{Type: gjson.JSON, Raw: raw}
	case '"':
	default:
		return gjson.Parse(raw)
	}
	end, escaped := 1, false
	for last, n := len(raw)-1, 0; end < last && n < MaxHead; n++ { // whoever writes all with escapes hides nothing
		switch {
		case raw[end] != '\\':
			end++
			continue
		case raw[end+1] == 'u':
			end += len(`\u0000`)
		default:
			end += len(`\n`)
		}
		escaped = true
	}
	text := raw[1:end]
	if escaped {
		text = gjson.Parse(raw[:end] + `"`).Str
	}
	return gjson.Result{Type: gjson.String, Raw: raw, Str: text}
}
