package llmgateway

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/modules/llmgateway/secret"
	"github.com/weirhq/weir/storage/shared"
)

// What the store remembers tells neither ids nor contents, and is there for its owner
// alone.
func TestMemoryHidesWhatItKeeps(t *testing.T) {
	const id, text = "call_canary", `[{"secret":"canary"}]`
	values := new(spy)
	open := func(text string) *secret.Secrets {
		m, err := secret.New([]byte(text), func() shared.Memory { return values })
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	alice := secret.Owner{Org: "acme", AuthHash: "key", User: "alice"}
	open("secret").Put(t.Context(), alice, []byte(text), []string{id})
	if strings.Contains(string(values.seen), "canary") || !bytes.Contains(values.seen, values.value) {
		t.Errorf("the store is given %q", values.seen)
	}
	if got := open("secret").Get(t.Context(), alice, []string{"other", id}); len(got) != 1 || got[id] != text {
		t.Errorf("its owner gets %q", got)
	}
	for _, other := range []secret.Owner{
		{Org: "acme", AuthHash: "key", User: "eve"}, {Org: "acme", AuthHash: "other", User: "alice"}, {Org: "umbrella", AuthHash: "key", User: "alice"},
		{Org: "acmekey", User: "alice"}, {Org: "acme"},
	} {
		if got := open("secret").Get(t.Context(), other, []string{id}); len(got) > 0 {
			t.Errorf("%v gets %q", other, got)
		}
		values.any = true // whoever can change the keys of the store
		if got := open("secret").Get(t.Context(), other, []string{id}); len(got) > 0 {
			t.Errorf("%v gets %q under another key", other, got)
		}
		values.any = false
	}
	values.any = true
	if got := open("other").Get(t.Context(), alice, []string{id}); len(got) > 0 {
		t.Errorf("with another secret: %q", got)
	}
}

// spy is a memory that shows all that it is given, and gives the last value under any
// key.
type spy struct {
	shared.LocalMemory
	seen, value []byte
	any         bool
	values      map[shared.Key]int // the keys of each, by its id
}

func (s *spy) Put(ctx context.Context, id shared.Key, value []byte, keys []shared.Key) {
	s.value = value
	if s.values == nil {
		s.values = make(map[shared.Key]int)
	}
	s.values[id] += len(keys)
	s.seen = append(append(s.seen, id[:]...), value...)
	for _, k := range keys {
		s.seen = append(s.seen, k[:]...)
	}
	s.LocalMemory.Put(ctx, id, value, keys)
}

func (s *spy) Get(ctx context.Context, keys []shared.Key) [][]byte {
	values := s.LocalMemory.Get(ctx, keys)
	for i := range values {
		if s.any {
			values[i] = s.value
		}
	}
	return values
}

// listener is an upstream that keeps the last body that it was sent. The function that it returns takes it.
func listener(events ...string) (upstream, func() string) {
	var last atomic.Value
	return func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			last.Store(string(body))
			says(events...)(w, r)
		}, func() string {
			body, _ := last.Swap("").(string) // nil if nothing was sent
			return body
		}
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
