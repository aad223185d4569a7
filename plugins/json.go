package plugins

import (
	"bytes"
	"encoding/json"

	"github.com/tidwall/gjson"
)

// maxDepth is how deep JSON may be nested, as encoding/json has it.
const maxDepth = 10_000

// ValidJSON reports whether data is JSON that is nested no deeper than 10,000
// levels. Everything that comes from outside must pass it before gjson looks at it:
// gjson goes down by recursion, and a few megabytes of brackets would exhaust the
// stack, which ends the process.
func ValidJSON(data []byte) bool {
	if bytes.Count(data, openArray)+bytes.Count(data, openObject) <= maxDepth {
		return gjson.ValidBytes(data)
	}
	return json.Valid(data)
}

var openArray, openObject = []byte("["), []byte("{")
