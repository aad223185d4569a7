package compat

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// library is one that calls the gateway, and the program that calls it.
type library struct {
	command  []string
	endpoint string // which of the program's calls it is
	helper   bool   // it has an accumulator of streams
	// errors are the types that it raises, by status.
	errors map[int]string
	// unread is the type that it raises for a response that is good and yet
	// none to it, "" for all others.
	unread func(call, gjson.Result) string
}

// typed are the errors of OpenAI's own clients.
var typed = map[int]string{
	http.StatusBadRequest:         "BadRequestError",
	http.StatusTooManyRequests:    "RateLimitError",
	http.StatusServiceUnavailable: "InternalServerError",
}

var (
	node       = []string{"node", "node/calls.js"}
	python     = []string{"python/.venv/bin/python", "python/calls.py"}
	frameworks = []string{"node", "node/frameworks.js"}
)

var libraries = map[string]library{
	"openai-node": {node, "responses", true, typed, readsAll},
	"openai-python": {python, "responses", true, typed, func(c call, response gjson.Result) string {
		if c.Helper && response.Get("status").Str == "incomplete" {
			return "RuntimeError" // its accumulator waits for response.completed
		}
		return ""
	}},
	"ai-sdk": {frameworks, "ai", false, map[int]string{
		http.StatusBadRequest:         "AI_APICallError",
		http.StatusTooManyRequests:    "AI_APICallError",
		http.StatusServiceUnavailable: "AI_APICallError",
	}, readsAll},
	"agents": {frameworks, "agents", false, typed, func(_ call, response gjson.Result) string {
		switch d := dialects["responses"]; {
		case has(response, refusal):
			return "ModelRefusalError"
		case !has(response, d.text) && !has(response, d.tools):
			return "MaxTurnsExceededError" // it asks again
		}
		return ""
	}},
	"openai-node chat":   {node, "chat.completions", true, typed, readsAll},
	"openai-python chat": {python, "chat.completions", true, typed, unfinished},
	"anthropic-node":     {node, "messages", true, typed, readsAll},
	"anthropic-python":   {python, "messages", true, anthropicTyped, readsAll},
}

// anthropicTyped are the errors of Anthropic's Python client.
var anthropicTyped = map[int]string{
	http.StatusBadRequest:         "BadRequestError",
	http.StatusTooManyRequests:    "RateLimitError",
	http.StatusServiceUnavailable: "ServiceUnavailableError",
}

// unfinished is what the accumulator of OpenAI's Python client raises for a completion
// that was cut off.
func unfinished(c call, response gjson.Result) string {
	switch reason := response.Get("incomplete_details.reason").Str; {
	case !c.Helper || reason == "":
		return ""
	case reason == "content_filter":
		return "ContentFilterFinishReasonError"
	}
	return "LengthFinishReasonError"
}

// native are the endpoints of recordings whose kinds speak a library's format
// themselves: the gateway would translate nothing.
var native = map[string][]string{
	"chat.completions": {"chat.completions", "responses"},
	"messages":         {"messages"},
}

// translated reports whether the gateway answers the library with a translation of
// the recording. Azure's models are asked for Chat Completions then, which is another
// recording, and what the libraries of other formats ask has no namespaces.
func (l library) translated(a account, response gjson.Result) bool {
	if native[l.endpoint] == nil {
		return true
	}
	return !slices.Contains(native[l.endpoint], a.Endpoint) && !has(response, "output.#.namespace") && (a.kind != "azure" || a.Endpoint != "responses")
}

func has(response gjson.Result, path string) bool { return len(response.Get(path).Array()) > 0 }

func readsAll(call, gjson.Result) string { return "" }

// refusal is where a response has the texts with which a model refuses.
const refusal = `output.#(type=="message")#.content|@flatten|#(type=="refusal")#.refusal`

// TestGatewayClients makes the calls of [TestGateway] with libraries, in the format
// of each. They see what is in the response of Responses, and raise the errors of
// their own types.
func TestGatewayClients(t *testing.T) {
	if !*withClients {
		t.Skip("the clients need Node.js and Python: see README.md, then go test ./test/compat -compat")
	}
	w, pairs := startGateway(t)
	responses := map[string]gjson.Result{}
	accounts := map[string]account{}
	for _, p := range pairs {
		for _, a := range []*account{&p.account, p.twin} {
			if a != nil && known[a.Name] == "" {
				accounts[a.Name], responses[a.Name] = *a, w.respond(t, *a)
			}
		}
	}
	names := slices.Sorted(maps.Keys(accounts))
	for library, l := range libraries {
		t.Run(library, func(t *testing.T) {
			var calls []call
			for _, name := range names {
				if !l.translated(accounts[name], responses[name]) {
					continue
				}
				calls = append(calls, l.calls(t, w, accounts[name], responses[name])...)
			}
			got := run(t, l.command, calls)
			for _, c := range calls {
				t.Run(c.ID, func(t *testing.T) {
					l.check(t, c, got[c.ID], responses[c.recording.Name])
				})
			}
		})
	}
}

// bases are what follows the gateway's address in the base URL of a library that does
// not speak Responses.
var bases = map[string]string{"responses": "/v1", "ai": "/v1", "agents": "/v1", "chat.completions": "/v1"}

// calls are those of the library to an account: a stream both bare and with the
// library's accumulator.
func (l library) calls(t *testing.T, w *weir, a account, response gjson.Result) []call {
	t.Helper()
	d := dialects["responses"]
	var tools []string
	for _, tool := range response.Get(d.tools).Array() {
		if name := tool.Get(d.name).Str; !slices.Contains(tools, name) {
			tools = append(tools, name)
		}
	}
	request, err := json.Marshal(a.requestTo(l.endpoint, tools))
	if err != nil {
		t.Fatal(err)
	}
	c := call{ID: a.Name, Endpoint: l.endpoint, BaseURL: w.url + bases[l.endpoint], Request: request, Stream: a.Stream, recording: a.Recording}
	calls := []call{c}
	if a.Stream && l.helper {
		c.Helper = true
		c.ID += " helper"
		calls = append(calls, c)
	}
	return calls
}

// check holds what the library made of an answer against the response.
func (l library) check(t *testing.T, c call, s seen, response gjson.Result) {
	t.Helper()
	a, _ := newAccount(c.recording)
	status, raised := 0, l.unread(c, response)
	if a.Status != http.StatusOK {
		status, raised = a.status(), l.errors[a.status()]
	}
	switch {
	case s.ID == "":
		t.Fatal("the library said nothing")
	case raised != "" && (s.Error == nil || s.Error.Type != raised || s.Error.Status != status):
		t.Errorf("the library raised %+v, want %s of status %d", s.Error, raised, status)
	case raised == "" && s.Error != nil:
		t.Errorf("the library raised %s: %s", s.Error.Type, s.Error.Message)
	}
	if s.Error != nil {
		return
	}
	d, own := dialects["responses"], dialects["responses"]
	if native[c.Endpoint] != nil {
		own = dialects[c.Endpoint]
	}
	usage := gjson.ParseBytes(s.Usage)
	own.checkUsage(t, usage, a.Expected.Usage)
	if a.Expected.Usage != nil && !usage.IsObject() {
		t.Error("the library saw no usage")
	}
	if (c.Endpoint == "ai" || c.Endpoint == "messages") && has(response, refusal) {
		d.text = refusal // which is a text like any to it
	}
	if texts := response.Get(d.text).Array(); c.Endpoint == "chat.completions" && len(texts) > 1 {
		var paragraphs []string
		for _, text := range texts {
			paragraphs = append(paragraphs, text.Str)
		}
		if s.Text == strings.Join(paragraphs, "\n\n") { // they are one text to it
			s.Text = strings.Join(paragraphs, "")
		}
	}
	d.checkStored(t, response, s)
}
