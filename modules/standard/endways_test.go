package standard

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/tidwall/gjson"
)

// speaker is a provider that speaks one dialect: what it answers if nothing is odd. The text is
// "Half of it.", in two pieces.
type speaker struct {
	provider string // its label at the gateway
	native   string // the path of the door that it speaks itself, "" if there is none
	other    *door  // another door that it speaks, in its dialect
	proxied  func(model string, stream bool) (path, body string)
	events   []string
	first    int // the first event with content
	last     int // the event from which on the answer is complete
	object   string
	frames   bool   // events are AWS's frames: a name, a space and the payload
	atEnd    string // the text that the event with the finish reason has

	finish   string            // the format of the finish reason, "" if there is none to replace
	complete string            // the finish reason
	reasons  map[string]string // what the client is told of other ones
	odd      []way             // what vendors are known to send
}

// unnamed is the end of an answer for a reason that only its provider has a name for.
const unnamed = "unnamed"

// half is what has come of the text when the answer is cut.
const text, half = "Half of it.", "Half "

// inBody is a call whose body names the model.
func inBody(d *door) func(string, bool) (string, string) {
	return func(model string, stream bool) (string, string) { return d.path, fmt.Sprintf(d.ask, model, stream, "") }
}

var speakers = []*speaker{chatSpeaker, responsesSpeaker, messagesSpeaker, geminiSpeaker, cohereSpeaker, converseSpeaker}

// stream is the body of a stream of events.
func (s *speaker) stream(events ...string) string {
	var b bytes.Buffer
	for _, e := range events {
		if !s.frames {
			b.WriteString("data: " + e + "\n\n")
			continue
		}
		name, payload, _ := strings.Cut(e, " ")
		m := eventstream.Message{Payload: []byte(payload)}
		kind, header := "event", ":event-type"
		if strings.HasSuffix(name, "Exception") {
			kind, header = "exception", ":exception-type"
		}
		m.Headers.Set(":message-type", eventstream.StringValue(kind))
		m.Headers.Set(header, eventstream.StringValue(name))
		_ = eventstream.NewEncoder().Encode(&b, m)
	}
	return b.String()
}

// contentType is that of a stream, or of an object.
func (s *speaker) contentType(stream bool) string {
	switch {
	case !stream:
		return jsonType
	case s.frames:
		return "application/vnd.amazon.eventstream"
	}
	return "text/event-stream"
}

// says is a way in which the provider answers a body with status 200.
func (s *speaker) says(name string, stream bool, body string, want heard) way {
	return way{name: name, stream: stream, events: stream && !gjson.Valid(body) && !strings.HasPrefix(body, "<"), answer: reply{header: map[string]string{"Content-Type": s.contentType(stream)}, body: body}, want: want}
}

// twice is how often the provider is asked if what failed may pass.
const twice = 2

// generated are the ways that follow from one stream and one object: cut at each place, with another
// type or coding.
func (s *speaker) generated() (ways []way) {
	whole := s.stream(s.events...)
	for n := range len(s.events) + 1 {
		for _, breaks := range []bool{false, true} {
			name, want := fmt.Sprintf("a clean end after %d events", n), told(text, ended)
			switch {
			case n <= s.first:
				want = fails(502, "", "", twice)
			case n == s.first+1:
				want = told(half, failed)
			case n <= s.last || breaks && n < len(s.events):
				want = told(text, failed)
			}
			if breaks {
				name = fmt.Sprintf("a reset after %d events", n)
			}
			if breaks && n == len(s.events) || breaks && n > s.last && s.terminal() { // nobody waits for what follows
				want = told(text, ended)
			}
			w := s.says(name, true, s.stream(s.events[:n]...), want)
			w.answer.breaks = breaks
			ways = append(ways, w)
		}
	}
	if s.first > 0 {
		ways = append(ways, s.says("without its first event", true, s.stream(s.events[1:]...), told(text, ended)))
	}
	finish := slices.IndexFunc(s.events, func(e string) bool { return strings.Contains(e, `"`+s.complete+`"`) })
	ways = append(ways, s.says("the end without an answer", true, s.stream(s.events[finish:]...), told(s.atEnd, ended)))
	for _, n := range []int{0, 1, len(s.object) / 2, len(s.object) - 1} {
		ways = append(ways, s.says(fmt.Sprintf("an object that ends after %d bytes", n), false, s.object[:n], fails(502, "", "", twice)))
	}
	for _, contentType := range []string{"", "text/plain", "text/plain; charset=utf-8", "application/octet-stream", jsonType, "text/event-stream; charset=utf-8"} {
		for stream, body := range map[bool]string{true: whole, false: s.object} {
			if s.frames && stream || !stream && strings.HasPrefix(contentType, "text/event") {
				continue
			}
			w := s.says("declared as "+contentType, stream, body, told(text, ended))
			w.answer.header["Content-Type"] = contentType
			ways = append(ways, w)
		}
	}
	ways = append(ways, s.says("an object in place of a stream", true, s.object, told(text, ended)))
	ways[len(ways)-1].answer.header["Content-Type"] = jsonType
	for encoding := range encodings {
		for stream, body := range map[bool]string{true: whole, false: s.object} {
			w := s.says("encoded with "+encoding, stream, body, told(text, ended))
			w.answer.body = encoded(encoding, body)
			w.answer.header["Content-Encoding"] = encoding
			ways = append(ways, w)
		}
	}
	w := s.says("encoded in an unknown way", false, "xyz", fails(502, "", "", twice))
	w.answer.header["Content-Encoding"] = "x-odd"
	ways = append(ways, w)
	for name, c := range map[string]struct{ encoding, body string }{
		"encoded, and cut":          {"gzip", encoded("gzip", s.object)[:40]},
		"said to be encoded":        {"gzip", s.object},
		"encoded twice, said once":  {"gzip", encoded("gzip", encoded("gzip", s.object))},
		"encoded by two, said once": {"br", encoded("gzip", s.object)},
	} {
		w := s.says(name, false, c.body, fails(502, "", "", twice))
		w.answer.header["Content-Encoding"] = c.encoding
		ways = append(ways, w)
	}
	for _, encoding := range []string{"GZIP", "x-gzip", "gzip, identity"} {
		w := s.says("encoded with "+encoding, false, encoded("gzip", s.object), told(text, ended))
		w.answer.header["Content-Encoding"] = encoding
		ways = append(ways, w)
	}
	w = s.says("an object, then a reset", false, s.object, fails(502, "", "", twice)).passed()
	w.answer.breaks = true
	ways = append(ways, w)
	for reason, end := range s.reasons {
		want := told(text, end)
		if end == unnamed { // clients are told the provider's name for it
			want = told(text, limited).because(reason)
		}
		for stream, body := range map[bool]string{true: whole, false: s.object} {
			ways = append(ways, s.says("finish "+reason, stream, strings.ReplaceAll(body, fmt.Sprintf(s.finish, s.complete), fmt.Sprintf(s.finish, reason)), want))
		}
	}
	if !s.frames {
		ways = append(ways, s.says("comments in the place of data", true, strings.ReplaceAll(whole, "data: ", "data: : keepalive\n\n: x\n\ndata: "), told(text, ended)))
		for name, body := range map[string]string{
			"lines that end in CRLF":      strings.ReplaceAll(whole, "\n", "\r\n"),
			"fields without a blank":      strings.ReplaceAll(whole, "data: ", "data:"),
			"a byte order mark":           "\ufeff" + whole,
			"ids, retries and comments":   ": x\n\nretry: 10\nid: 1\n" + strings.ReplaceAll(whole, "data: ", "id: 2\ndata: "),
			"no blank line after the end": strings.TrimRight(whole, "\n"),
		} {
			ways = append(ways, s.says(name, true, body, told(text, ended)))
		}
		ways = append(ways, s.says("lines that end in CR", true, strings.ReplaceAll(whole, "\n", "\r"), told(text, ended)).mended(),
			s.says("events of several lines", true, strings.ReplaceAll(whole, `,"model":`, ",\ndata: \"model\":"), told(text, ended)).mended(),
			s.says("an object with a byte order mark", false, "\ufeff"+s.object, told(text, ended)),
			s.says("an object with white space around it", false, "\r\n \t"+s.object+"\n\n", told(text, ended)))
		ways = append(ways, s.says("[DONE] with blanks", true, strings.ReplaceAll(whole, "[DONE]", "[DONE]  "), told(text, ended)))
	}
	return ways
}

// terminal reports whether the last event is the end, so that clients hang up.
func (s *speaker) terminal() bool { return s.last == len(s.events)-1 }

// shapes are the bodies of errors that vendors and the proxies before them send.
var shapes = map[string]string{
	"OpenAI":                       `{"error":{"message":"No, said m.","type":"t","param":null,"code":null}}`,
	"text":                         `No, said m.`,
	"a JSON string":                `"No, said m."`,
	"an error as text":             `{"error":"No, said m."}`,
	"an error as JSON in a string": `{"error":"{\"message\":\"No, said m.\"}"}`,
	"errors of texts":              `{"errors":["No, said m."]}`,
	"errors of objects":            `{"errors":[{"message":"No, said m.","code":7}]}`,
	"a detail":                     `{"detail":"No, said m."}`,
	"details":                      `{"detail":[{"loc":["body"],"msg":"No, said m.","type":"missing"}]}`,
	"a detail as object":           `{"detail":{"message":"No, said m."}}`,
	"vLLM":                         `{"object":"error","message":"No, said m.","type":"BadRequestError","param":null,"code":400}`,
	"Anthropic":                    `{"type":"error","error":{"type":"invalid_request_error","message":"No, said m."}}`,
	"Google":                       `{"error":{"code":400,"message":"No, said m.","status":"INVALID_ARGUMENT"}}`,
	"Google, a list":               `[{"error":{"code":400,"message":"No, said m.","status":"INVALID_ARGUMENT"}}]`,
	"AWS":                          `{"Message":"No, said m."}`,
	"a message":                    `{"message":"No, said m.","type":"invalid_request_error"}`,
	"Cloudflare":                   `{"success":false,"errors":[{"code":7,"message":"No, said m."}],"result":null}`,
	"a page":                       "<!DOCTYPE html>\n<html><head><title>No, said m.</title></head><body><h1>x</h1></body></html>",
	"XML":                          `<?xml version="1.0"?><Error><Code>InvalidArgument</Code><Message>No, said m.</Message></Error>`,
	"an event":                     "event: error\ndata: {\"error\":{\"message\":\"{\\\"error\\\":{\\\"message\\\":\\\"No, said m.\\\"}}\",\"type\":\"None\",\"param\":\"None\",\"code\":\"400\"}}\n\n",
	"a problem (RFC 9457)":         `{"type":"about:blank","title":"No, said m.","status":400}`,
}

// refusals are the ways of answers whose status is none of success.
func (s *speaker) refusals() (ways []way) {
	refused := func(name string, status int, body string, want heard) *way {
		contentType := jsonType
		switch {
		case strings.HasPrefix(body, "<"):
			contentType = "text/html"
		case !strings.ContainsAny(body, `{"`):
			contentType = "text/plain"
		}
		ways = append(ways, way{name: name, answer: reply{status: status, header: map[string]string{"Content-Type": contentType}, body: body}, want: want})
		ways[len(ways)-1].stream = len(ways)%2 == 0
		return &ways[len(ways)-1]
	}
	for shape, body := range shapes {
		refused("400, "+shape, 400, body, fails(400, "", "No, said m.", 1)).passes = shape == "vLLM" && s != chatSpeaker
	}
	refused("400, nothing", 400, "", fails(400, "", "400", 1))
	says := shapes["an error as text"]
	for status, want := range map[int]heard{
		404: fails(404, "", "No, said m.", 1),
		408: fails(408, "", "No, said m.", twice),
		409: fails(409, "", "No, said m.", twice),
		413: fails(413, "", "No, said m.", 1),
		422: fails(422, "", "No, said m.", 1),
		429: fails(429, "", "No, said m.", twice),
		500: fails(500, "", "No, said m.", twice),
		502: fails(502, "", "No, said m.", twice),
		503: fails(503, "", "No, said m.", twice),
		504: fails(504, "", "No, said m.", twice),
		529: fails(503, "", "No, said m.", twice),
		401: fails(502, "upstream_auth", "credentials", 1),
		402: fails(502, "upstream_auth", "credentials", 1),
		403: fails(502, "upstream_auth", "credentials", 1),
	} {
		if s.frames && status == 408 { // the model's time is over, not the client's
			want.status = 504
		}
		w := refused(fmt.Sprint(status), status, says, want)
		w.passes = want.code == "upstream_auth" || status != want.status // or the gateway tells of another
	}
	want := fails(502, "", "No, said m.", twice)
	for shape, body := range map[string]string{
		"errors of texts": shapes["errors of texts"], "errors of objects": shapes["errors of objects"], "a detail": shapes["a detail"],
		"a detail as object": shapes["a detail as object"], "Cloudflare": shapes["Cloudflare"],
		"MiniMax": `{"base_resp":{"status_code":1002,"status_msg":"No, said m."},"choices":null}`,
	} {
		want := want
		if shape == "MiniMax" {
			want.status = 429
		}
		ways = append(ways, s.says("200, "+shape, false, body, want))
		if !s.frames {
			ways = append(ways, s.says("200, a stream of "+shape, true, s.stream(body), want))
			if s.events[len(s.events)-1] == "[DONE]" {
				ways = append(ways, s.says("200, and the end after "+shape, true, s.stream(body, "[DONE]"), want))
			}
		}
	}
	refused("403, moderation", 403, `{"error":{"code":403,"message":"Your input was flagged, said m.","metadata":{"reasons":["sexual"],"flagged_input":"x","provider_name":"OpenAI"}}}`,
		fails(403, "", "flagged, said m.", 1))
	w := refused("429, for long", 429, says, fails(429, "", "No, said m.", 1))
	w.answer.header["Retry-After"] = "120"
	return ways
}

// chat is a chunk of Chat Completions.
func chat(delta, finish string) string {
	return `{"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{` + delta + `},"finish_reason":` + finish + `}]}`
}

const (
	noFinish  = "null"
	chatUsage = `"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}`
)

func chatObject(message, finish string) string {
	return `{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant",` + message + `},"finish_reason":` + finish + `}],` + chatUsage + `}`
}

var (
	chatRole = chat(`"role":"assistant","content":""`, noFinish)
	chatHalf = chat(`"content":"Half "`, noFinish)
)

var chatSpeaker = &speaker{
	provider: "compatible", native: chatDoor.path, proxied: inBody(chatDoor), finish: `"finish_reason":%q`, complete: "stop", first: 1, last: 3,
	events: []string{chatRole, chatHalf, chat(`"content":"of it."`, noFinish), chat("", `"stop"`), `{"id":"c","object":"chat.completion.chunk","model":"m","choices":[],` + chatUsage + `}`, "[DONE]"},
	object: chatObject(`"content":"Half of it."`, `"stop"`),
	reasons: map[string]string{
		"stop": ended, "tool_calls": ended, "length": limited, "content_filter": limited, "sensitive": limited, "network_error": unnamed, "abort": unnamed, "brand_new": unnamed,
		"function_call": ended, "model_length": limited, "repetition": unnamed, "model_context_window_exceeded": limited,
	},
}

func init() {
	s := chatSpeaker
	call := func(piece string) string { return chat(`"tool_calls":[`+piece+`]`, noFinish) }
	done := []string{chat("", `"tool_calls"`), "[DONE]"}
	s.odd = slices.Concat(
		s.failures(`{"error":{"message":"No, said m.","type":"invalid_request_error","code":"tool_use_failed"}}`, 400, "tool_use_failed", 1),
		s.failures(`{"error":{"message":"No, said m.","code":429}}`, 429, "", twice),
		s.failures(`{"error":{"message":"No, said m.","type":"server_error","code":"server_error"}}`, 502, "", twice),
		s.failures(`{"error":{"message":"No, said m.","type":"service_unavailable_error"}}`, 503, "", twice),
		s.failures(`{"error":"No, said m."}`, 502, "", twice),
		s.failures(`{"object":"error","message":"No, said m.","type":"BadRequestError","code":400}`, 400, "", 1),
		s.failures(`{"choices":[{"index":0,"delta":{"content":""},"error":{"message":"No, said m.","code":429},"finish_reason":"error"}]}`, 429, "", twice),
		s.failures(chat("", `"error"`), 502, "", twice),
		s.failures(chat("", `"insufficient_system_resource"`), 502, "", twice),
		[]way{
			s.says("the end alone", true, s.stream("[DONE]"), fails(502, "", "", twice)),
			s.says("a role and the end", true, s.stream(chatRole, "[DONE]"), fails(502, "", "", twice)),
			s.says("no choices", false, `{"id":"c","object":"chat.completion","model":"m","choices":[]}`, fails(502, "", "", twice)).passed(),
			s.says("null choices", false, `{"id":"c","object":"chat.completion","model":"m","choices":null}`, fails(502, "", "", twice)).passed(),
			s.says("a page", false, "<html>Welcome</html>", fails(502, "", "", twice)),
			s.says("a page as a stream", true, "<html>Welcome</html>", fails(502, "", "", twice)),
			s.says("an error in an event of that name", true, "event: error\n"+s.stream(`{"message":"No, said m.","code":400}`), fails(400, "", "No, said m.", 1)).passed(),
			s.says("half a character and the other half", true, s.stream(chatRole, chat(`"content":"a \ud83d"`, noFinish), chat(`"content":"\ude00 b"`, noFinish), chat("", `"stop"`), "[DONE]"), told("a 😀 b", ended)).mended(),
			s.says("half a character", true, s.stream(chatRole, chat(`"content":"a \ud83d"`, noFinish), chat(`"content":"b"`, noFinish), chat("", `"stop"`), "[DONE]"), told("a \uFFFDb", ended)).mended(),
			s.says("half a character of arguments", true, s.stream(append([]string{call(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{\"a\":\"\ud83d"}}`), call(`{"index":0,"function":{"arguments":"\ude00\"}"}}`)}, done...)...), calling(`f{"a":"😀"};`)).mended(),
			s.says("arguments at another index", true, s.stream(append([]string{call(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{\"a\":"}}`), call(`{"index":1,"function":{"arguments":"1}"}}`)}, done...)...), calling(`f{"a":1};`)).mended(),
			s.says("calls with empty ids", true, s.stream(append([]string{call(`{"id":"","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}`), call(`{"id":"","type":"function","function":{"name":"f","arguments":"{\"a\":2}"}}`)}, done...)...), calling(`f{"a":1};f{"a":2};`)).mended(),
			s.says("calls of one index", true, s.stream(append([]string{chatRole, call(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{\"a\":"}}`), call(`{"index":0,"function":{"arguments":"1}"}}`), call(`{"index":0,"id":"b","type":"function","function":{"name":"f","arguments":"{\"a\":"}}`), call(`{"index":0,"function":{"arguments":"2}"}}`)}, done...)...), calling(`f{"a":1};f{"a":2};`)).mended(),
			s.says("calls without an index", true, s.stream(append([]string{chatRole, call(`{"id":"a","type":"function","function":{"name":"f","arguments":"{\"a\":"}}`), call(`{"function":{"arguments":"1}"}}`), call(`{"id":"b","type":"function","function":{"name":"f","arguments":"{\"a\":"}}`), call(`{"function":{"arguments":"2}"}}`)}, done...)...), calling(`f{"a":1};f{"a":2};`)).mended(),
			s.says("calls with empty ids in one chunk", true, s.stream(append([]string{call(`{"id":"","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}},{"id":"","type":"function","function":{"name":"f","arguments":"{\"a\":2}"}}`)}, done...)...), calling(`f{"a":1};f{"a":2};`)).mended(),
			s.says("calls with empty ids in an object", false, chatObject(`"content":null,"tool_calls":[{"id":"","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}},{"id":"","type":"function","function":{"name":"f","arguments":"{\"a\":2}"}}]`, `"tool_calls"`), calling(`f{"a":1};f{"a":2};`)).mended(),
			s.lines("newline-delimited JSON", "application/x-ndjson"), s.lines("lines declared as JSON", jsonType), s.lines("lines declared as text", "text/plain"), s.lines("lines without a type", ""), s.lines("lines declared as events", "text/event-stream"),
		},
	)
}

// calling is what a client is told that gets calls alone.
func calling(calls string) heard { return heard{status: 200, calls: calls, end: ended, tries: 1} }

// mended is a way that passes to clients of the dialect as it is.
func (w way) mended() way {
	w.tools, w.repair = w.want.calls != "", true
	return w
}

// passed is a way that the proxy takes for an answer.
func (w way) passed() way {
	w.passes = true
	return w
}

// lines is a stream without events, one JSON value a line.
func (s *speaker) lines(name, contentType string) way {
	events := slices.DeleteFunc(slices.Clone(s.events), func(e string) bool { return e == "[DONE]" })
	w := s.says(name, true, strings.Join(events, "\n")+"\n", told(text, ended))
	w.answer.header["Content-Type"] = contentType
	return w
}

// failures are an event that states a failure: as the first one, after those that open a stream,
// after content; and in place of an object, if it is an error.
func (s *speaker) failures(event string, status int, code string, tries int) []way {
	name, says := event[:min(len(event), 90)], ""
	if strings.Contains(event, "said m.") {
		says = "said m."
	}
	ways := []way{
		s.says("first, "+name, true, s.stream(event), fails(status, code, says, tries)),
		s.says("after content, "+name, true, s.stream(append(slices.Clone(s.events[:s.first+1]), event)...), told(half, failed).saying(says)),
	}
	if s.first > 0 {
		ways = append(ways, s.says("before content, "+name, true, s.stream(append(slices.Clone(s.events[:s.first]), event)...), fails(status, code, says, tries)))
	}
	if !s.frames && strings.HasPrefix(event, `{"error"`) || strings.HasPrefix(event, `{"object":"error"`) || strings.HasPrefix(event, `{"message"`) {
		ways = append(ways,
			s.says("an object, "+name, false, event, fails(status, code, says, tries)),
			s.says("an object declared as a stream, "+name, true, event, fails(status, code, says, tries)))
	}
	return ways
}

var responsesSpeaker = &speaker{
	provider: "openai", native: responsesDoor.path, other: chatDoor, proxied: inBody(responsesDoor), first: 3, last: 6, complete: "response.completed", atEnd: text,
	events: []string{
		`{"type":"response.created","sequence_number":0,"response":{"id":"r","object":"response","model":"m","status":"in_progress","output":[]}}`,
		`{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"msg","type":"message","role":"assistant","status":"in_progress","content":[]}}`,
		`{"type":"response.content_part.added","sequence_number":2,"item_id":"msg","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}`,
		`{"type":"response.output_text.delta","sequence_number":3,"item_id":"msg","output_index":0,"content_index":0,"delta":"Half "}`,
		`{"type":"response.output_text.delta","sequence_number":4,"item_id":"msg","output_index":0,"content_index":0,"delta":"of it."}`,
		`{"type":"response.output_item.done","sequence_number":5,"output_index":0,"item":` + outputMessage + `}`,
		`{"type":"response.completed","sequence_number":6,"response":` + responseObject + `}`,
	},
	object: responseObject,
}

const (
	outputMessage  = `{"id":"msg","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Half of it.","annotations":[]}]}`
	responseUsage  = `"usage":{"input_tokens":9,"output_tokens":3,"total_tokens":12}`
	responseObject = `{"id":"r","object":"response","model":"m","status":"completed","output":[` + outputMessage + `],` + responseUsage + `}`
)

func init() {
	s := responsesSpeaker
	created, completed := s.events[0], `{"type":"response.completed","sequence_number":9,"response":{"id":"r","object":"response","model":"m","status":"completed","output":[],`+responseUsage+`}}`
	status := func(status, more string) string {
		return `{"type":"response.` + status + `","sequence_number":9,"response":{"id":"r","object":"response","model":"m","status":"` + status + `","output":[` + outputMessage + `],` + more + responseUsage + `}}`
	}
	added := `{"type":"response.output_item.added","output_index":0,"item":{"id":"fc","type":"function_call","call_id":"a","name":"f","arguments":"","status":"in_progress"}}`
	item := `{"id":"fc","type":"function_call","call_id":"a","name":"f","arguments":"{\"path\":\"/x\"}","status":"completed"}`
	delta := func(s string) string {
		return `{"type":"response.output_text.delta","item_id":"msg","output_index":0,"content_index":0,"delta":"` + s + `"}`
	}
	snapshot := `{"type":"response.completed","response":{"id":"r","object":"response","model":"m","status":"completed","output":[` + item + `],` + responseUsage + `}}`
	s.odd = slices.Concat(
		s.failures(`{"type":"response.failed","sequence_number":9,"response":{"id":"r","object":"response","status":"failed","error":{"code":"context_length_exceeded","message":"Too long, said m."}}}`, 400, "context_length_exceeded", 1),
		s.failures(`{"type":"response.failed","sequence_number":9,"response":{"id":"r","object":"response","status":"failed","error":{"code":"rate_limit_exceeded","message":"No, said m."}}}`, 429, "rate_limit_exceeded", twice),
		s.failures(`{"type":"response.failed","sequence_number":9,"response":{"id":"r","object":"response","status":"failed","error":{"code":"server_error","message":"No, said m."}}}`, 502, "", twice),
		s.failures(`{"type":"response.failed","sequence_number":9,"response":{"id":"r","object":"response","status":"failed","error":null}}`, 502, "", twice),
		s.failures(`{"type":"error","sequence_number":9,"code":"invalid_prompt","message":"No, said m.","param":null}`, 400, "invalid_prompt", 1),
		s.failures(`{"type":"error","sequence_number":9,"error":{"type":"invalid_request_error","code":"request_timeout","message":"No, said m."}}`, 408, "request_timeout", twice),
		s.failures(`{"error":{"message":"No, said m.","code":503}}`, 503, "", twice),
		[]way{
			s.says("cut at the limit", true, s.stream(append(slices.Clone(s.events[:6]), status("incomplete", `"incomplete_details":{"reason":"max_output_tokens"},`))...), told(text, limited)),
			s.says("incomplete for a new reason", true, s.stream(append(slices.Clone(s.events[:6]), status("incomplete", `"incomplete_details":{"reason":"brand_new"},`))...), told(text, limited).because("brand_new")),
			s.says("filtered", true, s.stream(append(slices.Clone(s.events[:6]), status("incomplete", `"incomplete_details":{"reason":"content_filter"},`))...), told(text, limited)),
			s.says("response.done", true, s.stream(append(slices.Clone(s.events[:6]), strings.Replace(s.events[6], "response.completed", "response.done", 1))...), told(text, ended)),
			s.says("the end of Chat in place of the end", true, s.stream(append(slices.Clone(s.events[:6]), "[DONE]")...), told(text, failed)),
			s.says("half a character and the other half", true, s.stream(created, delta(`a \ud83d`), delta(`\ude00 b`), completed), told("a 😀 b", ended)).mended(),
			s.says("arguments whose rest comes at the end", true, s.stream(created, added, `{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"path\":"}`, `{"type":"response.function_call_arguments.done","output_index":0,"arguments":"{\"path\":\"/x\"}"}`, completed), calling(`f{"path":"/x"};`)).mended(),
			s.says("arguments whose rest comes with the item", true, s.stream(created, added, `{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"path\":"}`, `{"type":"response.output_item.done","output_index":0,"item":`+item+`}`, completed), calling(`f{"path":"/x"};`)).mended(),
			s.says("arguments whose rest is in the response", true, s.stream(created, added, `{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"path\":"}`, snapshot), calling(`f{"path":"/x"};`)).mended(),
			s.says("an item that only the response has", true, s.stream(created, snapshot), calling(`f{"path":"/x"};`)).mended(),
			s.says("a second item that only the response has", true, s.stream(created, delta(text), strings.Replace(snapshot, `"output":[`, `"output":[`+outputMessage+`,`, 1)), heard{status: 200, text: text, calls: `f{"path":"/x"};`, end: ended, tries: 1}).mended(),
			s.says("text whose rest comes at the end", true, s.stream(created, delta(half), `{"type":"response.output_text.done","output_index":0,"content_index":0,"text":"Half of it."}`, completed), told(text, ended)).mended(),
			s.says("arguments at another index", true, s.stream(created, added, `{"type":"response.function_call_arguments.delta","output_index":4,"delta":"{\"path\":\"/x\"}"}`, completed), calling(`f{"path":"/x"};`)).mended(),
		},
	)
}

var messagesSpeaker = &speaker{
	provider: "anthropic", native: messagesDoor.path, proxied: inBody(messagesDoor), first: 2, last: 6, finish: `"stop_reason":%q`, complete: "end_turn",
	events: []string{
		`{"type":"message_start","message":{"id":"msg","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":9,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Half "}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"of it."}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":3}}`,
		`{"type":"message_stop"}`,
	},
	object: `{"id":"msg","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Half of it."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":3}}`,
	reasons: map[string]string{
		"end_turn": ended, "stop_sequence": ended, "max_tokens": limited, "model_context_window_exceeded": limited, "refusal": limited, "brand_new": unnamed,
		"tool_use": ended, "pause_turn": unnamed,
	},
}

func init() {
	s := messagesSpeaker
	start, end := s.events[0], []string{`{"type":"content_block_stop","index":0}`, `{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":3}}`, s.events[6]}
	delta := func(s string) string {
		return `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"` + s + `"}}`
	}
	tool := `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f","input":{}}}`
	input := func(index int, s string) string {
		return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":"%s"}}`, index, s)
	}
	s.odd = slices.Concat(
		s.failures(`{"type":"error","error":{"type":"overloaded_error","message":"No, said m."}}`, 503, "", twice),
		s.failures(`{"type":"error","error":{"type":"rate_limit_error","message":"No, said m."}}`, 429, "", twice),
		s.failures(`{"type":"error","error":{"type":"api_error","message":"No, said m."}}`, 500, "", twice),
		s.failures(`{"type":"error","error":{"type":"invalid_request_error","message":"No, said m."}}`, 400, "", 1),
		s.failures(`{"type":"error","error":{"type":"timeout_error","message":"No, said m."}}`, 504, "", twice),
		[]way{
			s.says("half a character and the other half", true, s.stream(append([]string{start, s.events[1], delta(`a \ud83d`), delta(`\ude00 b`)}, s.events[4:]...)...), told("a 😀 b", ended)).mended(),
			s.says("half a character of arguments", true, s.stream(append([]string{start, tool, input(0, `{\"a\":\"\ud83d`), input(0, `\ude00\"}`)}, end...)...), calling(`f{"a":"😀"};`)).mended(),
			s.says("arguments at another index", true, s.stream(append([]string{start, tool, input(0, `{\"a\":`), input(1, `1}`)}, end...)...), calling(`f{"a":1};`)).mended(),
		},
	)
}

var geminiSpeaker = &speaker{
	provider: "gemini", first: 0, last: 1, finish: `"finishReason":%q`, complete: "STOP", atEnd: "of it.",
	proxied: func(model string, stream bool) (string, string) {
		method := ":generateContent"
		if stream {
			method = ":streamGenerateContent?alt=sse"
		}
		return "/v1beta/models/" + model + method, geminiCall
	},
	events: []string{geminiPiece(half, ""), geminiPiece("of it.", `"finishReason":"STOP",`)},
	object: geminiPiece(text, `"finishReason":"STOP",`),
	reasons: map[string]string{
		"STOP": ended, "MAX_TOKENS": limited, "SAFETY": limited, "RECITATION": limited, "BRAND_NEW": unnamed,
		"MALFORMED_FUNCTION_CALL": unnamed, "UNEXPECTED_TOOL_CALL": unnamed, "OTHER": unnamed,
		"LANGUAGE": limited, "BLOCKLIST": limited, "PROHIBITED_CONTENT": limited, "SPII": limited,
		"IMAGE_SAFETY": limited, "TOO_MANY_TOOL_CALLS": unnamed, "MISSING_THOUGHT_SIGNATURE": unnamed, "MALFORMED_RESPONSE": unnamed,
	},
}

func geminiPiece(text, finish string) string {
	return `{"candidates":[{"content":{"parts":[{"text":"` + text + `"}],"role":"model"},` + finish + `"index":0}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":3,"totalTokenCount":12},"modelVersion":"m","responseId":"r"}`
}

func init() {
	s := geminiSpeaker
	s.odd = slices.Concat(
		s.failures(`{"error":{"code":400,"message":"No, said m.","status":"INVALID_ARGUMENT"}}`, 400, "", 1),
		s.failures(`{"error":{"code":429,"message":"No, said m.","status":"RESOURCE_EXHAUSTED"}}`, 429, "", twice),
		s.failures(`{"error":{"code":503,"message":"No, said m.","status":"UNAVAILABLE"}}`, 503, "", twice),
		[]way{
			s.says("a list with an error", true, `[{"error":{"code":503,"message":"No, said m.","status":"UNAVAILABLE"}}]`, fails(503, "", "No, said m.", twice)),
			s.says("a list of pieces", true, "["+s.events[0]+"\n,\r\n"+s.events[1]+"]", told(text, ended)),
			s.says("half a character and the other half", true, s.stream(geminiPiece(`a \ud83d`, ""), geminiPiece(`\ude00 b`, `"finishReason":"STOP",`)), told("a 😀 b", ended)),
		},
	)
}

var cohereSpeaker = &speaker{
	provider: "cohere", first: 2, last: 5, finish: `"finish_reason":%q`, complete: "COMPLETE",
	proxied: func(model string, stream bool) (string, string) {
		return "/v2/chat", fmt.Sprintf(`{"model":%q,"stream":%v,"messages":[{"role":"user","content":"hi"}]}`, model, stream)
	},
	events: []string{
		`{"id":"c","type":"message-start","delta":{"message":{"role":"assistant","content":[],"tool_plan":"","tool_calls":[],"citations":[]}}}`,
		`{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"text","text":""}}}}`,
		`{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"Half "}}}}`,
		`{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"of it."}}}}`,
		`{"type":"content-end","index":0}`,
		`{"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":{"tokens":{"input_tokens":9,"output_tokens":3}}}}`,
	},
	object: `{"id":"c","message":{"role":"assistant","content":[{"type":"text","text":"Half of it."}]},"finish_reason":"COMPLETE","usage":{"tokens":{"input_tokens":9,"output_tokens":3}}}`,
	reasons: map[string]string{
		"COMPLETE": ended, "STOP_SEQUENCE": ended, "MAX_TOKENS": limited, "ERROR_TOXIC": limited, "TIMEOUT": unnamed, "BRAND_NEW": unnamed,
		"TOOL_CALL": ended, "ERROR_LIMIT": unnamed, "USER_CANCEL": unnamed,
	},
}

func init() {
	s := cohereSpeaker
	s.odd = slices.Concat(
		s.failures(`{"type":"message-end","delta":{"finish_reason":"ERROR","error":"No, said m."}}`, 500, "", twice),
		s.failures(`{"message":"No, said m."}`, 500, "", twice),
		[]way{
			s.says("half a character and the other half", true, s.stream(append(append(slices.Clone(s.events[:2]), `{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"a \ud83d"}}}}`, `{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"\ude00 b"}}}}`), s.events[4:]...)...), told("a 😀 b", ended)),
		},
	)
}

var converseSpeaker = &speaker{
	provider: "bedrock", first: 1, last: 4, frames: true, complete: "end_turn",
	proxied: func(model string, stream bool) (string, string) {
		method := "/converse"
		if stream {
			method += "-stream"
		}
		return "/model/" + model + method, `{"messages":[{"role":"user","content":[{"text":"hi"}]}]}`
	},
	events: []string{
		`messageStart {"role":"assistant"}`,
		`contentBlockDelta {"contentBlockIndex":0,"delta":{"text":"Half "}}`,
		`contentBlockDelta {"contentBlockIndex":0,"delta":{"text":"of it."}}`,
		`contentBlockStop {"contentBlockIndex":0}`,
		`messageStop {"stopReason":"end_turn"}`,
		`metadata {"usage":{"inputTokens":9,"outputTokens":3,"totalTokens":12}}`,
	},
	object: `{"output":{"message":{"role":"assistant","content":[{"text":"Half of it."}]}},"stopReason":"end_turn","usage":{"inputTokens":9,"outputTokens":3,"totalTokens":12}}`,
}

func init() {
	s := converseSpeaker
	stop := func(reason string) string {
		return s.stream(append(slices.Clone(s.events[:4]), `messageStop {"stopReason":"`+reason+`"}`, s.events[5])...)
	}
	s.odd = slices.Concat(
		s.failures(`validationException {"message":"No, said m."}`, 400, "", 1),
		s.failures(`throttlingException {"message":"No, said m."}`, 429, "", twice),
		s.failures(`internalServerException {"message":"No, said m."}`, 500, "", twice),
		s.failures(`modelStreamErrorException {"message":"No, said m."}`, 502, "", twice),
		s.failures(`serviceUnavailableException {"message":"No, said m."}`, 503, "", twice),
		[]way{
			s.says("max_tokens", true, stop("max_tokens"), told(text, limited)),
			s.says("guardrail_intervened", true, stop("guardrail_intervened"), told(text, limited)),
			s.says("brand_new", true, stop("brand_new"), told(text, limited).because("brand_new")),
			s.says("malformed_tool_use", true, stop("malformed_tool_use"), told(text, limited).because("malformed_tool_use")),
			s.says("malformed_model_output in an object", false, strings.Replace(s.object, "end_turn", "malformed_model_output", 1), told(text, limited).because("malformed_model_output")),
			s.says("half a character and the other half", true, s.stream(append([]string{s.events[0], `contentBlockDelta {"contentBlockIndex":0,"delta":{"text":"a \ud83d"}}`, `contentBlockDelta {"contentBlockIndex":0,"delta":{"text":"\ude00 b"}}`}, s.events[3:]...)...), told("a 😀 b", ended)),
		},
	)
}
