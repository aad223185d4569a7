package llmgateway

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

func TestMemory(t *testing.T) {
	key := func(id string) memoryKey { return memoryKey{"key", "user", id} }
	synctest.Test(t, func(t *testing.T) {
		var m memory
		m.keep("one", []memoryKey{key("a"), key("b")})
		for _, id := range []string{"a", "b"} {
			if got := m.get(key(id)); got != "one" {
				t.Errorf("%s: %q", id, got)
			}
		}
		for _, other := range []memoryKey{key("c"), {"key", "", "a"}, {"other", "user", "a"}} {
			if got := m.get(other); got != "" {
				t.Errorf("%v: %q", other, got)
			}
		}
		for range 2 { // one id of three responses
			m.keep("two", []memoryKey{key("b")})
			if got := m.get(key("b")); got != "" {
				t.Errorf("an id of two responses: %q", got)
			}
		}
		m.keep(strings.Repeat("x", maxRemembered+1), []memoryKey{key("large")})
		if m.get(key("large")) != "" {
			t.Error("a response over the bound is kept")
		}

		for range 3 { // what is asked for stays
			time.Sleep(memoryAge * 3 / 4)
			m.keep("other", []memoryKey{key(time.Now().String())})
			if m.get(key("a")) != "one" {
				t.Error("what is asked for is forgotten")
			}
		}
		for range 2 {
			time.Sleep(memoryAge + time.Second)
			m.keep("other", []memoryKey{key(time.Now().String())})
		}
		if m.get(key("a")) != "" {
			t.Error("what is old is not forgotten")
		}
	})
}

func TestMemoryIsBounded(t *testing.T) {
	var m memory
	output := strings.Repeat("x", maxRemembered)
	for i := range 3 * maxMemory / maxRemembered {
		m.keep(output, []memoryKey{{id: fmt.Sprint(i)}})
		if kept := (len(m.recent) + len(m.older)) * maxRemembered; kept > maxMemory {
			t.Fatalf("%d bytes are kept", kept)
		}
	}
	if last := fmt.Sprint(3*maxMemory/maxRemembered - 1); m.get(memoryKey{id: last}) == "" {
		t.Error("the last response is not kept")
	}
}

// listener is an upstream that keeps the last body that it was sent.
func listener(events ...string) (upstream, func() string) {
	received := make(chan string, 1)
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		received <- string(body)
		says(events...)(w, r)
	}, func() string { return <-received }
}

// goOn is a request that goes on from a response, of which edit makes what the
// client sends back.
func goOn(t *testing.T, model, response string, edit func(item string) string) string {
	t.Helper()
	input := []string{`{"role":"user","content":"hi"}`}
	for _, item := range gjson.Get(response, "output").Array() {
		if item := edit(item.Raw); item != "" {
			input = append(input, item)
		}
	}
	for _, id := range gjson.Get(response, `output.#(type=="function_call")#.call_id`).Array() {
		input = append(input, fmt.Sprintf(`{"type":"function_call_output","call_id":%q,"output":"done"}`, id.Str))
	}
	return fmt.Sprintf(`{"model":%q,"input":[%s]}`, model, strings.Join(input, ","))
}

func asItIs(item string) string { return item }

func withoutReasoning(item string) string {
	if gjson.Get(item, "type").Str == "reasoning" {
		return ""
	}
	return item
}

func byReference(item string) string {
	return fmt.Sprintf(`{"type":"item_reference","id":%q}`, gjson.Get(item, "id").Str)
}

// set is an edit of a field where an item has it.
func set(t *testing.T, path, value string) func(string) string {
	return func(item string) string {
		if !gjson.Get(item, path).Exists() {
			return item
		}
		edited, err := sjson.SetRaw(item, path, value)
		if err != nil {
			t.Fatal(err)
		}
		return edited
	}
}

// What led to a call comes back to the provider although the client has left it
// out: to the same user alone, in its place, and only if it may be kept.
func TestReasoningIsRemembered(t *testing.T) {
	const unstored = `{"model":"one/m","input":"hi","store":false}`
	const led, bare = "m first tool tool second tool", "m tool tool tool"
	for name, c := range map[string]struct {
		first  string
		header []string // of both calls, and what the second adds
		adds   []string
		model  string
		edit   func(string) string
		want   string
	}{
		"as it was":            {ask, nil, nil, "one/m", asItIs, led},
		"left out":             {ask, nil, nil, "one/m", withoutReasoning, led},
		"left out, not stored": {unstored, nil, nil, "one/m", withoutReasoning, led},
		"left out of a stream": {stream, nil, nil, "one/m", withoutReasoning, led},
		"stripped":             {ask, nil, nil, "one/m", set(t, "encrypted_content", "null"), led},
		"written otherwise":    {ask, nil, nil, "one/m", func(i string) string { return set(t, "arguments", `"{ \"b\":2.0, \"a\":1 }"`)(withoutReasoning(i)) }, led},
		"another call":         {ask, nil, nil, "one/m", func(i string) string { return set(t, "arguments", `"{\"a\":3}"`)(withoutReasoning(i)) }, bare},
		"another provider":     {ask, nil, nil, "two/m", withoutReasoning, bare},
		"another user":         {ask, nil, []string{"Service-User-Id", "eve"}, "one/m", withoutReasoning, bare},
		"another key":          {ask, nil, []string{"Authorization", "Bearer acme"}, "one/m", withoutReasoning, bare},
		"omitted":              {ask, []string{"Service-Omit-Response", "true"}, nil, "one/m", withoutReasoning, bare},
		"by reference":         {ask, nil, nil, "one/m", byReference, led},
		"by reference, of two": {ask, nil, nil, "one/m,two/m", byReference, led},
	} {
		t.Run(name, func(t *testing.T) {
			id := func(n int) string { return fmt.Sprintf("%s-%d", strings.ReplaceAll(name, " ", "-"), n) }
			const args = ` {"a":1,"b":2}`
			one, received := listener("model m-1", "think first", "text a", "call "+id(1)+args, "call "+id(2)+args, "think second", "call "+id(3)+args, "stop")
			s := serve(t, map[string][]upstream{"one": {one}, "two": {one}})
			_, answer := s.post(c.first, c.header...)
			received()
			if c.first == stream {
				answer = gjson.Get(lastEventData(answer, "response.completed"), "response").Raw
			}
			resp, body := s.post(goOn(t, c.model, answer, c.edit), append(c.header, c.adds...)...)
			if resp.StatusCode != 200 {
				t.Fatalf("%d %s", resp.StatusCode, body)
			}
			if got := received(); got != c.want {
				t.Errorf("the provider was sent %q, want %q", got, c.want)
			}
		})
	}
}

// A reference to what the gateway does not have is an error that tells what to
// do.
func TestUnknownReferences(t *testing.T) {
	for name, c := range map[string]struct{ first, second, model string }{
		"not stored":  {"Service-Node-Id", "Service-Node-Id", "one/m"},
		"omitted":     {"Service-Omit-Response", "Service-Node-Id", "one/m"},
		"another key": {"Service-Node-Id", "Authorization", "one/m"},
		"of several":  {"Service-Omit-Response", "Service-Node-Id", "raws"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, map[string][]upstream{"one": {hello}})
			_, answer := s.post(fmt.Sprintf(`{"model":"one/m","input":"hi","store":%v}`, name != "not stored"), c.first, "true")
			value := map[string]string{"Authorization": "Bearer acme"}[c.second]
			resp, body := s.post(goOn(t, c.model, answer, byReference), c.second, value)
			e := gjson.Get(body, "error")
			if resp.StatusCode != 400 || e.Get("code").Str != "unsupported_parameter" || e.Get("param").Str != "input[1]" ||
				!strings.Contains(e.Get("message").Str, "store") {
				t.Errorf("%d %s", resp.StatusCode, body)
			}
		})
	}
}

// A provider that speaks Responses gets what it could not know, and not what it
// could not read; the rest of the body stays as it is.
func TestHistoryOfAnotherProvider(t *testing.T) {
	for name, edit := range map[string]func(string) string{"whole": asItIs, "by reference": byReference} {
		t.Run(name, func(t *testing.T) {
			one, received := listener("think canary", "text hello", "call "+strings.ReplaceAll(name, " ", "-")+" {}", "stop")
			var sent []byte
			s := serve(t, map[string][]upstream{"one": {one}, "raw": {func(w http.ResponseWriter, r *http.Request) {
				sent, _ = io.ReadAll(r.Body)
				r.Body = io.NopCloser(bytes.NewReader(sent))
				speaksResponses(w, r)
			}}})
			_, answer := s.post(ask)
			received()
			request := goOn(t, "raw/m", answer, edit)
			resp, body := s.post(request)
			if resp.StatusCode != 200 {
				t.Fatalf("%d %s", resp.StatusCode, body)
			}
			if want := goOn(t, "raw/m", answer, withoutReasoning); string(sent) != want {
				t.Errorf("the provider was sent\n%s\nwant\n%s", sent, want)
			}
			if warnings := resp.Header.Get("Service-Warnings"); !strings.HasPrefix(warnings, "input[1].encrypted_content: ") {
				t.Errorf("warnings %q", warnings)
			}
			if r := s.kept.all()[1]; r.request != request {
				t.Errorf("the record has %s", r.request)
			}
		})
	}
}
