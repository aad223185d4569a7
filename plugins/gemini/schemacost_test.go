//go:build !race

package gemini

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/translate"
)

// A schema of many parts costs little more than to read it as JSON.
func TestCostOfSchemasIsLinear(t *testing.T) {
	cost := func(do func()) time.Duration {
		least := time.Hour
		for range 3 {
			start := time.Now()
			do()
			least = min(least, time.Since(start))
		}
		return least
	}
	for _, c := range []struct{ name, schema, part string }{
		{"layers", `{"allOf":[%s]}`, `{"x":%d}`},
		{"required names", `{"allOf":[{"required":[%s]}]}`, `"%d"`},
		{"schemas of a property", `{"allOf":[%s]}`, `{"properties":{"a":{"x":%d}}}`},
	} {
		var parts []string
		for i := range maxInlined / (len(c.part) + 4) {
			parts = append(parts, fmt.Sprintf(c.part, 10000+i))
		}
		schema := fmt.Sprintf(c.schema, strings.Join(parts, ","))
		read := cost(func() {
			var v any
			_ = json.Unmarshal([]byte(schema), &v)
		})
		written := cost(func() {
			w := schemaWriter{refs: translate.References{Root: gjson.Parse(schema)}}
			w.appendSchema(nil, w.refs.Root)
		})
		if written > 15*read {
			t.Errorf("%s: %v, and %v to read them", c.name, written, read)
		}
	}
}
