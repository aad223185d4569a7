package translate_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/plugintest"
	. "github.com/weirhq/weir/plugins/translate"
)

func stopping(t testing.TB, stops string) *Request {
	t.Helper()
	p, err := ParseRequest([]byte(`{"model":"m","input":"x","stream":true,"stop":` + stops + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The text ends before the first stop sequence that the model has written whole, in whatever pieces the text
// comes, and nothing is taken after it but what was used.
func TestTextEndsAtAStopSequence(t *testing.T) {
	for name, c := range map[string]struct{ stops, text, want, stop string }{
		"in the middle":           {`"END"`, "a END b", "a ", "END"},
		"at the end":              {`["</block>"]`, "<block>no</block>", "<block>no", "</block>"},
		"none":                    {`["END"]`, "a EN b", "a EN b", ""},
		"the beginning of one":    {`["END"]`, "a EN", "a EN", ""},
		"the one that ends first": {`["bcd","c"]`, "abcd", "ab", "c"},
		"one within another":      {`["ab","b"]`, "xab", "x", "ab"},
		"one that begins twice":   {`["aab"]`, "aaab", "a", "aab"},
		"white space":             {`["\n\n"]`, "a\nb\n\nc", "a\nb", "\n\n"},
		"other letters":           {`["é"]`, "caf\u00e9 au lait", "caf", "é"},
		"nothing before it":       {`["a"]`, "abc", "", "a"},
		"an empty one":            {`[""]`, "abc", "abc", ""},
	} {
		for size := 1; size <= len(c.text); size++ {
			p := stopping(t, c.stops)
			var stream bytes.Buffer
			a := NewAssembler(p, &stream, options())
			a.Summary(9, 0, c.text) // which is no text of the answer
			for piece := range slices.Chunk([]rune(c.text), size) {
				a.Text(1, string(piece))
			}
			if c.stop != "" {
				a.Call(2, "c-1", "f")
				a.Args(2, "{}")
				a.Fail(plugins.Upstream("broken"))
			}
			a.Finish(ReasonStop)
			stream.Write(a.End())
			if _, err := plugintest.Check(stream.Bytes()); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got, want := outline(gjson.ParseBytes(a.Response())), "completed: reasoning("+c.text+"), message("+c.want+")"
			if got != want {
				t.Errorf("%s in pieces of %d: %s, want %s", name, size, got, want)
			}
			if a.StopSequence() != c.stop || a.Failure() != nil {
				t.Errorf("%s in pieces of %d: ended at %q, want %q: %v", name, size, a.StopSequence(), c.stop, a.Failure())
			}
		}
	}
}

// A provider gets the sequences that it takes, and the Assembler has the others. There is a warning only
// of those that are too many or too long for it.
func TestStopSequencesThatAProviderTakes(t *testing.T) {
	var many []string
	for i := range 20 {
		many = append(many, fmt.Sprintf("%q", fmt.Sprint("s", i)))
	}
	for name, c := range map[string]struct {
		stops string
		limit int
		takes func(string) bool
		sent  int
		warns int
	}{
		"all":                {`["a"," "]`, AnyStops, nil, 2, 0},
		"some":               {`["a","b"," ","c"]`, 2, IsNotBlank, 2, 0},
		"none":               {`"a"`, 0, nil, 0, 0},
		"too many":           {`[` + strings.Join(many, ",") + `]`, 4, nil, 4, 4},
		"too many, but sent": {`[` + strings.Join(many, ",") + `]`, AnyStops, nil, 20, 0},
		"too long":           {`["` + strings.Repeat("x", 300) + `"]`, 0, nil, 0, 1},
	} {
		p := stopping(t, c.stops)
		sent, err := p.FitStop(c.limit, c.takes)
		if err != nil || len(sent) != c.sent || len(p.Warnings) != c.warns {
			t.Errorf("%s: sent %q, warnings %q: %v", name, sent, p.Warnings, err)
		}
		p.Strict = true
		if _, err := p.FitStop(c.limit, c.takes); (err != nil) != (c.warns > 0) {
			t.Errorf("%s, strictly: %v", name, err)
		}
	}
}

// The client learns which of its sequences ended the text, if the provider says so, or if there is one.
func TestStopSequenceIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		stops  string
		finish func(*Assembler)
		want   string
	}{
		"by the provider":     {`["a","b"]`, func(a *Assembler) { a.Finish(ReasonStop); a.StoppedAt("b") }, "b"},
		"by nobody":           {`["a","b"]`, func(a *Assembler) { a.Finish(ReasonStopSequence) }, ""},
		"the only one":        {`"a"`, func(a *Assembler) { a.Finish(ReasonStopSequence) }, "a"},
		"the provider's own":  {`"a"`, func(a *Assembler) { a.Finish(ReasonStop); a.StoppedAt("<|im_end|>") }, ""},
		"the end of the turn": {`"a"`, func(a *Assembler) { a.Finish(ReasonStop) }, ""},
	} {
		a := NewAssembler(stopping(t, c.stops), nil, options())
		a.Text(1, "hello")
		c.finish(a)
		if got := a.StopSequence(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
