package llmotlp_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// asked is a call without an outcome, answeredCall one with tokens.
var (
	asked        = attrs{"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-4o"}
	answeredCall = together(asked, attrs{"gen_ai.usage.input_tokens": 1000, "gen_ai.usage.output_tokens": 1})
)

// prompt is what a span has of a request.
func prompt(text string) attrs {
	return attrs{"gen_ai.input.messages": `[{"role":"user","parts":[{"type":"text","content":"` + text + `"}]}]`}
}

// twins are two spans of one call, in traces of their own: what a library that is told by callbacks reports, and the SDK's,
// which begins and ends 5 ms inside of it. Calls of every number begin at once.
func twins(n int, callbacks, sdk attrs) (outer, inner *tracepb.Span) {
	outer = reported(100+n*2, "ChatOpenAI", together(callbacks, attrs{"otel.scope.name": "callbacks"}))
	outer.StartTimeUnixNano, outer.EndTimeUnixNano = 1_790_000_000_000_000_000, 1_790_000_001_000_000_000
	inner = within(outer, 101+n*2, 5, "chat", together(sdk, attrs{"otel.scope.name": "sdk"}))
	inner.TraceId, inner.ParentSpanId = []byte(fmt.Sprintf("of the sdk %05d", n)), nil
	return outer, inner
}

// refusedCall lets a call fail by the rate limit.
func refusedCall(s *tracepb.Span) *tracepb.Span {
	return failing(s, "RateLimitError", "Error code: 429")
}

// TestTwinsMixNobody: if one library knows the user and the other the prompt, no record has the user of one call and
// the prompt of another, in whatever order the spans come.
func TestTwinsMixNobody(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2, 3}, {0, 3, 1, 2}, {3, 0, 2, 1}, {1, 3, 2, 0}} {
		s := newSite(t, "")
		var spans []*tracepb.Span
		for n, who := range []string{"ada", "bob"} {
			outer, inner := twins(n, together(asked, attrs{"user.id": who}), together(asked, prompt("I am "+who)))
			spans = append(spans, refusedCall(outer), refusedCall(inner))
		}
		for _, i := range order {
			s.send("root", export(t, spans[i]), binary...)
		}
		var users, prompts []string
		for _, r := range s.records("root") {
			user, text := r.Get("request_user_id").Str, r.Get("request_body.messages.0.content").Str
			if user != "" && text != "" && !strings.HasSuffix(text, user) {
				t.Errorf("%v: %s has %q", order, user, text)
			}
			users, prompts = append(users, user), append(prompts, text)
		}
		for _, who := range []string{"ada", "bob"} {
			if !slices.Contains(users, who) || !slices.Contains(prompts, "I am "+who) {
				t.Errorf("%v: the records are of %q and %q", order, users, prompts)
			}
		}
	}
}

// TestTwinsTellNoMore: the user of a call does not get a conversation that has the prompt of the call and more.
func TestTwinsTellNoMore(t *testing.T) {
	s := newSite(t, "")
	outer, inner := twins(0, together(asked, prompt("Hello"), attrs{"user.id": "ada"}), together(asked, attrs{
		"gen_ai.input.messages": `[{"role":"user","parts":[{"type":"text","content":"I am Bob"}]},{"role":"user","parts":[{"type":"text","content":"Hello"}]}]`,
	}))
	s.send("root", export(t, refusedCall(inner), refusedCall(outer)), binary...)
	for _, r := range s.records("root") {
		if r.Get("request_user_id").Str == "ada" && strings.Contains(r.Get("request_body").Raw, "Bob") {
			t.Errorf("%s", r.Raw)
		}
	}
}

// TestNoTwins: equal calls of two libraries that are not surely one call keep a record each.
func TestNoTwins(t *testing.T) {
	for name, make := range map[string]func() (spans []*tracepb.Span, records int){
		"prompts that differ": func() ([]*tracepb.Span, int) {
			outer, inner := twins(0, together(answeredCall, prompt("first")), together(answeredCall, prompt("second")))
			return []*tracepb.Span{outer, inner}, 2
		},
		"failures whose prompts differ": func() ([]*tracepb.Span, int) {
			outer, inner := twins(0, together(asked, prompt("first")), together(asked, prompt("second")))
			return []*tracepb.Span{refusedCall(outer), refusedCall(inner)}, 2
		},
		"calls without prompts that end apart": func() ([]*tracepb.Span, int) {
			outer, inner := twins(0, answeredCall, answeredCall)
			inner.EndTimeUnixNano -= 400e6
			return []*tracepb.Span{outer, inner}, 2
		},
		"failures with two statuses": func() ([]*tracepb.Span, int) {
			outer, inner := twins(0, asked, together(asked, attrs{"http.response.status_code": 400}))
			return []*tracepb.Span{refusedCall(outer), failing(inner, "", "")}, 2
		},
		"two calls of a library beside one of the SDK": func() ([]*tracepb.Span, int) {
			outer, inner := twins(0, answeredCall, answeredCall)
			again, _ := twins(1, answeredCall, answeredCall)
			for span, times := range map[*tracepb.Span][2]uint64{inner: {5900, 7990}, outer: {3950, 8000}, again: {6500, 7800}} {
				span.StartTimeUnixNano, span.EndTimeUnixNano = span.StartTimeUnixNano/1e9*1e9+times[0]*1e6, span.StartTimeUnixNano/1e9*1e9+times[1]*1e6
			}
			return []*tracepb.Span{inner, outer, again}, 2
		},
		"a failure with two candidates": func() ([]*tracepb.Span, int) {
			outer, inner := twins(0, asked, asked)
			other, _ := twins(1, asked, asked)
			outer.EndTimeUnixNano, other.EndTimeUnixNano = inner.EndTimeUnixNano, inner.EndTimeUnixNano
			inner.StartTimeUnixNano += 1e6
			return []*tracepb.Span{refusedCall(outer), refusedCall(other), refusedCall(inner)}, 3
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, "")
			spans, want := make()
			for _, span := range spans {
				s.send("root", export(t, span), binary...)
			}
			if got := s.records("root"); len(got) != want {
				t.Errorf("%d records, not %d: %s", len(got), want, got)
			}
		})
	}
}

// TestParallelTwins: of many equal calls that begin at once, each has one record. The prompt tells them apart if there is one.
func TestParallelTwins(t *testing.T) {
	const calls = 20
	for name, content := range map[string]func(n int) attrs{
		"without prompts": func(int) attrs { return nil },
		"with prompts":    func(n int) attrs { return prompt(fmt.Sprint("number ", n)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, "")
			var outer, inner []*tracepb.Span
			for n := range calls {
				o, i := twins(n, together(answeredCall, content(n), attrs{"user.id": fmt.Sprint(n)}),
					together(answeredCall, content(n), attrs{"gen_ai.response.id": fmt.Sprint("chatcmpl-", n)}))
				outer, inner = append(outer, o), append(inner, i)
			}
			slices.Reverse(inner)
			s.send("root", export(t, inner...), binary...)
			s.send("root", export(t, outer...), binary...)
			records := s.records("root")
			if len(records) != calls {
				t.Errorf("%d records, not %d", len(records), calls)
			}
			for _, r := range records {
				user, id := r.Get("request_user_id").Str, r.Get("response_id").Str
				if text := r.Get("request_body.messages.0.content").Str; text != "" && (text != "number "+user || id != "chatcmpl-"+user) {
					t.Errorf("%s has %q and %s", user, text, id)
				}
			}
		})
	}
}

// TestTwinsOfOneProcess: spans of two processes are no twins. A resource without the id of a process is known by its batch.
func TestTwinsOfOneProcess(t *testing.T) {
	service := attrs{"service.name": "shop"}
	for name, test := range map[string]struct {
		callbacks, sdk attrs
		together       bool // in one batch
		records        int
	}{
		"one instance":                 {attrs{"service.instance.id": "a"}, attrs{"service.instance.id": "a"}, false, 1},
		"two instances":                {attrs{"service.instance.id": "a"}, attrs{"service.instance.id": "b"}, false, 2},
		"one process of a host":        {attrs{"host.name": "h", "process.pid": 7}, attrs{"host.name": "h", "process.pid": 7}, false, 1},
		"two processes of a host":      {attrs{"host.name": "h", "process.pid": 7}, attrs{"host.name": "h", "process.pid": 8}, false, 2},
		"a pid without a host":         {attrs{"process.pid": 1}, attrs{"process.pid": 1}, false, 2},
		"a service in two batches":     {service, service, false, 2},
		"a service that has one batch": {service, service, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, "")
			outer, inner := twins(0, answeredCall, answeredCall)
			if test.together {
				s.send("root", exportOf(t, test.sdk, inner, outer), binary...)
			} else {
				s.send("root", exportOf(t, test.sdk, inner), binary...)
				s.send("root", exportOf(t, test.callbacks, outer), binary...)
			}
			if n := len(s.records("root")); n != test.records {
				t.Errorf("%d records, not %d", n, test.records)
			}
		})
	}
}

// TestTwinsWithinAMillisecond: spans that begin in one millisecond are twins, though the end and the duration,
// each cut to milliseconds, say that the inner one began first.
func TestTwinsWithinAMillisecond(t *testing.T) {
	s := newSite(t, "")
	outer, inner := twins(0, answeredCall, answeredCall)
	begun := outer.StartTimeUnixNano
	outer.StartTimeUnixNano, outer.EndTimeUnixNano = begun+900_000, begun+1_000_100_000
	inner.StartTimeUnixNano, inner.EndTimeUnixNano = begun+950_000, begun+999_960_000
	s.send("root", export(t, inner, outer), binary...)
	if n := len(s.records("root")); n != 1 {
		t.Errorf("%d records", n)
	}
}
