package compat

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/echo"
)

// object is one of JSON.
type object = map[string]any

// upstream answers like [echo.Handler] in the format of every kind of provider: what
// is not a format of the echo's becomes Chat Completions on its way to it, and the
// completion becomes an answer of that format.
type upstream struct{ echo http.Handler }

// format is one that the echo does not speak.
type format struct {
	request func(gjson.Result) object // of Chat Completions
	object  func(completion) object
	stream  func(http.ResponseWriter, completion)
}

// completion is an answer of the echo's, apart.
type completion struct {
	id, model       string
	reasoning, text string
	calls           []gjson.Result // with id, function.name and function.arguments
	cut             bool           // by the limit of tokens
	input, output   int64          // tokens; output with those of reasoning
	thinking        int64
}

func (u upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, ":generateContent"), strings.HasSuffix(path, ":streamGenerateContent"):
		u.answer(w, r, generateContent, strings.HasSuffix(path, ":streamGenerateContent"))
	case strings.HasSuffix(path, "/converse"), strings.HasSuffix(path, "/converse-stream"):
		u.answer(w, r, converse, strings.HasSuffix(path, "-stream"))
	case strings.HasSuffix(path, "/v2/chat"):
		u.answer(w, r, cohereChat, false)
	case strings.HasSuffix(path, ":rawPredict"), strings.HasSuffix(path, ":streamRawPredict"):
		r.URL.Path = "/v1/messages" // of Claude at Vertex AI
		u.echo.ServeHTTP(w, r)
	case strings.HasPrefix(path, agentBase):
		u.answerAgent(w, r)
	case strings.HasSuffix(path, "/chat/completions"):
		u.answerChat(w, r)
	default:
		u.echo.ServeHTTP(w, r)
	}
}

// agentBase is where the base URL of Perplexity's Agent API begins.
const agentBase = "/agent"

// agentFields are all that it takes.
var agentFields = []string{
	"model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "response_format", "reasoning",
	"max_output_tokens", "temperature", "top_p", "metadata", "stream",
}

// answerAgent lets the echo read a request that has the schema where Chat Completions
// have it, and refuses every field that the API does not know.
func (u upstream) answerAgent(w http.ResponseWriter, r *http.Request) {
	var request object
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for field := range request {
		if !slices.Contains(agentFields, field) {
			http.Error(w, `{"error":{"message":"unknown field `+field+`","type":"invalid_request","code":400}}`, http.StatusBadRequest)
			return
		}
	}
	if schema := gjson.GetBytes(mustJSON(request), "response_format.json_schema"); schema.Exists() {
		format, _ := schema.Value().(object)
		format["type"] = "json_schema"
		request["text"] = object{"format": format}
		delete(request, "response_format")
	}
	if choice, ok := request["tool_choice"].(object); ok && choice["name"] != nil {
		choice["type"] = "function"
	}
	r.Body = io.NopCloser(bytes.NewReader(mustJSON(request)))
	r.URL.Path = "/v1/responses"
	u.echo.ServeHTTP(w, r)
}

// unaskedUsage is where the base URL of a vendor begins whose streams have the usage
// unasked.
const unaskedUsage = "/unasked-usage"

// answerChat lets the echo read what a vendor that lacks a field is told in another way:
// a schema or a choice of tools in an instruction, and an answer by a call.
func (u upstream) answerChat(w http.ResponseWriter, r *http.Request) {
	var request object
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if strings.HasPrefix(r.URL.Path, unaskedUsage) && request["stream"] == true {
		request["stream_options"] = object{"include_usage": true}
	}
	body := gjson.ParseBytes(mustJSON(request))
	told := body.Get(`messages.#(content%"*JSON schema:*").content`).Str
	if _, schema, ok := strings.Cut(told, "JSON schema:\n"); ok && body.Get("response_format.type").Str == "json_object" {
		request["response_format"] = schemaFormat(schema)
	}
	if body.Get(`messages.#(content%"Answer with a call of a tool*")`).Exists() {
		request["tool_choice"] = "required"
	}
	if tools, ok := request["tools"].([]any); ok && (request["tool_choice"] == "required" || request["tool_choice"] == "any") {
		slices.Reverse(tools)
		request["tool_choice"] = "required"
	}
	r.Body = io.NopCloser(bytes.NewReader(mustJSON(request)))
	u.echo.ServeHTTP(w, r)
}

// answer lets the echo answer in a format.
func (u upstream) answer(w http.ResponseWriter, r *http.Request, f format, stream bool) {
	var raw json.RawMessage
	if err := json.NewDecoder(r.Body).Decode(&raw); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	body := gjson.ParseBytes(raw)
	request, err := json.Marshal(f.request(body))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	echoed := httptest.NewRecorder()
	u.echo.ServeHTTP(echoed, httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(string(request))))
	if echoed.Code != http.StatusOK {
		http.Error(w, echoed.Body.String(), echoed.Code)
		return
	}
	c := newCompletion(gjson.ParseBytes(echoed.Body.Bytes()))
	if stream || body.Get("stream").Bool() {
		f.stream(w, c)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(mustJSON(f.object(c)))
}

func newCompletion(v gjson.Result) completion {
	choice, usage := v.Get("choices.0"), v.Get("usage")
	return completion{
		id: v.Get("id").Str, model: v.Get("model").Str,
		reasoning: choice.Get("message.reasoning_content").Str, text: choice.Get("message.content").Str,
		calls: choice.Get("message.tool_calls").Array(),
		cut:   choice.Get("finish_reason").Str == "length",
		input: usage.Get("prompt_tokens").Int(), output: usage.Get("completion_tokens").Int(),
		thinking: usage.Get("completion_tokens_details.reasoning_tokens").Int(),
	}
}

// reason is the one to stop, in the words of a format.
func (c completion) reason(cut, calls, stop string) string {
	switch {
	case c.cut:
		return cut
	case len(c.calls) > 0:
		return calls
	}
	return stop
}

// pieces cuts a text as streams do.
func pieces(text string) []string { return strings.SplitAfter(text, " ") }

// withTools adds functions and the choice between them. Where a call is required, the
// echo makes one of the first function: the last one it shall be, which is the answer's
// where the gateway asks for one by a call.
func withTools(request object, functions []object, choice any) {
	if len(functions) == 0 {
		return
	}
	var tools []object
	for _, f := range functions {
		tools = append(tools, object{"type": "function", "function": f})
	}
	if choice == "required" {
		slices.Reverse(tools)
	}
	request["tools"] = tools
	if choice != nil {
		request["tool_choice"] = choice
	}
}

// schemaFormat asks for an instance of a schema.
func schemaFormat(schema string) object {
	return object{"type": "json_schema", "json_schema": object{"name": "answer", "schema": json.RawMessage(schema)}}
}

func chatText(role, text string) object { return object{"role": role, "content": text} }

// chatImage stands for any, as the echo only counts them.
var chatImage = object{"type": "image_url", "image_url": object{"url": "data:image/png;base64,AAAA"}}

func chatCall(id, name, arguments string) object {
	return object{"id": id, "type": "function", "function": object{"name": name, "arguments": arguments}}
}

// mustJSON is v as JSON, which has nothing but strings, numbers, objects and lists.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// writeEvents writes a stream of server-sent events.
func writeEvents(w http.ResponseWriter, named bool, events ...object) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range events {
		if named {
			w.Write([]byte("event: " + e["type"].(string) + "\n"))
		}
		w.Write([]byte("data: " + string(mustJSON(e)) + "\n\n"))
	}
}

var allFormats = upstream{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	echoed.Answer(w, r, body)
})}

var echoed echo.Handler
