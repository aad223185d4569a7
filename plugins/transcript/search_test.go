package transcript

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestSearchText(t *testing.T) {
	var u Unescaper
	for _, c := range []struct{ body, want string }{
		{`{"a":"\"\\\/\b\f\n\r\t"}`, "{\"a\":\"\"\\/\b\f\n\r\t\"}"},
		{`{"a":"\u00e9 \u4F60 \ud83d\ude00"}`, `{"a":"é 你 😀"}`},
		{`["\\n is no newline"]`, `["\n is no newline"]`},
		{`["\ud83d", "\ude00", "\ud83d\n", "\ud83dx", "\ud83d\u0041"]`, "[\"\\ud83d\", \"\\ude00\", \"\\ud83d\n\", \"\\ud83dx\", \"\\ud83dA\"]"},
		{`["\x \u12 \u00g0"]`, `["\x \u12 \u00g0"]`},
		{`{"cut":"a\nb\`, "{\"cut\":\"a\nb\\"},
		{`{"cut":"\u00`, `{"cut":"\u00`},
		{` "a\tb"`, " \"a\tb\""},
	} {
		if got := u.SearchText([]byte(c.body)); string(got) != c.want {
			t.Errorf("%s: %q, want %q", c.body, got, c.want)
		}
	}
}

func TestSearchTextWithoutEscapesIsTheBody(t *testing.T) {
	var u Unescaper
	for _, body := range []string{`{"a":"b"}`, `data: {"a":"\n"}`, `C:\new`, "x"} {
		b := []byte(body)
		if got := u.SearchText(b); &got[0] != &b[0] || len(got) != len(b) {
			t.Errorf("%s: %q is not the body itself", body, got)
		}
	}
	if got := u.SearchText(nil); got != nil {
		t.Errorf("no body: %q", got)
	}
}

func FuzzSearchText(f *testing.F) {
	for _, seed := range []string{`"a\n\u00e9\ud83d\ude00"`, `{"a\t":["\\\"","\ud83d"]}`, `"\`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		before := bytes.Clone(body)
		got := new(Unescaper).SearchText(body)
		if !bytes.Equal(before, body) {
			t.Fatal("the body changed")
		}
		var s string
		if json.Unmarshal(body, &s) != nil || !utf8.Valid(body) || strings.ContainsRune(s, utf8.RuneError) {
			return // encoding/json writes U+FFFD where SearchText keeps an escape
		}
		if decoded := string(bytes.Trim(got, " \t\r\n")); decoded != `"`+s+`"` {
			t.Fatalf("%s: %q, encoding/json decodes %q", body, decoded, s)
		}
	})
}

func BenchmarkSearchText(b *testing.B) {
	line := `{"role":"user","content":"func main() {\n\tfmt.Println(\"caf\u00e9\")\n}, and some more words that need no escapes at all"},`
	body := []byte(`{"messages":[` + strings.Repeat(line, 100<<10/len(line)) + `{}]}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	var u Unescaper
	for b.Loop() {
		u.SearchText(body)
	}
}
