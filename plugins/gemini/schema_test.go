package gemini

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/plugins/translate"
)

// The provider refuses what stands beside a reference, allOf and const, in the schemas of tools
// and of answers.
func TestSchemasThatTheProviderTakes(t *testing.T) {
	const defs = `"$defs":{"T":{"type":"string","description":"t"}}`
	for name, c := range map[string]struct{ schema, want, warning string }{
		"a reference alone": {`{"type":"object","properties":{"a":{"$ref":"#/$defs/T"}},` + defs + `}`,
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/T"}},` + defs + `}`, ""},
		"a description beside a reference": {`{"type":"object","properties":{"a":{"$ref":"#/$defs/T","description":"d"}},` + defs + `}`,
			`{"type":"object","properties":{"a":{"description":"d","type":"string"}},` + defs + `}`, ""},
		"allOf of one": {`{"type":"object","properties":{"a":{"allOf":[{"$ref":"#/definitions/T"}],"title":"A"}},"definitions":{"T":{"type":"string"}}}`,
			`{"type":"object","properties":{"a":{"title":"A","type":"string"}},"$defs":{"T":{"type":"string"}}}`, ""},
		"allOf of several": {`{"type":"object","properties":{"a":{"description":"both","allOf":[{"type":"object","properties":{"p":{"type":"string"},"r":{"type":"integer","minimum":1}},"required":["p"]},{"$ref":"#/$defs/U"}]}},"$defs":{"U":{"properties":{"q":{"type":"boolean"},"r":{"maximum":9}},"required":["q","p"]}}}`,
			`{"type":"object","properties":{"a":{"description":"both","type":"object","properties":{"p":{"type":"string"},"r":{"type":"integer","minimum":1,"maximum":9},"q":{"type":"boolean"}},"required":["p","q"]}},"$defs":{"U":{"properties":{"q":{"type":"boolean"},"r":{"maximum":9}},"required":["q","p"]}}}`, ""},
		"a schema that extends another": {`{"type":"object","properties":{"b":{"type":"string"}},"required":["b"],"allOf":[{"$ref":"#/$defs/Base"}],"$defs":{"Base":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}}}`,
			`{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"string"}},"required":["b","a"],"$defs":{"Base":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}}}`, ""},
		"alternatives in allOf": {`{"type":"object","properties":{"a":{"allOf":[{"anyOf":[{"type":"string"},{"type":"null"}]},{"anyOf":[{"type":"string"},{"type":"integer"}]}]}}}`,
			`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}}}`, "constants"},
		"the same alternatives in allOf": {`{"type":"object","properties":{"a":{"allOf":[{"anyOf":[{"type":"string"},{"type":"null"}]},{"title":"t","anyOf":[{"type":"string"},{"type":"null"}]}]}}}`,
			`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}],"title":"t"}}}`, ""},
		"bounds in allOf": {`{"type":"object","properties":{"a":{"allOf":[{"type":"integer","minimum":1},{"type":"integer","minimum":5}]}}}`,
			`{"type":"object","properties":{"a":{"type":"integer","minimum":1}}}`, "constants"},
		"values in allOf": {`{"type":"object","properties":{"a":{"allOf":[{"type":"string","enum":["a","b"]},{"enum":["b","c"]}]}}}`,
			`{"type":"object","properties":{"a":{"type":"string","enum":["a","b"]}}}`, "constants"},
		"descriptions in allOf": {`{"type":"object","properties":{"a":{"title":"A","description":"a","default":"x","allOf":[{"title":"T","description":"t","default":"y","type":"string"}]}}}`,
			`{"type":"object","properties":{"a":{"title":"A","description":"a","default":"x","type":"string"}}}`, ""},
		"a constant that is in the enum": {`{"type":"object","properties":{"a":{"enum":["x","y"],"const":"x"},"b":{"allOf":[{"const":"x"},{"enum":["x"]}]}}}`,
			`{"type":"object","properties":{"a":{"type":"string","enum":["x"]},"b":{"type":"string","enum":["x"]}}}`, ""},
		"recursive, as Pydantic 1 has it": {`{"type":"object","properties":{"n":{"$ref":"#/definitions/N"}},"definitions":{"N":{"type":"object","properties":{"next":{"title":"Next","allOf":[{"$ref":"#/definitions/N"}]}}}}}`,
			`{"type":"object","properties":{"n":{"$ref":"#/$defs/N"}},"$defs":{"N":{"type":"object","properties":{"next":{"title":"Next","type":"object","properties":{"next":{"$ref":"#/$defs/N"}}}}}}}`, ""},
		"values of an enum": {`{"type":"object","properties":{"a":{"type":["string","null"],"enum":["x",null]},"b":{"enum":["x",1,null]},"c":{"type":"integer","enum":[60,1440]},"d":{"enum":[null]},"enum":{"type":"string"}}}`,
			`{"type":"object","properties":{"a":{"type":["string","null"],"enum":["x"]},"b":{"type":["string","number","null"],"enum":["x",1]},"c":{"type":"integer","enum":[60,1440]},"d":{"type":"null"},"enum":{"type":"string"}}}`, ""},
		"values of an enum that are no texts": {`{"type":"object","properties":{"a":{"type":"boolean","enum":[true]},"b":{"enum":["x",false]}}}`,
			`{"type":"object","properties":{"a":{"type":"boolean"},"b":{"type":["string","boolean"]}}}`, "constants"},
		"any value": {`{"type":"object","properties":{"a":true,"b":{"type":["array","null"],"items":true}},"additionalProperties":true}`,
			`{"type":"object","properties":{"a":{},"b":{"type":["array","null"],"items":{}}},"additionalProperties":true}`, ""},
		"nested": {`{"type":"object","properties":{"a":{"anyOf":[{"$ref":"#/$defs/U","title":"u"},{"type":"null"}]}},"$defs":{"U":{"type":"array","items":{"$ref":"#/$defs/T","title":"i"}},"T":{"type":"string"}}}`,
			`{"type":"object","properties":{"a":{"anyOf":[{"title":"u","type":"array","items":{"title":"i","type":"string"}},{"type":"null"}]}},"$defs":{"U":{"type":"array","items":{"title":"i","type":"string"}},"T":{"type":"string"}}}`, ""},
		"recursive": {`{"$ref":"#/$defs/N","title":"n","$defs":{"N":{"type":"object","properties":{"next":{"$ref":"#/$defs/N","description":"d"}}}}}`,
			`{"title":"n","$defs":{"N":{"type":"object","properties":{"next":{"description":"d","type":"object","properties":{"next":{"$ref":"#/$defs/N"}}}}}},"type":"object","properties":{"next":{"$ref":"#/$defs/N"}}}`, ""},
		"a path": {`{"type":"object","properties":{"a/b":{"type":"string"},"c":{"$ref":"#/properties/a~1b"}}}`,
			`{"type":"object","properties":{"a/b":{"type":"string"},"c":{"type":"string"}}}`, ""},
		"constants": {`{"type":"object","properties":{"a":{"const":"x"},"b":{"const":1,"type":"integer"},"c":{"const":null},"$ref":{"type":"string"}}}`,
			`{"type":"object","properties":{"a":{"type":"string","enum":["x"]},"b":{"enum":[1],"type":"integer"},"c":{"type":"null"},"$ref":{"type":"string"}}}`, ""},
		"a constant that is no text": {`{"type":"object","properties":{"a":{"const":true}}}`, `{"type":"object","properties":{"a":{"type":"boolean"}}}`, "constants"},
		"a reference to any value": {`{"type":"object","properties":{"a":{"$ref":"#/$defs/any","description":"d"}},"$defs":{"any":true}}`,
			`{"type":"object","properties":{"a":{"description":"d"}},"$defs":{"any":{}}}`, ""},
		"a reference to a text":  {`{"type":"object","title":"t","properties":{"a":{"$ref":"#/title","description":"d"}}}`, "", "#/title"},
		"a reference to nothing": {`{"type":"object","properties":{"a":{"$ref":"#/$defs/X","description":"d"}}}`, "", "#/$defs/X"},
	} {
		for path, fields := range map[string]string{
			"tools.0.functionDeclarations.0.parametersJsonSchema": `"tools":[{"type":"function","name":"f","parameters":` + c.schema + `}]`,
			"generationConfig.responseJsonSchema":                 `"text":{"format":{"type":"json_schema","name":"n","schema":` + c.schema + `}}`,
		} {
			_, body, p, err := plugintest.Prepare(t, Provider{}, pro3, plugintest.Request(fields), false)
			if c.want == "" {
				if err == nil || !strings.Contains(err.Error(), c.warning) {
					t.Errorf("%s: %v", name, err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			var got, want any
			_, _ = json.Unmarshal([]byte(gjson.Get(body, path).Raw), &got), json.Unmarshal([]byte(c.want), &want)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s at %s:\n got %s\nwant %s", name, path, gjson.Get(body, path), c.want)
			}
			if warning := fmt.Sprint(p.Warnings); (c.warning != "") != strings.Contains(warning, "constants") {
				t.Errorf("%s: warnings %s", name, warning)
			}
		}
	}
}

// Schemas that are deep, or that say the same again and again, cost little.
func TestSchemasCostLittle(t *testing.T) {
	for name, schema := range map[string]string{
		"deep":           strings.Repeat(`{"allOf":[{"properties":{"a":`, 8000) + `{"const":1}` + strings.Repeat(`}}]}`, 8000),
		"deep in allOf":  strings.Repeat(`{"allOf":[`, 20000) + `{"const":1}` + strings.Repeat(`]}`, 20000),
		"one many times": `{"allOf":[` + strings.Repeat(`{"$ref":"#/$defs/T","title":"t"},`, 3000) + `{}],"$defs":{"T":{"properties":{"a":{"description":"` + strings.Repeat("d", 100_000) + `"}}}}}`,
	} {
		w := schemaWriter{refs: translate.References{Root: gjson.Parse(schema)}}
		if written := w.appendSchema(nil, w.refs.Root); len(written) > 4*maxInlined || w.work > 2*maxWork {
			t.Errorf("%s: %d bytes, %d bytes read", name, len(written), w.work)
		}
	}
}

// References that unfold without end, or that double at each step, cost little.
func TestSchemasStayShort(t *testing.T) {
	var defs strings.Builder
	for i := range 40 {
		fmt.Fprintf(&defs, `"T%d":{"type":"object","properties":{"a":{"$ref":"#/$defs/T%d","title":"a"},"b":{"$ref":"#/$defs/T%d","title":"b"}}},`, i, i+1, i+1)
	}
	schema := `{"type":"object","properties":{"a":{"$ref":"#/$defs/T0","title":"a"}},"$defs":{` + defs.String() + `"T40":{"type":"string"}}}`
	_, body, _, err := plugintest.Prepare(t, Provider{}, pro3, plugintest.Request(`"tools":[{"type":"function","name":"f","parameters":`+schema+`}]`), false)
	if err != nil || len(body) > 4*maxInlined {
		t.Errorf("%d bytes: %v", len(body), err)
	}
}
