package translate_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/plugintest"
	. "github.com/weirhq/weir/plugins/translate"
)

// stoppingRequest has the tools of request, and stop sequences.
func stoppingRequest(stops string) string {
	return strings.Replace(request, "{", `{"stop":`+stops+`,`, 1)
}

func stopping(t testing.TB, stops string) *Request {
	t.Helper()
	p, err := ParseRequest([]byte(stoppingRequest(stops)))
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

// What is told of a text that has ended stays: citations of it and notes. What the model writes does not.
func TestStopSequenceKeepsWhatIsToldOfTheText(t *testing.T) {
	source := func(start, end int64) Citation { return Citation{Start: start, End: end, URL: "https://a.example"} }
	response := answerTo(t, stoppingRequest(`["END"]`), func(a *Assembler) {
		a.Text(1, "some text END more")
		a.Text(1, "and more")
		a.Refusal(1, "no")
		a.Cite(1, source(0, 4))
		a.Annotation(1, json.RawMessage(`{"type":"url_citation","url":"https://b.example","title":"b","start_index":5,"end_index":18}`))
		a.Annotation(1, json.RawMessage(`{"type":"url_citation","url":"https://c.example","title":"c","start_index":14,"end_index":18}`))
		a.Call(2, "c", "f")
		a.Args(2, "{}")
		a.Summary(3, 0, "then")
		a.Seal(3, "sealed")
		a.Unplaced("audio/wav")
		a.Finish(ReasonStop)
	})
	if got, want := outline(response), "completed: message(some text ), message("+UnplacedMedia("audio/wav", "an answer that is translated. Call a provider that speaks your API")+")"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := response.Get("output.0.content.0.annotations.#.end_index").Raw; got != "[4,10]" {
		t.Errorf("citations end at %s", got)
	}
}

// A note of ours is not the model's, so that no stop sequence ends it.
func TestNotesHaveNoStopSequences(t *testing.T) {
	a := NewAssembler(stopping(t, `["for"]`), nil, options())
	a.Note("a note for you")
	a.Text(1, "the text")
	a.Finish(ReasonStop)
	a.End()
	if got := outline(gjson.ParseBytes(a.Response())); got != "completed: message(a note for you), message(the text)" || a.StopSequence() != "" {
		t.Errorf("%s, ended at %q", got, a.StopSequence())
	}
}

// Text that waits, because it may begin a stop sequence, keeps its logprobs and its citations, and counts.
func TestTextThatWaitsForAStopSequence(t *testing.T) {
	say := func(tokens ...string) func(*Assembler) {
		return func(a *Assembler) {
			a.Logprobs(1, json.RawMessage(`[{"token":"thought"}]`)) // of reasoning, which has no place for them
			a.Summary(2, 0, "thought")
			length := int64(0)
			for _, token := range tokens {
				raw, _ := json.Marshal([]map[string]any{{"token": token, "logprob": -1}})
				a.Logprobs(1, raw)
				a.Text(1, token)
				if length += int64(len(token)); a.StopSequence() == "" && a.Length(1) != length {
					t.Errorf("%q has %d characters at %q, want %d", tokens, a.Length(1), token, length)
				}
				a.Cite(1, Citation{Start: length - int64(len(token)), End: length, URL: "https://a.example"})
			}
			a.Finish(ReasonStop)
		}
	}
	for _, c := range []struct {
		tokens       []string
		text         string
		logprobs     string
		citationEnds string
	}{
		{[]string{"a", "\n", "b"}, "a\nb", `["a","\n","b"]`, "[1,2,3]"},
		{[]string{"a", "\n"}, "a\n", `["a","\n"]`, "[1,2]"},
		{[]string{"a\n", "b"}, "a\nb", `["a\n","b"]`, "[2,3]"},
		{[]string{"a", "\n", "\n", "b"}, "a", `["a"]`, "[1]"},
		{[]string{"a\n", "\nb"}, "a", `["a\n"]`, "[1]"},
	} {
		part := answerTo(t, stoppingRequest(`["\n\n"]`), say(c.tokens...)).Get("output.1.content.0")
		if part.Get("text").Str != c.text || part.Get("logprobs.#.token").Raw != c.logprobs || part.Get("annotations.#.end_index").Raw != c.citationEnds {
			t.Errorf("%q: %s", c.tokens, part)
		}
	}
}

// A call whose arguments are cut off makes the response incomplete, though a stop sequence ends the text.
func TestStopSequenceAfterACutCall(t *testing.T) {
	a := NewAssembler(stopping(t, `["END"]`), nil, options())
	a.Call(1, "c", "f")
	a.Args(1, `{"cmd":"rm -r`)
	a.Text(2, "text END")
	a.Args(1, ` /tmp/x"}`)
	a.Finish(ReasonStop)
	a.End()
	response := gjson.ParseBytes(a.Response())
	if response.Get("status").Str != "incomplete" || response.Get("incomplete_details.reason").Str != "max_output_tokens" || a.StopSequence() != "" {
		t.Errorf("ended at %q: %s", a.StopSequence(), response)
	}
}

// Whatever a plugin does, the stream is legal and gives the same response as the object.
func TestRandomScriptsWithStopSequences(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := make(script, r.IntN(120))
		for i := range s {
			s[i] = byte(r.IntN(38)) // few letters: stop sequences are frequent
		}
		answerTo(t, stoppingRequest(`["\u0001\u0002","#!","x"]`), s.play)
	}
}

// A call of an MCP tool before the text that ends has a result, as each call in a response.
func TestStopSequenceAfterAnMCPCall(t *testing.T) {
	body := []byte(`{"model":"m","input":"x","stream":true,"stop":"END","tools":[{"type":"mcp","server_label":"s","server_url":"https://s.example"}]}`)
	p, err := ParseMCP(body, map[string][]Tool{"s": {{Type: "function", Name: "f", MCP: &MCPTool{Server: "s", Name: "f"}}}})
	if err != nil {
		t.Fatal(err)
	}
	var stream bytes.Buffer
	a := NewAssembler(p, &stream, options())
	a.Call(1, "c", p.Tools[0].Name)
	a.Args(1, "{}")
	a.Text(2, "text END")
	a.Finish(ReasonStop)
	stream.Write(a.End())
	if _, err := plugintest.Check(stream.Bytes()); err != nil {
		t.Error(err)
	}
	if got := gjson.GetBytes(a.Response(), "output.0.error").Str; got == "" {
		t.Errorf("the call has no result: %s", a.Response())
	}
}
