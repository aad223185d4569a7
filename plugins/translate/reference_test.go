package translate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/translate"
)

// However many references a schema has, it is read once for each object on their way.
func TestReferencesReadTheSchemaOnce(t *testing.T) {
	const targets = 1000
	var definitions []string
	for i := range targets {
		definitions = append(definitions, fmt.Sprintf(`"T%d":{"type":"object"}`, i))
	}
	schema := `{"$defs":{` + strings.Join(definitions, ",") + `}}`
	references := translate.References{Root: gjson.Parse(schema)}
	for i := range 10 * targets {
		if v := references.Resolve(fmt.Sprintf("#/$defs/T%d", i%targets)); !v.IsObject() {
			t.Fatalf("T%d is %q", i%targets, v.Raw)
		}
	}
	if references.Read > 2*len(schema) {
		t.Errorf("%d bytes were read of a schema of %d", references.Read, len(schema))
	}
}
