//go:build linux

package main

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/weirhq/weir/plugins/chat"
	"github.com/weirhq/weir/test/agents"
	"github.com/weirhq/weir/test/prose"
)

// exchange is one call: what the client sends, and what the provider answers.
type exchange struct {
	request []byte
	// serials are the places in the request where each call has another number.
	serials []int
	reply
	path   string        // path of the API, "" for /chat/completions
	status int           // status of the answer, 0 for 200
	gap    time.Duration // from one event to the next
	// messages and gemini are what providers answer to calls that were translated for
	// them.
	messages, gemini reply
}

// traffic is a kind of exchange.
type traffic struct {
	requestBytes, answerBytes int
	events                    int // events of a stream, else 0
	// streams is the API of a stream that gateways translate: responses, chat or
	// messages. "" is Chat Completions that pass.
	streams string
	agents  bool // whole conversations
	repeats bool // all calls have one prompt
	cached  bool // Weir's cache answers if it can
	tools   int  // tools that a conversation begins with; the answer calls one of the tools
	inputs  int  // inputs of a call of embeddings, else 0
	refused bool // the provider answers 429
	mixed   bool // calls of all kinds
	serials bool // no two calls have a paragraph in common
	gap     time.Duration
}

// marker tells the provider which exchange a request belongs to, also when a
// gateway has written it anew.
const marker = "exchange #"

// poolBytes is how much differing text there is of each kind of traffic: more
// than the window of a compressor, which would otherwise find every request
// in the request before.
const poolBytes = 4 << 20

// compose writes the exchanges of a kind of traffic, numbered from first.
func compose(k traffic, first int) []exchange {
	if k.agents {
		return conversations(first)
	}
	if k.mixed {
		return mixture(first)
	}
	words := words{prose.New(uint64(first))}
	const event = 220 // bytes
	pool := make([]exchange, poolBytes/(k.requestBytes+k.answerBytes+k.events*event)+1)
	if k.repeats {
		pool = pool[:1]
	}
	for i := range pool {
		x := &pool[i]
		if k.streams != "" {
			*x = words.translatedExchange(k, first+i)
			continue
		}
		x.request = words.request(k, first+i)
		if k.serials {
			x.number()
		}
		switch {
		case k.inputs > 0:
			x.path, x.answer = "/embeddings", words.embeddings(k)
		case k.refused:
			x.status, x.answer = http.StatusTooManyRequests, agents.Encode(object{"error": object{
				"message": "Rate limit reached for gpt-4o-mini on requests per min.", "type": "requests", "code": "rate_limit_exceeded",
			}})
		case k.events == 0:
			x.answer = words.answer(k, first+i)
		default:
			x.reply = chatStream(k, first+i, words.deltas(k.events-4))
			x.gap = k.gap
		}
	}
	return pool
}

// mixture is a day of an application: agents, single questions, and what goes wrong. The
// clients begin at different places, and so mix the kinds.
func mixture(first int) (pool []exchange) {
	for _, share := range []struct {
		of    traffic
		calls int
	}{{turns, 300}, {small, 300}, {same, 100}, {tooled, 100}, {embedded, 100}, {stream, 60}, {refused, 20}, {large, 20}} {
		some := compose(share.of, first+len(pool))
		pool = append(pool, some[:min(share.calls, len(some))]...)
	}
	return pool
}

// conversations are the turns of agents' conversations, one conversation behind the other.
func conversations(first int) (pool []exchange) {
	turns := agents.Default.Generate()
	slices.SortStableFunc(turns, func(a, b agents.Turn) int { return cmp.Compare(a.Conversation, b.Conversation) })
	for i, t := range turns {
		request := fmt.Appendf(t.Request[:len(t.Request)-1], `,"user":"%s%d:"}`, marker, first+i)
		pool = append(pool, exchange{request: request, reply: reply{answer: t.Answer}})
	}
	return pool
}

const (
	serialBytes = 10
	serialEvery = 400 // bytes, less than what anybody takes for the same text
)

// number makes room for numbers in the text of the request, in place of words.
func (x *exchange) number() {
	for at := len(x.request) - 100 - serialBytes; at > 1000; at -= serialEvery {
		if place := x.request[at : at+serialBytes]; bytes.IndexByte(place, '\\') < 0 && x.request[at-1] != '\\' {
			setSerial(place, 0)
			x.serials = append(x.serials, at)
		}
	}
}

func setSerial(b []byte, n int64) {
	for i := serialBytes - 1; i >= 0; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
}

// exchangeOf finds the number in a request.
func exchangeOf(request []byte) (int, error) {
	i := bytes.LastIndex(request, []byte(marker))
	if i < 0 {
		return 0, fmt.Errorf("the request has no %q", marker)
	}
	digits, _, _ := bytes.Cut(request[i+len(marker):], []byte(":"))
	return strconv.Atoi(string(digits))
}

// words makes the text of exchanges.
type words struct{ *prose.Writer }

type usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
}

func (w *words) request(k traffic, number int) []byte {
	const frame = 200 // bytes that are not content
	text := k.requestBytes - 200 - frame
	if k.tools > 0 {
		text -= k.requestBytes / 2
	}
	r := object{
		"model": "gpt-4o-mini",
		"messages": []object{
			{"role": "system", "content": w.Text(200)},
			{"role": "user", "content": fmt.Sprintf("%s%d: %s", marker, number, w.Text(text))},
		},
		"temperature": 0.7,
	}
	if k.inputs > 0 {
		inputs := make([]string, k.inputs)
		for i := range inputs {
			inputs[i] = w.Text(k.requestBytes / k.inputs)
		}
		inputs[0] = fmt.Sprintf("%s%d: %s", marker, number, inputs[0])
		return agents.Encode(object{"model": "text-embedding-3-small", "input": inputs})
	}
	if k.tools > 0 {
		r["tools"] = w.toolDefinitions(k)
	}
	if k.events > 0 {
		r["stream"], r["stream_options"] = true, object{"include_usage": true}
	}
	return agents.Encode(r)
}

func (w *words) answer(k traffic, number int) []byte {
	const frame = 300 // bytes that are not content, nor a call of a tool
	message := chat.Message{Role: "assistant", Content: w.Text(k.answerBytes - frame)}
	if k.tools > 0 {
		call := chat.CallFunction("call_1", "tool_1", string(agents.Encode(object{"query": w.Text(k.answerBytes - frame - 100)})))
		message.Content, message.ToolCalls = nil, []chat.ToolCall{call}
	}
	choice := object{"index": 0, "message": message, "finish_reason": message.FinishReason()}
	return agents.Encode(completion("chat.completion", number, usageOf(k), choice))
}

// toolDefinitions take half of the request.
func (w *words) toolDefinitions(k traffic) (tools []object) {
	const frame = 150 // bytes that are not text
	for i := range k.tools {
		tools = append(tools, object{"type": "function", "function": object{
			"name": fmt.Sprintf("tool_%d", i), "description": w.Text(k.requestBytes/2/k.tools - frame),
			"parameters": object{"type": "object", "properties": object{"query": object{"type": "string"}}},
		}})
	}
	return tools
}

// embeddings are vectors in Base64, as SDKs ask for them.
func (w *words) embeddings(k traffic) []byte {
	const frame = 50 // bytes of each that are not the vector
	data := make([]object, k.inputs)
	for i := range data {
		vector := base64.StdEncoding.EncodeToString([]byte(w.Text((k.answerBytes/k.inputs - frame) * 3 / 4)))
		data[i] = object{"object": "embedding", "index": i, "embedding": vector}
	}
	u := usageOf(k)
	return agents.Encode(object{"object": "list", "model": "text-embedding-3-small", "data": data,
		"usage": object{"prompt_tokens": u.PromptTokens, "total_tokens": u.PromptTokens}})
}

func (w *words) deltas(n int) []string {
	deltas := make([]string, n)
	for i := range deltas {
		deltas[i] = w.Text(4)
	}
	return deltas
}

// chatStream is the role, the deltas, the finish reason, the usage and [DONE].
func chatStream(k traffic, number int, deltas []string) (r reply) {
	chunk := func(usage *usage, choices ...object) {
		r.event("", agents.Encode(completion("chat.completion.chunk", number, usage, choices...)))
	}
	chunk(nil, object{"index": 0, "delta": object{"role": "assistant"}, "finish_reason": nil})
	for _, d := range deltas {
		chunk(nil, object{"index": 0, "delta": object{"content": d}, "finish_reason": nil})
	}
	chunk(nil, object{"index": 0, "delta": object{}, "finish_reason": "stop"})
	chunk(usageOf(k))
	r.event("", []byte("[DONE]"))
	return r
}

// completion is an answer of Chat Completions, or a chunk of one.
func completion(kind string, number int, usage *usage, choices ...object) object {
	c := object{
		"id": fmt.Sprintf("chatcmpl-%029d", number), "object": kind, "created": 1763700000, "model": "gpt-4o-mini-2024-07-18",
		"choices": append([]object{}, choices...),
	}
	if usage != nil {
		c["usage"] = usage
	}
	return c
}

func usageOf(k traffic) *usage {
	u := &usage{PromptTokens: k.requestBytes / 4, CompletionTokens: max(k.answerBytes/4, k.events)}
	u.TotalTokens = u.PromptTokens + u.CompletionTokens
	return u
}
