package plugins

import (
	"encoding/json"
	"unsafe"
)

// WithModel is the data of an object, or a copy of it that asks for model and is the same byte
// for byte in all else. An object may name its model twice, and readers differ in which
// one counts.
func WithModel(object *Object, model string) []byte {
	name, _ := json.Marshal(model) // a string
	var edited []byte
	body, rest := object.Data, 0
	for _, m := range object.Members {
		if v := m.Value; m.Name == "model" && v.Raw != string(name) {
			if edited == nil {
				edited = make([]byte, 0, len(body)+len(name))
			}
			edited = append(edited, body[rest:v.Index]...)
			edited = append(edited, name...)
			rest = v.Index + len(v.Raw)
		}
	}
	if edited == nil {
		return body
	}
	return append(edited, body[rest:]...)
}

// View returns the bytes as a string without a copy. The string is valid as long as the
// bytes do not change.
func View(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
