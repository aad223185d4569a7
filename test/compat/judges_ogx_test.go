package compat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// ogxServer is a gateway as the tests of OGX expect a server: it tells its health, providers
// and models, and its MCP servers may be anywhere.
type ogxServer struct {
	url        string
	gateway    *httputil.ReverseProxy
	recordings []ogxRecording

	mu   sync.Mutex
	test string   // that asks
	mcp  *url.URL // the MCP server of the test
}

// ogxRecording is a call of GPT-4o that OGX recorded.
type ogxRecording struct {
	test     string
	messages []string     // as ogxMessages has them
	asked    gjson.Result // the request
	chunks   []gjson.Result
	refused  gjson.Result // the error that it is, with status_code and body
}

func newOGXServer(t *testing.T, recordings string) *ogxServer {
	t.Helper()
	s := &ogxServer{recordings: readOGX(t, recordings)}
	model := httptest.NewServer(http.HandlerFunc(s.answer))
	t.Cleanup(model.Close)
	mcp := httptest.NewServer(http.HandlerFunc(s.passMCP))
	t.Cleanup(mcp.Close)
	w := startWeir(t, strings.NewReader(gatewayOf("provider openai compatible {\napi_key none\nbase_url "+model.URL+"/v1\n}", "mcp "+mcp.URL+"/sse")))
	gateway, err := url.Parse(w.url)
	if err != nil {
		t.Fatal(err)
	}
	s.gateway = httputil.NewSingleHostReverseProxy(gateway)
	s.gateway.FlushInterval = -1
	front := httptest.NewServer(s.front(mcp.URL))
	t.Cleanup(front.Close)
	s.url = front.URL
	return s
}

func readOGX(t *testing.T, folder string) []ogxRecording {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings are in %s: %v", folder, err)
	}
	var all []ogxRecording
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		v := gjson.ParseBytes(text)
		if !strings.HasPrefix(v.Get("request.url").Str, "https://api.openai.com") || v.Get("request.endpoint").Str != "/v1/chat/completions" {
			continue
		}
		r := ogxRecording{
			test: v.Get("test_id").Str, messages: ogxMessages(v.Get("request.body")),
			asked: v.Get("request.body"), refused: v.Get("response.exception_data"),
		}
		if body := v.Get("response.body"); body.IsArray() {
			r.chunks = body.Get("#.__data__").Array()
		} else {
			r.chunks = []gjson.Result{body.Get("__data__")}
		}
		all = append(all, r)
	}
	return all
}

// ogxMessages are the messages of a request without the ids of calls.
func ogxMessages(request gjson.Result) []string {
	var all []string
	for _, m := range request.Get("messages").Array() {
		text := m.Get("content").Str
		for _, part := range m.Get("content").Array() {
			text += part.Get("text").Str
		}
		for _, call := range m.Get("tool_calls").Array() {
			text += " " + call.Get("function.name").Str + strings.ReplaceAll(call.Get("function.arguments").Str, " ", "")
		}
		all = append(all, m.Get("role").Str+" "+text)
	}
	return all
}

// answer plays GPT-4o: it says what the recording said that is most like the request.
func (s *ogxServer) answer(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		http.NotFound(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body) // the gateway is here
	request := gjson.ParseBytes(body)
	s.mu.Lock()
	test := s.test
	s.mu.Unlock()
	messages, best, most := ogxMessages(request), &s.recordings[0], -1
	for i := range s.recordings {
		if likeness := s.recordings[i].likeness(test, request, messages); likeness > most {
			best, most = &s.recordings[i], likeness
		}
	}
	if strings.Contains(test, "test_cancel_") {
		time.Sleep(time.Second) // or all has been said before it is cancelled
	}
	w.Header().Set("Content-Type", "application/json")
	switch {
	case request.Get("temperature").Num > 2:
		http.Error(w, `{"error":{"message":"Invalid 'temperature': decimal above maximum value.","type":"invalid_request_error","param":"temperature","code":"decimal_above_max_value"}}`, http.StatusBadRequest)
	case best.refused.Exists():
		http.Error(w, `{"error":`+best.refused.Get("body").Raw+`}`, int(best.refused.Get("status_code").Int()))
	case request.Get("stream").Bool():
		w.Header().Set("Content-Type", "text/event-stream")
		for _, chunk := range best.chunks {
			fmt.Fprintf(w, "data: %s\n\n", named(request, ogxJSON(ogxChunk(chunk))))
		}
		io.WriteString(w, "data: [DONE]\n\n")
	default:
		w.Write(named(request, best.completion()))
	}
}

// named calls the functions as the request does: a gateway names those of MCP servers.
func named(request gjson.Result, answer []byte) []byte {
	for _, tool := range request.Get("tools.#.function.name").Array() {
		for _, name := range ogxTools {
			if strings.HasSuffix(tool.Str, name) {
				answer = bytes.ReplaceAll(answer, []byte(`"name":"`+name+`"`), []byte(`"name":"`+tool.Str+`"`))
			}
		}
	}
	return answer
}

// ogxTools are the tools of the MCP servers of the tests.
var ogxTools = []string{
	"greet_everyone", "get_boiling_point", "get_user_id", "get_user_permissions", "check_file_access", "get_experiment_id", "get_experiment_results",
}

// likeness is higher of a recording of the same test, and then of more of the same messages.
func (r *ogxRecording) likeness(test string, request gjson.Result, messages []string) int {
	same := 0
	for i, m := range messages {
		if i < len(r.messages) && m == r.messages[i] {
			same += 2
		}
	}
	if len(r.messages) > 0 && r.messages[len(r.messages)-1] == messages[len(messages)-1] {
		same += 3
	}
	if len(messages) == len(r.messages) {
		same++
	}
	if r.asked.Get("stream_options").Exists() { // it has the usage
		same++
	}
	for _, option := range []string{"parallel_tool_calls", "response_format.type"} {
		if r.asked.Get(option).Raw == request.Get(option).Raw {
			same++
		}
	}
	function, _, _ := strings.Cut(test, "[")
	switch {
	case test != "" && r.test == test:
		same += 200
	case test != "" && strings.HasPrefix(r.test, function+"["):
		same += 100
	}
	return same
}

// ogxJSON writes a chunk on one line.
func ogxJSON(raw []byte) []byte {
	var line bytes.Buffer
	if err := json.Compact(&line, raw); err != nil {
		panic(err)
	}
	return line.Bytes()
}

// ogxChunk is a chunk; of a recorded completion it is the whole.
func ogxChunk(v gjson.Result) []byte {
	if v.Get("object").Str != "chat.completion" {
		return []byte(v.Raw)
	}
	chunk := v.Value().(object)
	chunk["object"] = "chat.completion.chunk"
	for _, choice := range chunk["choices"].([]any) {
		c := choice.(object)
		c["delta"] = c["message"]
		delete(c, "message")
	}
	return mustJSON(chunk)
}

// completion joins the chunks.
func (r *ogxRecording) completion() []byte {
	last := r.chunks[len(r.chunks)-1]
	if last.Get("object").Str == "chat.completion" {
		return []byte(last.Raw)
	}
	var text strings.Builder
	var calls []object
	var finish string
	var logprobs []any
	for _, chunk := range r.chunks {
		choice := chunk.Get("choices.0")
		text.WriteString(choice.Get("delta.content").Str)
		finish += choice.Get("finish_reason").Str
		for _, p := range choice.Get("logprobs.content").Array() {
			logprobs = append(logprobs, p.Value())
		}
		for _, call := range choice.Get("delta.tool_calls").Array() {
			if i := int(call.Get("index").Int()); i == len(calls) {
				calls = append(calls, chatCall(call.Get("id").Str, call.Get("function.name").Str, call.Get("function.arguments").Str))
			} else {
				f := calls[i]["function"].(object)
				f["arguments"] = f["arguments"].(string) + call.Get("function.arguments").Str
			}
		}
	}
	message := chatText("assistant", text.String())
	if calls != nil {
		message["tool_calls"] = calls
	}
	choice := object{"index": 0, "finish_reason": finish, "message": message}
	if logprobs != nil {
		choice["logprobs"] = object{"content": logprobs}
	}
	return mustJSON(object{"id": last.Get("id").Str, "object": "chat.completion", "created": 1, "model": last.Get("model").Str,
		"choices": []object{choice}, "usage": last.Get("usage").Value()})
}

var ogxMCP = regexp.MustCompile(`http://[\w.]+:\d+/sse`)

// front is what the tests ask. The gateway is told the one MCP server that its configuration
// names, which passes all to the server of the test.
func (s *ogxServer) front(mcp string) http.Handler {
	mux := http.NewServeMux()
	tell := func(path string, answer any) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Write(mustJSON(answer))
		})
	}
	tell("/v1/health", object{"status": "OK"})
	tell("/v1/providers", object{"data": []object{{"api": "inference", "provider_id": "openai", "provider_type": "remote::openai", "config": object{}, "health": object{}}}})
	var models []object
	for id, kind := range map[string]string{"openai/gpt-4o": "llm", "openai/text-embedding-3-small": "embedding"} {
		models = append(models, object{"id": id, "object": "model", "created": 1, "owned_by": "openai", "custom_metadata": object{
			"model_type": kind, "provider_id": "openai", "provider_resource_id": strings.TrimPrefix(id, "openai/"), "embedding_dimension": 1536}})
	}
	tell("/v1/models", object{"object": "list", "data": models})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // the test is here
		s.mu.Lock()
		s.test = gjson.Get(r.Header.Get("X-OGX-Provider-Data"), "__test_id").Str
		if server := ogxMCP.Find(body); server != nil {
			s.mcp, _ = url.Parse(string(server)) // which the expression describes
			body = unasked(ogxMCP.ReplaceAll(body, []byte(mcp+"/sse")))
		}
		s.mu.Unlock()
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		r.Header.Set("Authorization", "Bearer weir-quickstart")
		s.gateway.ServeHTTP(w, r)
	})
	return mux
}

// unasked lets the tools of MCP servers be called without approval, as OGX does where a tool does
// not say. The gateway, as OpenAI, has each call approved then.
func unasked(body []byte) []byte {
	for i, tool := range gjson.GetBytes(body, "tools").Array() {
		if tool.Get("type").Str == "mcp" && !tool.Get("require_approval").Exists() {
			body, _ = sjson.SetBytes(body, fmt.Sprintf("tools.%d.require_approval", i), "never") // of an object
		}
	}
	return body
}

func (s *ogxServer) passMCP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	server := *s.mcp
	s.mu.Unlock()
	server.Path = ""
	proxy := httputil.NewSingleHostReverseProxy(&server)
	proxy.FlushInterval = -1
	proxy.ServeHTTP(w, r)
}
