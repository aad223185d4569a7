package plugins

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

func TestValidJSON(t *testing.T) {
	for data, want := range map[string]bool{
		``: false, `{}`: true, `{"a":[1,{"b":null}]}`: true, `[`: false, `{"a":}`: false, `"[[{{"`: true,
		nested(1, `[`, `]`):                                              true,
		nested(10_000, `[`, `]`):                                         true,
		nested(10_001, `[`, `]`):                                         false,
		nested(20_000_000, `[`, `]`):                                     false,
		nested(20_000_000, `[`, ``):                                      false,
		nested(9_000, `{"a":`, `}`):                                      false,
		nested(5_001, `{"a":[`, `]}`):                                    false,
		`"` + nested(20_000, `[{`, `"`):                                  false,
		`["` + nested(20_000, `[{`, ``) + `"]`:                           true,
		`[` + strings.TrimSuffix(nested(20_000, `[{}],`, ``), `,`) + `]`: true,
	} {
		if got := ValidJSON([]byte(data)); got != want {
			t.Errorf("%s is valid: %t, want %t", brief(data), got, want)
		}
	}
}

func nested(n int, before, after string) string {
	return strings.Repeat(before, n) + strings.Repeat(after, n)
}

func brief(s string) string { return fmt.Sprintf("%.30s… of %d bytes", s, len(s)) }

// FuzzObject compares with encoding/json and gjson.
func FuzzObject(f *testing.F) {
	for _, data := range []string{
		`{"model":"m","messages":[{"role":"user","content":"a long text, longer than eight bytes"}]}`,
		`{"a\u0062c":"\"\\\/\b\f\n\r\t\u00e9","":{"x":[{}]},"a":-0.5e+10,"a":[true,false,null]} `,
		`{"12345678":"1234567` + "\x1f" + `"}`, `{"1234567é":"漢字漢字漢字\ud800"}`, `{"a":01}`, `{"a":1.}`, `{"a":-}`, `{"a":1e}`,
		`{"a":"\u12g4"}`, `{"a":"\`, `{"a" 1}`, `{"a":1,}`, `[1,]`, `tru`, ` `, `"12345678`, "\"\xff\x80\xfe\"",
	} {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		valid := ValidJSON(data)
		if want := json.Valid(data); valid != want {
			t.Fatalf("%q is valid: %t, want %t", data, valid, want)
		}
		object, isObject := ParseObject(data)
		parsed := gjson.ParseBytes(data)
		if want := valid && parsed.IsObject(); isObject != want {
			t.Fatalf("%q is an object: %t, want %t", data, isObject, want)
		}
		if !isObject {
			return
		}
		var want []Member
		parsed.ForEach(func(name, value gjson.Result) bool {
			want = append(want, Member{name.Str, value})
			return true
		})
		if !reflect.DeepEqual(object.Members, want) {
			t.Fatalf("%q has the members %v, want %v", data, object.Members, want)
		}
		var look func(v gjson.Result)
		look = func(v gjson.Result) {
			v.ForEach(func(key, v gjson.Result) bool {
				if key.Type == gjson.String && !object.MayHave(key.Str) {
					t.Fatalf("%q may not have %q", data, key.Str)
				}
				if v.IsObject() || v.IsArray() {
					look(v)
				}
				return true
			})
		}
		look(parsed)
	})
}

func TestObjectTellsItsKeys(t *testing.T) {
	object, _ := ParseObject([]byte(`{"messages":[{"role":"user","content":"\"audio\": {}"}],"tools":[{"file_id":1}]}`))
	for key, want := range map[string]bool{"messages": true, "role": true, "file_id": true, "audio": false, "user": false, "container": false} {
		if got := object.MayHave(key); got != want {
			t.Errorf("it may have %s: %t, want %t", key, got, want)
		}
	}
	if object, _ = ParseObject([]byte(`{"a":[{"\u0061udio":1}]}`)); !object.MayHave("audio") {
		t.Error("an escape hides a key")
	}
}

func BenchmarkValidJSON(b *testing.B) {
	prose := strings.Repeat(`the words of a \"long\" conversation with a model,\n`, 40)
	data := []byte(`{"model":"m","messages":[` + strings.Repeat(`{"role":"user","content":"`+prose+`"},`, 50) + `{}]}`)
	for name, valid := range map[string]func([]byte) bool{"gjson": gjson.ValidBytes, "here": ValidJSON} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				valid(data)
			}
		})
	}
}

// A field goes however often it is there, with the white space and all other bytes as they were, in time
// that grows with the length alone.
func TestDeleteField(t *testing.T) {
	for body, want := range map[string]string{
		`{"a":1}`:          `{}`,
		`{ "a":1, "b":2 }`: `{ "b":2 }`,
		`{"b":2,"a":1}`:    `{"b":2}`,
		"{\n \"b\": 2,\n \"a\": 1,\n \"c\": [1, 2]\n}": "{\n \"b\": 2,\n \"c\": [1, 2]\n}",
		`{"a":1,"b":{"a":2},"a":3,"\u0061":4}`:         `{"b":{"a":2}}`,
		`{"b":1}`:                                      `{"b":1}`, `["a"]`: `["a"]`, `{"a":`: `{"a":`, ``: ``,
	} {
		if got := string(DeleteField([]byte(body), "a")); got != want {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
	}
	body := []byte(`{` + strings.Repeat(`"a":1,`, 300_000) + `"b":2}`)
	if got := string(DeleteField(body, "a")); got != `{"b":2}` {
		t.Errorf("got %.100s", got)
	}
}
