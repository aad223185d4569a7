package demand

import (
	"slices"

	"github.com/tidwall/gjson"
)

// saidFields hold what a model has written, or a summary or a seal of what it thought.
var saidFields = []string{
	"arguments", "encrypted_content", "input", "name", "partial_json", "reasoning", "reasoning_content", "refusal", "signature", "text", "thinking",
}

// Said returns how many bytes of an answer the model has written. The model may have written all
// that is nested too deep to be looked at.
func Said(v gjson.Result) int64 { return saidBelow(v, 0) }

func saidBelow(v gjson.Result, depth int) (n int64) {
	if depth == maxDepth {
		return int64(len(v.Raw))
	}
	v.ForEach(func(key, v gjson.Result) bool {
		switch {
		case slices.Contains(saidFields, key.Str), key.Str == "content" && v.Type == gjson.String:
			n += int64(len(v.Raw))
			if v.Type == gjson.String {
				n -= int64(len(`""`))
			}
		case v.IsObject(), v.IsArray():
			n += saidBelow(v, depth+1)
		}
		return true
	})
	return n
}
