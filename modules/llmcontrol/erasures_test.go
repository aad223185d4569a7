package llmcontrol_test

import (
	"bytes"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// raw reports whether a file in the site's folder has a text, other than Caddy's own log.
func (s *site) raw(text string) (files []string) {
	s.t.Helper()
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte(text)) {
			files = append(files, filepath.Base(path))
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return files
}

// erased waits until an erasure is in a state, and returns it.
func (s *site) erased(key, path, state string) (got gjson.Result) {
	s.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); got.Get("state").Str != state; got = s.must(key, "GET", path, "") {
		if time.Now().After(deadline) {
			s.t.Fatal(got.Raw)
		}
	}
	return got
}

// An erasure of identities keeps the numbers and names nobody; an erasure of records keeps nothing.
// Neither leaves the person in a file, nor touches the calls of others.
func TestErasuresOfPersons(t *testing.T) {
	s := newSite(t)
	const admin, anonymous, gone, other = "acme-admin", "an0nymous-0123456789abcdef", "g0ne-0123456789abcdef", "n3ighbour-0123456789abcdef"
	for _, user := range []string{anonymous, gone, other} {
		r, err := http.NewRequestWithContext(t.Context(), "POST", s.url+"/v1/responses", strings.NewReader(`{"model":"echo-1","input":"I am `+user+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Service-Auth": {"Bearer acme-all"}, "Content-Type": {"application/json"}, "Authorization": {"Bearer acme-all"}, "Service-User-Id": {user}, "Service-Session-Id": {user + "-session"}, "Service-Property-Name": {user}}
		answer, err := http.DefaultClient.Do(r)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatal(answer, err)
		}
		answer.Body.Close()
	}
	of := func(user string) string { return `{"request_response_rmt":{"user_id":{"equals":"` + user + `"}}}` }
	count := func(filter string) int {
		return len(s.must(admin, "POST", "/v1/request/query", `{"filter":`+filter+`}`).Array())
	}
	for deadline := time.Now().Add(10 * time.Second); count(`"all"`) != 3; {
		if time.Now().After(deadline) {
			t.Fatal("the calls are not recorded")
		}
	}
	id := s.must(admin, "POST", "/v1/request/query", `{"filter":`+of(anonymous)+`}`).Get("0.request_id").Str
	before := s.must(admin, "GET", "/v1/request/"+id, "")
	for what, user := range map[string]string{"identity": anonymous, "record": gone} {
		made := s.must(admin, "POST", "/v1/erasures", `{"filter":`+of(user)+`,"what":"`+what+`"}`)
		got := s.erased(admin, "/v1/erasures/"+made.Get("id").Str, "done")
		if got.Get("what").Str != what || got.Get("records").Int() != 1 || got.Get("erased").Int() != 1 {
			t.Error(got.Raw)
		}
		if files := s.raw(user); files != nil {
			t.Errorf("%s: the person is in %v", what, files)
		}
	}
	if all, others := count(`"all"`), count(of(other)); all != 2 || others != 1 || len(s.raw(other)) == 0 {
		t.Errorf("%d records are left, %d of them another person's", all, others)
	}
	after := s.must(admin, "GET", "/v1/request/"+id, "")
	for _, name := range []string{"request_created_at", "model", "prompt_tokens", "completion_tokens", "cost", "delay_ms", "response_status", "provider"} {
		if after.Get(name).Raw != before.Get(name).Raw {
			t.Errorf("%s is %s, and was %s", name, after.Get(name).Raw, before.Get(name).Raw)
		}
	}
	if strings.Contains(after.Raw, anonymous) || !strings.Contains(before.Raw, anonymous) {
		t.Error(after.Raw)
	}
}

// An erasure of content takes what its calls have added to a conversation, and leaves what others have.
// A conversation that no other call has extended goes with what its client added.
func TestErasuresOfConversations(t *testing.T) {
	s := newSite(t)
	const admin, canary, other = "acme-admin", "c4nary0123456789abcdef", "n3ighbour0123456789abcdef"
	must := func(method, path, body string) gjson.Result {
		t.Helper()
		status, got := s.as("acme-all", method, path, body)
		if status != http.StatusOK {
			t.Fatal(path, status, got.Raw)
		}
		return got
	}
	begin := func(text string) string {
		return must("POST", "/v1/conversations", `{"items":[{"role":"user","content":"`+text+`"}]}`).Get("id").Str
	}
	shared, hers := begin("about "+other), begin("about "+canary)
	for text, conversations := range map[string][]string{canary: {shared, hers}, other: {shared}} {
		for _, id := range conversations {
			must("POST", "/v1/responses", `{"model":"echo-1","input":"`+text+`","conversation":"`+id+`"}`)
		}
	}
	filter := `{"request_response_rmt":{"request_body":{"contains":"` + canary + `"}}}`
	body := `{"filter":` + filter + `,"what":"content","dry_run":false}`
	for deadline := time.Now().Add(10 * time.Second); ; {
		got := s.must(admin, "POST", "/v1/erasures", strings.Replace(body, "false", "true", 1))
		if got.Get("records").Int() == 2 && got.Get("conversation_items").Int() == 4 { // each an input and an output
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(got.Raw)
		}
	}
	got := s.erased(admin, "/v1/erasures/"+s.must(admin, "POST", "/v1/erasures", body).Get("id").Str, "done")
	if got.Get("records").Int() != 2 || got.Get("erased").Int() != 2 || got.Get("conversation_items").Int() != 4 {
		t.Error(got.Raw)
	}
	if files := s.raw(canary); files != nil {
		t.Errorf("the text is in %v", files)
	}
	if left := must("GET", "/v1/conversations/"+shared+"/items", ""); len(left.Get("data").Array()) != 3 || strings.Contains(left.Raw, canary) {
		t.Error(left.Raw)
	}
	if status, got := s.as("acme-all", "GET", "/v1/conversations/"+hers, ""); status != http.StatusNotFound {
		t.Error(status, got.Raw)
	}
}

// A person whose name is masked is erased by the name, which is all that they know. So are their
// records priced again.
func TestErasuresOfMaskedNames(t *testing.T) {
	s := newSite(t, "mask email")
	const admin = "acme-admin"
	for _, user := range []string{"ada@example.com", "bo@example.com"} {
		secret := s.must(admin, "POST", "/v1/keys", `{"name":"x","scopes":["gateway"],"user":"`+user+`"}`).Get("secret").Str
		if status, got := s.call(secret, "echo-1"); status != http.StatusOK {
			t.Fatal(status, got.Raw)
		}
	}
	preview := func(filter string) int64 {
		t.Helper()
		return s.must(admin, "POST", "/v1/erasures", `{"filter":`+filter+`,"what":"record","dry_run":true}`).Get("records").Int()
	}
	of := func(operation string) string { return `{"request_response_rmt":{"user_id":` + operation + `}}` }
	for operation, want := range map[string]int64{
		`{"equals":"ada@example.com"}`: 1, `{"contains":"ada@example.com"}`: 1, `{"not-equals":"ada@example.com"}`: 1, `{"equals":"eve@example.com"}`: 0,
	} {
		if got := preview(of(operation)); got != want {
			t.Errorf("%s: %d records, not %d", operation, got, want)
		}
		if got := s.must(admin, "POST", "/v1/repricings", `{"filter":`+of(operation)+`,"dry_run":true}`).Get("records").Int(); got != want {
			t.Errorf("%s: the prices of %d records, not of %d", operation, got, want)
		}
	}
}

// An erasure removes the bodies of what its filter chooses from every file, and of nothing else.
// Its certificate and the audit log do not have the value of the filter.
func TestErasures(t *testing.T) {
	s := newSite(t)
	const admin, canary, other = "acme-admin", "c4nary0123456789abcdef", "n3ighbour0123456789abcdef"
	for _, text := range []string{canary, other} {
		if status, got := s.as("acme-all", "POST", "/v1/responses", `{"model":"echo-1","input":"`+text+`","user":"`+text[:4]+`"}`); status != http.StatusOK {
			t.Fatal(status, got.Raw)
		}
	}
	found := func(text string) gjson.Result {
		return s.must(admin, "POST", "/v1/request/query", `{"filter":{"request_response_rmt":{"request_body":{"contains":"`+text+`"}}}}`)
	}
	for deadline := time.Now().Add(10 * time.Second); len(found(canary).Array()) != 1 || len(found(other).Array()) != 1; {
		if time.Now().After(deadline) {
			t.Fatal("the calls are not recorded")
		}
	}
	id := found(canary).Get("0.request_id").Str
	filter := `{"request_response_rmt":{"request_body":{"contains":"` + canary + `"}}}`

	for body, want := range map[string]int{
		``: 400, `{"what":"content"}`: 400, `{"filter":"all"}`: 400, `{"filter":"all","what":"everything"}`: 400, `{"filter":"all","what":["record"]}`: 400,
		`{"filter":{},"what":"record"}`: 400, `{"filter":null,"what":"record"}`: 400, `{"filter":{"left":{},"operator":"or","right":{"request_response_rmt":{"user_id":{"equals":"a"}}}},"what":"record"}`: 400,
		`{"filter":{"left":{},"operator":"or","right":{"request_response_rmt":{"user_id":{"equals":"all"}}}},"what":"record"}`: 400,
		`{"filter":"all","what":"content","more":1}`: 400, `{"filter":{"users_view":{"cost":{"gt":1}}},"what":"content"}`: 400,
		`{"filter":{"request_response_rmt":{"user":{"equals":1}}},"what":"content"}`: 400,
	} {
		if status, got := s.as(admin, "POST", "/v1/erasures", body); status != want {
			t.Errorf("%s: %d %s, want %d", body, status, got.Raw, want)
		}
	}
	content := `{"filter":` + filter + `,"what":"content"}`
	for key, want := range map[string]int{"globex-agent": http.StatusForbidden, "globex-admin": http.StatusForbidden, "": http.StatusUnauthorized} {
		if status, got := s.as(key, "POST", "/v1/erasures", content); status != want {
			t.Errorf("%s: %d %s, want %d", key, status, got.Raw, want)
		}
	}

	preview := s.must(admin, "POST", "/v1/erasures", `{"filter":`+filter+`,"what":"content","dry_run":true}`)
	if preview.Get("records").Int() != 1 || preview.Get("bytes").Int() < int64(len(canary)) || preview.Get("id").Type != gjson.Null {
		t.Error(preview.Raw)
	}
	if list := s.must(admin, "GET", "/v1/erasures", ""); list.Get("items").Raw != "[]" {
		t.Error(list.Raw)
	}
	made := s.must(admin, "POST", "/v1/erasures", content)
	path := "/v1/erasures/" + made.Get("id").Str
	got := s.erased(admin, path, "done")
	if got.Get("erased").Int() != 1 || got.Get("searched").Raw != `["request_body contains"]` || got.Get("done_at").Str == "" || len(got.Get("remains").Array()) == 0 {
		t.Error(got.Raw)
	}
	if len(found(canary).Array()) != 0 || len(found(other).Array()) != 1 {
		t.Error("the wrong bodies are erased")
	}
	if r := s.must(admin, "GET", "/v1/request/"+id, ""); r.Get("request_user_id").Str == "" && r.Get("request_id").Str != id {
		t.Errorf("the record is gone: %s", r.Raw)
	}
	if files := s.raw(canary); files != nil {
		t.Errorf("the text is in %v", files)
	}
	if events := s.must(admin, "GET", "/v1/audit?reads=false", ""); events.Get("items.0.action").Str != "erasure.created" || strings.Contains(events.Raw, canary) {
		t.Error(events.Raw)
	}
	if status, _ := s.as("globex-admin", "GET", path, ""); status != http.StatusNotFound {
		t.Error("another organisation sees the erasure:", status)
	}
	s.must(admin, "POST", "/v1/erasures", `{"filter":{"request_response_rmt":{"status":{"equals":1}}},"what":"content"}`)
	first := s.must(admin, "GET", "/v1/erasures?limit=1", "")
	rest := s.must(admin, "GET", "/v1/erasures?after="+first.Get("next").Str, "")
	if first.Get("items.0.state").Str != "done" || rest.Get("items.0.id").Str != made.Get("id").Str || rest.Get("next").Type != gjson.Null {
		t.Error(first.Raw, rest.Raw)
	}
}
