package translate_test

import (
	"testing"

	"github.com/weirhq/weir/plugins/translate"
)

// What a provider gets takes all that the alternatives take, and nothing that they all need is lost.
func TestOneObject(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"}]}}}`: `{"type":"object","properties":{"a":{"anyOf":[{"type":"string"}]}}}`,
		`{"description":"d","required":["x"],"anyOf":[{"properties":{"a":{},"c":{"type":"string"}},"required":["a","c"]},{"properties":{"b":{},"c":{"type":"integer"}},"required":["c","b"]}]}`: `{"type":"object","description":"d","properties":{"a":{},"c":{"anyOf":[{"type":"string"},{"type":"integer"}]},"b":{}},"required":["c","x"]}`,
		`{"allOf":[{"properties":{"a":{}},"required":["a"]},{"properties":{"b":{}},"required":["b"]}],"additionalProperties":false}`:                                                            `{"type":"object","additionalProperties":false,"properties":{"a":{},"b":{}},"required":["a","b"]}`,
		`{"oneOf":[{"$ref":"#/$defs/A.b"},{"type":"string"}],"$defs":{"A.b":{"properties":{"a":{}}}}}`:                                                                                          `{"type":"object","$defs":{"A.b":{"properties":{"a":{}}}},"properties":{"a":{}}}`,
		`{"anyOf":[{"$ref":"#"},{"anyOf":[{"properties":{"a":{}}}]}]}`:                                                                                                                          `{"type":"object","properties":{"a":{}}}`,
		`{"anyOf":[]}`: `{"type":"object","properties":{}}`,
	} {
		if got, _ := translate.OneObject([]byte(schema)); string(got) != want {
			t.Errorf("%s\ngot  %s\nwant %s", schema, got, want)
		}
	}
}
