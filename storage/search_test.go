package storage_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/plugins/transcript"
	"github.com/weirhq/weir/storage"
)

// spellings are letters with several cases, and escapes of JSON, valid or not.
var spellings = []string{
	"a", "B", "k", "K", "\u212a", "s", "\u017f", "é", `\u00e9`, `\u00C9`, "你", "好", `\u4f60`, "😀", `\ud83d\ude00`, `\ud83d`, `\ude00`, `\ud83d\u0041`, "µ", "μ", "İ",
	`\n`, `\t`, `\"`, `\\`, `\\\\\\`, `\/`, `\u0040`, `\u0000`, `\u00g0`, `\x`, "}", "{", " ", "\xff", "\xe4\xbd", "%", "_", "\ufffd", "\n", "\x00",
}

func spelled(r *rand.Rand, letters int) string {
	var s strings.Builder
	for range letters {
		s.WriteString(spellings[r.IntN(len(spellings))])
	}
	return s.String()
}

// part is a piece of a text, perhaps in another case or with other letters.
func part(r *rand.Rand, text string) string {
	if text == "" {
		return "k"
	}
	at := r.IntN(len(text))
	s := text[at:min(len(text), at+1+r.IntN(24))] // may cut a letter
	switch r.IntN(5) {
	case 0:
		return strings.ToUpper(s)
	case 1:
		return strings.ToLower(s)
	case 2:
		return strings.NewReplacer("k", "\u212a", "K", "k", "s", "\u017f", "S", "s", "µ", "μ", "μ", "Μ").Replace(s)
	case 3:
		return s + "q"
	}
	return s
}

// asPattern is a pattern of like that is true of text with s.
func asPattern(r *rand.Rand, s string) string {
	var p strings.Builder
	for _, c := range s {
		switch n := r.IntN(12); {
		case n == 0:
			p.WriteByte('%')
		case n == 1:
			p.WriteByte('_')
		case n == 2 || strings.ContainsRune(`%_\`, c):
			p.WriteString(`\` + string(c))
		default:
			p.WriteRune(c)
		}
	}
	return "%" + p.String() + "%"
}

// Content of which a leaf is true has the texts that the leaf requires.
func TestRequiredTexts(t *testing.T) {
	r := rand.New(rand.NewPCG(51, 3))
	record := &storage.Record{Dialect: plugins.Chat}
	matches, required := map[string]int{}, map[string]int{}
	var texts storage.SearchTexts
	for range 15_000 {
		beginning := []string{`{"messages":[`, ` {"model":"m","messages":[`, `data: {"messages":[`}[r.IntN(3)]
		c := &storage.Content{
			Request:  storage.Body{Data: []byte(beginning + `{"role":"user","content":"` + spelled(r, 20) + `"},{"role":"user","content":[{"type":"text","text":"` + spelled(r, 20) + `"}]}]}`)},
			Response: storage.Body{Data: []byte(`{"choices":[{"message":{"role":"assistant","content":"` + spelled(r, 20) + `"}}]}`)},
			Inputs:   map[string]string{"topic": spelled(r, 8), "other": "of all"},
		}
		l, text := &storage.Leaf{Op: []storage.Operator{storage.Equals, storage.NotEquals, storage.Like, storage.ILike, storage.Contains, storage.NotContains}[r.IntN(6)]}, ""
		switch r.IntN(5) {
		case 0:
			l.Field, l.Op, text = storage.LookupField(storage.RequestResponse, "request_body"), storage.Contains, string(new(transcript.Unescaper).SearchText(c.Request.Data))
		case 1:
			l.Field, l.Op, text = storage.LookupField(storage.RequestResponse, "response_body"), storage.Contains, string(new(transcript.Unescaper).SearchText(c.Response.Data))
		case 2:
			l.Field, text = storage.LookupField(storage.RequestGroup, "prompt"), observe.Transcript(record.Dialect).InputText(c.Request.Data)
		case 3:
			l.Field, text = storage.LookupField(storage.ResponseGroup, "body_completion"), observe.Transcript(record.Dialect).OutputText(c.Response.Data)
		case 4:
			l.Field, l.Key, text = storage.LookupField(storage.ValuesGroup, ""), "topic", c.Inputs["topic"]
		}
		switch l.Text = part(r, text); l.Op {
		case storage.Like, storage.ILike:
			l.Text = asPattern(r, l.Text)
		case storage.Equals, storage.NotEquals:
			l.Text = text
		}
		if !storage.Match(l, record, func() *storage.Content { return c }) {
			continue
		}
		kind := l.Field.Name + " " + l.Op.String()
		matches[kind]++
		var there []string
		texts.Part(c, l.Field.Content, func(text []byte) { there = append(there, string(text)) })
		for _, want := range storage.RequiredTexts(l) {
			required[kind]++
			if !slices.ContainsFunc(there, func(s string) bool { return strings.Contains(s, want) }) {
				t.Fatalf("%s is true, and requires %q, which is not in %q", storage.AppendJSON(nil, l), want, there)
			}
		}
	}
	for kind, n := range matches {
		if negative := strings.Contains(kind, "not-"); negative != (required[kind] == 0) {
			t.Errorf("%s: %d matches, %d texts required", kind, n, required[kind])
		}
	}
	if len(matches) < 17 {
		t.Errorf("too few kinds: %v", matches)
	}
}

// Letters are folded alike one by one and many at once.
func TestFoldedLetters(t *testing.T) {
	var texts storage.SearchTexts
	folded := func(text string) (b string) {
		texts.Inputs(&storage.Content{Inputs: map[string]string{"": text}}, func(text []byte) { b += string(text) })
		return b
	}
	var all strings.Builder
	for r := range rune(0x250) {
		all.WriteRune(r)
	}
	for begin := range 16 {
		text := strings.Repeat("z", begin) + all.String() + "\xff" + all.String()
		want := ""
		for _, r := range text {
			if r == utf8.RuneError {
				want += folded("\xff")
			} else {
				want += folded(string(r))
			}
		}
		if folded(text) != want {
			t.Fatalf("%q is %q, want %q", text, folded(text), want)
		}
	}
	if folded("azAZ@[`{09") != "AZAZ@[`{09" {
		t.Error(folded("azAZ@[`{09"))
	}
}
