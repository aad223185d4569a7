package plugins

import (
	"encoding/json"
	"unsafe"

	"github.com/tidwall/gjson"
)

// WithModel is the body, or a copy of it that asks for model and is the same byte
// for byte in all else. A body may name its model twice, and readers differ in which
// one counts.
func WithModel(body []byte, model string) []byte {
	name, _ := json.Marshal(model) // a string
	var edited []byte
	rest := 0
	gjson.Parse(View(body)).ForEach(func(key, v gjson.Result) bool {
		if key.Str == "model" && v.Raw != string(name) {
			if edited == nil {
				edited = make([]byte, 0, len(body)+len(name))
			}
			edited = append(edited, body[rest:v.Index]...)
			edited = append(edited, name...)
			rest = v.Index + len(v.Raw)
		}
		return true
	})
	if edited == nil {
		return body
	}
	return append(edited, body[rest:]...)
}

// View returns the bytes as a string without a copy. The string is valid as long as the
// bytes do not change.
func View(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
