package embedded

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/credits"
)

// A line says what json.Marshal would say of its entry, whichever fields the entry has.
func TestLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var e entry
		fill(t, reflect.ValueOf(&e).Elem())
		line := appendLine([]byte("before\n"), e)[len("before\n"):]
		marshalled, _ := json.Marshal(e) // of strings and numbers, which cannot fail
		var got, want entry
		if !parseLine(line, &got) || json.Unmarshal(marshalled, &want) != nil {
			t.Fatalf("the line cannot be read: %s", line)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("the line is %s, want %s", line, marshalled)
		}
	})
}

// fill draws a value for each field.
func fill(t *rapid.T, v reflect.Value) {
	switch v.Interface().(type) {
	case uuid.UUID:
		v.Set(reflect.ValueOf(uuid.NewSHA1(uuid.Nil, []byte(rapid.StringMatching("a?").Draw(t, "id")))))
		return
	case storage.Timestamp:
		v.SetInt(rapid.SampledFrom([]int64{0, 1, 1795809600123, -62135596800000}).Draw(t, "moment"))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "some") {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem())
		}
	case reflect.Slice:
		for range rapid.IntRange(0, 3).Draw(t, "accounts") {
			element := reflect.New(v.Type().Elem()).Elem()
			fill(t, element)
			v.Set(reflect.Append(v, element))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	case reflect.Int64:
		v.SetInt(rapid.SampledFrom([]int64{0, 1, -1, 1<<63 - 1}).Draw(t, "number"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "released"))
	case reflect.String:
		v.SetString(rapid.SampledFrom([]string{"", "acme", "a \"b\"\\", "<&>\n\x00 é \u2028"}).Draw(t, "text"))
	default:
		t.Fatalf("a field of an entry has the type %s, which the test cannot fill", v.Type())
	}
}

func BenchmarkEntry(b *testing.B) {
	begins := storage.Timestamp(1795809600000)
	e := entry{
		Org: "acme", ID: uuid.New(), Lost: 1, Accounts: []credits.Account{{Org: "acme", Budget: "all", Begins: begins, Ends: begins + 1}},
		Call: &credits.Call{ID: uuid.New(), CreatedAt: begins, AuthHash: "0123456789abcdef", Provider: "openai", Model: "gpt-4o-mini", Spent: plugins.Nanodollars(1)},
	}
	var text []byte
	b.ReportAllocs()
	for b.Loop() {
		text = appendLine(text[:0], e)
	}
}
