package llmcommand

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"
)

// modelServer answers coding agents as Anthropic, OpenAI and Google do, and remembers the usage that
// it has stated. The first element of a path is the session. An agent does what its prompt says
// after "script:", each step an answer: `shell` and `shells` call tools, `agent` begins a sub-agent,
// `wait` waits for it, `search` searches the web, `busy` fails first, `slow` takes its time, `spend` asks Weir, `long` has more input than
// prices without a surcharge allow.
type modelServer struct {
	mu    sync.Mutex
	calls map[string][]modelCall
	pause time.Duration // before the answer of a slow step
}

// count returns how many calls of a session were answered.
func (s *modelServer) count(session string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls[session])
}

// modelCall is a call that was answered.
type modelCall struct {
	Model string
	// Aside is true of calls that agents do not write: those for titles, which have no tools, and those
	// of Claude Code for a summary. Codex makes none.
	Aside bool
	Usage tokenUsage
}

// tokenUsage counts tokens. Input includes what caches served and store, and Output includes Reasoning.
type tokenUsage struct{ Input, CacheRead, CacheWrite, CacheWrite1h, Output, Reasoning, Searches int64 }

type object = map[string]any

// toolCall is a call of a tool.
type toolCall struct {
	id, name  string
	arguments object
}

// modelAnswer is what a model says.
type modelAnswer struct {
	number   int
	model    string
	slow     bool
	thinking string
	text     string
	calls    []toolCall
	usage    tokenUsage
}

var (
	script        = regexp.MustCompile(`script:((?: [a-z]+)+)`)
	sessionFilter = regexp.MustCompile(`session=[-0-9a-f]{36}`)
	stepOfID      = regexp.MustCompile(`^[a-z]+_s(\d+)_`)
)

// conversation returns the steps of the last prompt and how many of them are done, by what a request
// of any dialect has.
func conversation(request gjson.Result) (steps []string, done int) {
	user := func(text string) {
		if found := script.FindAllStringSubmatch(text, -1); found != nil {
			steps, done = strings.Fields(found[len(found)-1][1]), 0
		}
	}
	called := func(id string) {
		if found := stepOfID.FindStringSubmatch(id); found != nil {
			var n int
			fmt.Sscan(found[1], &n)
			done = max(done, n+1)
		}
	}
	for _, name := range []string{"messages", "input", "contents"} {
		for _, m := range request.Get(name).Array() {
			called(m.Get("call_id").Str)
			for _, call := range m.Get("tool_calls").Array() {
				called(call.Get("id").Str)
			}
			if m.Get("role").Str == "model" && m.Get("parts.#.functionCall").Get("#").Int() > 0 {
				done++
			}
			parts := m.Get("content")
			if name == "contents" {
				parts = m.Get("parts")
			}
			if parts.Type == gjson.String && m.Get("role").Str == "user" {
				user(parts.Str)
			}
			for _, part := range parts.Array() {
				if called(part.Get("id").Str); m.Get("role").Str == "user" {
					user(part.Get("text").Str)
				}
			}
		}
	}
	return steps, done
}

// tools returns the names of a request's tools. Those of a namespace have it before a dot.
func tools(request gjson.Result) (names []string) {
	lists := []gjson.Result{request.Get("tools"), request.Get(`input.#(type=="additional_tools").tools`)}
	for _, list := range lists {
		for _, tool := range list.Array() {
			name := cmp.Or(tool.Get("name").Str, tool.Get("function.name").Str, tool.Get("type").Str)
			names = append(names, name)
			for _, within := range append(tool.Get("tools").Array(), tool.Get("functionDeclarations").Array()...) {
				names = append(names, strings.TrimPrefix(name+"."+within.Get("name").Str, "."))
			}
		}
	}
	return names
}

// answer lets the model take the next step in an API.
func (s *modelServer) answer(session, api, model string, request gjson.Result) (a modelAnswer, busy bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	number := len(s.calls[session])
	steps, done := conversation(request)
	names := tools(request)
	step := "text"
	if done < len(steps) && len(names) > 0 && number < 12+len(steps) { // who forgets its prompt comes to an end
		step = steps[done]
	}
	seed := fnv.New64a()
	fmt.Fprint(seed, session, number)
	random := rand.New(rand.NewPCG(seed.Sum64(), 0))
	a = modelAnswer{number: number, model: model, text: "Done.", usage: tokenUsage{
		CacheRead: random.Int64N(90_000), Output: 10 + random.Int64N(3_000),
	}}
	if strings.Contains(model, "claude") || strings.HasPrefix(model, "gpt-5.6") || strings.HasPrefix(model, "gpt-6") { // the others state none
		a.usage.CacheWrite = random.Int64N(9_000)
	}
	if api == "claude" { // others ask for none
		a.usage.CacheWrite1h = random.Int64N(2) * a.usage.CacheWrite
	}
	if a.usage.Reasoning = random.Int64N(2) * random.Int64N(a.usage.Output); a.usage.Reasoning > 0 {
		a.thinking = "It has to be done."
	}
	if step == "long" {
		a.usage.CacheRead += 280_000
	}
	a.usage.Input = a.usage.CacheRead + a.usage.CacheWrite + random.Int64N(3_000)
	// call calls the first of some tools that the agent has.
	call := func(n int, arguments object, known ...string) {
		if i := slices.IndexFunc(known, func(name string) bool { return slices.Contains(names, name) }); i >= 0 {
			a.calls = append(a.calls, toolCall{fmt.Sprintf("toolu_s%d_%d_%d", done, number, n), known[i], arguments})
			a.text = "I do that."
		}
	}
	shells := []string{"Bash", "bash", "exec_command", "run_shell_command", "functions.exec"}
	shell := object{"command": "echo hi", "description": "Says hi"}
	if api == "codex" {
		shell = object{"cmd": "echo hi"}
	}
	switch step {
	case "slow": // not as the step before, which an agent takes for a loop
		for _, name := range []string{"command", "cmd"} {
			if shell[name] != nil {
				shell[name] = fmt.Sprint("echo ", number)
			}
		}
		call(0, shell, shells...)
		a.slow, a.text = true, fmt.Sprintf("I do step %d.", number)
	case "shells":
		call(1, shell, shells...)
		fallthrough
	case "shell", "long":
		call(0, shell, shells...)
	case "agent":
		call(0, object{"description": "Do a part", "prompt": "script: shell text", "subagent_type": map[bool]string{true: "general", false: "general-purpose"}[slices.Contains(names, "task")]}, "Agent", "Task", "task")
		call(0, object{"message": "script: shell text", "task_name": "part"}, "spawn_agent", "collaboration.spawn_agent")
	case "wait": // for sub-agents
		call(0, object{"timeout_ms": 20_000}, "collaboration.wait_agent")
	case "spend": // asks Weir what the session has cost, whose id the prompt has
		if session := sessionFilter.FindString(request.Raw); session != "" {
			call(0, object{"filter": session}, "mcp__plugin_weir_weir__spend")
		}
	case "search":
		a.usage.Searches = 2
	case "busy":
		if s.calls[session+" busy"] == nil {
			s.calls[session+" busy"] = []modelCall{{}}
			return a, true
		}
		call(0, shell, shells...)
	}
	summarizes := strings.Contains(request.Raw, "You are a context summarization agent") // opencode, which writes it
	aside := len(names) == 0 && api != "codex" && !summarizes || strings.Contains(request.Raw, "REMINDER: Do NOT call any tools.")
	s.calls[session] = append(s.calls[session], modelCall{model, aside, a.usage})
	return a, false
}

func (s *modelServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	session, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	request := gjson.ParseBytes(body)
	model := request.Get("model").Str
	var write func(modelAnswer, bool) string
	api := ""
	switch {
	case path == "models" && session == "v1beta": // of Gemini, which setup asks without a key
		w.WriteHeader(http.StatusForbidden)
		return
	case r.Method != http.MethodPost:
	case strings.HasSuffix(path, "/messages"):
		if write = modelAnswer.messages; strings.HasPrefix(r.UserAgent(), "claude") {
			api = "claude"
		}
	case strings.HasSuffix(path, "/responses"):
		if write = modelAnswer.responses; strings.HasPrefix(r.UserAgent(), "codex") {
			api = "codex"
		}
	case strings.HasSuffix(path, "/chat/completions"):
		api, write = "chat", modelAnswer.chat
	case strings.Contains(path, ":generateContent"), strings.Contains(path, ":streamGenerateContent"):
		api, write = "gemini", modelAnswer.generateContent
		model = path[strings.LastIndexByte(path, '/')+1 : strings.LastIndexByte(path, ':')]
	}
	if write == nil {
		http.NotFound(w, r)
		return
	}
	a, busy := s.answer(session, api, model, request)
	w.Header().Set("Request-Id", fmt.Sprint("req_", session, "_", a.number))
	if busy {
		w.Header().Set("Retry-After", "0")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, `{"type":"error","error":{"type":"overloaded_error","code":503,"status":"UNAVAILABLE","message":"Overloaded"}}`)
		return
	}
	if a.slow {
		select {
		case <-time.After(s.pause):
		case <-r.Context().Done():
			return
		}
	}
	stream := request.Get("stream").Bool() || strings.Contains(path, ":stream")
	w.Header().Set("Content-Type", map[bool]string{true: "text/event-stream", false: "application/json"}[stream])
	fmt.Fprint(w, write(a, stream))
}

func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // these always marshal
	}
	return string(text)
}

// events writes a stream of events, whose names their types are.
func events(list ...object) string {
	var s strings.Builder
	for _, e := range list {
		if e["type"] != nil {
			fmt.Fprintf(&s, "event: %s\n", e["type"])
		}
		fmt.Fprintf(&s, "data: %s\n\n", encode(e))
	}
	return s.String()
}

// messages writes an answer of Anthropic's Messages.
func (a modelAnswer) messages(stream bool) string {
	u := a.usage
	usage := object{
		"input_tokens": u.Input - u.CacheRead - u.CacheWrite, "cache_read_input_tokens": u.CacheRead, "cache_creation_input_tokens": u.CacheWrite,
		"cache_creation": object{"ephemeral_5m_input_tokens": u.CacheWrite - u.CacheWrite1h, "ephemeral_1h_input_tokens": u.CacheWrite1h},
		"output_tokens":  u.Output, "service_tier": "standard",
	}
	if u.Searches > 0 {
		usage["server_tool_use"] = object{"web_search_requests": u.Searches, "web_fetch_requests": 0}
	}
	var blocks []object
	var parts []object // what a stream adds to each block
	add := func(block, delta object) { blocks, parts = append(blocks, block), append(parts, delta) }
	if a.thinking != "" {
		add(object{"type": "thinking", "thinking": "", "signature": ""}, object{"type": "thinking_delta", "thinking": a.thinking})
	}
	add(object{"type": "text", "text": ""}, object{"type": "text_delta", "text": a.text})
	for _, c := range a.calls {
		add(object{"type": "tool_use", "id": c.id, "name": c.name, "input": object{}}, object{"type": "input_json_delta", "partial_json": encode(c.arguments)})
	}
	reason := map[bool]string{true: "tool_use", false: "end_turn"}[len(a.calls) > 0]
	message := object{
		"id": fmt.Sprintf("msg_%s_%d", a.model, a.number), "type": "message", "role": "assistant", "model": a.model,
		"content": []object{}, "stop_reason": nil, "stop_sequence": nil,
	}
	if !stream {
		blocks[len(blocks)-1]["text"] = a.text
		message["content"], message["stop_reason"], message["usage"] = blocks[len(blocks)-1:], reason, usage
		return encode(message)
	}
	first := object{}
	for name, value := range usage {
		first[name] = value
	}
	first["output_tokens"] = 1
	delete(first, "server_tool_use")
	message["usage"] = first
	list := []object{{"type": "message_start", "message": message}}
	for i := range blocks {
		list = append(list, object{"type": "content_block_start", "index": i, "content_block": blocks[i]}, object{"type": "content_block_delta", "index": i, "delta": parts[i]})
		if blocks[i]["type"] == "thinking" {
			list = append(list, object{"type": "content_block_delta", "index": i, "delta": object{"type": "signature_delta", "signature": "c2ln"}})
		}
		list = append(list, object{"type": "content_block_stop", "index": i})
	}
	return events(append(list, object{"type": "message_delta", "delta": object{"stop_reason": reason, "stop_sequence": nil}, "usage": usage}, object{"type": "message_stop"})...)
}

// responses writes an answer of OpenAI's Responses.
func (a modelAnswer) responses(stream bool) string {
	u := a.usage
	id := fmt.Sprintf("resp_%d", a.number)
	items := []object{{"type": "message", "id": "msg_" + id, "status": "completed", "role": "assistant", "content": []object{{"type": "output_text", "text": a.text, "annotations": []object{}}}}}
	if a.thinking != "" {
		items = append([]object{{"type": "reasoning", "id": "rs_" + id, "summary": []object{{"type": "summary_text", "text": a.thinking}}, "encrypted_content": "x"}}, items...)
	}
	for _, c := range a.calls {
		item := object{"type": "function_call", "id": "fc_" + c.id, "call_id": c.id, "name": c.name, "arguments": encode(c.arguments), "status": "completed"}
		if namespace, name, ok := strings.Cut(c.name, "."); ok {
			item["namespace"], item["name"] = namespace, name
		}
		if item["name"] == "exec" { // takes a program in JavaScript
			item["type"], item["input"] = "custom_tool_call", "text(await tools.exec_command("+encode(c.arguments)+"))"
			delete(item, "arguments")
		}
		items = append(items, item)
	}
	response := object{
		"id": id, "object": "response", "created_at": 1_790_000_000, "status": "completed", "model": a.model, "output": items,
		"usage": object{
			"input_tokens": u.Input, "input_tokens_details": object{"cached_tokens": u.CacheRead, "cache_write_tokens": u.CacheWrite},
			"output_tokens": u.Output, "output_tokens_details": object{"reasoning_tokens": u.Reasoning}, "total_tokens": u.Input + u.Output,
		},
	}
	if !stream {
		return encode(response)
	}
	list := []object{{"type": "response.created", "response": object{"id": id, "object": "response", "created_at": 1_790_000_000, "status": "in_progress", "model": a.model, "output": []object{}}}}
	for i, item := range items {
		list = append(list, object{"type": "response.output_item.added", "output_index": i, "item": item})
		if item["type"] == "message" {
			list = append(list, object{"type": "response.output_text.delta", "output_index": i, "content_index": 0, "item_id": item["id"], "delta": a.text})
		}
		list = append(list, object{"type": "response.output_item.done", "output_index": i, "item": item})
	}
	list = append(list, object{"type": "response.completed", "response": response})
	for i := range list {
		list[i]["sequence_number"] = i
	}
	return events(list...)
}

// chat writes an answer of OpenAI's Chat Completions.
func (a modelAnswer) chat(stream bool) string {
	u := a.usage
	usage := object{
		"prompt_tokens": u.Input, "prompt_tokens_details": object{"cached_tokens": u.CacheRead},
		"completion_tokens": u.Output, "completion_tokens_details": object{"reasoning_tokens": u.Reasoning}, "total_tokens": u.Input + u.Output,
	}
	message := object{"role": "assistant", "content": a.text}
	reason := "stop"
	if len(a.calls) > 0 {
		var calls []object
		for i, c := range a.calls {
			calls = append(calls, object{"index": i, "id": c.id, "type": "function", "function": object{"name": c.name, "arguments": encode(c.arguments)}})
		}
		message["tool_calls"], reason = calls, "tool_calls"
	}
	answer := func(kind string, choices []object, usage any) object {
		return object{"id": fmt.Sprintf("chatcmpl-%d", a.number), "object": kind, "created": 1_790_000_000, "model": a.model, "choices": choices, "usage": usage}
	}
	if !stream {
		return encode(answer("chat.completion", []object{{"index": 0, "message": message, "finish_reason": reason}}, usage))
	}
	return events(
		answer("chat.completion.chunk", []object{{"index": 0, "delta": message, "finish_reason": nil}}, nil),
		answer("chat.completion.chunk", []object{{"index": 0, "delta": object{}, "finish_reason": reason}}, nil),
		answer("chat.completion.chunk", []object{}, usage),
	) + "data: [DONE]\n\n"
}

// generateContent writes an answer of Gemini.
func (a modelAnswer) generateContent(stream bool) string {
	u := a.usage
	var parts []object
	if a.thinking != "" {
		parts = append(parts, object{"text": a.thinking, "thought": true})
	}
	parts = append(parts, object{"text": a.text})
	for _, c := range a.calls {
		parts = append(parts, object{"functionCall": object{"id": c.id, "name": c.name, "args": c.arguments}})
	}
	answer := object{
		"responseId": fmt.Sprint(a.number), "modelVersion": a.model,
		"candidates": []object{{"index": 0, "content": object{"role": "model", "parts": parts}, "finishReason": "STOP"}},
		"usageMetadata": object{
			"promptTokenCount": u.Input, "cachedContentTokenCount": u.CacheRead, "candidatesTokenCount": u.Output - u.Reasoning,
			"thoughtsTokenCount": u.Reasoning, "totalTokenCount": u.Input + u.Output,
		},
	}
	if stream {
		return events(answer)
	}
	return encode(answer)
}
