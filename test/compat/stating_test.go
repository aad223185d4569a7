package compat

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// statedCall is a call of a model, as its provider knows it.
type statedCall struct {
	provider, model string
	embeds          bool
	status          int
	usage           plugins.Usage
}

// statingProvider answers in the formats of several vendors, and remembers what it has stated of
// each call. A prompt with the word "fail" is refused with 400, and the first turn of a request
// with tools calls the first of them. The inputs of two calls are never equally long.
type statingProvider struct {
	mu    sync.Mutex
	calls []statedCall
	total int64
}

// take returns the calls since it was called last.
func (p *statingProvider) take() []statedCall {
	p.mu.Lock()
	defer p.mu.Unlock()
	calls := p.calls
	p.calls = nil
	return calls
}

func (p *statingProvider) state(c statedCall) statedCall {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total++
	u := &c.usage
	u.Input, u.Output = plugins.Known(4000+p.total), plugins.Known(200+p.total%100)
	switch {
	case c.status != http.StatusOK:
		c.usage = plugins.Usage{}
	case c.embeds:
		u.Output = plugins.Count{}
	case c.provider == "anthropic":
		u.CacheRead, u.CacheWrite = plugins.Known(1024), plugins.Known(512)
	case c.provider == "openai", c.provider == "gemini":
		u.CacheRead, u.Reasoning = plugins.Known(1024), plugins.Known(64)
	}
	p.calls = append(p.calls, c)
	return c
}

func (p *statingProvider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	q := gjson.ParseBytes(text)
	c := statedCall{provider: "openai", model: q.Get("model").Str, status: http.StatusOK}
	switch {
	case strings.Contains(r.URL.Path, "/groq/"):
		c.provider = "groq"
	case strings.Contains(r.URL.Path, "/mistral/"):
		c.provider = "mistral"
	}
	stream := q.Get("stream").Bool()
	tool := q.Get("tools.0.function.name").Str
	answered := strings.Contains(string(text), `"tool_call_id"`) || strings.Contains(string(text), `"function_call_output"`) ||
		strings.Contains(string(text), `"tool_result"`) || strings.Contains(string(text), `unctionResponse"`) || strings.Contains(string(text), `"toolResult"`)
	if strings.Contains(string(text), "fail") {
		c.status = http.StatusBadRequest
	}
	path := r.URL.Path
	answer := p.chat
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
	case strings.HasSuffix(path, "/responses"):
		tool, answer = q.Get(`tools.#(type=="function").name`).Str, p.responses
	case strings.HasSuffix(path, "/embeddings"):
		c.embeds, answer = true, p.embeddings
	case strings.HasSuffix(path, "/messages"):
		c.provider, tool, answer = "anthropic", q.Get("tools.0.name").Str, p.messages
	case strings.Contains(path, "enerateContent"):
		_, model, _ := strings.Cut(path, "models/")
		c.provider, answer = "gemini", p.generateContent
		c.model, _, _ = strings.Cut(model, ":")
		stream = strings.Contains(path, "stream")
		tool = cmp.Or(q.Get("tools.0.functionDeclarations.0.name").Str, q.Get("tools.0.function_declarations.0.name").Str)
	case strings.HasSuffix(path, "/converse"):
		_, model, _ := strings.Cut(path, "/model/")
		c.provider, answer = "bedrock", p.converse
		c.model = strings.TrimSuffix(model, "/converse")
		tool = q.Get("toolConfig.tools.0.toolSpec.name").Str
	default:
		http.NotFound(w, r)
		return
	}
	c = p.state(c)
	w.Header().Set("Content-Type", "application/json")
	if c.status != http.StatusOK {
		w.Header().Set("X-Amzn-ErrorType", "ValidationException")
		w.WriteHeader(c.status)
		fmt.Fprint(w, `{"type":"error","message":"too long","error":{"type":"invalid_request_error","code":"context_length_exceeded","status":"INVALID_ARGUMENT","message":"too long"}}`)
		return
	}
	if answered {
		tool = ""
	}
	answer(w, &c, stream, tool, q)
}

func write(w http.ResponseWriter, v any) { _ = json.NewEncoder(w).Encode(v) }

// event writes an event of a stream, with a name unless it is "".
func event(w http.ResponseWriter, name string, v any) {
	w.Header().Set("Content-Type", "text/event-stream")
	if name != "" {
		fmt.Fprintf(w, "event: %s\n", name)
	}
	text, _ := json.Marshal(v)
	fmt.Fprintf(w, "data: %s\n\n", text)
}

func (c *statedCall) id(prefix string) string { return fmt.Sprint(prefix, "-", c.usage.Input.N) }

func (c *statedCall) chatUsage() object {
	u := object{"prompt_tokens": c.usage.Input.N, "completion_tokens": c.usage.Output.N, "total_tokens": c.usage.Input.N + c.usage.Output.N}
	if c.usage.CacheRead.Valid {
		u["prompt_tokens_details"] = object{"cached_tokens": c.usage.CacheRead.N}
		u["completion_tokens_details"] = object{"reasoning_tokens": c.usage.Reasoning.N}
	}
	return u
}

const toolArguments = `{"city":"Paris"}`

func (p *statingProvider) chat(w http.ResponseWriter, c *statedCall, stream bool, tool string, q gjson.Result) {
	message, finish := object{"role": "assistant", "content": "Hello there."}, "stop"
	if tool != "" {
		finish = "tool_calls"
		message = object{"role": "assistant", "content": nil, "tool_calls": []any{object{"index": 0, "id": "call00001", "type": "function", "function": object{"name": tool, "arguments": toolArguments}}}}
	}
	head := object{"id": c.id("chatcmpl"), "created": 1700000000, "model": c.model, "object": "chat.completion"}
	if !stream {
		head["choices"], head["usage"] = []any{object{"index": 0, "message": message, "finish_reason": finish, "logprobs": nil}}, c.chatUsage()
		write(w, head)
		return
	}
	head["object"] = "chat.completion.chunk"
	head["choices"] = []any{object{"index": 0, "delta": message, "finish_reason": nil}}
	event(w, "", head)
	head["choices"] = []any{object{"index": 0, "delta": object{}, "finish_reason": finish}}
	if c.provider != "openai" { // the others state it with the last choice
		head["usage"], head["x_groq"] = c.chatUsage(), object{"id": "x", "usage": c.chatUsage()}
	}
	event(w, "", head)
	if c.provider == "openai" && q.Get("stream_options.include_usage").Bool() {
		head["choices"], head["usage"] = []any{}, c.chatUsage()
		event(w, "", head)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func (p *statingProvider) responses(w http.ResponseWriter, c *statedCall, stream bool, tool string, _ gjson.Result) {
	item := object{"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": []any{object{"type": "output_text", "text": "Hello there.", "annotations": []any{}}}}
	if tool != "" {
		item = object{"id": "fc_1", "type": "function_call", "call_id": "call00001", "name": tool, "arguments": toolArguments, "status": "completed"}
	}
	r := object{
		"id": c.id("resp"), "object": "response", "created_at": 1700000000, "model": c.model, "status": "completed", "output": []any{item}, "parallel_tool_calls": true, "tool_choice": "auto", "tools": []any{},
		"error": nil, "incomplete_details": nil, "instructions": nil, "metadata": object{},
		"usage": object{
			"input_tokens": c.usage.Input.N, "output_tokens": c.usage.Output.N, "total_tokens": c.usage.Input.N + c.usage.Output.N,
			"input_tokens_details": object{"cached_tokens": c.usage.CacheRead.N, "cache_write_tokens": 0}, "output_tokens_details": object{"reasoning_tokens": c.usage.Reasoning.N},
		},
	}
	if !stream {
		write(w, r)
		return
	}
	number := 0
	emit := func(kind string, fields object) {
		fields["type"], fields["sequence_number"] = kind, number
		number++
		event(w, kind, fields)
	}
	begun := object{"id": r["id"], "object": "response", "created_at": 1700000000, "model": c.model, "status": "in_progress", "output": []any{}, "parallel_tool_calls": true, "tool_choice": "auto", "tools": []any{}}
	emit("response.created", object{"response": begun})
	emit("response.output_item.added", object{"output_index": 0, "item": item})
	if tool == "" {
		emit("response.content_part.added", object{"output_index": 0, "content_index": 0, "item_id": "msg_1", "part": object{"type": "output_text", "text": "", "annotations": []any{}}})
		emit("response.output_text.delta", object{"output_index": 0, "content_index": 0, "item_id": "msg_1", "delta": "Hello there.", "logprobs": []any{}})
	}
	emit("response.output_item.done", object{"output_index": 0, "item": item})
	emit("response.completed", object{"response": r})
}

func (p *statingProvider) embeddings(w http.ResponseWriter, c *statedCall, _ bool, _ string, q gjson.Result) {
	var vector any = []float64{0.1, 0.2}
	if q.Get("encoding_format").Str == "base64" {
		vector = "zczMPc3MTD4="
	}
	var data []any
	for i := range max(len(q.Get("input").Array()), 1) {
		data = append(data, object{"object": "embedding", "index": i, "embedding": vector})
	}
	write(w, object{"object": "list", "model": c.model, "data": data, "usage": object{"prompt_tokens": c.usage.Input.N, "total_tokens": c.usage.Input.N}})
}

func (p *statingProvider) messages(w http.ResponseWriter, c *statedCall, stream bool, tool string, _ gjson.Result) {
	block, finish := object{"type": "text", "text": "Hello there."}, "end_turn"
	if tool != "" {
		block, finish = object{"type": "tool_use", "id": "toolu_1", "name": tool, "input": json.RawMessage(toolArguments)}, "tool_use"
	}
	usage := object{
		"input_tokens": c.usage.Input.N - c.usage.CacheRead.N - c.usage.CacheWrite.N, "output_tokens": c.usage.Output.N,
		"cache_read_input_tokens": c.usage.CacheRead.N, "cache_creation_input_tokens": c.usage.CacheWrite.N,
		"cache_creation": object{"ephemeral_5m_input_tokens": c.usage.CacheWrite.N, "ephemeral_1h_input_tokens": 0},
	}
	m := object{"id": c.id("msg"), "type": "message", "role": "assistant", "model": c.model, "content": []any{block}, "stop_reason": finish, "stop_sequence": nil, "usage": usage}
	if !stream {
		write(w, m)
		return
	}
	m["content"], m["stop_reason"] = []any{}, nil
	event(w, "message_start", object{"type": "message_start", "message": m})
	if tool == "" {
		event(w, "content_block_start", object{"type": "content_block_start", "index": 0, "content_block": object{"type": "text", "text": ""}})
		event(w, "content_block_delta", object{"type": "content_block_delta", "index": 0, "delta": object{"type": "text_delta", "text": "Hello there."}})
	} else {
		event(w, "content_block_start", object{"type": "content_block_start", "index": 0, "content_block": object{"type": "tool_use", "id": "toolu_1", "name": tool, "input": object{}}})
		event(w, "content_block_delta", object{"type": "content_block_delta", "index": 0, "delta": object{"type": "input_json_delta", "partial_json": toolArguments}})
	}
	event(w, "content_block_stop", object{"type": "content_block_stop", "index": 0})
	delete(usage, "cache_creation")
	event(w, "message_delta", object{"type": "message_delta", "delta": object{"stop_reason": finish, "stop_sequence": nil}, "usage": usage})
	event(w, "message_stop", object{"type": "message_stop"})
}

func (p *statingProvider) generateContent(w http.ResponseWriter, c *statedCall, stream bool, tool string, _ gjson.Result) {
	part := object{"text": "Hello there."}
	if tool != "" {
		part = object{"functionCall": object{"name": tool, "args": json.RawMessage(toolArguments)}}
	}
	a := object{
		"responseId": c.id("g"), "modelVersion": c.model,
		"candidates": []any{object{"index": 0, "finishReason": "STOP", "content": object{"role": "model", "parts": []any{part}}}},
		"usageMetadata": object{
			"promptTokenCount": c.usage.Input.N, "candidatesTokenCount": c.usage.Output.N - c.usage.Reasoning.N, "thoughtsTokenCount": c.usage.Reasoning.N,
			"cachedContentTokenCount": c.usage.CacheRead.N, "totalTokenCount": c.usage.Input.N + c.usage.Output.N,
		},
	}
	if stream {
		event(w, "", a)
	} else {
		write(w, a)
	}
}

func (p *statingProvider) converse(w http.ResponseWriter, c *statedCall, _ bool, tool string, _ gjson.Result) {
	block, finish := object{"text": "Hello there."}, "end_turn"
	if tool != "" {
		block, finish = object{"toolUse": object{"toolUseId": "tooluse_1", "name": tool, "input": json.RawMessage(toolArguments)}}, "tool_use"
	}
	write(w, object{
		"output": object{"message": object{"role": "assistant", "content": []any{block}}}, "stopReason": finish, "metrics": object{"latencyMs": 10},
		"usage": object{"inputTokens": c.usage.Input.N, "outputTokens": c.usage.Output.N, "totalTokens": c.usage.Input.N + c.usage.Output.N},
	})
}
