package llmquery_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/weirhq/weir/storage"
)

var sampleOf = map[storage.Kind]string{
	storage.Text: `"x"`, storage.Number: `1`, storage.Time: `"2026-11-20"`, storage.Boolean: `true`,
	storage.ContainsText: `"x"`, storage.PropertyKey: `"x"`,
}

func leafOf(f *storage.Field, op storage.Operator, value string) string {
	leaf := fmt.Sprintf(`{%q:%s}`, op, value)
	if f.Map {
		leaf = `{"some-name":` + leaf + `}`
	}
	if f.Name != "" {
		leaf = fmt.Sprintf(`{%q:%s}`, f.Name, leaf)
	}
	return fmt.Sprintf(`{%q:%s}`, f.Group, leaf)
}

func (d *description) expect(t *testing.T, schema, text string, valid bool) {
	t.Helper()
	if err := d.check(schema, "filter", valueOf(text)); (err == nil) != valid {
		t.Errorf("%s: %v, want valid = %t", text, err, valid)
	}
}

func valueOf(text string) (v any) {
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		panic(err)
	}
	return v
}
