package llmgateway

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/storage"
)

// conversation makes a conversation of messages.
func (s *site) conversation(messages ...string) string {
	s.t.Helper()
	var items []string
	for _, m := range messages {
		items = append(items, fmt.Sprintf(`{"role":"user","content":%q}`, m))
	}
	resp, body := s.postTo("/v1/conversations", strings.NewReader(`{"items":[`+strings.Join(items, ",")+`]}`))
	id := gjson.Get(body, "id").Str
	if resp.StatusCode != http.StatusOK || !strings.HasPrefix(id, "conv_") {
		s.t.Fatalf("%d %s", resp.StatusCode, body)
	}
	return id
}

func (s *site) itemsOf(conversation string) string {
	s.t.Helper()
	status, body := s.get("/v1/conversations/" + conversation + "/items?order=asc")
	if status != http.StatusOK {
		s.t.Fatalf("%d %s", status, body)
	}
	return gjson.Get(body, "data").Raw
}

func TestConversationsAreMadeChangedAndDeleted(t *testing.T) {
	s := serve(t, nil)
	do := func(request, body string) string {
		t.Helper()
		method, path, _ := strings.Cut(request, " ")
		resp, answer := s.send(method, path, strings.NewReader(body))
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %s", request, resp.StatusCode, answer)
		}
		return answer
	}
	made := do("POST /v1/conversations", `{"metadata":{"topic":"weirs"},"items":[{"role":"user","content":"a"},{"type":"message","role":"assistant","content":"b","id":"msg_own"}]}`)
	path := "/v1/conversations/" + gjson.Get(made, "id").Str
	if gjson.Get(made, "object").Str != "conversation" || gjson.Get(made, "metadata.topic").Str != "weirs" || gjson.Get(made, "created_at").Int() == 0 {
		t.Error(made)
	}
	if got := do("GET "+path, ""); got != made {
		t.Errorf("%s\nwant %s", got, made)
	}
	if got := do("POST "+path, `{"metadata":{"topic":"dams"}}`); gjson.Get(got, "metadata").Raw != `{"topic":"dams"}` || gjson.Get(got, "id").Str != gjson.Get(made, "id").Str {
		t.Error(got)
	}
	added := do("POST "+path+"/items?include[]=x", `{"items":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}]}`)
	call := gjson.Get(added, "data.0.id").Str
	if gjson.Get(added, "object").Str != "list" || gjson.Get(added, "data.#").Int() != 1 || !strings.HasPrefix(call, "fc_") {
		t.Error(added)
	}
	if got := gjson.Get(do("GET "+path+"/items", ""), "data.#.type").Raw; got != `["function_call","message","message"]` {
		t.Error("newest first:", got)
	}
	if got := do("GET "+path+"/items?limit=1&order=asc&after=msg_own", ""); gjson.Get(got, "data.0.id").Str != call || gjson.Get(got, "has_more").Bool() {
		t.Error(got)
	}
	if got := do("GET "+path+"/items/msg_own", ""); gjson.Get(got, "content.0.text").Str != "b" || gjson.Get(got, "status").Str != "completed" {
		t.Error(got)
	}
	if got := do("DELETE "+path+"/items/msg_own", ""); gjson.Get(got, "object").Str != "conversation" {
		t.Error(got)
	}
	if status, got := s.get(path + "/items/msg_own"); status != http.StatusNotFound {
		t.Errorf("removed: %d %s", status, got)
	}
	if got := do("DELETE "+path, ""); got != `{"id":"`+gjson.Get(made, "id").Str+`","object":"conversation.deleted","deleted":true}`+"\n" {
		t.Error(got)
	}
	for _, path := range []string{path, path + "/items"} {
		if status, got := s.get(path); status != http.StatusNotFound {
			t.Errorf("deleted: %d %s", status, got)
		}
	}
	if got := do("POST /v1/conversations", ""); gjson.Get(got, "metadata").Raw != "{}" {
		t.Error("without a body:", got)
	}
}

func TestConversationsKeepNoCredentialsOfMCPServers(t *testing.T) {
	s := serve(t, nil)
	made, answer := s.send(http.MethodPost, "/v1/conversations", strings.NewReader(`{"items":[{"type":"additional_tools","id":"at_1","tools":[{"type":"mcp","server_label":"a","authorization":"canary"}]}]}`))
	if made.StatusCode != http.StatusOK {
		t.Fatal(made.StatusCode, answer)
	}
	if items := s.itemsOf(gjson.Get(answer, "id").Str); strings.Contains(items, "canary") || !strings.Contains(items, "server_label") {
		t.Error(items)
	}
}

func TestACallReadsItsConversationAndIsAddedToIt(t *testing.T) {
	for _, streamed := range []bool{false, true} {
		t.Run(fmt.Sprint("stream ", streamed), func(t *testing.T) {
			var sent remembering
			s := serve(t, map[string][]upstream{"one": {hello}, "raw": {sent.then(speaksResponses)}})
			id := s.conversation("zeroth")
			ask := func(model, input, conversation string) string {
				t.Helper()
				_, body := s.post(fmt.Sprintf(`{"model":%q,"input":%s,"conversation":%s,"stream":%v}`, model, input, conversation, streamed))
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
			first := ask("one/m", `"first"`, `"`+id+`"`)
			if gjson.Get(first, "conversation.id").Str != id || gjson.Get(first, "previous_response_id").Type != gjson.Null {
				t.Error("the response says", first)
			}
			ask("raw/m", `[{"role":"user","content":"second"}]`, `{"id":"`+id+`"}`)
			const two = "user:zeroth user:first assistant:hello user:second"
			if got := texts(gjson.Get(sent.last(), "input").Raw); got != two || gjson.Get(sent.last(), "conversation").Exists() {
				t.Errorf("the provider was sent %s", sent.last())
			}
			items := s.itemsOf(id)
			if got := texts(items); got != two+" assistant:You said: second" {
				t.Errorf("the conversation has %s", items)
			}
			if gjson.Get(items, "1.id").Str != inputID(s, gjson.Get(first, "id").Str) || gjson.Get(items, "2.id").Str != gjson.Get(first, "output.0.id").Str {
				t.Errorf("the items have other ids than those of the response: %s", items)
			}
			for _, r := range s.kept.all() {
				if r.SessionID != id {
					t.Errorf("the session of a call is %q", r.SessionID)
				}
			}
		})
	}
}

// What is not to be kept is no part of a conversation either, and nor is an answer that
// failed.
func TestConversationsKeepWhatIsKept(t *testing.T) {
	s := serve(t, map[string][]upstream{"one": {hello}, "two": {says("text half", "panic")}, "raw": {status(400)}})
	id := s.conversation("zeroth")
	for name, c := range map[string]struct {
		fields string
		header []string
		warns  bool
	}{
		"not stored":       {`"model":"one/m","store":false`, nil, true},
		"request omitted":  {`"model":"one/m"`, []string{"Service-Omit-Request", "true"}, true},
		"response omitted": {`"model":"one/m"`, []string{"Service-Omit-Response", "true"}, true},
		"failed":           {`"model":"two/m","stream":true`, nil, false},
		"refused":          {`"model":"raw/m"`, nil, false},
	} {
		resp, body := s.post(`{"input":"secret","conversation":"`+id+`",`+c.fields+`}`, c.header...)
		if got := resp.Header.Get("Service-Warnings"); strings.HasPrefix(got, "conversation: ") != c.warns {
			t.Errorf("%s: warnings %q", name, got)
		}
		if got := texts(s.itemsOf(id)); got != "user:zeroth" {
			t.Errorf("%s: the conversation has %s after %s", name, got, body)
		}
	}
}

func TestConversationsAreFoundByTheirOwnersAlone(t *testing.T) {
	s := serve(t, map[string][]upstream{"one": {hello}, "raw": {speaksResponses}})
	_, made := s.send("POST", "/v1/conversations", strings.NewReader(`{"items":[{"role":"user","content":"a","id":"msg_a"}]}`), "Service-User-Id", "u")
	id := gjson.Get(made, "id").Str
	for name, c := range map[string]struct {
		header []string
		found  bool
	}{
		"another organisation": {[]string{"Authorization", "Bearer acme"}, false},
		"another user":         {[]string{"Service-User-Id", "v"}, false},
		"its user":             {[]string{"Service-User-Id", "u"}, true},
		"the organisation":     {nil, true},
	} {
		for _, request := range []string{
			"GET /v1/conversations/ID", "POST /v1/conversations/ID", "GET /v1/conversations/ID/items", "POST /v1/conversations/ID/items",
			"GET /v1/conversations/ID/items/msg_a", "POST /v1/responses", "DELETE /v1/conversations/ID/items/msg_none", "DELETE /v1/conversations/ID",
		} {
			if c.found && strings.HasPrefix(request, "DELETE") {
				continue
			}
			method, path, _ := strings.Cut(strings.ReplaceAll(request, "ID", id), " ")
			body := map[string]string{
				"POST /v1/conversations/ID": `{"metadata":{}}`, "POST /v1/conversations/ID/items": `{"items":[{"role":"user","content":"x"}]}`,
				"POST /v1/responses": `{"model":"one/m","input":"hi","conversation":"` + id + `"}`,
			}[request]
			resp, got := s.send(method, path, strings.NewReader(body), c.header...)
			if c.found != (resp.StatusCode == 200) || !c.found && (resp.StatusCode != 404 || gjson.Get(got, "error.code").Str != "not_found") {
				t.Errorf("%s, %s: %d %s", name, request, resp.StatusCode, got)
			}
		}
	}
	// A provider might answer without the conversation.
	if resp, got := s.post(`{"model":"raw/m","input":"hi","conversation":"`+id+`"}`, "Service-User-Id", "v"); resp.StatusCode != http.StatusNotFound {
		t.Errorf("at a provider that speaks Responses: %d %s", resp.StatusCode, got)
	}
	if resp, _ := s.send("GET", "/v1/conversations/"+id, nil, "Authorization", "Bearer nobody"); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a key: %d", resp.StatusCode)
	}
}

func TestAConversationIDOfAProviderIsPassedOn(t *testing.T) {
	var sent remembering
	s := serve(t, map[string][]upstream{"one": {hello}, "raw": {sent.then(speaksResponses)}})
	body := `{ "model":"raw/m", "input":"hi","conversation":{"id":"conv_68b09c7f3f7c81a0a9c2d7b1e4f5061728394a5b6c7d8e9f"}}`
	if resp, _ := s.post(body, "Authorization", "Bearer both"); resp.StatusCode != http.StatusOK || sent.last() != body {
		t.Errorf("%d, sent %s", resp.StatusCode, sent.last())
	}
	if resp, got := s.post(strings.Replace(body, "raw/m", "one/m", 1), "Authorization", "Bearer both"); resp.StatusCode != http.StatusNotFound {
		t.Errorf("at a provider that keeps nothing: %d %s", resp.StatusCode, got)
	}
}

func TestConversationsRefuseWhatTheyDoNotTake(t *testing.T) {
	s := serve(t, map[string][]upstream{"one": {hello}})
	id := s.conversation("a")
	item := gjson.Get(s.itemsOf(id), "0.id").Str
	many := strings.Repeat(`{"role":"user","content":"x"},`, 20) + `{"role":"user","content":"x"}`
	for _, c := range []struct {
		request, body string
		status        int
		param         string
	}{
		{"POST /v1/conversations", `{"item":[]}`, 400, "item"},
		{"POST /v1/conversations", `[]`, 400, ""},
		{"POST /v1/conversations", `{`, 400, ""},
		{"POST /v1/conversations", `{"items":{}}`, 400, "items"},
		{"POST /v1/conversations", `{"items":[` + many + `]}`, 400, "items"},
		{"POST /v1/conversations", `{"items":[{"role":"user","content":"x"},{}]}`, 400, "items[1]"},
		{"POST /v1/conversations", `{"items":[{"type":"item_reference","id":"msg_none"}]}`, 400, "items[0]"},
		{"POST /v1/conversations", `{"metadata":{"a":1}}`, 400, "metadata"},
		{"POST /v1/conversations", `{"metadata":{"a":"` + strings.Repeat("x", 513) + `"}}`, 400, "metadata"},
		{"POST /v1/conversations/" + id, `{}`, 400, "metadata"},
		{"POST /v1/conversations/" + id + "/items", `{}`, 400, "items"},
		{"POST /v1/conversations/" + id + "/items", `{"items":[{"role":"user","content":"x","id":"` + item + `"}]}`, 400, "items[0]"},
		{"GET /v1/conversations/" + id + "/items?limit=0", ``, 400, "limit"},
		{"GET /v1/conversations", ``, 405, ""},
		{"PUT /v1/conversations/" + id, ``, 405, ""},
		{"GET /v1/conversations/" + id + "/other", ``, 404, ""},
		{"GET /v1/conversations/" + id + "/items/a/b", ``, 404, ""},
		{"GET /v1/conversations/conv_1", ``, 404, ""},
		{"OPTIONS /v1/conversations/" + id, ``, 204, ""},
		{"POST /v1/responses", `{"model":"one/m","input":"x","previous_response_id":"resp_` + strings.Repeat("0a", 16) + `","conversation":"` + id + `"}`, 400, "conversation"},
		{"POST /v1/responses", `{"model":"one/m","input":"x","conversation":"conv_` + strings.Repeat("0a", 16) + `"}`, 404, ""},
		{"POST /v1/responses", `{"model":"one/m","input":[{"type":"function_call_output","call_id":"no","output":""}],"conversation":"` + id + `"}`, 400, "input[0]"},
	} {
		method, path, _ := strings.Cut(c.request, " ")
		resp, got := s.send(method, path, strings.NewReader(c.body))
		if resp.StatusCode != c.status || gjson.Get(got, "error.param").Str != c.param {
			t.Errorf("%s %s: %d %s", c.request, c.body, resp.StatusCode, got)
		}
	}
}

// A conversation is bounded, however many add to it at the same time.
func TestConversationsAreBounded(t *testing.T) {
	s := serve(t, map[string][]upstream{"one": {hello}})
	id := s.conversation("first")
	item := `{"role":"user","content":"` + strings.Repeat("a", 1<<20) + `"}`
	org := s.kept.changes[0].Org
	s.kept.changes = append(s.kept.changes, &storage.Annotation{Org: org, At: storage.Millis(time.Now()) + 1, Conversation: &storage.ConversationChange{
		ID: id, Add: []string{"msg_long"}, Items: []string{strings.Repeat(" ", 58<<20-4096) + item},
	}})
	var refused atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			resp, body := s.postTo("/v1/conversations/"+id+"/items", strings.NewReader(`{"items":[`+item+`]}`))
			switch {
			case resp.StatusCode == http.StatusRequestEntityTooLarge && gjson.Get(body, "error.code").Str == "conversation_too_large":
				refused.Add(1)
			case resp.StatusCode != http.StatusOK:
				t.Errorf("%d %.300s", resp.StatusCode, body)
			}
		})
	}
	all.Wait()
	if refused.Load() != 3 {
		t.Errorf("%d of 8 times 1 MiB were refused", refused.Load())
	}
	if c, err := s.kept.Conversation(t.Context(), org, id, storage.Measured); err != nil || c.Size > 64<<20 {
		t.Errorf("the conversation has %d bytes: %v", c.Size, err)
	}
}

// Content that must not be kept does not get into a conversation.
func TestConversationsRefuseOmittedContent(t *testing.T) {
	s := serve(t, nil)
	id := s.conversation("before")
	for _, path := range []string{"/v1/conversations", "/v1/conversations/" + id, "/v1/conversations/" + id + "/items"} {
		for _, header := range []string{"Service-Omit-Request", "Service-Omit-Response"} {
			resp, body := s.postTo(path, strings.NewReader(`{"items":[{"role":"user","content":"canary"}],"metadata":{"a":"canary"}}`), header, "true")
			if resp.StatusCode != http.StatusBadRequest || !strings.Contains(gjson.Get(body, "error.message").Str, header) {
				t.Errorf("%s with %s: %d %s", path, header, resp.StatusCode, body)
			}
		}
	}
	for _, a := range s.kept.changes {
		if kept := fmt.Sprintf("%+v", a.Conversation); strings.Contains(kept, "canary") {
			t.Errorf("kept: %s", kept)
		}
	}
	resp, body := s.postTo("/v1/conversations", strings.NewReader(`{}`), "Service-Omit-Request", "false")
	if resp.StatusCode != http.StatusOK {
		t.Errorf("nothing is omitted: %d %s", resp.StatusCode, body)
	}
}

// No request for a part of a conversation reads the whole of it.
func TestConversationsAreReadInParts(t *testing.T) {
	s := serve(t, nil)
	id := s.conversation("a", "b", "c", "d")
	path := "/v1/conversations/" + id
	var all []string
	for _, item := range gjson.Parse(s.itemsOf(id)).Array() {
		all = append(all, item.Get("id").Str)
	}
	s.kept.pages = nil
	after := ""
	for i, want := range all {
		_, body := s.get(path + "/items?order=asc&limit=1" + after)
		if got := gjson.Get(body, "data.#.id").Raw; got != `["`+want+`"]` || gjson.Get(body, "has_more").Bool() != (i < len(all)-1) {
			t.Errorf("item %d: %s", i, body)
		}
		after = "&after=" + want
	}
	s.get(path)
	s.get(path + "/items/" + all[0])
	s.send("POST", path, strings.NewReader(`{"metadata":{"a":"b"}}`))
	s.send("POST", path+"/items", strings.NewReader(`{"items":[{"role":"user","content":"e","id":"own"}]}`))
	s.send("DELETE", path+"/items/"+all[0], nil)
	s.send("DELETE", path, nil)
	for _, page := range s.kept.pages {
		if !page.Measure && page.Limit > 2 {
			t.Errorf("%+v was read", page)
		}
	}
}

// A page of long items ends early, and all its items come page by page.
func TestPagesOfLongItemsAreShort(t *testing.T) {
	s := serve(t, nil)
	id := s.conversation("first")
	org := s.kept.changes[0].Org
	change := &storage.ConversationChange{ID: id}
	for i := range 30 {
		change.Add = append(change.Add, fmt.Sprintf("msg_%02d", i))
		change.Items = append(change.Items, fmt.Sprintf(`{"id":"msg_%02d","type":"message","role":"user","content":"%s"}`, i, strings.Repeat("a", 1<<20)))
	}
	s.kept.changes = append(s.kept.changes, &storage.Annotation{Org: org, At: storage.Millis(time.Now()) + 1, Conversation: change})
	seen, after := 0, ""
	for more := true; more; {
		resp, body := s.send("GET", "/v1/conversations/"+id+"/items?limit=100&order=asc"+after, nil)
		page := gjson.Parse(body)
		if n := len(page.Get("data").Array()); resp.StatusCode != http.StatusOK || n == 0 || len(body) > 6<<20 {
			t.Fatalf("%d, %d items, %d bytes", resp.StatusCode, n, len(body))
		} else {
			seen += n
		}
		more, after = page.Get("has_more").Bool(), "&after="+page.Get("last_id").Str
	}
	if seen != 31 {
		t.Errorf("%d items of 31", seen)
	}
}
