package translate_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/plugintest"
	. "github.com/weirhq/weir/plugins/translate"
)

// request has a function f, a custom tool patch, and crm__find in a namespace.
const request = `{"model":"m","input":"x","stream":true,"instructions":"i\u2028\n","metadata":{ "b": "1", "a": "2" },
	"temperature":0.5,"tools":[{"type":"function","name":"f","parameters":{"type":"object"}},{"type":"custom","name":"patch"},
	{"type":"namespace","name":"crm","tools":[{"type":"function","name":"find"}]}]}`

func options() Options {
	n := 0
	return Options{
		ID:  func(prefix string) string { n++; return fmt.Sprint(prefix, n) },
		Now: func() time.Time { return time.Unix(1700000000, 0) },
	}
}

// answer returns the response that say makes. It checks the stream, and that the
// same response comes without one.
func answer(t testing.TB, say func(*Assembler)) gjson.Result {
	t.Helper()
	return answerTo(t, request, say)
}

// answerTo is answer for another request.
func answerTo(t testing.TB, request string, say func(*Assembler)) gjson.Result {
	t.Helper()
	stream, response := playTo(t, request, say, options())
	if _, err := plugintest.Check(stream); err != nil {
		t.Fatalf("%v in\n%s", err, stream)
	}
	return response
}

func play(t testing.TB, say func(*Assembler), o Options) (stream []byte, response gjson.Result) {
	t.Helper()
	return playTo(t, request, say, o)
}

func playTo(t testing.TB, request string, say func(*Assembler), o Options) (stream []byte, response gjson.Result) {
	t.Helper()
	p, err := ParseRequest([]byte(request))
	if err != nil {
		t.Fatal(err)
	}
	var sink bytes.Buffer
	a := NewAssembler(p, &sink, o)
	say(a)
	sink.Write(a.End())
	if !json.Valid(a.Response()) || !utf8.Valid(sink.Bytes()) {
		t.Fatalf("no JSON, or no UTF-8: %s", a.Response())
	}

	silent := *p
	silent.Stream = false
	if o.ID != nil {
		o.ID = options().ID
	}
	b := NewAssembler(&silent, nil, o)
	say(b)
	if object := b.End(); o.ID != nil && !bytes.Equal(object, a.Response()) {
		t.Errorf("the stream comes to\n%s\nthe object is\n%s", a.Response(), object)
	}
	return sink.Bytes(), gjson.ParseBytes(a.Response())
}

// outline tells the output in short: message(Hello) function_call(f {}).
func outline(response gjson.Result) string {
	var items []string
	for _, i := range response.Get("output").Array() {
		var texts []string
		for _, path := range []string{"name", "arguments", "input", "result", "encrypted_content"} {
			if i.Get(path).Str != "" {
				texts = append(texts, i.Get(path).Str)
			}
		}
		for _, p := range append(i.Get("summary").Array(), i.Get("content").Array()...) {
			texts = append(texts, p.Get("text").Str+p.Get("refusal").Str)
		}
		item := i.Get("type").Str + "(" + strings.Join(texts, " ") + ")"
		if i.Get("status").Str != "completed" {
			item += " " + i.Get("status").Str
		}
		items = append(items, item)
	}
	return response.Get("status").Str + ": " + strings.Join(items, ", ")
}

// types are the types of a stream's events, without their common beginning.
func types(stream []byte) []string {
	var all []string
	for line := range strings.Lines(string(stream)) {
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			all = append(all, strings.TrimPrefix(strings.TrimSpace(name), "response."))
		}
	}
	return all
}

func TestAssembler(t *testing.T) {
	tests := []struct {
		name string
		say  func(*Assembler)
		want string
	}{
		{"nothing", func(a *Assembler) {}, "completed: "},
		{"text", func(a *Assembler) { a.Text(0, "Hel"); a.Text(0, "lo") }, "completed: message(Hello)"},
		{"refusal after text", func(a *Assembler) { a.Text(0, "I"); a.Refusal(0, "no") }, "completed: message(I no)"},
		{"another key is another message", func(a *Assembler) { a.Text(0, "a"); a.Text(1, "b") }, "completed: message(a), message(b)"},
		{"closed", func(a *Assembler) { a.Text(0, "a"); a.Close(0); a.Close(9); a.Text(0, "b") }, "completed: message(a), message(b)"},
		{"one key for all", func(a *Assembler) { a.Summary(0, 0, "t"); a.Text(0, "a"); a.Call(0, "c", "f"); a.Args(0, "{}") },
			"completed: reasoning(t), message(a), function_call(f {})"},
		{"summary parts", func(a *Assembler) { a.Summary(0, 0, "a"); a.Summary(0, 3, "b"); a.Summary(0, 3, "c") }, "completed: reasoning(a bc)"},
		{"raw reasoning", func(a *Assembler) { a.ReasoningText(0, "a"); a.Summary(0, 0, "s"); a.ReasoningText(0, "b") },
			"completed: reasoning(s a b)"},
		{"sealed", func(a *Assembler) { a.Summary(0, 0, "a"); a.Seal(0, "x"); a.Seal(1, "y") }, "completed: reasoning(x a), reasoning(y)"},
		{"call without arguments", func(a *Assembler) { a.Call(0, "c", "f") }, "completed: function_call(f {})"},
		{"call of a tool nobody knows", func(a *Assembler) { a.Call(0, "c", "z"); a.Args(0, "{}") }, "completed: function_call(z {})"},
		{"call that never was", func(a *Assembler) { a.Call(0, "", "") }, "completed: "},
		{"name in pieces", func(a *Assembler) {
			a.Call(0, "c", "cal")
			a.Call(0, "", "led")
			a.Args(0, "{}")
			a.Call(0, "c", "called")
		},
			"completed: function_call(called {})"},
		{"name after arguments", func(a *Assembler) { a.Call(0, "c", ""); a.Args(0, "{"); a.Call(0, "", "f"); a.Args(0, "}") },
			"completed: function_call(f {})"},
		{"other id at the same index", func(a *Assembler) { a.Call(0, "c1", "f"); a.Args(0, "{}"); a.Call(0, "c2", "f"); a.Args(0, "{}") },
			"completed: function_call(f {}), function_call(f {})"},
		{"order of the provider", func(a *Assembler) { a.Call(0, "c1", "f"); a.Call(1, "c2", "g"); a.Args(1, "[1]"); a.Args(0, "[0]") },
			"completed: function_call(f [0]), function_call(g [1])"},
		{"native input", func(a *Assembler) { a.Call(0, "c", "patch"); a.CustomInput(0, `{"`) }, `completed: custom_tool_call(patch {")`},
		{"image", func(a *Assembler) { a.Text(0, "a"); a.Image("image/png", "aGk=") }, "completed: message(a), image_generation_call(aGk=)"},
		{"escapes", func(a *Assembler) { a.Text(0, "\"\\\x00\n\t\r\u2028é😀"); a.Text(0, "\xff") }, "completed: message(\"\\\x00\n\t\r\u2028é😀\ufffd)"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := answer(t, func(a *Assembler) { test.say(a); a.Finish(ReasonStop) })
			if s := outline(got); s != test.want {
				t.Errorf("got %q, want %q", s, test.want)
			}
		})
	}
}

func TestReasons(t *testing.T) {
	tests := []struct {
		reason Reason
		want   string
	}{
		{ReasonNone, "failed "},
		{ReasonStop, "completed "},
		{ReasonMaxOutputTokens, "incomplete max_output_tokens"},
		{ReasonContentFilter, "incomplete content_filter"},
		{ReasonContextFull, "incomplete max_output_tokens"},
		{ReasonError, "failed "},
		{Reasons{}.Of("\"new\""), `incomplete "new"`},
		{Reasons{}.Of(""), "incomplete other"},
		{Reasons{}.Of("new\n\ndata: {}"), "incomplete other"},
		{Reasons{}.Of("n\u00e9w"), "incomplete other"},
		{Reasons{}.Of(strings.Repeat("x", 64)), "incomplete " + strings.Repeat("x", 64)},
		{Reasons{}.Of(strings.Repeat("x", 65)), "incomplete other"},
		{Reasons{"abort": ReasonInterrupted}.Of("abort"), "failed "}, // of nothing
	}
	for _, test := range tests {
		got := answer(t, func(a *Assembler) { a.Finish(test.reason) })
		if s := got.Get("status").Str + " " + got.Get("incomplete_details.reason").Str; s != test.want {
			t.Errorf("%v: got %q, want %q", test.reason, s, test.want)
		}
	}
}

func TestNamespaceIsToldApart(t *testing.T) {
	got := answer(t, func(a *Assembler) { a.Call(0, "c", "crm__find"); a.Finish(ReasonStop) }).Get("output.0")
	if got.Get("name").Str != "find" || got.Get("namespace").Str != "crm" {
		t.Error(got.Raw)
	}
}

// Models leave a namespace out, or write it in another way.
func TestToolIsMeant(t *testing.T) {
	for called, want := range map[string]string{
		"find": "function_call crm find", "crm.find": "function_call crm find", "functions.crm__find": "function_call crm find", "functions.find": "function_call crm find",
		"functions.f": "function_call  f", "functions.patch": "custom_tool_call  patch", "only": "custom_tool_call erp only",
		"f": "function_call  f", // the tool of that very name, though a namespace has one too
		// Two fit, or none.
		"both": "function_call  both", "functions.g": "function_call  functions.g", "crm.f.find": "function_call  crm.f.find", "web_search": "function_call  web_search",
	} {
		p, err := ParseRequest([]byte(`{"model":"m","input":"hi","tools":[{"type":"function","name":"f"},{"type":"custom","name":"patch"},{"type":"web_search"},
			{"type":"namespace","name":"crm","tools":[{"type":"function","name":"find"},{"type":"function","name":"both"},{"type":"function","name":"f"}]},
			{"type":"namespace","name":"erp","tools":[{"type":"function","name":"both"},{"type":"custom","name":"only"}]}]}`))
		if err != nil {
			t.Fatal(err)
		}
		a := NewAssembler(p, nil, Options{})
		a.Call(0, "c", called)
		a.Args(0, `{}`)
		a.Finish(ReasonStop)
		a.End()
		v := gjson.GetBytes(a.Response(), "output.0")
		if got := strings.Join([]string{v.Get("type").Str, v.Get("namespace").Str, v.Get("name").Str}, " "); got != want {
			t.Errorf("%s: got %s, want %s", called, got, want)
		}
	}
}

func TestArgumentsForNoCallFail(t *testing.T) {
	got := answer(t, func(a *Assembler) { a.Text(0, "x"); a.Args(0, "{}"); a.Finish(ReasonStop) })
	if s := outline(got); s != "failed: message(x) incomplete" {
		t.Error(s)
	}
}

// Models and clients write the object of the arguments as a string.
func TestArgumentsInAString(t *testing.T) {
	for arguments, want := range map[string]string{
		`"{\"a\":\"b\\\"\"}"`: `completed: function_call(f {"a":"b\""})`,
		` "{}"`:               `completed: function_call(f {})`,
		`"{hello}"`:           `completed: function_call(f "{hello}")`,
		`"[1]"`:               `completed: function_call(f "[1]")`,
		`"text"`:              `completed: function_call(f "text")`,
		`"{\"a`:               `incomplete: function_call(f "{\"a) incomplete`,
	} {
		for _, n := range []int{1, 3, len(arguments)} {
			got := answer(t, func(a *Assembler) {
				a.Call(0, "c", "f")
				for rest := arguments; rest != ""; rest = rest[min(n, len(rest)):] {
					a.Args(0, rest[:min(n, len(rest))])
				}
				a.Finish(ReasonStop)
			})
			if s := outline(got); s != want {
				t.Errorf("%s in pieces of %d: got %s, want %s", arguments, n, s, want)
			}
		}
	}
	two := answer(t, func(a *Assembler) {
		for _, id := range []string{"c", "d"} {
			a.Call(0, id, "f")
			a.Args(0, `"{\"id\":1}"`)
		}
		a.Finish(ReasonStop)
	})
	if s := outline(two); s != `completed: function_call(f {"id":1}), function_call(f {"id":1})` {
		t.Error(s)
	}
	p, err := ParseRequest([]byte(`{"model":"m","input":[{"type":"function_call","call_id":"c","name":"f","arguments":"\"{\\\"a\\\":1}\""},{"type":"function_call_output","call_id":"c","output":"x"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if call := p.Turns[0].Items[0].(*ToolCall); call.Arguments != `{"a":1}` {
		t.Error(call.Arguments)
	}
}

func TestCallWithoutNameFails(t *testing.T) {
	got := answer(t, func(a *Assembler) { a.Call(0, "c", ""); a.Args(0, "{}"); a.Finish(ReasonStop) })
	if s := outline(got); s != "failed: " {
		t.Error(s)
	}
}

func TestLogprobsAndAnnotations(t *testing.T) {
	got := answer(t, func(a *Assembler) {
		a.Annotation(0, json.RawMessage(`{"type":"url_citation"}`)) // nothing to belong to
		a.Logprobs(0, json.RawMessage(`[{"token": "a"}]`))
		a.Text(0, "a")
		a.Logprobs(0, json.RawMessage(`[{"token":"b"}]`))
		a.Text(0, "b")
		a.Logprobs(0, json.RawMessage(`no JSON`))
		a.Annotation(0, json.RawMessage("{\"type\":\"url_citation\",\n\"url\":\"u\"}"))
		a.Annotation(0, json.RawMessage(`[]`))
		a.Annotation(0, json.RawMessage("{\"u\":\"\xff\"}"))
		a.Finish(ReasonStop)
	}).Get("output.0.content.0")
	if s := got.Get("logprobs").Raw; s != `[{"token":"a"},{"token":"b"}]` {
		t.Errorf("logprobs %s", s)
	}
	if s := got.Get("annotations").Raw; s != `[{"type":"url_citation","url":"u"},{"u":"`+"\ufffd"+`"}]` {
		t.Errorf("annotations %s", s)
	}
}

func TestItem(t *testing.T) {
	got := answer(t, func(a *Assembler) {
		for _, raw := range []string{
			`{"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"a"}],"encrypted_content":"e"}`,
			`{"type":"web_search_call","id":"ws","status":"completed","action":{"query":"q"}}`,
			`{"type":"web_search_call","id":"ws","status":"completed"}`,
			`{"type":"message","content":[{"type":"output_text","text":"t","annotations":[{"type":"url_citation"}]},{"type":"refusal","refusal":"no"}]}`,
			`{"type":"function_call","call_id":"c","name":"find","namespace":"crm","arguments":"{}"}`,
			`{"type":"custom_tool_call","call_id":"d","name":"patch","input":"{"}`,
			`{"id":"no type"}`, `[]`, `{`,
		} {
			a.Item(json.RawMessage(raw))
		}
		a.Finish(ReasonStop)
	})
	want := "completed: reasoning(e a), web_search_call(), web_search_call(), message(t no), " +
		"function_call(find {}), custom_tool_call(patch {)"
	if s := outline(got); s != want {
		t.Errorf("got %q, want %q", s, want)
	}
	if got.Get("output.1.action.query").Str != "q" {
		t.Error("a native item must stay as it is")
	}
}

// Only the last item of a response may be incomplete.
func TestIncompleteItem(t *testing.T) {
	got := answer(t, func(a *Assembler) {
		a.Item(json.RawMessage(`{"type":"code_interpreter_call","id":"ci","status":"incomplete","code":"1 +"}`))
		a.Text(0, "t")
		a.Finish(ReasonMaxOutputTokens)
	})
	if s := got.Get("output.#.status").Raw; s != `["failed","incomplete"]` {
		t.Errorf("got %s", s)
	}
}

// The keys that OpenAI always sends, and those that Open Responses requires.
func TestResponseHasEveryKey(t *testing.T) {
	got := answer(t, func(a *Assembler) { a.Start("m-1", "up"); a.Finish(ReasonStop) })
	for _, key := range strings.Fields(`id object created_at status error incomplete_details instructions max_output_tokens model
		output parallel_tool_calls previous_response_id reasoning store temperature text tool_choice tools top_p truncation usage user
		metadata background max_tool_calls prompt_cache_key safety_identifier service_tier top_logprobs completed_at
		frequency_penalty presence_penalty prompt_cache_retention tool_usage moderation access_programs`) {
		if !got.Get(key).Exists() {
			t.Errorf("no %s", key)
		}
	}
	for path, want := range map[string]string{
		"model": `"m-1"`, "temperature": "0.5", "top_p": "1", "presence_penalty": "0", "store": "false", "metadata": `{"b":"1","a":"2"}`,
		"tools.0": `{"type":"function","name":"f","description":null,"parameters":{"type":"object"},"strict":null}`,
		"text":    `{"format":{"type":"text"},"verbosity":"medium"}`, "created_at": "1700000000", "completed_at": "1700000000",
	} {
		if s := got.Get(path).Raw; s != want {
			t.Errorf("%s is %s, want %s", path, s, want)
		}
	}
	if s := got.Get("instructions").Str; s != "i\u2028\n" {
		t.Errorf("instructions %q", s)
	}
}

func TestLifecycleEventsAreHeld(t *testing.T) {
	p, err := ParseRequest([]byte(request))
	if err != nil {
		t.Fatal(err)
	}
	var sink bytes.Buffer
	a := NewAssembler(p, &sink, Options{})
	a.Start("m", "")
	a.Usage(plugins.Usage{Input: plugins.Known(1)})
	a.Text(0, "")
	a.Call(1, "c", "f")
	a.Ping()
	if a.Committed() || sink.Len() > 0 {
		t.Errorf("another attempt could not answer any more: %s", sink.Bytes())
	}
	a.Release()
	a.Release()
	if got := types(sink.Bytes()); !a.Committed() || !slices.Equal(got, []string{"created", "in_progress"}) {
		t.Errorf("got %q", got)
	}
	a.Ping()
	a.Finish(ReasonStop)
	terminal := a.End()
	if bytes.Contains(sink.Bytes(), []byte("response.completed")) {
		t.Error("the terminal event is the host's to write")
	}
	sink.Write(terminal)
	if a.End() != nil {
		t.Error("a response ends once")
	}
	if _, err := plugintest.Check(sink.Bytes()); err != nil || !bytes.Contains(sink.Bytes(), []byte("\n: ping\n\n")) {
		t.Errorf("%v\n%s", err, sink.Bytes())
	}
}

func TestFailureTellsBeforeTheEnd(t *testing.T) {
	a := NewAssembler(&Request{Raw: []byte(`{}`)}, nil, Options{})
	if a.Failure() == nil {
		t.Error("a response without an end has failed")
	}
	a.Finish(ReasonStop)
	if e := a.Failure(); e != nil {
		t.Error(e)
	}
}

// itemSize is what an item or a part takes beside its content, in bytes.
const itemSize = 2 << 10

func TestContentIsBounded(t *testing.T) {
	stream, response := play(t, func(a *Assembler) {
		a.Text(0, "12345")
		a.Text(0, "678901")
		a.Finish(ReasonStop)
	}, Options{Limit: 2*itemSize + 10})
	if _, err := plugintest.Check(stream); err != nil {
		t.Error(err)
	}
	if s := outline(response); s != "failed: message(12345) incomplete" {
		t.Error(s)
	}
}

// A provider that says next to nothing, in ever more items, parts or names, is cut off.
func TestWhatStandsBesideContentIsBounded(t *testing.T) {
	const most = 100 // items and parts
	for name, say := range map[string]func(a *Assembler, i int){
		"messages":              func(a *Assembler, i int) { a.Text(i, "a") },
		"parts of a summary":    func(a *Assembler, i int) { a.Summary(0, i, "a") },
		"parts of a message":    func(a *Assembler, _ int) { a.Text(0, "a"); a.Refusal(0, "a") },
		"calls":                 func(a *Assembler, i int) { a.Call(i, "id", "f"); a.Args(i, "{}") },
		"calls without a name":  func(a *Assembler, i int) { a.Call(i, "id", "") },
		"calls that follow":     func(a *Assembler, i int) { a.Call(0, fmt.Sprint(i), "f"); a.Args(0, "{}") },
		"a name without an end": func(a *Assembler, i int) { a.Call(0, "id", fmt.Sprintf("%02048d", i)) },
		"items of hosted tools": func(a *Assembler, _ int) { a.Item([]byte(`{"type":"web_search_call"}`)) },
		"pictures":              func(a *Assembler, _ int) { a.Image("image/png", "AAAA") },
		"sealed reasoning":      func(a *Assembler, i int) { a.Seal(i, "a") },
	} {
		a := NewAssembler(&Request{Raw: []byte(`{}`), Stream: true}, io.Discard, Options{Limit: most * itemSize})
		for i := range most + 1 {
			say(a, i)
		}
		if e := a.Failure(); !strings.Contains(e.Message, "bytes long") {
			t.Errorf("%s: %d are not refused: %v", name, most+1, e)
		}
	}
}

func TestSeal(t *testing.T) {
	o := options()
	o.Seal = func(s string) string { return "sealed " + s }
	_, response := play(t, func(a *Assembler) { a.Seal(0, "state"); a.Finish(ReasonStop) }, o)
	sealed := response.Get("output.0.encrypted_content").Str
	if sealed != "sealed state" {
		t.Fatalf("got %q", sealed)
	}
	p, err := ParseRequest([]byte(`{"model":"m","input":[{"type":"reasoning","id":"a","summary":[],"encrypted_content":"` + sealed + `"},
		{"type":"reasoning","id":"b","summary":[],"encrypted_content":"foreign"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	other := *p
	if err := p.Unseal(func(s string) (string, bool) { return strings.CutPrefix(s, "sealed ") }); err != nil {
		t.Fatal(err)
	}
	items := p.Turns[0].Items
	if len(items) != 1 || items[0].(*ReasoningItem).EncryptedContent != "state" || len(p.Warnings) != 1 {
		t.Errorf("got %d items, %q", len(items), p.Warnings)
	}
	if len(other.Turns[0].Items) != 2 || len(other.Warnings) != 0 {
		t.Error("another attempt must keep its turns")
	}
}

func TestSinkErrorsAreKept(t *testing.T) {
	p, err := ParseRequest([]byte(request))
	if err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	r.CloseWithError(io.ErrClosedPipe)
	a := NewAssembler(p, w, Options{})
	a.Text(0, "x")
	a.Finish(ReasonStop)
	a.End()
	if !errors.Is(a.Err(), io.ErrClosedPipe) {
		t.Errorf("got %v", a.Err())
	}
	if s := outline(gjson.ParseBytes(a.Response())); s != "completed: message(x)" {
		t.Errorf("a client that left does not change what is recorded: %s", s)
	}
}
