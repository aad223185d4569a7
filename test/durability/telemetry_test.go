//go:build linux

package durability

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// reportedSpans are the spans of calls that libraries report over OpenTelemetry, in JSON. Of each call, an
// agent, a framework and an SDK tell; of some, another library does, too, in a trace of its own, and then all know
// the id of the answer. The framework alone knows the user, and the SDK what the provider stated.
func reportedSpans(calls int, at time.Time) (spans []string) {
	span := func(trace, id, parent int, name string, inside time.Duration, attributes ...any) {
		var parts []string
		for i := 0; i < len(attributes); i += 2 {
			kind := "intValue"
			if _, isText := attributes[i+1].(string); isText {
				kind = "stringValue"
			}
			parts = append(parts, fmt.Sprintf(`{"key":%q,"value":{%q:"%v"}}`, attributes[i], kind, attributes[i+1]))
		}
		parentID := ""
		if parent > 0 {
			parentID = fmt.Sprintf("%016x", parent)
		}
		begins, ends := at.Add(inside), at.Add(time.Second-inside)
		spans = append(spans, fmt.Sprintf(`{"traceId":"%032x","spanId":"%016x","parentSpanId":%q,"name":%q,"startTimeUnixNano":"%d","endTimeUnixNano":"%d","attributes":[%s]}`,
			trace, id, parentID, name, begins.UnixNano(), ends.UnixNano(), strings.Join(parts, ",")))
	}
	for n := range calls {
		first := 10 * (n + 1)
		chat := []any{"gen_ai.operation.name", "chat", "gen_ai.provider.name", "openai", "gen_ai.request.model", "gpt-5-mini"}
		stated := slices.Concat(chat, []any{"gen_ai.usage.input_tokens", 1000 + n, "gen_ai.usage.output_tokens", 100 + n, "gen_ai.response.id", fmt.Sprint("chatcmpl-", n)})
		outer := slices.Concat(chat, []any{"user.id", fmt.Sprint("call-", n), "gen_ai.usage.input_tokens", 1})
		if n%3 == 0 {
			outer = append(outer, "gen_ai.response.id", fmt.Sprint("chatcmpl-", n))
		}
		span(first, first+1, 0, "invoke_agent", 0, "gen_ai.operation.name", "invoke_agent", "gen_ai.usage.input_tokens", 9000, "gen_ai.usage.output_tokens", 900)
		span(first, first+2, first+1, "ChatOpenAI", 10*time.Millisecond, outer...)
		span(first, first+3, first+2, "chat", 20*time.Millisecond, stated...)
		if n%3 == 0 {
			span(first+5, first+6, 0, "openai.chat", 20*time.Millisecond, stated...)
		}
	}
	return spans
}

// TestReportsOverKills has spans reported in any order and in batches of any size, each of them twice, while the
// process is killed. As exporters do, a client sends a batch again until it is taken. Each call has one record.
func TestReportsOverKills(t *testing.T) {
	t.Parallel()
	const calls, clients = 120, 4
	w := newWeir(t, newProvider(t))
	c := config{site: "llm_otlp"}
	began := time.Now()
	spans := reportedSpans(calls, began)
	spans = append(spans, spans...)
	rand.Shuffle(len(spans), func(i, j int) { spans[i], spans[j] = spans[j], spans[i] })
	var batches []string
	for len(spans) > 0 {
		n := min(len(spans), 1+rand.IntN(8))
		batches = append(batches, `{"resourceSpans":[{"scopeSpans":[{"spans":[`+strings.Join(spans[:n], ",")+`]}]}]}`)
		spans = spans[n:]
	}
	var next, taken, again atomic.Int64
	var group sync.WaitGroup
	for range clients {
		group.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(batches) && !t.Failed(); i = next.Add(1) - 1 {
				for end := time.Now().Add(2 * waitLimit); ; time.Sleep(5 * time.Millisecond) {
					r, err := http.NewRequest("POST", "http://"+w.site+"/v1/traces", strings.NewReader(batches[i]))
					if err != nil {
						t.Error(err)
						return
					}
					r.Header.Set("Authorization", "Bearer "+key)
					r.Header.Set("Content-Type", "application/json")
					if _, err = exchange(r); err == nil {
						break
					}
					again.Add(1)
					if time.Now().After(end) {
						t.Errorf("a batch is not taken: %v", err)
						return
					}
				}
				taken.Add(1)
			}
		})
	}
	kills := killings()
	for round := range kills {
		w.start(c)
		part := int64((round + 1) * len(batches) / (kills + 1))
		w.await("batches are taken", func() bool { return taken.Load() >= part })
		w.kill()
	}
	w.start(c)
	group.Wait()
	w.flush()
	records := w.records(began.Add(-time.Minute))
	for n := range calls {
		r := records[fmt.Sprint("call-", n)]
		if r == nil || r.PromptTokens == nil || *r.PromptTokens != 1000+n || *r.CompletionTokens != 100+n {
			t.Errorf("the record of call-%d is %+v", n, r)
		}
	}
	for name, r := range records {
		if !strings.HasPrefix(name, "call-") {
			t.Errorf("a record of no call: %+v", r)
		}
	}
	w.checkDatabase()
	t.Logf("%d batches over %d kills; %d were sent again", len(batches), kills, again.Load())
}
