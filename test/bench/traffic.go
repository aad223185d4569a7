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

type message struct {
	Role    string `json:"role,omitempty"`
	Content string `json:"content,omitempty"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type chatRequest struct {
	Model         string         `json:"model"`
	Messages      []message      `json:"messages"`
	Temperature   float64        `json:"temperature"`
	Stream        bool           `json:"stream,omitempty"`
	StreamOptions *streamOptions `json:"stream_options,omitempty"`
}

type chatAnswer struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"`
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
	Usage   *usage   `json:"usage,omitempty"`
}

type choice struct {
	Index        int      `json:"index"`
	Message      *message `json:"message,omitempty"`
	Delta        *message `json:"delta,omitempty"`
	FinishReason *string  `json:"finish_reason"`
}

type usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
}

func (w *words) request(k traffic, number int) []byte {
	const frame = 200 // bytes that are not content
	r := chatRequest{
		Model: "gpt-4o-mini",
		Messages: []message{
			{"system", w.text(200)},
			{"user", fmt.Sprintf("%s%d: %s", marker, number, w.text(k.requestBytes-200-frame))},
		},
		Temperature: 0.7,
		Stream:      k.events > 0,
	}
	if r.Stream {
		r.StreamOptions = &streamOptions{IncludeUsage: true}
	}
	return encode(r)
}

func (w *words) answer(k traffic, number int) []byte {
	const frame = 300 // bytes that are not content
	a := newAnswer("chat.completion", number)
	stop := "stop"
	a.Choices = []choice{{Message: &message{"assistant", w.text(k.answerBytes - frame)}, FinishReason: &stop}}
	a.Usage = usageOf(k)
	return encode(a)
}

// stream is the role, the deltas, the finish reason, the usage and [DONE].
func (w *words) stream(k traffic, number int) (r reply) {
	chunk := func(c choice) {
		a := newAnswer("chat.completion.chunk", number)
		a.Choices = []choice{c}
		r.event("", encode(a))
	}
	chunk(choice{Delta: &message{Role: "assistant"}})
	for range k.events - 4 {
		chunk(choice{Delta: &message{Content: w.text(4)}})
	}
	stop := "stop"
	chunk(choice{Delta: new(message), FinishReason: &stop})
	last := newAnswer("chat.completion.chunk", number)
	last.Choices, last.Usage = []choice{}, usageOf(k)
	r.event("", encode(last))
	r.event("", []byte("[DONE]"))
	return r
}

func newAnswer(object string, number int) chatAnswer {
	return chatAnswer{ID: fmt.Sprintf("chatcmpl-%029d", number), Object: object, Created: 1763700000, Model: "gpt-4o-mini-2024-07-18"}
}

func usageOf(k traffic) *usage {
	u := &usage{PromptTokens: k.requestBytes / 4, CompletionTokens: max(k.answerBytes/4, k.events)}
	u.TotalTokens = u.PromptTokens + u.CompletionTokens
	return u
}

func encode(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // these structs always marshal
	}
	return raw
}
