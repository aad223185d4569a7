package translate_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/plugintest"
	. "github.com/weirhq/weir/plugins/translate"
)

// script plays bytes as calls of an Assembler: what any plugin could do.
type script []byte

func (s *script) next() int {
	if len(*s) == 0 {
		return 0
	}
	b := (*s)[0]
	*s = (*s)[1:]
	return int(b)
}

func (s *script) text() string {
	n := min(s.next()%8, len(*s))
	text := string((*s)[:n])
	*s = (*s)[n:]
	return text
}

var (
	scriptNames = []string{"", "f", "patch", "crm__find", "crm__"}
	scriptIDs   = []string{"", "a", "b"}
	scriptItems = []string{
		`{"type":"message","content":[{"type":"output_text","text":"x"}]}`,
		`{"type":"web_search_call","id":"w","status":"completed"}`,
		`{"type":"function_call","call_id":"c","arguments":"{"}`,
		`{"type":"reasoning","encrypted_content":"x"}`,
		`{"type":"custom_tool_call","name":"patch","input":"x"}`,
		`{`,
	}
	scriptArgs = []string{"", "{}", `{"input":"`, `\u`, `d83d`, `\"`, `"}`}
)

func (s script) play(a *Assembler) {
	for len(s) > 0 {
		op := s.next()
		key := s.next() % 4
		switch op % 19 {
		case 0:
			a.Text(key, s.text())
		case 1:
			a.Refusal(key, s.text())
		case 2:
			a.Summary(key, s.next()%3, s.text())
		case 3:
			a.ReasoningText(key, s.text())
		case 4:
			a.Seal(key, s.text())
		case 5, 6:
			a.Call(key, scriptIDs[s.next()%len(scriptIDs)], scriptNames[s.next()%len(scriptNames)])
		case 7, 8:
			a.Args(key, scriptArgs[s.next()%len(scriptArgs)])
		case 9:
			a.Args(key, s.text())
		case 10:
			a.CustomInput(key, s.text())
		case 11:
			a.Annotation(key, json.RawMessage(`{"a":1}`))
		case 12:
			a.Logprobs(key, json.RawMessage(`[{"token":"x"},{}]`))
		case 13:
			a.Item(json.RawMessage(scriptItems[s.next()%len(scriptItems)]))
		case 14:
			a.Close(key)
		case 15:
			a.Usage(plugins.Usage{Input: plugins.Known(int64(s.next()) - 9), CacheRead: plugins.Known(int64(s.next())), Reasoning: plugins.Known(int64(s.next()))})
		case 16:
			a.Finish([...]Reason{ReasonNone, ReasonStop, ReasonStopSequence, ReasonMaxOutputTokens, ReasonContentFilter, Reasons{}.Of("\"new\n"), ReasonInterrupted}[s.next()%7])
		case 18:
			a.Note(s.text())
		case 17:
			switch key {
			case 0:
				a.Image("image/png", s.text())
			case 1:
				a.Start(s.text(), s.text())
			case 2:
				a.Release()
			case 3:
				if s.next() > 250 {
					a.Fail(&plugins.Error{Message: s.text()})
				}
			}
		}
	}
}

// Whatever a plugin does, the stream is legal and gives the same response as the
// object.
func FuzzAssembler(f *testing.F) {
	f.Add([]byte{0, 0, 3, 'a', 'b', 'c', 5, 1, 1, 1, 7, 1, 1, 16, 0, 1})
	f.Add([]byte{5, 1, 1, 2, 7, 1, 2, 7, 1, 3, 7, 1, 4, 7, 1, 6, 16, 0, 2})
	f.Add([]byte{5, 1, 1, 1, 5, 2, 2, 1, 7, 2, 1, 7, 1, 1, 0, 1, 1, 'x', 13, 0, 1, 16, 0, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		play := script(b).play
		answer(t, play)
	})
}

func TestRandomScripts(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 0))
		s := make(script, r.IntN(120))
		for i := range s {
			s[i] = byte(r.Uint32())
		}
		answer(t, s.play)
	}
}

func benchmarkRequest(b *testing.B) *Request {
	p, err := ParseRequest([]byte(request))
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// discard is a sink.
type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

const delta = " the quick brown fox"

func BenchmarkTextDelta(b *testing.B) {
	a := NewAssembler(benchmarkRequest(b), discard{}, Options{Limit: 1 << 40})
	b.ReportAllocs()
	for b.Loop() {
		a.Text(0, delta)
	}
}

func BenchmarkArgsDelta(b *testing.B) {
	a := NewAssembler(benchmarkRequest(b), discard{}, Options{Limit: 1 << 40})
	a.Call(0, "c", "f")
	b.ReportAllocs()
	for b.Loop() {
		a.Args(0, delta)
	}
}

// A whole stream: 200 deltas, and all events around them.
func BenchmarkStream(b *testing.B) {
	p := benchmarkRequest(b)
	b.ReportAllocs()
	for b.Loop() {
		a := NewAssembler(p, discard{}, Options{})
		for range 200 {
			a.Text(0, delta)
		}
		a.Finish(ReasonStop)
		a.End()
	}
}

func BenchmarkCheck(b *testing.B) {
	var sink bytes.Buffer
	a := NewAssembler(benchmarkRequest(b), &sink, Options{})
	for range 200 {
		a.Text(0, delta)
	}
	a.Finish(ReasonStop)
	sink.Write(a.End())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := plugintest.Check(sink.Bytes()); err != nil {
			b.Fatal(err)
		}
	}
}
