//go:build linux

package durability

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// dialect is the one that a call is made in.
type dialect int

const (
	chat dialect = iota
	messages
	gemini
)

var dialects = []dialect{chat, messages, gemini}

func (d dialect) String() string { return [...]string{"chat", "messages", "gemini"}[d] }

// call is a call to a model: what the client sends and what the provider is to
// answer. Its number comes back as the tokens that the provider reports.
type call struct {
	number  int
	dialect dialect
	stream  bool
	// site is the prefix of the path, by default the dialect's.
	site string

	prompt   string
	header   http.Header // beyond what every call has
	query    url.Values
	encoding string // of both bodies: gzip, br, zstd
	// reads is how many bytes of the answer the client reads; 0 is all.
	reads int

	reply

	// ending is how the call ends, where that is tested.
	ending *ending
	// begun is true once the provider answers, holding once it holds.
	begun, holding atomic.Bool
	// leaked is a control header that reached the provider.
	leaked atomic.Pointer[string]
}

// reply is what the provider is to answer.
type reply struct {
	text   string
	pieces int // the answer says text so often
	pause  time.Duration
	linger time.Duration   // from the last piece to the end of the connection
	sized  bool            // Content-Length is sent
	status int             // other than 200
	cookie string          // set by the answer
	cut    bool            // the provider breaks off in the midst
	hold   <-chan struct{} // the last piece waits for it
	silent bool            // the first piece waits for hold, too
}

// name tells a call's record from others.
func (c *call) name() string { return fmt.Sprintf("call-%d", c.number) }

func (c *call) input() int  { return 1000 + c.number }
func (c *call) output() int { return 3 + 2*c.number }

func (c *call) path() string {
	path := [...]string{"/openai/v1/chat/completions", "/anthropic/v1/messages", "/gemini/v1beta/models/gemini-2.5-flash:generateContent"}[c.dialect]
	if c.dialect == gemini && c.stream {
		path = strings.Replace(path, ":generateContent", ":streamGenerateContent", 1)
	}
	if c.site != "" {
		path = c.site + path[strings.Index(path, "/v1"):]
	}
	return path
}

func (c *call) request() []byte {
	switch c.dialect {
	case chat:
		return fmt.Appendf(nil, `{"model":"gpt-4o-mini","stream":%t,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":%q}]}`, c.stream, c.prompt)
	case messages:
		return fmt.Appendf(nil, `{"model":"claude-haiku-4-5","max_tokens":100,"stream":%t,"messages":[{"role":"user","content":%q}]}`, c.stream, c.prompt)
	default:
		return fmt.Appendf(nil, `{"contents":[{"role":"user","parts":[{"text":%q}]}]}`, c.prompt)
	}
}

func (c *call) answerStatus() int {
	if c.status != 0 {
		return c.status
	}
	return http.StatusOK
}

func (c *call) contentType() string {
	if c.stream && c.status == 0 {
		return "text/event-stream"
	}
	return "application/json"
}

// answerPieces are what the provider writes; the last is the terminal event of
// a stream.
func (c *call) answerPieces() []string {
	switch {
	case c.status != 0:
		return []string{fmt.Sprintf(`{"error":{"type":"invalid_request_error","message":%q}}`, c.text)}
	case c.dialect == chat:
		return c.chatPieces()
	case c.dialect == messages:
		return c.messagesPieces()
	default:
		return c.geminiPieces()
	}
}

func (c *call) answerText() string { return strings.Repeat(c.text, c.pieces) }

func (c *call) chatPieces() []string {
	usage := fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}`, c.input(), c.output(), c.input()+c.output())
	if !c.stream {
		return halves(fmt.Sprintf(`{"id":"chatcmpl-%d","object":"chat.completion","created":1,"model":"gpt-4o-mini","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],"usage":%s}`, c.number, c.answerText(), usage))
	}
	chunk := func(choices, usage string) string {
		return fmt.Sprintf(`data: {"id":"chatcmpl-%d","object":"chat.completion.chunk","created":1,"model":"gpt-4o-mini","choices":[%s],"usage":%s}`+"\n\n", c.number, choices, usage)
	}
	pieces := []string{chunk(`{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}`, "null")}
	for range c.pieces {
		pieces = append(pieces, chunk(fmt.Sprintf(`{"index":0,"delta":{"content":%q},"finish_reason":null}`, c.text), "null"))
	}
	return append(pieces,
		chunk(`{"index":0,"delta":{},"finish_reason":"stop"}`, "null"),
		chunk("", usage),
		"data: [DONE]\n\n")
}

func (c *call) messagesPieces() []string {
	if !c.stream {
		return halves(fmt.Sprintf(`{"id":"msg_%d","type":"message","role":"assistant","model":"claude-haiku-4-5","content":[{"type":"text","text":%q}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":%d,"output_tokens":%d}}`, c.number, c.answerText(), c.input(), c.output()))
	}
	event := func(name, rest string) string {
		return fmt.Sprintf("event: %s\ndata: {\"type\":%q%s}\n\n", name, name, rest)
	}
	pieces := []string{
		event("message_start", fmt.Sprintf(`,"message":{"id":"msg_%d","type":"message","role":"assistant","model":"claude-haiku-4-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":%d,"output_tokens":1}}`, c.number, c.input())),
		event("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`),
	}
	for range c.pieces {
		pieces = append(pieces, event("content_block_delta", fmt.Sprintf(`,"index":0,"delta":{"type":"text_delta","text":%q}`, c.text)))
	}
	return append(pieces,
		event("content_block_stop", `,"index":0`),
		event("message_delta", fmt.Sprintf(`,"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":%d}`, c.output())),
		event("message_stop", ""))
}

func (c *call) geminiPieces() []string {
	end := fmt.Sprintf(`"usageMetadata":{"promptTokenCount":%d,"candidatesTokenCount":%d,"totalTokenCount":%d},"modelVersion":"gemini-2.5-flash"`, c.input(), c.output(), c.input()+c.output())
	candidate := func(text, finish string) string {
		return fmt.Sprintf(`"candidates":[{"content":{"parts":[{"text":%q}],"role":"model"},%s"index":0}]`, text, finish)
	}
	const stop = `"finishReason":"STOP",`
	if !c.stream {
		return halves("{" + candidate(c.answerText(), stop) + "," + end + "}")
	}
	var pieces []string
	for range c.pieces {
		pieces = append(pieces, "data: {"+candidate(c.text, "")+"}\n\n")
	}
	return append(pieces, "data: {"+candidate("", stop)+","+end+"}\n\n")
}

func halves(s string) []string { return []string{s[:len(s)/2], s[len(s)/2:]} }

// outcome is what a client has of a call.
type outcome struct {
	id     string // the record's, as the answer's header names it
	status int
	// ended is true when the client had the terminal event of a stream, or else
	// the last byte of the answer; got is what it read.
	ended bool
	got   []byte
	err   error
}

// do makes the call and reads its answer no further than it goes.
func (c *call) do(ctx context.Context, w *weir) (o outcome) {
	body := new(bytes.Buffer)
	encoder := encode(body, c.encoding)
	encoder.Write(c.request())
	encoder.Close()
	query := url.Values{}
	if c.dialect == gemini && c.stream {
		query.Set("alt", "sse")
	}
	for name, values := range c.query {
		query[name] = values
	}
	target := url.URL{Scheme: "http", Host: w.site, Path: c.path(), RawQuery: query.Encode()}
	r, err := http.NewRequestWithContext(ctx, "POST", target.String(), body)
	if err != nil {
		return outcome{err: err}
	}
	r.Header = c.header.Clone()
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Call", fmt.Sprint(c.number))
	r.Header.Set("Service-User-Id", c.name())
	if c.encoding != "" {
		r.Header.Set("Content-Encoding", c.encoding)
		r.Header.Set("Accept-Encoding", c.encoding)
	}
	response, err := calling.Do(r)
	if err != nil {
		return outcome{err: err}
	}
	defer response.Body.Close()
	o.id, o.status = response.Header.Get("Service-Id"), response.StatusCode
	plain, err := decode(response.Body, response.Header.Get("Content-Encoding"))
	if err != nil {
		o.err = err
		return o
	}
	defer plain.Close()
	want := strings.Join(c.answerPieces(), "")
	if c.reads > 0 {
		want = want[:c.reads]
	}
	o.got = make([]byte, len(want))
	n, err := io.ReadFull(plain, o.got)
	o.got, o.err = o.got[:n], err
	o.ended = err == nil && c.reads == 0
	if o.ended && string(o.got) != want {
		o.err = fmt.Errorf("%s read %q, want %q", c.name(), o.got, want)
	}
	if c.linger > 0 {
		_, _ = io.Copy(io.Discard, response.Body) // it has what it wants
	}
	return o
}

// calling keeps no connections, so that those of one test end with it.
var calling = &http.Client{Transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true}}

// must makes a call that has to succeed.
func (c *call) must(t *testing.T, w *weir) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*waitLimit)
	defer cancel()
	o := c.do(ctx, w)
	if o.err != nil || !o.ended {
		t.Errorf("%s: %v", c.name(), o.err)
	}
	return o
}

// check reports what is wrong with the record of a call that ended well.
func (c *call) check(t *testing.T, r *record, id string) {
	t.Helper()
	switch {
	case r == nil:
		t.Errorf("%s (%s, stream %t, %s): the record %s is lost", c.name(), c.dialect, c.stream, c.encoding, id)
		return
	case r.ID != id:
		t.Errorf("%s: its record is %s, and the client was told %s", c.name(), r.ID, id)
	case r.PromptTokens == nil || *r.PromptTokens != c.input() || r.CompletionTokens == nil || *r.CompletionTokens != c.output():
		t.Errorf("%s (%s, stream %t, %s): tokens are %s and %s, want %d and %d", c.name(), c.dialect, c.stream, c.encoding,
			number(r.PromptTokens), number(r.CompletionTokens), c.input(), c.output())
	case r.Cost == nil || *r.Cost <= 0:
		t.Errorf("%s: has no cost", c.name())
	case r.Status == nil || *r.Status != http.StatusOK || r.EndState != "complete":
		t.Errorf("%s: status %s, %s", c.name(), number(r.Status), r.EndState)
	}
	c.checkBody(t, r, "request", r.RequestOmitted, "Service-Omit-Request", r.RequestBody, c.prompt)
	c.checkBody(t, r, "response", r.ResponseOmitted, "Service-Omit-Response", r.ResponseBody, c.answerText())
	if name := c.leaked.Load(); name != nil {
		t.Errorf("%s: the provider got %s", c.name(), *name)
	}
}

func (c *call) checkBody(t *testing.T, r *record, side string, omitted bool, header string, body []byte, text string) {
	t.Helper()
	if omit := c.header.Get(header) == "true"; omitted != omit {
		t.Errorf("%s: %s_omitted is %t", c.name(), side, omitted)
	} else if omit && string(body) != "null" {
		t.Errorf("%s: the omitted %s body is %s", c.name(), side, body)
	} else if !omit && !has(body, text) {
		t.Errorf("%s (%s, stream %t, %s): %q is not in the %s body %.200s", c.name(), c.dialect, c.stream, c.encoding, text, side, body)
	}
}

func number(n *int) string {
	if n == nil {
		return "null"
	}
	return fmt.Sprint(*n)
}
