//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// exchange is one call of Chat Completions, or of Responses: what the client
// sends, and what the provider answers.
type exchange struct {
	request []byte
	reply
	gap time.Duration // from one event to the next
	// messages and gemini are what providers answer to Responses that were
	// translated for them.
	messages, gemini reply
}

// traffic is a kind of exchange.
type traffic struct {
	requestBytes, answerBytes int
	events                    int  // of a stream, else 0
	responses                 bool // in place of Chat Completions
	gap                       time.Duration
}

// marker tells the provider which exchange a request belongs to, also when a
// gateway has written it anew.
const marker = "exchange #"

// poolBytes is how much differing text there is of each kind of traffic: more
// than the window of a compressor, which would otherwise find every request
// in the one before.
const poolBytes = 4 << 20

// compose writes the exchanges of a kind of traffic, numbered from first.
func compose(k traffic, first int) []exchange {
	words := newWords(uint64(first))
	const event = 220 // bytes
	pool := make([]exchange, poolBytes/(k.requestBytes+k.answerBytes+k.events*event)+1)
	for i := range pool {
		x := &pool[i]
		if k.responses {
			*x = words.responsesExchange(k, first+i)
			continue
		}
		x.request = words.request(k, first+i)
		if k.events == 0 {
			x.answer = words.answer(k, first+i)
		} else {
			x.reply = words.stream(k, first+i)
			x.gap = k.gap
		}
	}
	return pool
}

// exchangeOf finds the number in a request.
func exchangeOf(request []byte) (int, error) {
	_, rest, found := bytes.Cut(request, []byte(marker))
	if !found {
		return 0, fmt.Errorf("the request has no %q", marker)
	}
	digits, _, _ := bytes.Cut(rest, []byte(":"))
	return strconv.Atoi(string(digits))
}

// words makes text that is as repetitive as prose: words of a made-up
// vocabulary, each as frequent as Zipf's law says. zstd makes a third of it, as
// of English.
type words struct {
	vocabulary []string
	random     *rand.Rand
	rank       *rand.Zipf
}

func newWords(seed uint64) *words {
	syllables := strings.Fields("a be ci do en fo ga hi in jo ka lu mer no or pre qui ra sti ter un ver wo ex ya zu th ch ing ed ly tion")
	w := &words{random: rand.New(rand.NewPCG(seed, 1))}
	for range 16000 {
		var word strings.Builder
		for range 1 + w.random.IntN(4) {
			word.WriteString(syllables[w.random.IntN(len(syllables))])
		}
		w.vocabulary = append(w.vocabulary, word.String())
	}
	w.rank = rand.NewZipf(w.random, 1.01, 4, uint64(len(w.vocabulary)-1))
	return w
}

// text returns about n bytes of sentences and paragraphs.
func (w *words) text(n int) string {
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(w.vocabulary[w.rank.Uint64()])
		switch w.random.IntN(60) {
		case 0:
			b.WriteString(".\n\n")
		case 1, 2, 3:
			b.WriteString(". ")
		case 4, 5, 6, 7:
			b.WriteString(", ")
		default:
			b.WriteByte(' ')
		}
	}
	return b.String()
}

type usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
}

func (w *words) request(k traffic, number int) []byte {
	const frame = 200 // bytes that are not content
	r := object{
		"model": "gpt-4o-mini",
		"messages": []object{
			{"role": "system", "content": w.text(200)},
			{"role": "user", "content": fmt.Sprintf("%s%d: %s", marker, number, w.text(k.requestBytes-200-frame))},
		},
		"temperature": 0.7,
	}
	if k.events > 0 {
		r["stream"], r["stream_options"] = true, object{"include_usage": true}
	}
	return encode(r)
}

func (w *words) answer(k traffic, number int) []byte {
	const frame = 300 // bytes that are not content
	message := object{"role": "assistant", "content": w.text(k.answerBytes - frame)}
	return encode(completion("chat.completion", number, usageOf(k), object{"index": 0, "message": message, "finish_reason": "stop"}))
}

// stream is the role, the deltas, the finish reason, the usage and [DONE].
func (w *words) stream(k traffic, number int) (r reply) {
	chunk := func(usage *usage, choices ...object) {
		r.event("", encode(completion("chat.completion.chunk", number, usage, choices...)))
	}
	chunk(nil, object{"index": 0, "delta": object{"role": "assistant"}, "finish_reason": nil})
	for range k.events - 4 {
		chunk(nil, object{"index": 0, "delta": object{"content": w.text(4)}, "finish_reason": nil})
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

func encode(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // these values always marshal
	}
	return raw
}
