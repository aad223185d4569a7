package translate_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// What a provider gets takes all that the alternatives take, and nothing that they all need is lost.
func TestOneObject(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"}]}}}`: `{"type":"object","properties":{"a":{"anyOf":[{"type":"string"}]}}}`,
		`{"description":"d","required":["x"],"anyOf":[{"properties":{"a":{},"c":{"type":"string"}},"required":["a","c"]},{"properties":{"b":{},"c":{"type":"integer"}},"required":["c","b"]}]}`: `{"type":"object","description":"d","properties":{"a":{},"c":{"anyOf":[{"type":"string"},{"type":"integer"}]},"b":{}},"required":["c","x"]}`,
		`{"allOf":[{"properties":{"a":{}},"required":["a"]},{"properties":{"b":{}},"required":["b"]}],"additionalProperties":false}`:                                                            `{"type":"object","additionalProperties":false,"properties":{"a":{},"b":{}},"required":["a","b"]}`,
		`{"oneOf":[{"$ref":"#/$defs/A.b"},{"type":"string"}],"$defs":{"A.b":{"properties":{"a":{}}}}}`:                                                                                          `{"type":"object","$defs":{"A.b":{"properties":{"a":{}}}},"properties":{"a":{}}}`,
		`{"oneOf":[{"$ref":"#/$defs/A%20%C3%A4"},{"type":"string"}],"$defs":{"A ä":{"properties":{"a":{}}}}}`:                                                                                   `{"type":"object","$defs":{"A ä":{"properties":{"a":{}}}},"properties":{"a":{}}}`,
		`{"anyOf":[{"$ref":"#"},{"anyOf":[{"properties":{"a":{}}}]}]}`:                                                                                                                          `{"type":"object","properties":{"a":{}}}`,
		// a base that two alternatives share, and a $ref that has properties beside it
		`{"anyOf":[{"allOf":[{"$ref":"#/$defs/a~1b"},{"required":["x"]}]},{"$ref":"#/$defs/a~1b","properties":{"y":{}}}],"$defs":{"a/b":{"properties":{"k":{}},"required":["k"]}}}`: `{"type":"object","$defs":{"a/b":{"properties":{"k":{}},"required":["k"]}},"properties":{"k":{},"y":{}},"required":["k"]}`,
		// one flat anyOf, without duplicates
		`{"oneOf":[{"properties":{"x":{"const":1}}},{"properties":{"x":{"const":2}}},{"properties":{"x":{"const":1}}},{"properties":{"x":{"const":3}}}]}`: `{"type":"object","properties":{"x":{"anyOf":[{"const":1},{"const":2},{"const":3}]}}}`,
		// a key that is escaped
		`{"a\"b":1,"anyOf":[{"properties":{"a":{}}}]}`: `{"type":"object","a\"b":1,"properties":{"a":{}}}`,
		`{"anyOf":[]}`: `{"type":"object","properties":{}}`,
	} {
		if got, _, _ := translate.OneObject([]byte(schema), new(int)); string(got) != want {
			t.Errorf("%s\ngot  %s\nwant %s", schema, got, want)
		}
	}
}

// A schema that refers to itself many times is read once, and alternatives without end are refused.
func TestOneObjectIsBounded(t *testing.T) {
	recursive := strings.TrimSuffix(strings.Repeat(`{"$ref":"#/$defs/A"},`, 30), ",")
	deep := strings.Repeat(`{"anyOf":[`, 2500) + "{}" + strings.Repeat(`]}`, 2500)
	var names strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&names, `"%d",`, i)
	}
	references := strings.Repeat(`{"$ref":"#/$defs/A"},`, 300)
	for schema, want := range map[string]string{
		`{"$defs":{"A":{"required":[` + strings.TrimSuffix(names.String(), ",") + `]}},"allOf":[` + strings.TrimSuffix(references, ",") + `]}`: "tools[0].parameters",
		`{"$defs":{"A":{"properties":{"a":{}},"anyOf":[` + recursive + `]}},"anyOf":[{"$ref":"#/$defs/A"}]}`:                                   "",
		deep: "tools[0].parameters",
	} {
		p, err := translate.ParseRequest([]byte(`{"model":"m","input":"hi","tools":[{"type":"function","name":"lookup","parameters":` + schema + `}]}`))
		if err != nil {
			t.Fatal(err)
		}
		err = p.FitCalls(translate.CallRules{OneObject: true})
		refusal, refused := errors.AsType[*plugins.Error](err)
		switch {
		case want == "" && (err != nil || !strings.Contains(string(p.Tools[0].Parameters), `"properties":{"a":{}}}`)):
			t.Errorf("%.80s: got %v, parameters %.80s", schema, err, p.Tools[0].Parameters)
		case want != "" && (!refused || refusal.Status != 400 || refusal.Param != want || !strings.Contains(refusal.Message, "'lookup'")):
			t.Errorf("%.80s: got %v, want a 400 that names the tool", schema, err)
		}
	}
}
