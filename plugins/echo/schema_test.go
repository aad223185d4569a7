package echo

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestExampleArguments(t *testing.T) {
	for _, tt := range []struct{ name, schema, want string }{
		{"none", ``, `{}`},
		{"not an object", `[1]`, `{}`},
		{"only what is required", `{"properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["b"]}`, `{"b":"text"}`},
		{"every type", `{"properties":{"s":{"type":"string"},"i":{"type":"integer"},"n":{"type":"number","minimum":2.5},
			"b":{"type":"boolean"},"a":{"type":"array"},"z":{"type":"null"},"o":{"type":"object"}},"required":["s","i","n","b","a","z","o"]}`,
			`{"s":"text","i":1,"n":2.5,"b":true,"a":[],"z":null,"o":{}}`},
		{"literals", `{"properties":{"c":{"const":"x"},"d":{"default":2},"e":{"enum":["up","down"]},"f":{"type":"string","examples":["Oslo"]}},
			"required":["c","d","e","f"]}`, `{"c":"x","d":2,"e":"up","f":"Oslo"}`},
		{"nullable", `{"properties":{"s":{"type":["string","null"]}},"required":["s"]}`, `{"s":"text"}`},
		{"nested", `{"properties":{"p":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]}},"required":["p"]}`, `{"p":{"x":1}}`},
		{"items", `{"properties":{"l":{"type":"array","minItems":1,"items":{"type":"string"}}},"required":["l"]}`, `{"l":["text"]}`},
		{"either", `{"properties":{"u":{"anyOf":[{"type":"integer"},{"type":"string"}]}},"required":["u"]}`, `{"u":1}`},
		{"reference", `{"properties":{"r":{"$ref":"#/$defs/a.b"}},"required":["r"],"$defs":{"a.b":{"type":"boolean"}}}`, `{"r":true}`},
		{"reference to nowhere", `{"properties":{"r":{"$ref":"#/$defs/x"},"s":{"$ref":"http://x"}},"required":["r","s"]}`, `{"r":null,"s":null}`},
		{"without a description", `{"required":["x","x",3]}`, `{"x":null}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(exampleArguments(json.RawMessage(tt.schema))); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestExampleOfRecursiveSchemaIsBounded(t *testing.T) {
	schema := `{"properties":{"a":{"$ref":"#"},"b":{"$ref":"#"},"c":{"$ref":"#"},"d":{"$ref":"#"},"e":{"$ref":"#"},"f":{"$ref":"#"}},
		"required":["a","b","c","d","e","f"]}`
	got := exampleArguments(json.RawMessage(schema))
	if !json.Valid(got) || len(got) > maxExampleRefs*len(schema) {
		t.Errorf("%d bytes, valid: %v", len(got), json.Valid(got))
	}
}

// A schema that refers often to a long value makes no answer of many times its length.
func TestExampleIsBounded(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	var properties, required []string
	for i := range 64 {
		properties = append(properties, fmt.Sprintf(`"p%d":{"$ref":"#/$defs/long"}`, i))
		required = append(required, fmt.Sprintf(`"p%d"`, i))
	}
	schema := `{"$defs":{"long":{"const":"` + long + `"}},"properties":{` + strings.Join(properties, ",") + `},"required":[` + strings.Join(required, ",") + `]}`
	if got := exampleArguments(json.RawMessage(schema)); len(got) > 2<<20 || !json.Valid(got) {
		t.Errorf("%d bytes", len(got))
	}
}
