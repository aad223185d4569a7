package llmgateway

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/plugintest"
)

// remembering is an upstream that keeps what the last attempt was sent.
type remembering struct {
	mu   sync.Mutex
	body string
}

func (m *remembering) then(answer upstream) upstream {
	return func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		m.body = readAndRestore(r)
		m.mu.Unlock()
		answer(w, r)
	}
}

func (m *remembering) last() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.body
}

// get asks for what is stored.
func (s *site) get(path string, header ...string) (int, string) {
	s.t.Helper()
	resp, body := s.send("GET", path, nil, header...)
	return resp.StatusCode, body
}

// texts are those of the messages in a list of items, with their roles.
func texts(items string) string {
	var all []string
	for _, item := range gjson.Parse(items).Array() {
		content := item.Get("content.0.text").Str
		if item.Get("content").Type == gjson.String {
			content = item.Get("content").Str
		}
		all = append(all, item.Get("role").Str+":"+content)
	}
	return strings.Join(all, " ")
}

func TestAConversationGoesOnAtAnyProvider(t *testing.T) {
	for _, streamed := range []bool{false, true} {
		t.Run(fmt.Sprint("stream ", streamed), func(t *testing.T) {
			var sent remembering
			s := serve(t, map[string][]upstream{"one": {hello}, "raw": {sent.then(speaksResponses)}})
			ask := func(model, input, previous string) string {
				t.Helper()
				_, body := s.post(fmt.Sprintf(`{"model":%q,"input":%s,"previous_response_id":%s,"stream":%v}`, model, input, previous, streamed))
				if streamed && strings.HasPrefix(model, "one") {
					if _, err := plugintest.Check([]byte(body)); err != nil {
						t.Fatalf("%v\n%s", err, body)
					}
				}
				if streamed {
					body = gjson.Get(lastEventData(body, "response.completed"), "response").Raw
				}
				if gjson.Get(body, "status").Str != "completed" {
					t.Fatal(body)
				}
				return body
			}
			first := ask("one/m", `"first"`, "null")
			if !gjson.Get(first, "store").Bool() || gjson.Get(first, "previous_response_id").Type != gjson.Null {
				t.Error("the first response says", first)
			}
			second := ask("one/m", `[{"role":"user","content":"second"}]`, gjson.Get(first, "id").Raw)
			if gjson.Get(second, "previous_response_id").Str != gjson.Get(first, "id").Str {
				t.Error("the second response says", second)
			}
			ask("raw/m", `"third"`, gjson.Get(second, "id").Raw)
			if got := texts(gjson.Get(sent.last(), "input").Raw); got != "user:first assistant:hello user:second assistant:hello user:third" {
				t.Errorf("the third call was sent %s", sent.last())
			}
			if gjson.Get(sent.last(), "previous_response_id").Exists() {
				t.Error("the provider is asked for a response that it does not know")
			}

			id := gjson.Get(second, "id").Str
			if status, body := s.get("/v1/responses/" + id); status != 200 || body != second {
				t.Errorf("%d %s\nwant %s", status, body, second)
			}
			for what, path := range map[string]string{"a reference to output": gjson.Get(first, "output.0.id").Str, "a reference to input": inputID(s, gjson.Get(first, "id").Str)} {
				ask("raw/m", `[{"type":"item_reference","id":"`+path+`"},{"role":"user","content":"?"}]`, "null")
				if got := texts(gjson.Get(sent.last(), "input").Raw); got != "assistant:hello user:?" && got != "user:first user:?" {
					t.Errorf("%s: sent %s", what, got)
				}
			}
		})
	}
}

func TestAResponseOfAProviderThatSpeaksResponsesIsKeptToo(t *testing.T) {
	for _, streamed := range []bool{false, true} {
		var sent remembering
		s := serve(t, map[string][]upstream{"one": {hello}, "raw": {sent.then(speaksResponses)}, "raw2": {sent.then(speaksResponses)}})
		_, body := s.post(fmt.Sprintf(`{"model":"raw/m","input":"first","stream":%v}`, streamed))
		if streamed {
			body = gjson.Get(lastEventData(body, "response.completed"), "response").Raw
		}
		id := gjson.Get(body, "id").Str
		if status, got := s.get("/v1/responses/" + id); status != 200 || gjson.Get(got, "output").Raw != gjson.Get(body, "output").Raw {
			t.Errorf("%d %s\nwant %s", status, got, body)
		}
		if status, got := s.get("/v1/responses/" + id + "/input_items"); status != 200 || texts(gjson.Get(got, "data").Raw) != "user:first" {
			t.Errorf("%d %s", status, got)
		}
		for model, want := range map[string]string{"raws": "user:first assistant:You said: first user:second", "raw/m": ""} {
			resp, got := s.post(fmt.Sprintf(`{"model":%q,"input":[{"role":"user","content":"second"}],"previous_response_id":%q}`, model, id))
			if items := texts(gjson.Get(sent.last(), "input").Raw); resp.StatusCode != 200 || want != "" && items != want || (want == "") != (gjson.Get(sent.last(), "previous_response_id").Str == id) {
				t.Errorf("%s: %d %s\nsent %s", model, resp.StatusCode, got, sent.last())
			}
		}
		if resp, got := s.post(`{"model":"one/m","input":"second","previous_response_id":"` + id + `"}`); resp.StatusCode != 200 {
			t.Errorf("%d %s", resp.StatusCode, got)
		}
		if status, _ := s.get("/v1/responses/"+id, "Authorization", "Bearer acme"); status != 404 {
			t.Errorf("another organisation gets it: %d", status)
		}
	}
}

// Many references to one long item are refused before they take its length many times.
func TestReferencesAreBounded(t *testing.T) {
	var sent remembering
	s := serve(t, map[string][]upstream{"one": {hello}, "raw": {sent.then(speaksResponses)}})
	_, first := s.post(`{"model":"one/m","input":"` + strings.Repeat("a", 1<<20) + `"}`)
	reference := fmt.Sprintf(`{"type":"item_reference","id":%q},`, inputID(s, gjson.Get(first, "id").Str))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for path, body := range map[string]string{
		"/v1/responses":     `{"model":"raw/m","input":[` + strings.Repeat(reference, 1000) + `{"role":"user","content":"?"}]}`,
		"/v1/conversations": `{"items":[` + strings.Repeat(reference, 19) + `{"role":"user","content":"?"}]}`,
	} {
		if resp, got := s.postTo(path, strings.NewReader(body)); resp.StatusCode/100 != 4 || sent.last() != "" {
			t.Errorf("%s: %d %.200s", path, resp.StatusCode, got)
		}
	}
	if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 400<<20 {
		t.Errorf("%d MiB for 1,020 references to one of 1 MiB", (after.TotalAlloc-before.TotalAlloc)>>20)
	}
}

// A provider that speaks Responses gets its own ids as the client wrote them.
func TestTheProvidersOwnIDIsPassedOn(t *testing.T) {
	const id = "resp_68b09c7f3f7c81a0a9c2d7b1e4f5061728394a5b6c7d8e9f"
	var sent remembering
	s := serve(t, map[string][]upstream{"raw": {sent.then(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"id":"` + id + `","object":"response","status":"completed","model":"m","output":[],"usage":null}`))
	})}})
	s.post(`{"model":"raw/m","input":"first"}`, "Authorization", "Bearer both")
	if resp, got := s.send("GET", "/v1/responses/"+id, nil, "Authorization", "Bearer both"); resp.StatusCode != 200 {
		t.Fatalf("%d %s", resp.StatusCode, got)
	}
	body := `{ "previous_response_id":"` + id + `", "model":"raw/m","input":[{"type":"item_reference","id":"msg_` + id[5:] + `"}]}`
	if resp, got := s.post(body, "Authorization", "Bearer both"); resp.StatusCode != 200 || sent.last() != body {
		t.Errorf("%d %s\nsent %s", resp.StatusCode, got, sent.last())
	}
}

func inputID(s *site, response string) string {
	_, body := s.get("/v1/responses/" + response + "/input_items")
	return gjson.Get(body, "data.0.id").Str
}

func TestInputItemsAreListedByPages(t *testing.T) {
	s := serve(t, map[string][]upstream{"one": {hello}})
	_, body := s.post(`{"model":"one/m","input":[{"role":"user","content":"a"},{"role":"assistant","content":"b","id":"msg_own"},{"role":"user","content":"c"}]}`)
	list := "/v1/responses/" + gjson.Get(body, "id").Str + "/input_items"
	for query, want := range map[string]string{
		"":                             "user:c assistant:b user:a",
		"?order=asc":                   "user:a assistant:b user:c",
		"?order=asc&limit=2":           "user:a assistant:b",
		"?order=asc&after=msg_own":     "user:c",
		"?limit=1&after=msg_own":       "user:a",
		"?order=asc&limit=1":           "user:a",
		"?include[]=message.x&limit=3": "user:c assistant:b user:a",
	} {
		status, page := s.get(list + query)
		if got := texts(gjson.Get(page, "data").Raw); status != 200 || got != want {
			t.Errorf("%s: %d %s", query, status, page)
		}
		last := gjson.Get(page, "data|@reverse|0.id").Str
		if more := gjson.Get(page, "has_more").Bool(); more != strings.Contains(query, "asc&limit") || gjson.Get(page, "last_id").Str != last || last == "" {
			t.Errorf("%s: %s", query, page)
		}
	}
	for query, param := range map[string]string{"?limit=0": "limit", "?limit=101": "limit", "?limit=x": "limit", "?order=up": "order", "?after=msg_other": "after"} {
		if status, page := s.get(list + query); status != 400 || gjson.Get(page, "error.param").Str != param {
			t.Errorf("%s: %d %s", query, status, page)
		}
	}
}

func TestResponsesAreFoundByTheirOwnersAlone(t *testing.T) {
	const body = `{"model":"one/m","input":"hi"`
	for name, c := range map[string]struct {
		ask    string
		header []string // of the call
		reader []string // of who asks for it
		found  bool
	}{
		"its key":           {body + `}`, nil, nil, true},
		"store is null":     {body + `,"store":null}`, nil, nil, true},
		"its user":          {body + `}`, []string{"Service-User-Id", "u"}, []string{"Service-User-Id", "u"}, true},
		"the organisation":  {body + `}`, []string{"Service-User-Id", "u"}, nil, true},
		"another user":      {body + `}`, []string{"Service-User-Id", "u"}, []string{"Service-User-Id", "v"}, false},
		"a user of none":    {body + `}`, nil, []string{"Service-User-Id", "v"}, false},
		"another's key":     {body + `}`, nil, []string{"Authorization", "Bearer acme"}, false},
		"not stored":        {body + `,"store":false}`, nil, nil, false},
		"request omitted":   {body + `}`, []string{"Service-Omit-Request", "true"}, nil, false},
		"response omitted":  {body + `}`, []string{"Service-Omit-Response", "true"}, nil, false},
		"request truncated": {body + `,"metadata":{"a":"` + strings.Repeat("x", 5000) + `"}}`, nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, map[string][]upstream{"one": {hello}})
			s.handler.MaxBody = 4000
			_, answer := s.post(c.ask, c.header...)
			id := gjson.Get(answer, "id").Str
			if id == "" {
				t.Fatal(answer)
			}
			stored := !strings.Contains(name, "not ") && !strings.Contains(name, "omitted") && !strings.Contains(name, "truncated")
			if gjson.Get(answer, "store").Bool() != stored {
				t.Error("the response says", answer)
			}
			for _, path := range []string{"", "/input_items"} {
				if status, got := s.get("/v1/responses/"+id+path, c.reader...); (status == 200) != c.found || !c.found && (status != 404 || gjson.Get(got, "error.code").Str != "not_found") {
					t.Errorf("%s: %d %s", path, status, got)
				}
			}
			resp, got := s.post(`{"model":"one/m","input":"go on","previous_response_id":"`+id+`"}`, c.reader...)
			if c.found != (resp.StatusCode == 200) || !c.found && (resp.StatusCode != 400 || gjson.Get(got, "error.code").Str != "previous_response_not_found") {
				t.Errorf("going on: %d %s", resp.StatusCode, got)
			}
			if resp, got := s.send("DELETE", "/v1/responses/"+id, nil, c.reader...); (resp.StatusCode == 200) != c.found || c.found && got != `{"id":"`+id+`","object":"response","deleted":true}`+"\n" {
				t.Errorf("deleting: %d %s", resp.StatusCode, got)
			}
			if status, got := s.get("/v1/responses/" + id); c.found && status != 404 {
				t.Errorf("deleted: %d %s", status, got)
			}
		})
	}
}

// A provider that speaks Responses may have what is not found here, in an account that is
// the organisation's alone.
func TestAnUnknownIDGoesToTheOneProviderThatMayKnowIt(t *testing.T) {
	var sent remembering
	s := serve(t, map[string][]upstream{"one": {hello}, "raw": {sent.then(speaksResponses)}})
	for _, id := range []string{"resp_1", "resp_" + strings.Repeat("0a", 16), "resp_" + strings.Repeat("z", 32), "x"} {
		body := `{ "model":"raw/m","input":"hi",  "previous_response_id":"` + id + `"}`
		if resp, _ := s.post(body, "Authorization", "Bearer both"); resp.StatusCode != 200 || sent.last() != body {
			t.Errorf("%d, sent %s", resp.StatusCode, sent.last())
		}
		if status, got := s.get("/v1/responses/" + id); status != 404 {
			t.Errorf("%d %s", status, got)
		}
	}
}

func TestErrorsBehindAnEarlierResponseNameWhatTheClientSent(t *testing.T) {
	s := serve(t, map[string][]upstream{"one": {hello}})
	_, first := s.post(ask)
	_, body := s.post(`{"model":"one/m","input":[{"role":"user","content":"x"},{"type":"function_call_output","call_id":"no","output":""}],"previous_response_id":"` + gjson.Get(first, "id").Str + `"}`)
	if gjson.Get(body, "error.param").Str != "input[1]" {
		t.Error(body)
	}
}

func TestEndpointsOfResponsesRefuseWhatTheyDoNotKnow(t *testing.T) {
	s := serve(t, nil)
	for request, want := range map[string]int{
		"GET /v1/responses/compact": http.StatusMethodNotAllowed, "GET /v1/responses/input_tokens": http.StatusMethodNotAllowed,
		"POST /v1/responses/resp_1": http.StatusMethodNotAllowed, "PUT /v1/responses/resp_1": http.StatusMethodNotAllowed,
		"GET /v1/responses/resp_1/cancel": http.StatusMethodNotAllowed, "GET /v1/responses/resp_1/other": http.StatusNotFound,
		"POST /v1/responses/resp_1/cancel": http.StatusNotFound, "OPTIONS /v1/responses/resp_1": http.StatusNoContent,
	} {
		method, path, _ := strings.Cut(request, " ")
		if resp, body := s.send(method, path, nil); resp.StatusCode != want || want == 405 && resp.Header.Get("Allow") == "" {
			t.Errorf("%s: %d %s", request, resp.StatusCode, body)
		}
	}
	if status, body := s.get("/v1/responses/resp_1", "Authorization", "Bearer nobody"); status != http.StatusUnauthorized {
		t.Errorf("without a key: %d %s", status, body)
	}
}
