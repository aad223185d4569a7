package plugins

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// FuzzWithModel: the body that is sent asks for the model, and differs in
// nothing else.
func FuzzWithModel(f *testing.F) {
	f.Add(`{"a":[1,"model"],"model":"m"}`)
	f.Add(`{"model":"m" ,"model" : {"model":1}}`)
	f.Fuzz(func(t *testing.T, body string) {
		if v := gjson.Parse(body); !gjson.Valid(body) || !v.IsObject() || !v.Get("model").Exists() {
			t.Skip()
		}
		object, _ := ParseObject([]byte(body))
		got := bytes.Join(WithModel(object, "gpt-5"), nil)
		if !gjson.ValidBytes(got) {
			t.Fatalf("%s is not JSON", got)
		}
		asked := make(map[string]string)
		gjson.ParseBytes(got).ForEach(func(key, v gjson.Result) bool {
			asked[key.Str] += v.Raw
			return true
		})
		gjson.Parse(body).ForEach(func(key, v gjson.Result) bool {
			var ok bool
			if key.Str == "model" {
				asked[key.Str], ok = strings.CutPrefix(asked[key.Str], `"gpt-5"`)
			} else {
				asked[key.Str], ok = strings.CutPrefix(asked[key.Str], v.Raw)
			}
			if !ok {
				t.Errorf("%s in %s became %s", key.Raw, body, got)
			}
			return ok
		})
	})
}
