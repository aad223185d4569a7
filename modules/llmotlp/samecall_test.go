package llmotlp_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// within makes a span of another's trace, so many milliseconds inside of it.
func within(parent *tracepb.Span, id int, millis uint64, name string, a attrs) *tracepb.Span {
	s := reported(id, name, a)
	s.TraceId, s.ParentSpanId = parent.TraceId, parent.SpanId
	s.StartTimeUnixNano, s.EndTimeUnixNano = parent.StartTimeUnixNano+millis*1e6, parent.EndTimeUnixNano-millis*1e6
	return s
}

// together has the attributes of all, the last first.
func together(all ...attrs) attrs {
	one := make(attrs)
	for _, a := range all {
		maps.Copy(one, a)
	}
	return one
}

// twiceTold are spans that report some calls twice and thrice, and the tokens of the calls.
func twiceTold() (spans []*tracepb.Span, tokens []string) {
	call := func(n int) attrs {
		return attrs{"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-4o", "gen_ai.usage.input_tokens": 1000 + n, "gen_ai.usage.output_tokens": 100 + n}
	}
	bare := attrs{"openinference.span.kind": "LLM", "llm.model_name": "gpt-4o"}
	id := 100
	next := func() int { id++; return id }
	for n := range 7 {
		tokens = append(tokens, fmt.Sprintf("%d/%d", 1000+n, 100+n))
		switch n {
		case 0: // a call within a call: the outer has the user, and other counts
			outer := reported(next(), "ChatOpenAI", together(call(900), attrs{"user.id": "ada"}))
			spans = append(spans, outer, within(outer, next(), 5, "chat", call(n)))
		case 1: // two traces with one id of the answer
			one, two := reported(next(), "chat", together(call(n), attrs{"gen_ai.response.id": "chatcmpl-1"})), reported(next(), "openai.chat", together(call(n), attrs{"gen_ai.response.id": "chatcmpl-1"}))
			spans = append(spans, one, two)
		case 2: // a helper that knows nothing, beside the call, in a step around both
			step := reported(next(), "predict", attrs{"openinference.span.kind": "CHAIN"})
			spans = append(spans, step, within(step, next(), 1, "prepare", bare), within(step, next(), 2, "chat", call(n)))
		case 3: // a span that adds up two calls, and is not known to
			sum := reported(next(), "complete", together(call(800), attrs{"gen_ai.operation.name": "converse"}))
			tokens = append(tokens, "1050/150")
			spans = append(spans, sum, within(sum, next(), 10, "chat", call(n)), within(sum, next(), 20, "chat", call(50)))
		case 4: // tried again
			outer := reported(next(), "ChatOpenAI", call(n))
			failed := failing(within(outer, next(), 10, "chat", attrs{"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-4o"}), "openai.RateLimitError", "slow down")
			tokens = append(tokens, "/ 429")
			spans = append(spans, outer, failed, within(outer, next(), 20, "chat", call(n)))
		case 5: // one alone
			spans = append(spans, reported(next(), "chat", call(n)))
		case 6: // two equal calls at once and one that fails, by a library that is told by callbacks and by the SDK, in traces of their own
			tokens[len(tokens)-1] = "/ 400"
			callbacks, sdk := attrs{"otel.scope.name": "callbacks"}, attrs{"otel.scope.name": "sdk"}
			for _, id := range []string{"chatcmpl-2", "chatcmpl-3"} {
				outer := reported(next(), "ChatOpenAI", together(call(n), callbacks))
				inner := within(outer, next(), 5, "chat", together(call(n), sdk, attrs{"gen_ai.response.id": id}))
				inner.TraceId, inner.ParentSpanId = []byte(fmt.Sprintf("of the sdk %05d", next())), nil
				spans = append(spans, outer, inner)
				tokens = append(tokens, fmt.Sprintf("%d/%d", 1000+n, 100+n))
			}
			asked := attrs{"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-4o"}
			outer := failing(reported(next(), "ChatOpenAI", together(asked, callbacks)), "OpenAIInvalidRequestError", "Error code: 400 - too long")
			inner := failing(within(outer, next(), 5, "chat", together(asked, sdk, attrs{"http.response.status_code": 400})), "", "")
			inner.TraceId, inner.ParentSpanId = []byte(fmt.Sprintf("of the sdk %05d", next())), nil
			spans = append(spans, outer, inner)
		}
	}
	slices.Sort(tokens)
	return spans, tokens
}

// TestOneCallIsOneRecord: whoever reports a call, in whatever order, in whatever batches, however
// often, and though Weir starts again meanwhile, the call has one record, which has what the
// innermost span says.
func TestOneCallIsOneRecord(t *testing.T) {
	spans, want := twiceTold()
	rounds := uint64(8)
	if testing.Short() {
		rounds = 2
	}
	for seed := range rounds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			s := newSite(t, "")
			sent := slices.Concat(spans, spans[:len(spans)/2])
			if seed > 0 {
				random.Shuffle(len(sent), func(i, j int) { sent[i], sent[j] = sent[j], sent[i] })
			}
			for len(sent) > 0 {
				n := 1 + random.IntN(len(sent))
				s.send("root", export(t, sent[:n]...), binary...)
				sent = sent[n:]
				if random.IntN(3) == 0 {
					s.restart()
				}
			}
			var got []string
			for _, r := range s.records("root") {
				tokens := fmt.Sprintf("%s/%s", r.Get("prompt_tokens").Raw, r.Get("completion_tokens").Raw)
				if status := r.Get("response_status").Int(); status != 200 {
					tokens = fmt.Sprintf("/ %d", status)
				}
				got = append(got, tokens)
				if tokens == "1000/100" && r.Get("request_user_id").Str != "ada" {
					t.Errorf("the gap of the inner span is not filled: %s", r.Raw)
				}
				if cost := r.Get("cost"); cost.Type != gjson.Number {
					t.Errorf("no cost: %s", r.Raw)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("the records are of\n%s\nwant\n%s", strings.Join(got, ", "), strings.Join(want, ", "))
			}
		})
	}
}

// TestContentOfTwoSpans: content that one span has and the other lacks is in the record, and what
// either omits is not.
func TestContentOfTwoSpans(t *testing.T) {
	call := attrs{"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-4o", "gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 1}
	said := attrs{"gen_ai.input.messages": `[{"role":"user","parts":[{"type":"text","content":"Hi"}]}]`, "gen_ai.output.messages": `[{"role":"assistant","parts":[{"type":"text","content":"Ho"}]}]`}
	for name, order := range map[string][]int{"inner first": {1, 0}, "outer first": {0, 1}} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, "")
			outer := reported(1, "ChatOpenAI", together(call, said))
			secret := reported(3, "ChatOpenAI", together(call, said))
			pairs := [][]*tracepb.Span{
				{outer, within(outer, 2, 5, "chat", call)},
				{secret, within(secret, 4, 5, "chat", together(call, attrs{"traceloop.association.properties.Service-Omit-Request": "true"}))},
			}
			for _, pair := range pairs {
				for _, i := range order {
					s.send("root", export(t, pair[i]), binary...)
				}
			}
			records := s.records("root")
			if len(records) != 2 {
				t.Fatalf("%d records", len(records))
			}
			if r := records[0]; r.Get("request_body.messages.0.content").Str != "Hi" || r.Get("response_body.choices.0.message.content").Str != "Ho" {
				t.Errorf("%s", r.Raw)
			}
			if r := records[1]; !r.Get("request_omitted").Bool() || r.Get("request_body").Type != gjson.Null {
				t.Errorf("%s", r.Raw)
			}
		})
	}
}
