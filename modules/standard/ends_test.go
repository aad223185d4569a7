package standard

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/streams"
)

// endsConfig is a site with each lane in front of one provider, which speaks every dialect: its
// folder, its provider, and its port.
const endsConfig = `{
	admin off
	persist_config off
	auto_https off
	llm {
		store sqlite %[1]s/weir.db
		key ends gateway query log
		catalog %[1]s/catalog.json
		provider compatible {
			base_url %[2]s/v1
			api_key platform
		}
		provider openai {
			base_url %[2]s/v1
			api_key platform
		}
		provider anthropic {
			base_url %[2]s
			api_key platform
		}
		provider gemini {
			base_url %[2]s
			api_key platform
		}
		provider cohere {
			base_url %[2]s
			api_key platform
		}
		provider bedrock {
			base_url %[2]s
			api_key platform
		}
	}
}
http://127.0.0.1:%[3]s {
	bind 127.0.0.1
	%[4]s
	llm_gateway
	llm_query
}`

// proxies are the site's proxies, one for each provider, whose name the records have.
func proxies(provider string) string {
	var b strings.Builder
	for _, s := range speakers {
		fmt.Fprintf(&b, "handle_path /%s/* {\nllm_log %[1]s\nreverse_proxy %s\n}\n", s.provider, provider)
	}
	return b.String()
}

// outputPrice is the price of a token that any model writes, in dollars. One that it reads costs one.
const outputPrice = 1000

// prices is a catalogue.
func prices() []byte {
	var b bytes.Buffer
	for i, s := range speakers {
		fmt.Fprintf(&b, `%c{"id":%q,"models":[{"id":"m","match":{"starts_with":"ends-"},"prices":[{"input":"1000000","output":"%d000000"}]}]}`, "[,"[min(i, 1)], s.provider, outputPrice)
	}
	return fmt.Appendf(nil, `{"providers":%s]}`, b.String())
}

// way is one way in which a provider's answer ends, or fails.
type way struct {
	name   string
	stream bool // the client asks for one
	answer reply
	want   heard
	events bool // the provider answers one
	tools  bool // the client has the tool f
	passes bool // through the proxy, which does not see the failure of which the gateway tells its client
	repair bool // what is odd in it is mended for clients of other dialects and in records, and passes to clients of its own
}

// reply is what the provider answers.
type reply struct {
	status int // 0 for 200
	header map[string]string
	body   string
	breaks bool // the connection, after the body
}

// heard is what a client is told.
type heard struct {
	status     int
	code, says string // of the error; one that is wanted may be a part of it, or "" for any
	text       string
	calls      string
	end        string // ended, limited, failed, or "" if the answer has no end
	reason     string // of an answer that is limited, as the client is told; one that is wanted may be "" for any
	tries      int    // how often the provider was asked
}

const (
	ended   = "ended"
	limited = "limited"
	failed  = "failed"
)

// fails is what a client is told of a call that failed before any content.
func fails(status int, code, says string, tries int) heard {
	return heard{status: status, code: code, says: says, end: failed, tries: tries}
}

// told is what a client is told of an answer that begins with a text.
func told(text, end string) heard { return heard{status: 200, text: text, end: end, tries: 1} }

// saying adds what the error says.
func (h heard) saying(says string) heard {
	h.says = says
	return h
}

// because adds why the answer is limited.
func (h heard) because(reason string) heard {
	h.reason = reason
	return h
}

// door is an API of the gateway's.
type door struct {
	path, ask string // the body of a call, but for its model, and whether it streams
	tools     string
	// opening is JSON of the event that opens a stream, and waits that of events that clients cannot read before.
	opening, waits string
	hear           func(h *heard, calls map[int]string, event gjson.Result)
}

var doors = []*door{chatDoor, responsesDoor, messagesDoor}

var chatDoor = &door{
	opening: `"role":"assistant"`, waits: `"choices":[{`,
	path: "/v1/chat/completions", ask: `{"model":%q,"stream":%v,"messages":[{"role":"user","content":"hi"}]%s}`,
	tools: `,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]`,
	hear: func(h *heard, calls map[int]string, e gjson.Result) {
		h.fail(e.Get("error"))
		choice := e.Get("choices.0")
		message := choice.Get("delta")
		if !message.Exists() {
			message = choice.Get("message")
		}
		h.text += message.Get("content").Str
		for i, call := range message.Get("tool_calls").Array() {
			if n := call.Get("index"); n.Exists() {
				i = int(n.Int())
			}
			calls[i] += call.Get("function.name").Str + call.Get("function.arguments").Str
		}
		h.finish(cmp.Or(choice.Get("native_finish_reason").Str, choice.Get("finish_reason").Str), "stop", "tool_calls", "function_call")
	},
}

var responsesDoor = &door{
	opening: `"type":"response.created"`, waits: `"type":"response.`,
	path: "/v1/responses", ask: `{"model":%q,"stream":%v,"input":"hi"%s}`,
	tools: `,"tools":[{"type":"function","name":"f","parameters":{"type":"object"}}]`,
	hear: func(h *heard, calls map[int]string, e gjson.Result) {
		response := e
		switch kind := e.Get("type").Str; {
		case kind == "response.output_text.delta":
			h.text += e.Get("delta").Str
			return
		case kind == "error":
			if e.Get("error").IsObject() {
				h.fail(e.Get("error"))
			} else {
				h.fail(e)
			}
			return
		case kind == "response.output_item.done" && e.Get("item.type").Str == "function_call":
			calls[int(e.Get("output_index").Int())] = e.Get("item.name").Str + e.Get("item.arguments").Str
			return
		case strings.HasPrefix(kind, "response.") && e.Get("response").Exists():
			response = e.Get("response")
		case kind == "":
			for i, item := range response.Get("output").Array() {
				if item.Get("type").Str == "function_call" {
					calls[i] = item.Get("name").Str + item.Get("arguments").Str
				}
			}
		}
		h.fail(response.Get("error"))
		if status := response.Get("status").Str; status != "in_progress" {
			if h.text == "" { // a provider that ignores stream says all at once
				h.text = response.Get(`output.#(type=="message").content.#(type=="output_text").text`).Str
			}
			h.finish(cmp.Or(response.Get("incomplete_details.reason").Str, status), "completed")
		}
	},
}

var messagesDoor = &door{
	opening: `"type":"message_start"`, waits: `"index":`,
	path: "/v1/messages", ask: `{"model":%q,"stream":%v,"max_tokens":100,"messages":[{"role":"user","content":"hi"}]%s}`,
	tools: `,"tools":[{"name":"f","input_schema":{"type":"object"}}]`,
	hear: func(h *heard, calls map[int]string, e gjson.Result) {
		h.fail(e.Get("error"))
		for i, block := range e.Get("content").Array() {
			h.text += block.Get("text").Str
			if block.Get("type").Str == "tool_use" {
				calls[i] = block.Get("name").Str + block.Get("input").Raw
			}
		}
		index := int(e.Get("index").Int())
		if block := e.Get("content_block"); block.Get("type").Str == "tool_use" {
			calls[index] = block.Get("name").Str
		}
		h.text += e.Get("delta.text").Str
		if piece := e.Get("delta.partial_json"); piece.Exists() {
			calls[index] += piece.Str
		}
		message := e
		if delta := e.Get("delta"); delta.Exists() {
			message = delta
		}
		h.finish(cmp.Or(message.Get("native_stop_reason").Str, message.Get("stop_reason").Str), "end_turn", "tool_use", "stop_sequence")
	},
}

// fail takes what an error says.
func (h *heard) fail(e gjson.Result) {
	if e.Type == gjson.Null {
		return
	}
	h.code, h.says, h.end = e.Get("code").Str, e.Get("message").Str, failed
}

// finish takes a reason to stop, of which some say that the answer is complete.
func (h *heard) finish(reason string, complete ...string) {
	switch {
	case reason == "" || h.end == failed:
	case reason == "failed":
		h.end = failed
	case slices.Contains(complete, reason):
		h.end = ended
	default:
		h.end, h.reason = limited, reason
	}
}

// listen reads an answer as clients of the door do.
func (d *door) listen(resp *http.Response, body []byte) (h heard) {
	h.status = resp.StatusCode
	if d == messagesDoor && h.status == plugins.StatusOverloaded && gjson.GetBytes(body, "error.type").Str == "overloaded_error" {
		h.status = http.StatusServiceUnavailable // as others say it
	}
	calls := make(map[int]string)
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		for line := range strings.Lines(string(body)) {
			if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data:"); ok && gjson.Valid(data) {
				d.hear(&h, calls, gjson.Parse(data))
			}
		}
	} else {
		d.hear(&h, calls, gjson.ParseBytes(body))
	}
	h.calls = joined(calls)
	return h
}

func joined(calls map[int]string) (all string) {
	for _, i := range slices.Sorted(maps.Keys(calls)) {
		all += calls[i] + ";"
	}
	return all
}

// lacks says what the record of a call does not have of the text and the calls of its answer.
func (d *door) lacks(r gjson.Result, want heard) string {
	var kept heard
	calls := make(map[int]string)
	body := r.Get("response_body")
	if body.Type == gjson.String { // a byte order mark is kept
		body = gjson.Parse(strings.TrimPrefix(body.Str, streams.ByteOrderMark))
	}
	d.hear(&kept, calls, body)
	if kept.text != want.text || joined(calls) != want.calls {
		return fmt.Sprintf("the record has the answer %.600s", r.Get("response_body").Raw)
	}
	return ""
}

// opens reports whether the stream of an answer opens before what clients cannot read otherwise: OpenAI's and
// Anthropic's libraries fail (https://github.com/anthropics/anthropic-sdk-python/blob/main/src/anthropic/lib/streaming/_messages.py).
func (d *door) opens(stream []byte) bool {
	for line := range bytes.Lines(stream) {
		if bytes.Contains(line, []byte(d.opening)) {
			return true
		}
		if bytes.Contains(line, []byte(d.waits)) {
			return false
		}
	}
	return true
}

// differs says what a client was told otherwise than wanted.
func (h heard) differs(want heard) string {
	if strings.Contains(h.says, want.says) && (want.code == "" || h.code == want.code) {
		h.says, h.code = want.says, want.code
	}
	if want.reason == "" {
		h.reason = ""
	}
	if h == want {
		return ""
	}
	return fmt.Sprintf("%+v\nwant      %+v", h, want)
}

// recorded says what the record of a call does not say, though it must. The door is nil for the
// proxy.
func (w *way) recorded(of *speaker, d *door, r gjson.Result) string {
	proxied, end, failedCall := d == nil, "complete", w.want.end == failed
	stream := w.events
	switch {
	case proxied && of == geminiSpeaker:
		stream = w.stream // as its path says
	case !proxied && d.path != of.native:
		stream = w.stream
	}
	whole := gjson.Valid(w.answer.body) && w.answer.header["Content-Type"] == jsonType || w.answer.header["Content-Encoding"] == "x-odd"
	if failedCall && w.answer.status == 0 && !(proxied && whole && !stream && w.passes) {
		end = "upstream_aborted"
	}
	isUnread := proxied && w.answer.header["Content-Encoding"] != "" // so that Weir cannot tell whether it is whole
	switch {
	case r.Get("end_state").Str != end && !isUnread:
		return fmt.Sprintf("the record is %q, want %s", r.Get("end_state").Str, end)
	case (r.Get("end_state").Str == "upstream_aborted" || failedCall && w.answer.status != 0) && r.Get("error_type").Str == "":
		return "the record has no error_type"
	case failedCall && !(proxied && whole && w.passes) && strings.Contains(w.want.says, "said m.") && !strings.Contains(r.Get("error_message").Str, w.want.says):
		return "the record has the error_message " + r.Get("error_message").Raw
	case !failedCall && r.Get("error_type").Str != "":
		return "the record has the error_type " + r.Get("error_type").Str
	case !failedCall && r.Get("stream").Bool() != stream:
		return fmt.Sprintf("the record has stream %v", !stream)
	}
	return ""
}

// unequal says what the records of the lanes do not say alike, though they must: what the failure is, and
// what the answer has cost. The input counts by the bytes of the request if it is not stated, and so
// differs between the doors; the proxy's client has what the gateway holds back.
func (w *way) unequal(lanes map[int]gjson.Result) string {
	types, costs := make(map[string][]int), make(map[string][]int)
	for lane, r := range lanes {
		if proxied := lane == 0; !proxied || !w.passes && w.answer.header["Content-Encoding"] == "" {
			types[r.Get("error_type").Str] = append(types[r.Get("error_type").Str], lane)
		}
		cost := r.Get("cost").Raw
		if cost != "null" {
			cost = fmt.Sprint(r.Get("cost").Int() / outputPrice)
		}
		if lane > 0 || w.want.end == ended {
			costs[cost] = append(costs[cost], lane)
		}
	}
	if len(types) > 1 || len(costs) > 1 {
		return fmt.Sprintf("the lanes have the error types %v, and tokens of output for %v", types, costs)
	}
	return ""
}

// lanesOfAWay are the proxy and the doors.
const lanesOfAWay = 4

// pass makes a call through the proxy, and returns the id of its record.
func (s *site) pass(of *speaker, w *way, model string) string {
	path, body := of.proxied(model, w.stream)
	resp, answer := s.call("/"+of.provider+path, body, "Service-Auth")
	id := resp.Header.Get("Service-Id")
	if id == "" {
		s.t.Errorf("%s, %s: the proxy has no record of a call: %d %s", of.provider, w.name, resp.StatusCode, answer)
	}
	return id
}

// call returns the answer, and what came of its body. auth is the header of the key.
func (s *site) call(path, body, auth string) (*http.Response, []byte) {
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Error(err)
		return new(http.Response), nil
	}
	r.Header.Set("Content-Type", jsonType)
	r.Header.Set(auth, "Bearer ends")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Error(err)
		return new(http.Response), nil
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(resp.Body) // the proxy breaks off what the provider does
	return resp, answer
}

// write answers a call.
func (r *reply) write(w http.ResponseWriter) {
	for name, value := range r.header {
		if w.Header()[name] = []string{value}; value == "" {
			w.Header()[name] = nil // or net/http makes one
		}
	}
	if r.status != 0 {
		w.WriteHeader(r.status)
	}
	_, _ = io.WriteString(w, r.body)
	w.(http.Flusher).Flush() //nolint:forcetypeassert // the server's
	if r.breaks {
		panic(http.ErrAbortHandler)
	}
}

// encodings are those that Weir reads.
var encodings = map[string]func(w io.Writer) io.WriteCloser{
	"gzip":    func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
	"deflate": func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) },
	"br":      func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) },
	"zstd": func(w io.Writer) io.WriteCloser {
		z, _ := zstd.NewWriter(w) // without options
		return z
	},
}

func encoded(encoding, body string) string {
	var b bytes.Buffer
	z := encodings[encoding](&b)
	_, _ = io.WriteString(z, body)
	_ = z.Close()
	return b.String()
}
