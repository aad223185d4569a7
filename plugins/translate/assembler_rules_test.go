package translate_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/plugintest"
	. "github.com/weirhq/weir/plugins/translate"
)

// The tests of this file are the rules of the Responses API that bridges to it are
// known to break.

func TestPartsOpenBeforeText(t *testing.T) {
	stream, _ := play(t, func(a *Assembler) { a.Text(0, "a"); a.Finish(ReasonStop) }, options())
	want := []string{"created", "in_progress", "output_item.added", "content_part.added", "output_text.delta",
		"output_text.done", "content_part.done", "output_item.done", "completed"}
	if got := types(stream); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestReasoningThenOthers(t *testing.T) {
	stream, response := play(t, func(a *Assembler) {
		a.Summary(0, 0, "a")
		a.Summary(0, 0, "b")
		a.Text(1, "t")
		a.Call(2, "c", "f")
		a.Finish(ReasonStop)
	}, options())
	if got := outline(response); got != "completed: reasoning(ab), message(t), function_call(f {})" {
		t.Error(got)
	}
	if got := types(stream)[2:8]; !slices.Equal(got, []string{"output_item.added", "reasoning_summary_part.added",
		"reasoning_summary_text.delta", "reasoning_summary_text.delta", "reasoning_summary_text.done", "reasoning_summary_part.done"}) {
		t.Errorf("got %q", got)
	}
}

func TestTextAfterToolCall(t *testing.T) {
	got := answer(t, func(a *Assembler) {
		a.Text(0, "before")
		a.Call(1, "c", "f")
		a.Args(1, "{}")
		a.Text(0, "after")
		a.Finish(ReasonStop)
	})
	if s := outline(got); s != "completed: message(before), function_call(f {}), message(after)" {
		t.Error(s)
	}
}

func TestNoMessageWithoutText(t *testing.T) {
	got := answer(t, func(a *Assembler) { a.Text(0, ""); a.Call(1, "c", "f"); a.Finish(ReasonStop) })
	if s := outline(got); s != "completed: function_call(f {})" {
		t.Error(s)
	}
}

func TestArgumentsWithoutID(t *testing.T) {
	got := answer(t, func(a *Assembler) {
		a.Call(0, "c1", "f")
		a.Call(1, "c2", "f")
		for range 3 {
			a.Call(0, "", "")
			a.Args(0, "1")
			a.Call(1, "", "")
			a.Args(1, "2")
		}
		a.Finish(ReasonStop)
	})
	if s := outline(got); s != "completed: function_call(f 111), function_call(f 222)" {
		t.Error(s)
	}
}

func TestEmptyArgumentsAreAnObject(t *testing.T) {
	stream, _ := play(t, func(a *Assembler) {
		a.Call(0, "c", "f")
		a.Args(0, "")
		a.Args(0, "{}")
		a.Args(0, "")
		a.Finish(ReasonStop)
	}, options())
	if n := bytes.Count(stream, []byte("event: response.function_call_arguments.delta")); n != 1 {
		t.Errorf("%d deltas, want 1", n)
	}
}

func TestCallIDsStay(t *testing.T) {
	stream, response := play(t, func(a *Assembler) { a.Call(0, "c1", "f"); a.Call(1, "", "f"); a.Finish(ReasonStop) }, Options{})
	if _, err := plugintest.Check(stream); err != nil {
		t.Error(err)
	}
	if id := response.Get("output.0.call_id").Str; id != "c1" {
		t.Errorf("call_id %q is not the provider's", id)
	}
	if id := response.Get("output.1.call_id").Str; !strings.HasPrefix(id, "call_") {
		t.Errorf("call_id %q", id)
	}
}

func TestEveryStreamEnds(t *testing.T) {
	got := answer(t, func(a *Assembler) { a.Text(0, "half") })
	if s := outline(got); s != "failed: message(half) incomplete" {
		t.Error(s)
	}
	if m := got.Get("error.message").Str; m != "The upstream stream ended early." {
		t.Error(m)
	}
}

// everything says something of each kind.
func everything(a *Assembler) {
	a.Summary(0, 0, "a")
	a.Summary(0, 1, "b")
	a.ReasoningText(1, "c")
	a.Text(2, "d")
	a.Refusal(2, "e")
	a.Call(3, "c", "f")
	a.Args(3, `{"g":1}`)
	a.Finish(ReasonStop)
}

func TestEverythingIsDone(t *testing.T) {
	stream, _ := play(t, everything, options())
	got := types(stream)
	for _, kind := range []string{"output_item", "content_part", "reasoning_summary_part"} {
		if n := count(got, kind+".done"); n == 0 || n != count(got, kind+".added") {
			t.Errorf("%d of %s.done", n, kind)
		}
	}
	for _, text := range []string{"output_text", "refusal", "reasoning_summary_text", "reasoning_text", "function_call_arguments"} {
		if n := count(got, text+".done"); n == 0 || n != count(got, text+".delta") {
			t.Errorf("%d of %s.done", n, text)
		}
	}
}

func count(list []string, s string) (n int) {
	for _, other := range list {
		if other == s {
			n++
		}
	}
	return n
}

func TestTheEndHasWhatWasStreamed(t *testing.T) {
	stream, response := play(t, everything, options())
	var done []string
	for line := range strings.Lines(string(stream)) {
		if e := gjson.Parse(strings.TrimPrefix(line, "data: ")); e.Get("type").Str == "response.output_item.done" {
			done = append(done, e.Get("item").Raw)
		}
	}
	if got, want := response.Get("output").Raw, "["+strings.Join(done, ",")+"]"; got != want || len(done) != 4 {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestTruncationIsIncomplete(t *testing.T) {
	tests := []struct {
		name string
		say  func(*Assembler)
		want string
	}{
		{"in text", func(a *Assembler) { a.Summary(0, 0, "t"); a.Text(1, "half") }, "incomplete: reasoning(t), message(half) incomplete"},
		{"in reasoning", func(a *Assembler) { a.Summary(0, 0, "t") }, "incomplete: reasoning(t) incomplete"},
		{"in arguments", func(a *Assembler) { a.Call(0, "c", "f"); a.Args(0, `{"a`) }, `incomplete: function_call(f {"a) incomplete`},
		{"in the last of two calls", func(a *Assembler) { a.Call(0, "c", "f"); a.Args(0, `{}`); a.Call(1, "d", "f"); a.Args(1, `{`) },
			`incomplete: function_call(f {}), function_call(f {) incomplete`},
		{"in a custom tool's input", func(a *Assembler) { a.Call(0, "c", "patch"); a.Args(0, `{"input":"a\`) },
			`incomplete: custom_tool_call(patch a) incomplete`},
		{"between items", func(a *Assembler) { a.Text(0, "whole"); a.Close(0) }, "incomplete: message(whole)"},
		{"before anything", func(a *Assembler) {}, "incomplete: "},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := answer(t, func(a *Assembler) { test.say(a); a.Finish(ReasonMaxOutputTokens) })
			if s := outline(got); s != test.want {
				t.Errorf("got %q, want %q", s, test.want)
			}
			if r := got.Get("incomplete_details.reason").Str; r != "max_output_tokens" {
				t.Errorf("reason %q", r)
			}
		})
	}
}

func TestCustomToolsGetTheirInput(t *testing.T) {
	const input = "*** Begin \"Patch\"\\\n\té😀\u2028"
	escaped, _ := json.Marshal(map[string]string{"input": input})
	ascii := `{ "input" : "*** Begin \"Patch\"\\\n\t\u00e9\ud83d\ude00\u2028"}`
	for _, args := range []string{string(escaped), ascii, `{"why":"x","input":` + strings.TrimPrefix(string(escaped), `{"input":`)} {
		for size := 1; size < 14; size++ {
			got := answer(t, func(a *Assembler) {
				a.Call(0, "c", "patch")
				runes := []rune(args)
				for len(runes) > 0 {
					n := min(size, len(runes))
					a.Args(0, string(runes[:n]))
					runes = runes[n:]
				}
				a.Finish(ReasonStop)
			})
			if s := got.Get("output.0.input").Str; s != input || got.Get("output.0.type").Str != "custom_tool_call" {
				t.Fatalf("%s in pieces of %d: got %q", args, size, got.Get("output.0").Raw)
			}
		}
	}
	tests := []struct{ args, want string }{
		{``, ``},
		{`{}`, `{}`},
		{`free text`, `free text`},
		{`"text"`, `text`},
		{`{"input":{"a":1}}`, `{"a":1}`},
		{`{"input":"a\ud83dx"}`, "a\ufffdx"},
		{`{"input":"a","more":1}`, "a"},
	}
	for _, test := range tests {
		got := answer(t, func(a *Assembler) { a.Call(0, "c", "patch"); a.Args(0, test.args); a.Finish(ReasonStop) })
		if s := got.Get("output.0.input").Str; s != test.want {
			t.Errorf("%s: got %q, want %q", test.args, s, test.want)
		}
	}
}

func TestUsageIsMergedAndConsistent(t *testing.T) {
	tests := []struct {
		name    string
		patches []plugins.Usage
		want    string
	}{
		{"none", nil, `null`},
		{"merged", []plugins.Usage{{Input: plugins.Known(10), CacheRead: plugins.Known(4)}, {Output: plugins.Known(5)}, {Output: plugins.Known(7), Reasoning: plugins.Known(2)}},
			`{"input_tokens":10,"input_tokens_details":{"cached_tokens":4,"cache_write_tokens":0},"output_tokens":7,` +
				`"output_tokens_details":{"reasoning_tokens":2},"total_tokens":17}`},
		{"parts over the whole", []plugins.Usage{{Input: plugins.Known(1), CacheRead: plugins.Known(4), CacheWrite: plugins.Known(1), Output: plugins.Known(-1), Reasoning: plugins.Known(2)}},
			`{"input_tokens":1,"input_tokens_details":{"cached_tokens":1,"cache_write_tokens":0},"output_tokens":0,` +
				`"output_tokens_details":{"reasoning_tokens":0},"total_tokens":1}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := answer(t, func(a *Assembler) {
				a.Finish(ReasonStop)
				for _, u := range test.patches {
					a.Usage(u)
				}
			})
			if s := got.Get("usage").Raw; s != test.want {
				t.Errorf("got %s, want %s", s, test.want)
			}
		})
	}
}

func TestErrorInTheStream(t *testing.T) {
	for _, before := range []string{"", "half"} {
		stream, response := play(t, func(a *Assembler) {
			a.Text(0, before)
			a.Fail(&plugins.Error{Status: 429, Type: "rate_limit_error", Code: "rate_limit_exceeded", Message: "slow down"})
			a.Fail(plugins.Upstream("later"))
			a.Text(0, "more")
			a.Finish(ReasonStop)
		}, options())
		if _, err := plugintest.Check(stream); err != nil {
			t.Error(err)
		}
		if got := types(stream); !slices.Equal(got[len(got)-2:], []string{"error", "failed"}) {
			t.Errorf("got %q", got)
		}
		want := `"code":"rate_limit_exceeded","message":"slow down","param":null,"error":{"message":"slow down",` +
			`"type":"rate_limit_error","param":null,"code":"rate_limit_exceeded"}`
		if !bytes.Contains(stream, []byte(want)) {
			t.Errorf("the error is not hybrid:\n%s", stream)
		}
		if bytes.Contains(stream, []byte("more")) || response.Get("status").Str != "failed" {
			t.Error("a response that failed takes nothing more")
		}
	}
}

func TestNothingIsDoneEarly(t *testing.T) {
	stream, _ := play(t, func(a *Assembler) { a.Finish(ReasonStop); a.Text(0, "x") }, options())
	for line := range strings.Lines(string(stream)) {
		data := strings.TrimPrefix(line, "data: ")
		if kind := gjson.Get(data, "type").Str; kind == "response.created" || kind == "response.in_progress" {
			if s := gjson.Get(data, "response.status").Str; s != "in_progress" {
				t.Errorf("%s says %s", kind, s)
			}
		}
	}
}

func TestServiceTierIsTold(t *testing.T) {
	got := answer(t, func(a *Assembler) { a.ServiceTier("priority"); a.Finish(ReasonStop) })
	if s := got.Get("service_tier").Str; s != "priority" {
		t.Errorf("got %q", s)
	}
}

func TestWholeArgumentsAtOnce(t *testing.T) {
	stream, response := play(t, func(a *Assembler) {
		a.Call(0, "c", "f")
		a.Args(0, `{"a":1}`)
		a.Close(0)
		a.Finish(ReasonStop)
	}, options())
	if got := types(stream)[2:6]; !slices.Equal(got, []string{"output_item.added", "function_call_arguments.delta",
		"function_call_arguments.done", "output_item.done"}) {
		t.Errorf("got %q", got)
	}
	if s := outline(response); s != `completed: function_call(f {"a":1})` {
		t.Error(s)
	}
}

func TestIndicesCountItemsAndParts(t *testing.T) {
	stream, _ := play(t, func(a *Assembler) {
		a.Text(0, "a")
		a.Refusal(0, "b")
		a.Call(1, "c", "f")
		a.Text(2, "c")
		a.Finish(ReasonStop)
	}, options())
	var got []string
	for line := range strings.Lines(string(stream)) {
		e := gjson.Parse(strings.TrimPrefix(line, "data: "))
		if strings.HasSuffix(e.Get("type").Str, ".delta") {
			got = append(got, e.Get("output_index").Raw+"."+e.Get("content_index").Raw)
		}
	}
	if want := []string{"0.0", "0.1", "1.", "2.0"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestReasoningHasIDAndSummary(t *testing.T) {
	got := answer(t, func(a *Assembler) { a.Seal(0, "state"); a.Finish(ReasonStop) }).Get("output.0")
	if got.Get("id").Str == "" || !got.Get("summary").IsArray() {
		t.Error(got.Raw)
	}
}

func TestUsageAfterTheEnd(t *testing.T) {
	got := answer(t, func(a *Assembler) {
		a.Text(0, "x")
		a.Finish(ReasonStop)
		a.Usage(plugins.Usage{Input: plugins.Known(1), Output: plugins.Known(2)})
		a.Usage(plugins.Usage{})
	})
	if n := got.Get("usage.total_tokens").Int(); n != 3 {
		t.Errorf("total_tokens %d", n)
	}
}
