package plugins_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
	"pgregory.net/rapid"

	"github.com/weirhq/weir/plugins"
)

// Heads tells what gjson does, of long texts the beginning, however much of them is escaped.
func TestHeads(t *testing.T) {
	texts := rapid.Custom(func(t *rapid.T) string {
		unit := rapid.SampledFrom([]string{"a", "é", `"`, `\`, "\n", "\x01", "😀", "a\\", "ab\x01"}).Draw(t, "unit")
		return rapid.SampledFrom([]string{"", "a", "ab", "abcd"}).Draw(t, "before") + strings.Repeat(unit, rapid.SampledFrom([]int{0, 1, 40, 85, 127, 128, 255, 256, 300}).Draw(t, "times"))
	})
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOf(rapid.OneOf(rapid.Map(texts, func(s string) any { return s }), rapid.Just[any](1.5), rapid.Just[any](nil), rapid.Just[any]([]any{"x", map[string]any{"a": 1}}))).Draw(t, "values")
		object := make(map[string]any)
		for _, v := range values {
			object[texts.Draw(t, "key")] = v
		}
		for _, of := range []any{values, object} {
			text, _ := json.MarshalIndent(of, "", " ")
			v := gjson.ParseBytes(text)
			type member struct {
				key   string
				value gjson.Result
			}
			var want []member
			v.ForEach(func(key, value gjson.Result) bool {
				want = append(want, member{key.Str, value})
				return true
			})
			n := 0
			valid := plugins.Heads(v, func(key string, value gjson.Result) {
				if n == len(want) {
					t.Fatalf("%s has more than %d members", text, n)
				}
				w := want[n]
				n++
				long := len(w.value.Str) > plugins.MaxHead
				if value.Raw != w.value.Raw || value.Type != w.value.Type || value.Num != w.value.Num || !long && value.Str != w.value.Str {
					t.Fatalf("member %d is %v, want %v", n, value, w.value)
				}
				if got := strings.TrimSuffix(value.Str, "\uFFFD"); long && (!strings.HasPrefix(w.value.Str, got) || len(got) < plugins.MaxHead) {
					t.Fatalf("the head of %q is %q", w.value.Str, value.Str)
				}
				if key != w.key {
					t.Fatalf("the key is %q, want %q", key, w.key)
				}
			})
			if !valid || n != len(want) {
				t.Fatalf("%s: valid %v, %d members, want %d", text, valid, n, len(want))
			}
		}
	})
	for _, text := range []string{"", "{", `{"a"}`, "[1,]", `{"a":1} 2`, "nul", strings.Repeat("[", 20_000)} {
		if plugins.Heads(gjson.Result{Raw: text}, func(string, gjson.Result) {}) {
			t.Errorf("%.20q passes for JSON", text)
		}
	}
}
