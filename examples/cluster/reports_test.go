//go:build linux

package cluster

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/storage/clickhouse/clickhousetest"
)

// reportingFile is a node of a shared store, to which calls are reported.
const reportingFile = `{
	admin off
	persist_config off
	llm {
		store clickhouse {$CLICKHOUSE} {
			journal {$WEIR_DATA}
		}
		secret the-same
		key k
	}
}
http://:{$WEIR_PORT} {
	bind 127.0.0.1
	llm_otlp
	llm_query
	llm_health
}
`

// reportedCall is a span of a call: a framework's if it names its user, and else the SDK's within.
func reportedCall(n int, began time.Time, user string) string {
	text := func(key, value string) string {
		return fmt.Sprintf(`{"key":%q,"value":{"stringValue":%q}}`, key, value)
	}
	attributes := []string{text("gen_ai.operation.name", "chat"), text("gen_ai.provider.name", "openai"), text("gen_ai.request.model", "gpt-5-mini"), text("gen_ai.response.id", fmt.Sprint("chatcmpl-", n))}
	span, parent, inside := 2*n+1, 0, time.Duration(0)
	if user != "" {
		attributes = append(attributes, text("user.id", user))
	} else {
		span, parent, inside = 2*n+2, 2*n+1, time.Millisecond
		attributes = append(attributes,
			text("gen_ai.input.messages", `[{"role":"user","parts":[{"type":"text","content":"`+strings.Repeat("lorem ipsum ", 80)+`"}]}]`),
			text("gen_ai.output.messages", `[{"role":"assistant","parts":[{"type":"text","content":"`+strings.Repeat("dolor sit ", 80)+`"}],"finish_reason":"stop"}]`),
			fmt.Sprintf(`{"key":"gen_ai.usage.input_tokens","value":{"intValue":"%d"}},{"key":"gen_ai.usage.output_tokens","value":{"intValue":"1"}}`, 1000+n))
	}
	began = began.Add(time.Duration(n)*time.Millisecond + inside)
	return fmt.Sprintf(`{"traceId":"%032x","spanId":"%016x","parentSpanId":"%016x","name":"chat","startTimeUnixNano":"%d","endTimeUnixNano":"%d","attributes":[%s]}`,
		n+1, span, parent, began.UnixNano(), began.Add(time.Second-2*inside).UnixNano(), strings.Join(attributes, ","))
}

// A node knows what another has recorded: what is reported again makes nothing, and the spans of one
// call make one record, whichever node has which of them. The log says how many spans a second of a processor a
// node takes.
func TestReports(t *testing.T) {
	server := clickhousetest.Start(t, "")
	_, started := sharing(t, reportingFile, 2, "CLICKHOUSE="+server.Addr)
	began := time.Now().Add(-time.Hour)
	report := func(n *node, spans []string) string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, n.address()+"/v1/traces", strings.NewReader(`{"resourceSpans":[{"scopeSpans":[{"spans":[`+strings.Join(spans, ",")+`]}]}]}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer k")
		r.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatal(resp.Status)
		}
		return resp.Header.Get("Service-Spans")
	}
	// await waits until a node has so many calls of a filter.
	await := func(n *node, filter string, want int) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			status, answer := ask(t, http.MethodPost, n.address()+"/v1/facets/query", `{"filter":`+filter+`,"fields":["model"]}`)
			if int(gjson.Get(answer, "data.count").Int()) == want {
				return
			}
			if status < http.StatusInternalServerError && status != http.StatusOK || time.Now().After(deadline) {
				t.Fatalf("%s has not %d calls of %s: %s", n.address(), want, filter, answer)
			}
		}
	}

	const batches, size = 4, 512
	first, second := started[0], started[1]
	sent := make([][]string, batches)
	for i := range sent {
		for n := range size {
			sent[i] = append(sent[i], reportedCall(i*size+n, began, ""))
		}
	}
	used, sending := processorTime(t, first), time.Now()
	for _, spans := range sent {
		if got, want := report(first, spans), fmt.Sprintf("recorded=%d,", size); !strings.Contains(got, want) {
			t.Fatalf("%s, want %s", got, want)
		}
	}
	answered := time.Since(sending)
	await(second, `"all"`, batches*size)
	stored := time.Since(sending)
	used = processorTime(t, first) - used
	t.Logf("%d spans: answered within %s, at the other node within %s; %s of processor time, %.0f spans a second of it", batches*size, answered.Round(time.Millisecond), stored.Round(time.Millisecond), used, float64(batches*size)/used.Seconds())

	for _, n := range started {
		for _, spans := range sent {
			if got, want := report(n, spans), fmt.Sprintf("recorded=0, replaced=0, duplicate=%d,", size); !strings.Contains(got, want) {
				t.Errorf("again: %s, want %s", got, want)
			}
		}
	}

	const calls = 6
	for i := range calls {
		n := batches*size + i
		spans := []string{reportedCall(n, began, "ada"), reportedCall(n, began, "")}
		for part := range spans {
			report(started[(i/2+part)%2], spans[(i+part)%2:][:1])
			if part == 0 {
				await(started[(i/2+1)%2], `"all"`, n+1)
			}
		}
	}
	for _, n := range started {
		await(n, `{"left":{"request_response_rmt":{"user_id":{"equals":"ada"}}},"operator":"and","right":{"request_response_rmt":{"prompt_tokens":{"gte":1000}}}}`, calls)
		await(n, `"all"`, batches*size+calls)
	}
}

// processorTime is what a node has used of the processors.
func processorTime(t *testing.T, n *node) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n.process.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	var ticks int64 // of 10 ms, in user mode and in the kernel
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
