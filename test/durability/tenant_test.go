//go:build linux

package durability

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// TestTenant has one organisation try to read and to change the records of
// another in the same store, by every endpoint of the API. The victim's texts
// are canaries: no answer to the other may hold one.
func TestTenant(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	w := newWeir(t, p)
	canary := string(newCanary())
	w.start(config{
		llm: "provider echo\nprovider lab compatible {\nbase_url " + filesOf(t, canary) + "\n}\n" +
			"provider anthropic {\nbase_url " + filesOf(t, canary) + "\napi_key x\n}\norg victim {\nkey victim-key\n}\norg thief {\nkey thief-key\n}",
		site: "llm_gateway",
	})
	since := time.Now()
	steal := func(c *call) {
		for name, value := range map[string]string{
			"Service-Session-Id": canary + "-session", "Service-Session-Name": canary + "-name",
			"Service-Property-Note": canary, "Service-Prompt-Input-Secret": canary, "Service-Auth": "Bearer victim-key",
		} {
			c.header.Set(name, value)
		}
		c.prompt, c.text = canary+" asked", canary+" answered"
	}
	victim := p.call(chat)
	steal(victim)
	id := victim.must(t, w).id
	w.flush()
	for path, body := range map[string]string{
		"/v1/request/" + id + "/score":                `{"scores":{"` + canary + `":7}}`,
		"/v1/session/" + canary + "-session/tag":      `{"tag":"` + canary + `"}`,
		"/v1/session/" + canary + "-session/feedback": `{"rating":true}`,
		"/v1/view/secret":                             `{"screen":"` + canary + `","state":"` + canary + `"}`,
	} {
		method := "POST"
		if strings.HasPrefix(path, "/v1/view/") {
			method = "PUT"
		}
		if status, answer := w.as(t, "victim-key", method, path, body); status/100 != 2 {
			t.Fatalf("%s: %d %s", path, status, answer)
		}
	}
	w.flush()
	_, before := w.as(t, "victim-key", "GET", "/v1/request/"+id, "")
	if !strings.Contains(before, canary+" answered") {
		t.Fatalf("the victim does not see its own record: %s", before)
	}

	// Its own record is one that a good answer may show.
	own := p.call(chat)
	own.header.Set("Service-Auth", "Bearer thief-key")
	own.header.Set("Service-Session-Id", canary+"-session")
	own.must(t, w)
	w.flush()

	leaf := func(group, field, op string) string { return `{"` + group + `":{"` + field + `":` + op + `}}` }
	contains := `{"contains":"` + canary + `"}`
	filters := []string{
		`"all"`, `{}`,
		leaf("request_response_rmt", "organization_id", `{"equals":"victim"}`),
		leaf("request_response_rmt", "request_id", `{"equals":"`+id+`"}`),
		leaf("request_response_rmt", "request_body", contains),
		leaf("request_response_rmt", "response_body", contains),
		leaf("request_response_rmt", "properties", `{"Note":`+contains+`}`),
		leaf("request_response_rmt", "user_id", `{"equals":"`+victim.name()+`"}`),
		`{"left":` + leaf("request_response_rmt", "organization_id", `{"not-equals":"thief"}`) + `,"operator":"or","right":"all"}`,
	}
	legacy := []string{
		leaf("request", "org_id", `{"equals":"victim"}`), leaf("values", "Note", contains), leaf("properties", "Note", contains),
		leaf("response", "body_completion", contains), leaf("request", "prompt", contains),
	}
	queries := map[string][]string{}
	for _, f := range filters {
		for _, path := range []string{"/v1/request/query-clickhouse", "/v1/request/query"} {
			queries[path] = append(queries[path], `{"filter":`+f+`,"limit":1000,"includeInputs":true}`)
		}
		for _, path := range []string{"/v1/user/metrics/query", "/v1/user/metrics-overview/query", "/v1/session/query", "/v1/session/metrics/query", "/v1/dashboard/scores/query"} {
			queries[path] = append(queries[path], `{"filter":`+f+`}`)
		}
	}
	for _, f := range legacy {
		queries["/v1/request/query"] = append(queries["/v1/request/query"], `{"filter":`+f+`,"includeInputs":true}`)
	}
	for _, field := range []string{"session_id", "session_name", "session_tag"} {
		queries["/v1/session/query"] = append(queries["/v1/session/query"], `{"filter":`+leaf("sessions_request_response_rmt", field, contains)+`}`)
	}
	queries["/v1/session/query"] = append(queries["/v1/session/query"], `{"search":"`+canary+`"}`, `{"nameEquals":"`+canary+`-name"}`)

	queries["/v1/session/tree/query"] = []string{`{"sessionId":"` + canary + `-session"}`, `{"sessionId":"` + canary + `-session","by":"path"}`, `{"sessionId":"` + id + `"}`}

	// attacks are by method and path of the API's own description.
	attacks := map[string][]attack{
		"get /v1/request/{id}":        {{path: "/v1/request/" + id, want: http.StatusNotFound}},
		"post /v1/request/{id}/score": {{path: "/v1/request/" + id + "/score", body: `{"scores":{"stolen":1}}`, want: http.StatusNotFound}},
		"delete /v1/request/{id}/score/{name}": {
			{path: "/v1/request/" + id + "/score/" + canary, want: http.StatusNotFound},
			{path: "/v1/request/" + id + "/score/helpful", want: http.StatusNotFound},
		},
		"post /v1/request/{id}/feedback": {{path: "/v1/request/" + id + "/feedback", body: `{"rating":false}`, want: http.StatusNotFound}},
		"put /v1/request/{id}/property":  {{path: "/v1/request/" + id + "/property", body: `{"key":"Note","value":"stolen"}`, want: http.StatusNotFound}},
		"get /v1/session/{id}/tag":       {{path: "/v1/session/" + canary + "-session/tag"}},
		"post /v1/session/{id}/tag":      {{path: "/v1/session/" + canary + "-session/tag", body: `{"tag":"stolen"}`}},
		"post /v1/session/{id}/feedback": {{path: "/v1/session/" + canary + "-session/feedback", body: `{"rating":false}`}},
		"get /v1/view":                   {{path: "/v1/view"}},
		"get /v1/view/{name}":            {{path: "/v1/view/secret", want: http.StatusNotFound}},
		"put /v1/view/{name}":            {{path: "/v1/view/own", body: `{"screen":"users","state":"stolen"}`}},
		"delete /v1/view/{name}":         {{path: "/v1/view/secret", want: http.StatusNotFound}},
		"get /openapi.json":              {{path: "/openapi.json"}},
		"get /v1/routes":                 {{path: "/v1/routes"}},
		"get /v1/catalog":                {{path: "/v1/catalog"}},
	}
	for _, a := range w.keptBy(t, "victim-key", canary) {
		if a.want == 0 {
			a.want = http.StatusNotFound
		}
		operation := strings.ToLower(a.method) + " " + a.path
		attacks[operation] = append(attacks[operation], a)
	}
	for _, f := range slices.Concat(filters, legacy) {
		for _, group := range []string{"user_id", "model", "property:Note"} {
			queries["/v1/metrics/query"] = append(queries["/v1/metrics/query"], `{"filter":`+f+`,"groupBy":"`+group+`"}`)
		}
		queries["/v1/facets/query"] = append(queries["/v1/facets/query"], `{"filter":`+f+`,"fields":["user_id","property_key","property:Note"]}`)
		queries["/v1/request/search"] = append(queries["/v1/request/search"], `{"filter":`+f+`}`, `{"filter":`+f+`,"limit":1}`)
		queries["/v1/whatif"] = append(queries["/v1/whatif"], `{"filter":`+f+`,"policy":["echo/echo-1"]}`)
		queries["/v1/export"] = append(queries["/v1/export"], `{"filter":`+f+`}`, `{"filter":`+f+`,"format":"csv"}`)
		for _, from := range []string{"", "&after=0"} {
			attacks["get /v1/request/tail"] = append(attacks["get /v1/request/tail"], attack{path: "/v1/request/tail?filter=" + url.QueryEscape(f) + from})
		}
	}
	for path, bodies := range queries {
		for _, body := range bodies {
			attacks["post "+path] = append(attacks["post "+path], attack{path: path, body: body})
		}
	}
	_, description := w.as(t, "thief-key", "GET", "/openapi.json", "")
	var api struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal([]byte(description), &api); err != nil {
		t.Fatal(err)
	}
	for path, operations := range api.Paths {
		for method := range operations {
			if method != "parameters" && attacks[method+" "+path] == nil {
				t.Errorf("%s %s is not attacked", method, path)
			}
		}
	}
	_, description = w.as(t, "thief-key", "GET", "/v1/openapi.json", "") // of the gateway, where what is kept has an id
	for path, operations := range gjson.Get(description, "paths").Map() {
		if !strings.Contains(path, "{id}") || strings.HasPrefix(path, "/v1/models/") {
			continue
		}
		ids := regexp.MustCompile(`\{\w+\}`).ReplaceAllString(path, `[^/?]+`)
		for method := range operations.Map() {
			attacked := regexp.MustCompile("^" + method + " " + ids + `(\?|$)`)
			if method != "parameters" && !slices.ContainsFunc(slices.Collect(maps.Keys(attacks)), attacked.MatchString) {
				t.Errorf("%s %s is not attacked", method, path)
			}
		}
	}
	tried := 0
	for operation, list := range attacks {
		method, _, _ := strings.Cut(operation, " ")
		for _, a := range list {
			tried++
			status, answer := w.as(t, "thief-key", strings.ToUpper(method), a.path, a.body, a.header...)
			// It named the session itself, and may be told so; what else there is
			// of the canary is the victim's.
			known := strings.NewReplacer(canary+"-session", "").Replace(answer)
			if a.want != 0 && status != a.want || status >= 500 || strings.Contains(known, canary) {
				t.Errorf("%s with %s: %d %.500s", a.path, a.body, status, answer)
			}
		}
	}
	for _, wrong := range []string{"", "victim", "victim-key ", "VICTIM-KEY", "default", key + "x"} {
		if status, answer := w.as(t, wrong, "GET", "/v1/request/"+id, ""); status != http.StatusUnauthorized && (wrong != "victim-key " || status != http.StatusOK) {
			t.Errorf("the key %q: %d %.200s", wrong, status, answer)
		}
	}
	// An id is one's own: a record of the same id is another one.
	same := p.call(chat)
	same.header.Set("Service-Auth", "Bearer thief-key")
	same.header.Set("Service-Request-Id", id)
	same.must(t, w)
	w.flush()
	if _, answer := w.as(t, "thief-key", "GET", "/v1/request/"+id, ""); strings.Contains(answer, canary) {
		t.Errorf("the thief's record of the same id is %.500s", answer)
	}
	if _, after := w.as(t, "victim-key", "GET", "/v1/request/"+id, ""); after != before {
		t.Errorf("the victim's record was\n%s\nand is\n%s", before, after)
	}
	if _, tag := w.as(t, "victim-key", "GET", "/v1/session/"+canary+"-session/tag", ""); !strings.Contains(tag, canary) {
		t.Errorf("the victim's tag is %s", tag)
	}
	if _, view := w.as(t, "victim-key", "GET", "/v1/view/secret", ""); !strings.Contains(view, canary) {
		t.Errorf("the victim's view is %s", view)
	}
	if users := w.query("", "victim-key", since); len(users) != 7 { // six of them of the gateway
		t.Errorf("the victim has %d records", len(users))
	}
	t.Logf("%d attacks on %d operations", tried, len(attacks))
}

// TestTenantKeys has others try to see, to rotate and to delete the keys that a key has created as
// its own, and to create keys in its place: another organisation, another project, a key of no
// project, and one of these keys itself.
func TestTenantKeys(t *testing.T) {
	t.Parallel()
	w := newWeir(t, newProvider(t))
	w.start(config{
		llm:  "provider echo\norg victim {\nkey victim-admin admin\nkey victim-key\n}\norg thief {\nkey thief-admin admin\n}",
		site: "llm_control",
	})
	must := func(key, method, path, body string) gjson.Result {
		t.Helper()
		status, answer := w.as(t, key, method, path, body)
		if status/100 != 2 {
			t.Fatalf("%s: %d %s", path, status, answer)
		}
		return gjson.Parse(answer)
	}
	// member returns a key in a project whose keys create keys, and a key that it has created.
	member := func(admin, project string) (secret string, own gjson.Result) {
		t.Helper()
		path := "/v1/organization/projects/" + must(admin, "POST", "/v1/organization/projects", `{"name":"`+project+`"}`).Get("id").Str
		must(admin, "POST", path+"/key_permissions", `{"creators":["keys"]}`)
		secret = must(admin, "POST", "/v1/keys", `{"name":"canary-`+project+`","project":"`+project+`","scopes":["gateway"]}`).Get("data.secret").Str
		return secret, must(secret, "POST", "/v1/key/keys", `{"name":"canary-laptop"}`).Get("data")
	}
	victim, own := member("victim-admin", "search")
	neighbour, _ := member("victim-admin", "mail")
	thief, _ := member("thief-admin", "search")
	id := own.Get("id").Str
	for name, key := range map[string]string{"another organisation": thief, "another project": neighbour, "a key of no project": "victim-key", "the key itself": own.Get("secret").Str} {
		for _, a := range []attack{
			{method: "DELETE", path: "/v1/key/keys/" + id, want: http.StatusNotFound},
			{method: "POST", path: "/v1/key/keys", body: `{"name":"x","project":"search","scopes":["admin"]}`},
			{method: "POST", path: "/v1/key/keys", body: `{"name":"x","project":"search","owner_id":"` + id + `"}`, want: http.StatusBadRequest},
			{method: "POST", path: "/v1/key/keys", body: `{"name":"x","project":"search","creator":{"id":"` + id + `"}}`, want: http.StatusBadRequest},
			{method: "GET", path: "/v1/keys/" + id}, {method: "POST", path: "/v1/keys/" + id + "/rotate"}, {method: "PATCH", path: "/v1/keys/" + id, body: `{"scopes":["admin"]}`},
			{method: "POST", path: "/v1/key/keys/" + id + "/rotate"},
		} {
			status, answer := w.as(t, key, a.method, a.path, a.body)
			if status < 400 || status >= 500 || a.want != 0 && status != a.want || strings.Contains(answer, "canary-laptop") {
				t.Errorf("%s: %s %s with %s: %d %s", name, a.method, a.path, a.body, status, answer)
			}
		}
		if list := must(key, "GET", "/v1/key/keys", ""); strings.Contains(list.Raw, id) {
			t.Errorf("%s sees %s", name, list.Raw)
		}
	}
	for key, want := range map[string]int{neighbour: http.StatusForbidden, "victim-key": http.StatusForbidden, own.Get("secret").Str: http.StatusForbidden} {
		if status, answer := w.as(t, key, "POST", "/v1/key/keys", `{"name":"x","project":"search"}`); status != want {
			t.Errorf("a key in a project of others: %d %s", status, answer)
		}
	}
	if list := must(victim, "GET", "/v1/key/keys", "").Get("data.items"); list.Get("#").Int() != 1 || len(list.Get("0.secrets").Array()) != 1 {
		t.Errorf("the victim's keys are %s", list.Raw)
	}
}

// keptBy has the gateway keep a response, a conversation, a file and two batches, and make a
// compaction, and returns the requests that show or change them, or go on from them.
func (w *weir) keptBy(t *testing.T, key, text string) []attack {
	t.Helper()
	keep := func(path, body string, header ...string) string {
		status, answer := w.as(t, key, "POST", path, body, header...)
		if status != http.StatusOK {
			t.Fatalf("%s: %d %s", path, status, answer)
		}
		return gjson.Get(answer, "id").Str
	}
	conversation := "/v1/conversations/" + keep("/v1/conversations", `{"items":[{"role":"user","content":"`+text+`","id":"msg_victim"}]}`)
	var all []attack
	for name, fields := range map[string]string{"kept": "", "background": `,"background":true`} {
		response := "/v1/responses/" + keep("/v1/responses", `{"model":"echo/echo-1","user":"`+text+"-"+name+`","input":"`+text+`"`+fields+`}`)
		all = append(all,
			attack{method: "GET", path: response}, attack{method: "GET", path: response + "?stream=true"}, attack{method: "DELETE", path: response},
			attack{method: "GET", path: response + "/input_items"}, attack{method: "POST", path: response + "/cancel"})
		for _, path := range []string{"/v1/responses/compact", "/v1/responses/input_tokens"} {
			body := `{"model":"echo/echo-1","input":"x","previous_response_id":"` + strings.TrimPrefix(response, "/v1/responses/") + `"}`
			all = append(all, attack{method: "POST", path: path, body: body, want: http.StatusBadRequest})
		}
	}
	_, compaction := w.as(t, key, "POST", "/v1/responses/compact", `{"model":"echo/echo-1","input":"`+text+`"}`)
	sealed := gjson.Get(compaction, `output.#(type=="compaction")`).Raw
	if sealed == "" {
		t.Fatalf("the compaction is %s", compaction)
	}
	for _, path := range []string{"/v1/responses", "/v1/responses/compact", "/v1/responses/input_tokens"} {
		body := `{"model":"echo/echo-1","input":[` + sealed + `,{"role":"user","content":"x"}]}`
		all = append(all, attack{method: "POST", path: path, body: body, want: http.StatusBadRequest})
	}
	file := keep("/v1/files", "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n"+text+"\r\n--b--\r\n",
		"Service-User-Id", text+"-file", "Content-Type", "multipart/form-data; boundary=b")
	batch := "/v1/batches/" + keep("/v1/batches", `{"input_file_id":"`+file+`"}`, "Service-User-Id", text+"-batch")
	messages := "/v1/messages/batches/" + keep("/v1/messages/batches", `{"requests":[{"custom_id":"a","params":{"model":"anthropic/claude-haiku-4-5","max_tokens":1,"messages":[{"role":"user","content":"`+text+`"}]}}]}`,
		"Service-User-Id", text+"-messages")
	for _, path := range []string{messages, "/v1/messages/batches/msgbatch_victim"} {
		all = append(all, attack{method: "GET", path: path}, attack{method: "GET", path: path + "/results"},
			attack{method: "POST", path: path + "/cancel"}, attack{method: "DELETE", path: path})
	}
	for _, path := range []string{"/v1/files/" + file, "/v1/files/file-victim"} {
		all = append(all, attack{method: "GET", path: path}, attack{method: "GET", path: path + "/content"}, attack{method: "DELETE", path: path})
	}
	upgrade := []string{"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="}
	return append(all, attack{method: "GET", path: "/v1/realtime?model=lab/any&call_id=rtc_victim", want: http.StatusBadRequest, header: upgrade},
		attack{method: "GET", path: batch}, attack{method: "POST", path: batch + "/cancel"},
		attack{method: "GET", path: conversation}, attack{method: "POST", path: conversation, body: `{"metadata":{}}`}, attack{method: "DELETE", path: conversation},
		attack{method: "GET", path: conversation + "/items"}, attack{method: "POST", path: conversation + "/items", body: `{"items":[{"role":"user","content":"x"}]}`},
		attack{method: "GET", path: conversation + "/items/msg_victim"}, attack{method: "DELETE", path: conversation + "/items/msg_victim"},
		attack{method: "POST", path: "/v1/responses", body: `{"model":"echo/echo-1","input":"x","conversation":"` + strings.TrimPrefix(conversation, "/v1/conversations/") + `"}`})
}

// filesOf is a provider with a file or a batch, whose texts are canaries.
func filesOf(t *testing.T, canary string) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"file-victim","filename":"`+canary+`"}`)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// attack is a request that is meant to show or change what is another's.
type attack struct {
	path, body string
	want       int // status, 0 is any but a failure
	method     string
	header     []string
}

// as asks the API with a key.
func (w *weir) as(t *testing.T, key, method, path, body string, header ...string) (status int, answer string) {
	t.Helper()
	r, err := http.NewRequest(method, "http://"+w.site+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	for _, name := range []string{"Service-Org", "Service-Organization-Id", "Organization-Id", "X-Org"} {
		r.Header.Set(name, "victim")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := direct.Do(r)
	for range 2 {
		if method != http.MethodGet || !isDropped(err) {
			break
		}
		response, err = direct.Do(r)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.Header.Get("Content-Type") == "text/event-stream" { // goes on for ever
		time.AfterFunc(100*time.Millisecond, func() { response.Body.Close() })
		data, _ := io.ReadAll(response.Body)
		return response.StatusCode, string(data)
	}
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(data)
}
