package plugins

import (
	"encoding/json"
	"unsafe"
)

// WithModel returns the data of an object in parts, with model in place of each model that the
// data name. They may name two, and readers differ in which one counts.
func WithModel(object *Object, model string) (parts [][]byte) {
	name, _ := json.Marshal(model) // a string
	rest := 0
	for _, m := range object.Members {
		if v := m.Value; m.Name == "model" && v.Raw != string(name) {
			parts = append(parts, object.Data[rest:v.Index], name)
			rest = v.Index + len(v.Raw)
		}
	}
	return append(parts, object.Data[rest:])
}

// View returns the bytes as a string without a copy. The string is valid as long as the
// bytes do not change.
func View(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
