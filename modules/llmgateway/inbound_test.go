package llmgateway

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/llmgateway/secret"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/inbound"
	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/storage"
)

// foreign are the APIs whose requests are translated, beside Responses.
var foreign = map[string]struct {
	stream, object func([]byte) (*plugintest.Message, error)
}{
	"/v1/chat/completions": {plugintest.CheckChat, plugintest.ReadChat},
	"/v1/messages":         {plugintest.CheckMessages, plugintest.ReadMessages},
}

// A client of any API reaches a provider that speaks none of them, after one that
// fails, and the record is one of the client's API.
func TestOtherAPIsAreTranslated(t *testing.T) {
	for path, check := range foreign {
		for mode, read := range map[string]func([]byte) (*plugintest.Message, error){"true": check.stream, "false": check.object} {
			s := serve(t, map[string][]upstream{"raw": {status(503)}, "one": {says("model m-1", "text Let me see.", `call c-1 {"a":1}`, "usage 3 5", "stop")}})
			ask := fmt.Sprintf(asks[path], "raw/m,one/m", mode)
			resp, body := s.postTo(path, strings.NewReader(ask))
			m, err := read([]byte(body))
			if resp.StatusCode != 200 || err != nil {
				t.Fatalf("%s, stream %s: %d, %v: %s", path, mode, resp.StatusCode, err, body)
			}
			if len(m.Calls) != 1 || m.Text != "Let me see." || m.Calls[0] != (plugintest.Call{ID: "c-1", Name: "tool", Arguments: `{"a":1}`}) || m.Input != 3 || m.Output != 5 {
				t.Errorf("%s, stream %s: got %+v", path, mode, m)
			}
			records := s.kept.all()
			r := records[len(records)-1]
			if r.ID.String() != resp.Header.Get("Service-Id") || r.Dialect != byPath[path].methods["POST"].dialect || r.EndState != storage.Complete || r.request != ask ||
				r.Usage.Input.N != 3 || !r.Cost.Valid || r.ResponseModel != "m-1" || r.Stream != (mode == "true") {
				t.Errorf("%s, stream %s: the record is %+v", path, mode, r)
			}
			if kept, err := check.object([]byte(r.response)); err != nil || kept.Text != m.Text || len(kept.Calls) != 1 {
				t.Errorf("%s, stream %s: the record has the response %s, error %v", path, mode, r.response, err)
			}
		}
	}
}

// Errors and warnings are in the client's words.
func TestOtherAPIsNameTheirFields(t *testing.T) {
	s := serve(t, map[string][]upstream{"one": {says("text hi", "stop")}})
	ask := `{"model":"one/m","messages":[{"role":"user","content":"hi"}],"verbosity":"low"%s}`
	resp, body := s.postTo("/v1/chat/completions", strings.NewReader(fmt.Sprintf(ask, "")))
	if w := resp.Header.Get("Service-Warnings"); resp.StatusCode != 200 || !strings.HasPrefix(w, "verbosity: ") {
		t.Errorf("%d, warning %q: %s", resp.StatusCode, w, body)
	}
	resp, body = s.postTo("/v1/chat/completions", strings.NewReader(fmt.Sprintf(ask, "")), "Service-Strict", "true")
	if resp.StatusCode != 400 || gjson.Get(body, "error.param").Str != "verbosity" || !strings.Contains(body, "'verbosity'") {
		t.Errorf("strict: %d %s", resp.StatusCode, body)
	}
	resp, body = s.postTo("/v1/chat/completions", strings.NewReader(fmt.Sprintf(ask, `,"n":2`)))
	if resp.StatusCode != 400 || gjson.Get(body, "error.param").Str != "n" {
		t.Errorf("two choices: %d %s", resp.StatusCode, body)
	}
}

// A client that has no place for the reasoning that led to a call gets it back for
// the provider that wants it.
func TestChatRestoresReasoning(t *testing.T) {
	for _, mode := range []string{"true", "false"} {
		id := uuid.NewString() // an id of two responses names neither
		answers, received := listener("think secret", "call "+id+` {"a":1}`, "stop")
		s := serve(t, map[string][]upstream{"one": {answers}})
		ask := fmt.Sprintf(asks["/v1/chat/completions"], "one/m", mode)
		if resp, body := s.postTo("/v1/chat/completions", strings.NewReader(ask)); resp.StatusCode != 200 {
			t.Fatal(body)
		}
		received()
		resp, body := s.postTo("/v1/chat/completions", strings.NewReader(`{"model":"one/m","messages":[{"role":"user","content":"hi"},
			{"role":"assistant","content":null,"tool_calls":[{"id":"`+id+`","type":"function","function":{"name":"tool","arguments":"{\"a\":1}"}}]},
			{"role":"tool","tool_call_id":"`+id+`","content":"done"}]}`))
		if got := received(); resp.StatusCode != 200 || got != "m secret tool" {
			t.Errorf("stream %s: the provider got %q, and the client %s", mode, got, body)
		}
	}
}

// A request that would take a multiple of its length is refused before it is parsed.
func TestLargeConversations(t *testing.T) {
	s := serve(t, map[string][]upstream{"one": {says("text hi", "stop")}})
	s.handler.MaxItems = 2
	message := `{"role":"user","content":"hi"}`
	resp, body := s.postTo("/v1/chat/completions", strings.NewReader(`{"model":"one/m","messages":[`+message+`,`+message+`,`+message+`]}`))
	if resp.StatusCode != 413 || gjson.Get(body, "error.param").Str != "messages" {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

// What breaks off ends in an error of the client's API.
func TestOtherAPIsBreakOff(t *testing.T) {
	for path, check := range foreign {
		s := serve(t, map[string][]upstream{"one": {says("text hel")}})
		resp, body := s.postTo(path, strings.NewReader(fmt.Sprintf(asks[path], "one/m", "true")))
		m, err := check.stream([]byte(body))
		if resp.StatusCode != 200 || err != nil || m.Error == "" || m.Text != "hel" {
			t.Errorf("%s: %d, %v: %s", path, resp.StatusCode, err, body)
		}
		if r := s.kept.all()[0]; r.EndState != storage.UpstreamAborted || r.Dialect == plugins.Responses {
			t.Errorf("%s: the record is %+v", path, r.Record)
		}
	}
}

// Citations that were made of another provider's sources are left out for a provider that
// speaks Messages: it would refuse them. Its own, and all other bytes, stay.
func TestCitationsOfAnotherProvider(t *testing.T) {
	var passed string
	s := serve(t, map[string][]upstream{"raw": {func(w http.ResponseWriter, r *http.Request) {
		passed = readAndRestore(r)
		speaksResponses(w, r)
	}}})
	ask := `{"model":"raw/m", "max_tokens":9,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[` +
		`{"type":"text","text":"a", "citations":[{"type":"web_search_result_location","url":"https://x","cited_text":"%s","encrypted_index":"%s"}]}]}]}`
	own := fmt.Sprintf(ask, "b", "c")
	if resp, _ := s.postTo("/v1/messages", strings.NewReader(own)); resp.Header.Get("Service-Warnings") != "" || passed != own {
		t.Errorf("warning %q, passed %s", resp.Header.Get("Service-Warnings"), passed)
	}
	resp, _ := s.postTo("/v1/messages", strings.NewReader(fmt.Sprintf(ask, "", "")))
	if w := resp.Header.Get("Service-Warnings"); !strings.HasPrefix(w, "messages[1].content[0]: citations") || strings.Contains(passed, "citations") {
		t.Errorf("warning %q, passed %s", w, passed)
	}
}

// What tools of another provider have found is left out for a provider that speaks Messages.
func TestHostedToolsOfAnotherProvider(t *testing.T) {
	var passed string
	s := serve(t, map[string][]upstream{"raw": {func(w http.ResponseWriter, r *http.Request) {
		passed = readAndRestore(r)
		speaksResponses(w, r)
	}}})
	ask := `{"model":"raw/m", "max_tokens":9,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[` +
		`{"type":"server_tool_use","id":"%[1]s","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"%[1]s","content":[]},{"type":"text","text":"a"}]}]}`
	own := fmt.Sprintf(ask, "srvtoolu_01")
	if resp, _ := s.postTo("/v1/messages", strings.NewReader(own)); resp.Header.Get("Service-Warnings") != "" || passed != own {
		t.Errorf("warning %q, passed %s", resp.Header.Get("Service-Warnings"), passed)
	}
	resp, _ := s.postTo("/v1/messages", strings.NewReader(fmt.Sprintf(ask, inbound.TranslatedToolUse+"1")))
	if w, content := resp.Header.Get("Service-Warnings"), gjson.Get(passed, "messages.1.content").Raw; !strings.HasPrefix(w, "messages[1].content[0]: tool") || content != `[{"type":"text","text":"a"}]` {
		t.Errorf("warning %q, passed %s", w, passed)
	}
}

// The signature of a block of thinking is the reasoning that the provider gets back,
// and no other one does.
func TestThinkingComesBack(t *testing.T) {
	answers, received := listener("think secret", "text hello", "stop")
	var passed string
	s := serve(t, map[string][]upstream{"one": {answers}, "two": {answers}, "raw": {func(w http.ResponseWriter, r *http.Request) {
		passed = readAndRestore(r)
		speaksResponses(w, r)
	}}})
	_, body := s.postTo("/v1/messages", strings.NewReader(`{"model":"one/m","max_tokens":9,"thinking":{"type":"adaptive"},"messages":[{"role":"user","content":"hi"}]}`))
	received()
	content := gjson.Get(body, "content").Raw
	if content == "" || strings.Contains(content, "secret") {
		t.Fatalf("the client gets %s", body)
	}
	next := func(model string) string {
		return fmt.Sprintf(`{"model":%q,"max_tokens":9,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":%s},{"role":"user","content":"?"}]}`, model, content)
	}
	s.postTo("/v1/messages", strings.NewReader(next("one/m")))
	if got := received(); got != "m secret" {
		t.Errorf("the provider got %q", got)
	}
	for model, got := range map[string]func() string{"two/m": received, "raw/m": func() string { return passed }} {
		resp, body := s.postTo("/v1/messages", strings.NewReader(next(model)))
		if sent := got(); strings.Contains(sent, "secret") || strings.Contains(sent, secret.Sealed) {
			t.Errorf("%s got %s", model, sent)
		}
		if w := resp.Header.Get("Service-Warnings"); !strings.HasPrefix(w, "messages[1].content[0]") {
			t.Errorf("%s: warning %q, %d %s", model, w, resp.StatusCode, body)
		}
	}
}
