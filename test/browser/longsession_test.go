package browser

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// agentTools are what each agent may call.
var agentTools = []any{map[string]any{"type": "function", "function": map[string]any{"name": "task", "parameters": map[string]any{"type": "object"}}}}

// agentCall is a call of an agent in the JSON of OpenTelemetry.
func agentCall(out *strings.Builder, session string, at time.Time, span int, messages []any, answer map[string]any) {
	attribute := func(key, kind string, value any) map[string]any {
		return map[string]any{"key": key, "value": map[string]any{kind: value}}
	}
	asText := func(v any) string { text, _ := json.Marshal(v); return string(text) }
	input := 900 + 40*len(messages)
	text, _ := json.Marshal(map[string]any{
		"traceId": fmt.Sprintf("%032x", 7), "spanId": fmt.Sprintf("%016x", span), "name": "chat",
		"startTimeUnixNano": strconv.FormatInt(at.UnixNano(), 10), "endTimeUnixNano": strconv.FormatInt(at.Add(900*time.Millisecond).UnixNano(), 10),
		"attributes": []any{
			attribute("gen_ai.operation.name", "stringValue", "chat"), attribute("gen_ai.provider.name", "stringValue", "openai"), attribute("gen_ai.request.model", "stringValue", "gpt-5-mini"),
			attribute("traceloop.association.properties.Service-Session-Id", "stringValue", session), attribute("url.path", "stringValue", "/v1/chat/completions"),
			attribute("http.response.status_code", "intValue", "200"), attribute("gen_ai.server.time_to_first_token", "doubleValue", 0.3),
			attribute("weir.request.body", "stringValue", asText(map[string]any{"model": "gpt-5-mini", "messages": messages, "tools": agentTools})),
			attribute("weir.response.body", "stringValue", asText(map[string]any{
				"id": fmt.Sprintf("chatcmpl-%d", span), "object": "chat.completion", "model": "gpt-5-mini", "choices": []any{map[string]any{"index": 0, "message": answer, "finish_reason": "stop"}},
				"usage": map[string]any{"prompt_tokens": input, "completion_tokens": 40 + span%200, "total_tokens": input + 40 + span%200, "prompt_tokens_details": map[string]int{"cached_tokens": input * (span % 3) / 3}},
			})),
		},
	})
	if out.Len() > 0 {
		out.WriteByte(',')
	}
	out.Write(text)
}

// runAgents reports a session of a main agent that hands each of its turns to a sub-agent.
func (w *weir) runAgents(session string, agents, turns int) {
	w.t.Helper()
	at := time.Now().Add(-time.Duration(agents*turns+100) * time.Second)
	span := 0
	step := func(out *strings.Builder, messages []any, answer map[string]any) {
		span++
		at = at.Add(time.Second)
		agentCall(out, session, at, span, messages, answer)
	}
	calls := func(id, tool, arguments string) map[string]any {
		return map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{"id": id, "type": "function", "function": map[string]string{"name": tool, "arguments": arguments}}}}
	}
	main := []any{map[string]any{"role": "user", "content": "Refactor the billing service, package by package."}}
	for agent := range agents {
		var out strings.Builder
		task := fmt.Sprintf("Refactor package number %d of the billing service, and run its tests.", agent)
		id := fmt.Sprintf("call_%d", agent)
		asked := calls(id, "task", fmt.Sprintf(`{"prompt":%q}`, task))
		step(&out, main, asked)
		below := []any{map[string]any{"role": "user", "content": task}}
		for turn := range turns - 1 {
			id := fmt.Sprintf("call_%d_%d", agent, turn)
			answer := calls(id, []string{"read_file", "edit_file", "run_tests"}[turn%3], fmt.Sprintf(`{"file":"%d/%d.go"}`, agent, turn))
			step(&out, below, answer)
			below = append(below, answer, map[string]any{"role": "tool", "tool_call_id": id, "content": fmt.Sprintf("%d lines of %d/%d.go", span, agent, turn)})
		}
		main = append(main, asked, map[string]any{"role": "tool", "tool_call_id": id, "content": fmt.Sprintf("Package %d is refactored, all tests pass.", agent)})
		w.send("/v1/traces", []byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[`+out.String()+`]}]}]}`), "Authorization: Bearer "+w.key)
	}
}

// A session of 5,000 calls of 201 agents is drawn, scrolled, folded and sorted at once.
func TestALongSessionIsFluent(t *testing.T) {
	t.Parallel()
	const agents, turns = 200, 25
	w := newWeir(t, "../../examples/quickstart/Caddyfile")
	w.runAgents("refactor", agents, turns)
	w.until(agents * turns)
	p := newTab(w)
	p.login(w.key)
	p.show("?v=sessions&from=7d")
	const rows = `Number(document.querySelector(".trace [aria-rowcount]")?.ariaRowCount)`
	js[bool](p, `(window.tasks = [], new PerformanceObserver((list) => list.getEntries().forEach((e) => tasks.push(e.duration))).observe({type: "longtask"}), true)`)
	// until is how many milliseconds an expression takes to be true after something is done, and painted.
	took := func(do, done string) []float64 {
		t.Helper()
		return []float64{js[float64](p, `new Promise((ready) => {
			const began = performance.now();
			`+do+`;
			const look = () => `+done+` ? requestAnimationFrame(() => setTimeout(() => ready(performance.now() - began))) : setTimeout(look, 4)
			setTimeout(look)
		})`)}
	}
	const show = `(history.pushState(null, "", "?v=sessions&from=7d&session=refactor"), dispatchEvent(new PopStateEvent("popstate")))`
	promise(t, "a session of 5,000 calls shows its first rows after", took(show, `document.querySelectorAll(".trace tr[data-id]").length > 10`), 1000)
	promise(t, "all of it is there after", took("", fmt.Sprintf(`%s === %d`, rows, agents*turns+agents+1)), 3000)
	p.settled()
	longest := func(what string, limit float64) {
		t.Helper()
		promise(t, "the longest task while "+what, []float64{js[float64](p, `Math.max(0, ...tasks.splice(0))`)}, limit)
	}
	longest("it is loaded", 200)
	if shapes := js[int](p, `Math.max(...[...document.querySelectorAll(".trace .line")].map((line) => line.children.length))`); shapes > 500 {
		t.Errorf("a row draws %d shapes", shapes)
	}
	js[bool](p, `new Promise((done) => {
		window.frames_ = []
		const box = document.querySelector(".trace .table")
		let last = performance.now()
		const step = (now) => {
			frames_.push(now - last), last = now
			box.scrollTop += 10 * 32
			if (box.scrollTop + box.clientHeight >= box.scrollHeight - 1) done(true)
			else requestAnimationFrame(step)
		}
		requestAnimationFrame(step)
	})`)
	promise(t, "frame while it is scrolled", js[[]float64](p, `frames_`), 33)
	longest("it is scrolled", 100)
	js[bool](p, `(document.querySelector(".trace .table").scrollTop = 0, true)`)
	p.settled()
	const node = `document.querySelector(".trace tr[data-id^=node] button")`
	promise(t, "the main agent folds after", took(node+`.click()`, rows+` === 1`), 100)
	promise(t, "and unfolds after", took(node+`.click()`, rows+` > 5000`), 200)
	p.settled()
	js[int](p, `tasks.splice(0).length`)
	promise(t, "it is sorted by cost after", took(`document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "$", bubbles: true}))`, `document.querySelector("[aria-label=Order]").value === "-cost"`), 200)
	p.settled()
	longest("it is sorted", 200)
	costs := js[[]float64](p, `[...document.querySelectorAll(".trace tr[data-id]")].slice(1).filter((r) => r.dataset.id.startsWith("node")).map((r) => Number(r.querySelector("[data-node]").dataset.node))`)
	if dearest := slices.Max(append(costs, 0)); len(costs) == 0 || costs[0] != dearest {
		t.Errorf("the first agents cost %v", costs)
	}
}

// A session that goes on shows its new calls while it is looked at.
func TestASessionGoesOn(t *testing.T) {
	t.Parallel()
	w := newWeir(t, "../../examples/quickstart/Caddyfile")
	for range 2 {
		w.chat("echo-1", "hello", "Service-Session-Id: long")
	}
	w.until(2)
	p := newTab(w)
	p.login(w.key)
	p.show("?v=sessions&session=long&by=time")
	p.until(`document.querySelectorAll(".trace tr[data-id]").length === 2`)
	w.chat("echo-1", "hello", "Service-Session-Id: long")
	p.until(`document.querySelectorAll(".trace tr[data-id]").length === 3 && document.querySelector(".heading").innerText.includes("3 calls")`)
}
