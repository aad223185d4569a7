package cut

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/inbound"
	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/plugins/streams"
	"github.com/weirhq/weir/plugins/translate"
)

// answers are streams that say the same in each dialect: thoughts, text, two calls, or a
// refusal. The stream of Gemini is as its documentation has it.
func answers(t *testing.T) map[plugins.Dialect][]string {
	all := map[plugins.Dialect][]string{plugins.GenerateContent: {
		`data: {"candidates":[{"content":{"parts":[{"text":"Hel"}],"role":"model"},"index":0}],"modelVersion":"m","responseId":"r","usageMetadata":{"promptTokenCount":3}}` + "\r\n\r\n" +
			`data: {"candidates":[{"content":{"parts":[{"text":"lo"},{"functionCall":{"name":"f","args":{"city":"Rome"}}}],"role":"model"},"index":0}],"modelVersion":"m","responseId":"r"}` + "\r\n\r\n" +
			`data: {"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"STOP","index":0}],"modelVersion":"m","responseId":"r"}` + "\r\n\r\n",
	}, plugins.Completions: {
		`data: {"id":"c","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":"Hel","logprobs":null,"finish_reason":null}]}` + "\n\n" +
			`data: {"id":"c","object":"text_completion","created":1,"model":"m","choices":[{"index":1,"text":"lo","logprobs":null,"finish_reason":"stop"}]}` + "\n\n" +
			`data: {"id":"c","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":"lo","logprobs":null,"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n",
	}}
	for d, body := range map[plugins.Dialect]string{
		plugins.Chat: `"messages":[{"role":"user","content":"hi"}]`, plugins.Messages: `"max_tokens":9,"messages":[{"role":"user","content":"hi"}]`,
		plugins.Responses: `"input":"hi"`,
	} {
		api, _ := inbound.Of(d)
		for _, say := range []func(a *translate.Assembler){
			func(a *translate.Assembler) {
				for _, word := range []string{"Let ", "me ", "think."} {
					a.Summary(0, 0, word)
				}
				for _, word := range []string{"It ", "is \"sunny\" ", "☀ in ", "Rome."} {
					a.Text(1, word)
				}
				for key, city := range []string{"Rome", "Oslo"} {
					a.Call(key+2, "call_"+city, "weather")
					a.Args(key+2, `{"city":`)
					a.Args(key+2, `"`+city+`"}`)
					a.Close(key + 2)
				}
			},
			func(a *translate.Assembler) { a.Refusal(0, "I "); a.Refusal(0, "must not.") },
			func(a *translate.Assembler) { a.ReasoningText(0, "Hm"); a.ReasoningText(0, "m."); a.Text(1, "Yes.") },
		} {
			request, err := api.Parse([]byte(`{"model":"m","stream":true,` + body + `}`))
			if err != nil {
				t.Fatal(err)
			}
			var stream bytes.Buffer
			a := translate.NewAssembler(request, &stream, translate.Options{Encoder: api.Encoder(request)})
			a.Start("m", "up")
			say(a)
			a.Usage(plugins.Usage{Input: plugins.Known(3), Output: plugins.Known(9)})
			a.Finish(translate.ReasonStop)
			stream.Write(a.End())
			all[d] = append(all[d], stream.String())
		}
	}
	return all
}

// check reads a stream by the grammar of its dialect, and returns how it ended.
func check(d plugins.Dialect, stream []byte) (finish string, err error) {
	switch d {
	case plugins.Responses:
		result, err := plugintest.Check(stream)
		if err != nil {
			return "", err
		}
		return gjson.GetBytes(result.Response, "incomplete_details.reason").Str, nil
	case plugins.Messages:
		message, err := plugintest.CheckMessages(stream)
		if err != nil {
			return "", err
		}
		return message.Finish, nil
	case plugins.Chat:
		message, err := plugintest.CheckChat(stream)
		if err != nil {
			return "", err
		}
		return message.Finish, nil
	}
	last := map[string]string{}
	for data := range streams.SSEData(stream) {
		for _, c := range gjson.GetManyBytes(data, "choices", "candidates") {
			for _, choice := range c.Array() {
				last[choice.Get("index").Raw] = choice.Get("finish_reason").Str + choice.Get("finishReason").Str
			}
		}
	}
	return last["0"], nil
}

var reasons = map[plugins.Dialect]string{
	plugins.Responses: "max_output_tokens", plugins.Messages: "max_tokens", plugins.Chat: "length", plugins.Completions: "length", plugins.GenerateContent: "MAX_TOKENS",
}

// Wherever a stream is cut, and in whichever pieces it comes, the client gets the provider's
// events up to there, and then a legal end that says why. What is not too much passes byte by
// byte.
func TestCut(t *testing.T) {
	numbers := rand.New(rand.NewPCG(1, 2))
	for d, all := range answers(t) {
		for _, whole := range all {
			cuts := 0
			for most := int64(0); ; most++ {
				reader := NewReader(io.NopCloser(&pieces{whole, numbers}), d, most)
				got, err := io.ReadAll(reader)
				if err != nil {
					t.Fatal(err)
				}
				stopped := false
				recorder := httptest.NewRecorder()
				w := NewWriter(recorder, d, most, func() { stopped = true })
				w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
				w.WriteHeader(200)
				for p := []byte(whole); len(p) > 0; {
					n := min(1+numbers.IntN(200), len(p))
					if _, err := w.Write(p[:n]); err != nil {
						t.Fatal(err)
					}
					p = p[n:]
				}
				w.Close()
				if written := recorder.Body.String(); written != string(got) || stopped != reader.Over() || w.Over() != stopped {
					t.Fatalf("%s, %d bytes: a Writer writes\n%s\nand a Reader reads\n%s", d, most, written, got)
				}
				if !reader.Over() {
					if string(got) != whole {
						t.Errorf("%s, %d bytes: what is not cut was changed to\n%s", d, most, got)
					}
					break
				}
				cuts++
				if finish, err := check(d, got); err != nil || finish != reasons[d] {
					t.Fatalf("%s, %d bytes: it ends by %q, %v:\n%s", d, most, finish, err, got)
				}
				shared := 0
				for shared < len(got) && got[shared] == whole[shared] {
					shared++
				}
				if i := strings.LastIndex(whole[:shared], "\n\n"); most > 20 && i < 100 && d != plugins.GenerateContent {
					t.Errorf("%s, %d bytes: only %d bytes are the provider's", d, most, i)
				}
			}
			if cuts < 4 {
				t.Errorf("%s was cut at %d places", d, cuts)
			}
		}
	}
}

// pieces is a stream in pieces of any length.
type pieces struct {
	rest    string
	numbers *rand.Rand
}

func (p *pieces) Read(b []byte) (int, error) {
	if p.rest == "" {
		return 0, io.EOF
	}
	n := copy(b[:min(1+p.numbers.IntN(200), len(b))], p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// A stream ends before an event that does not end: the event is not kept in memory, and the
// client does not get it.
// A handler may copy an answer, which asks the writer for an io.ReaderFrom.
func TestCopiedAnswerIsCut(t *testing.T) {
	for d, bodies := range answers(t) {
		server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
			w := NewWriter(out, d, 1, func() {})
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(http.StatusOK)
			_, _ = io.Copy(w, struct{ io.Reader }{strings.NewReader(bodies[0])})
			w.Close()
			if !w.Over() {
				t.Errorf("%s: a stream that is copied is not cut", d)
			}
		}))
		resp, err := http.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		server.Close()
	}
}

func TestEndlessEvent(t *testing.T) {
	for d, bodies := range answers(t) {
		s := stream{dialect: newDialect(d), left: 1 << 40}
		got := s.pass(nil, []byte(bodies[0][:len(bodies[0])/2]))
		got = append(got, s.pass(nil, []byte("\n\ndata: "+strings.Repeat("a", maxEvent)))...)
		if !s.over || s.buffered != nil || bytes.Contains(got, []byte("aaaa")) {
			t.Errorf("%s: over %v, %d bytes are held", d, s.over, len(s.buffered))
		}
	}
}

// A stream ends before what is kept of its open choices and items takes too much memory.
func TestWhatIsKeptIsBounded(t *testing.T) {
	long := strings.Repeat("a", 100<<10)
	for d, event := range map[plugins.Dialect]string{
		plugins.Chat:            `{"choices":[{"index":%d,"delta":{}}]}`,
		plugins.Completions:     `{"choices":[{"index":%d,"text":""}]}`,
		plugins.GenerateContent: `{"candidates":[{"index":%d}]}`,
		plugins.Responses:       `{"type":"response.output_item.added","output_index":%d,"item":{"type":"web_search_call","id":"` + long + `"}}`,
	} {
		s := stream{dialect: newDialect(d), left: 1 << 40}
		n := 0
		for ; n < 10_000 && !s.over; n++ {
			s.pass(nil, fmt.Appendf(nil, "data: "+event+"\n\n", n))
		}
		if !s.over {
			t.Errorf("%s: %d choices or items are kept", d, n)
		}
	}
}

// What is kept of an answer of many parts, or of many choices in one event, grows as the answer does.
func TestCostOfPartsIsLinear(t *testing.T) {
	allocated := func(d plugins.Dialect, event, part string, parts int) uint64 {
		s := stream{dialect: newDialect(d), left: 1 << 40}
		s.pass(nil, []byte("data: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"message\",\"content\":[]}}\n\n"))
		var events bytes.Buffer
		if part != "" {
			var all []string
			for i := range parts {
				all = append(all, fmt.Sprintf(part, i))
			}
			fmt.Fprintf(&events, "data: "+event+"\n\n", strings.Join(all, ","))
		} else {
			for i := range parts {
				fmt.Fprintf(&events, "data: "+event+"\n\n", i)
			}
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s.pass(nil, events.Bytes())
		s.end(nil, gjson.Result{})
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	for name, c := range map[string]struct {
		d           plugins.Dialect
		event, part string
	}{
		"parts of an item":       {plugins.Responses, `{"type":"response.content_part.added","output_index":0,"content_index":%d,"part":{"type":"output_text","text":""}}`, ""},
		"choices of an event":    {plugins.Chat, `{"choices":[%s]}`, `{"index":%d,"delta":{}}`},
		"candidates of an event": {plugins.GenerateContent, `{"candidates":[%s]}`, `{"index":%d}`},
	} {
		if few, many := allocated(c.d, c.event, c.part, 500), allocated(c.d, c.event, c.part, 4000); many > 20*few {
			t.Errorf("%s: 500 take %d bytes, and 4,000 take %d", name, few, many)
		}
	}
}
