package anthropic

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/translate"
)

func TestEnforceable(t *testing.T) {
	for _, test := range []struct{ schema, want, warning string }{
		{schema: `{"type":"object", "properties":{"b":{"type":"string","format":"date"},"a":{"type":["array","null"],"items":{"type":"string"},"minItems":1}},"additionalProperties":false,"required":["b","a"]}`},
		{schema: `{"type":"object","properties":{"minimum":{"type":"number","minimum":0},"a.b*":{"maxLength":3}},"additionalProperties":false}`,
			want:    `{"type":"object","properties":{"minimum":{"type":"number"},"a.b*":{}},"additionalProperties":false}`,
			warning: "f: sent without minimum, maxLength, which the provider does not enforce"},
		{schema: `{"$defs":{"x":{"type":"object","properties":{}}},"anyOf":[{"$ref":"#/$defs/x"},{"type":"array","items":{"pattern":"^a"},"minItems":2}]}`,
			want:    `{"$defs":{"x":{"type":"object","properties":{},"additionalProperties":false}},"anyOf":[{"$ref":"#/$defs/x"},{"type":"array","items":{}}]}`,
			warning: "f: sent without pattern, minItems, which the provider does not enforce"},
		{schema: `{"type":"object","additionalProperties":{"type":"string"}}`, want: `{"type":"object","additionalProperties":false}`,
			warning: "f: sent without additionalProperties, which the provider does not enforce"},
		{schema: `{"type":"object"}`, want: `{"type":"object","additionalProperties":false}`,
			warning: "f: sent without additionalProperties, which the provider does not enforce"},
		{schema: `{"type":"string","enum":["minimum"],"format":"color"}`, want: `{"type":"string","enum":["minimum"]}`,
			warning: "f: sent without format, which the provider does not enforce"},
		{schema: `{"properties":{"0":{"minLength":1},"#":{"minLength":1},"":{"minLength":1}},"additionalProperties":false}`,
			want:    `{"properties":{"0":{},"#":{},"":{}},"additionalProperties":false}`,
			warning: "f: sent without minLength, which the provider does not enforce"},
		{schema: `{"oneOf":[{"type":"string","minLength":1},{"type":"object","properties":{"oneOf":{"not":{"type":"null"}}},"required":["oneOf"],"if":{},"then":false}]}`,
			want:    `{"anyOf":[{"type":"string"},{"type":"object","properties":{"oneOf":{}},"required":["oneOf"],"additionalProperties":false}]}`,
			warning: "f: sent without oneOf, minLength, not, if, then, which the provider does not enforce"},
		{schema: `{"anyOf":[{"type":"string"}],"oneOf":[{"const":"a"}]}`, want: `{"anyOf":[{"type":"string"}]}`,
			warning: "f: sent without oneOf, which the provider does not enforce"},
	} {
		p := new(translate.Request)
		got, err := Enforceable(p, "f", json.RawMessage(test.schema))
		if test.want == "" {
			test.want = test.schema
		}
		if err != nil || string(got) != test.want {
			t.Errorf("got %s, %v\nwant %s", got, err, test.want)
		}
		warning := ""
		for _, w := range p.Warnings {
			warning += w
		}
		if warning != test.warning {
			t.Errorf("%s: got the warning %q, want %q", test.schema, warning, test.warning)
		}
	}
}

// A schema takes time in proportion to its size, whatever its content.
func TestEnforceableOfManyKeywords(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{"a":{}`)
	for i := range 100_000 {
		fmt.Fprintf(&b, `,"p%d":{"minLength":1}`, i)
	}
	b.WriteString(`}}`)
	start := time.Now()
	got, err := Enforceable(new(translate.Request), "f", json.RawMessage(b.String()))
	if err != nil || gjson.GetBytes(got, "properties.p99999").Raw != "{}" || !json.Valid(got) {
		t.Errorf("got %.100s, %v", got, err)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}
