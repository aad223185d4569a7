//go:build !race

package standard

import (
	"bytes"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/testkit/masktest"
	"github.com/weirhq/weir/modules/llmadmin"
)

// maskedConfig masks what is planted, and logs all there is.
var maskedConfig = strings.NewReplacer(
	"\tadmin off\n", "\tadmin off\n\tdebug\n",
	"\tllm {\n", "\tllm {\n\t\tmask email key card iban phone national_id\n\t\tmask own {\n\t\t\tpattern planted_id_\\d+\n\t\t}\n\t\tbudget each 1000 {\n\t\t\tper user\n\t\t\ttrust\n\t\t}\n\t\tbudget property 1000 {\n\t\t\tper property.Team\n\t\t\ttrust\n\t\t}\n",
	"\tstore sqlite %[1]s/weir.db\n", `store sqlite %[1]s/weir.db {
			otlp %[2]s/told/spans {
				content
			}
		}
		channel boss webhook %[2]s/told/alerts {
			secret whsec_d2Fsa2VyLXdhbGtlci13YWxrZXItd2Fsa2VyLXdhbGs=
		}
		alert calls {
			when requests > 0 over 1m
			per user
			to boss
		}
		alert budgets {
			when budget_percent >= 0
			to boss
		}
`,
	"\tbind 127.0.0.1\n", "\tbind 127.0.0.1\n\tlog\n",
).Replace(siteConfig)

// Whatever a client or a provider sends through any route, what is masked is in no file, neither
// of the store nor of the log, in no answer of any other route, in no metric, no span and no alert.
func TestMaskedValuesAreOnNoDisk(t *testing.T) {
	s := plantEverywhere(t, maskedConfig, 300, func(walked) bool { return true }, func(value string) string { return value })
	s.tellAll()
	// Spans leave in the order of their calls, in batches, so that the last one comes after all others.
	const last = "the last call of all"
	if a := s.send("POST", "/v1/responses", "walker-root", jsonType, []byte(`{"model":"echo/echo-1","input":"`+last+`"}`)); a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	for deadline := time.Now().Add(time.Minute); !bytes.Contains(s.toldOf("/told/spans"), []byte(last)); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the collector lacks the last span")
		}
	}
	spans := s.toldOf("/told/spans")
	metrics := s.send("GET", "/metrics", "walker-root", "", nil).body
	if lost := regexp.MustCompile(`weir_export_spans_total\{[^}]*result="(dropped|failed)"[^}]*\} [1-9]`).FindString(metrics); lost != "" || !strings.Contains(metrics, "weir_export_spans_total") {
		t.Errorf("spans are missing: %q", lost)
	}
	if !bytes.Contains(spans, []byte("[EMAIL")) {
		t.Errorf("the collector has %d bytes of spans, without a label", len(spans))
	}
	s.leaks("a span", spans)
	if !*full {
		return
	}
	for deadline := time.Now().Add(2 * time.Minute); !bytes.Contains(s.toldOf("/told/alerts"), []byte("[EMAIL")); time.Sleep(100 * time.Millisecond) { // a rule is looked at once a minute
		if time.Now().After(deadline) {
			t.Fatalf("no alert of a user has come: %s", s.toldOf("/told/alerts"))
		}
	}
	s.leaks("an alert", s.toldOf("/told/alerts"))
	s.tellAll() // the alerts that were sent
}

func (s *site) toldOf(path string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Clone(s.told[path])
}

// tellAll looks for what is planted in the answers of all routes that read, in metrics, and in
// what the admin API tells.
func (s *site) tellAll() {
	s.t.Helper()
	s.says.Store("hi") // what a provider keeps is its own
	browser := s.logIn("walker-root")
	answered := 0
	ask := func(method, path string, body []byte) {
		a := s.send(method, path, "walker-root", jsonType, body, browser...)
		s.leaks(method+" "+path, []byte(a.body))
		if a.status == http.StatusOK {
			answered++
		}
	}
	questions := []string{
		`{"filter":"all"}`, `{"filter":"all","includeContent":true}`, `{"filter":"all","format":"csv"}`, `{"userFilter":"all"}`,
		`{"filter":"all","fields":["user_id","session_id","property:Team","model","error_message"]}`, `{"filter":"all","groupBy":"user_id"}`, `{"filter":"all","groupBy":"property:Team"}`,
		`{"filter":"all","what":"record","dry_run":true}`, `{"sessionId":"kept"}`,
	}
	for _, r := range routes(s.t) {
		switch {
		case r.Socket || strings.HasSuffix(r.Path, "/tail") || r.handler == "llm_log" || r.handler == paid:
		case r.Method == http.MethodGet:
			ask(r.Method, s.path(r), nil)
		case strings.HasSuffix(r.Path, "/query") || strings.HasSuffix(r.Path, "/search") || strings.HasSuffix(r.Path, "/query-clickhouse") ||
			strings.HasSuffix(r.Path, "/export") || strings.HasSuffix(r.Path, "/whatif") || strings.HasSuffix(r.Path, "/v1/erasures"):
			for _, question := range questions {
				ask(r.Method, s.path(r), []byte(question))
			}
		}
	}
	ask("GET", "/metrics", nil)
	if answered < 100 {
		s.t.Errorf("%d questions were answered: the walk proves nothing", answered)
	}
	for _, r := range new(llmadmin.API).Routes() {
		w := httptest.NewRecorder()
		err := r.Handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, r.Pattern, nil))
		s.leaks(r.Pattern, fmt.Append(w.Body.Bytes(), w.Header(), err))
	}
}

// contentMaskedConfig masks the content of what comes with a key, and of what comes through sites.
var contentMaskedConfig = func() string {
	site := " {\n\t\tmask own {\n\t\t\tpattern planted_id_\\d+\n\t\t}\n\t}\n"
	return strings.NewReplacer(
		"\tkey walker-root query write gateway log admin\n", "\tkey walker-root query write gateway log admin {\n\t\t\tmask email key card iban phone national_id\n\t\t}\n",
		"\tllm_gateway\n", "\tllm_gateway"+site, "\tllm_otlp\n", "\tllm_otlp"+site, "\tllm_log\n", "\tllm_log"+site,
		"\t\t\tcredentials platform\n", "\t\t\tcredentials platform\n\t\t\tmask own {\n\t\t\t\tpattern planted_id_\\d+\n\t\t\t}\n",
	).Replace(siteConfig)
}()

// Nor is the content that a key or a site has masked.
func TestContentMaskedByKeysAndSitesIsOnNoDisk(t *testing.T) {
	bodies := 200
	if *full {
		bodies = 10_000
	}
	plantEverywhere(t, contentMaskedConfig, bodies, walked.isLane, func(string) string { return "someone" })
}

// plantEverywhere sends planted values through routes, other ones in each body, at least so many bodies, and
// looks for them in all files and in all answers of queries. name is what calls name in place of a
// value.
func plantEverywhere(t *testing.T, config string, least int, takes func(walked) bool, name func(string) string) *site {
	t.Helper()
	s := serveConfig(t, config)
	s.socket = s.converse
	n, sent, heard := 0, 0, 0
	next := func() (text, user string) {
		n++
		values := masktest.Numbered(n)
		text = strings.Join(values, " and ")
		s.says.Store(text)
		return text, name(values[0])
	}
	sockets := []string{mounts["llm_log"] + "/v1/responses", mounts["llm_log"] + "/v1/realtime"}
	for _, r := range routes(t) {
		if r.Socket {
			sockets = append(sockets, s.path(r))
		}
	}
	walk := func() {
		for _, path := range sockets {
			heard += s.plantInSocket(path, next)
		}
		for _, r := range routes(t) {
			// Keys, projects and members have the names that administrators give them.
			if !r.takesBody() || strings.HasPrefix(r.Path, dashboard) || r.handler == "llm_echo" || r.handler == "llm_control" || strings.Contains(r.Path, "/control/") || !takes(r) {
				continue
			}
			sent += s.plantInRoute(r, func(string) string { return s.path(r) }, next)
			if r.handler == "llm_query" && strings.Contains(r.Path, "{") {
				sent += s.plantInRoute(r, func(user string) string {
					return strings.NewReplacer("{id}", url.PathEscape(user), "{name}", url.PathEscape(user)).Replace(r.Path)
				}, next)
			}
		}
	}
	for walk(); *full && sent < least && !t.Failed(); walk() {
	}
	if sent < least || heard == 0 {
		t.Errorf("%d bodies and %d messages of WebSockets were taken: the walk proves nothing", sent, heard)
	}
	s.flush()
	labels := 0
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := s.read(path)
		labels += bytes.Count(content, []byte("[EMAIL"))
		s.leaks(filepath.Base(path), content)
		return err
	})
	if err != nil || labels == 0 {
		t.Errorf("%v; the files have %d labels", err, labels)
	}
	for after, all := 0, 0; ; after += 100 {
		a := s.send("POST", "/v1/request/query", "walker-root", jsonType, fmt.Appendf(nil, `{"filter":"all","limit":100,"offset":%d}`, after))
		s.leaks("a query", []byte(a.body))
		n := len(gjson.Get(a.body, "data").Array())
		if all += n; n < 100 {
			if all < least || a.status != http.StatusOK {
				t.Errorf("%d records, %d %.200s", all, a.status, a.body)
			}
			return s
		}
	}
}

// plantInRoute sends each body in each version, with the next values in it, until one is not taken. It
// returns how many were. path is the path for a user.
func (s *site) plantInRoute(r walked, path func(user string) string, next func() (text, user string)) (sent int) {
	s.t.Helper()
	for what := range s.plantedBodies("", "") {
		if (r.handler == "llm_log" || r.handler == paid) && what != "a call" && what != "a form" && what != "a batch of calls" { // which take any body
			continue
		}
		for i, version := range plantedVersions {
			text, user := next()
			body := version(s.plantedBodies(text, user)[what], user)
			if body == nil {
				continue
			}
			send := func() int {
				return s.send(r.Method, path(user), "walker-root", typeOf(body), body,
					"Service-User-Id", user, "Service-Session-Id", user, "Service-Session-Name", user, "Service-Session-Path", "/"+user,
					"Service-Property-Team", user, "Service-Prompt-Id", user, "Service-Job-Id", user, "Referer", "https://a.example/?q="+user,
					"Service-Prompt-Input-Question", text, "Service-Auth", "Bearer walker-root").status
			}
			if send() != http.StatusOK {
				break
			}
			sent++
			if i == 0 {
				s.fails.Store(true)
				send()
				s.fails.Store(false)
			}
		}
	}
	return sent
}

// plantInSocket sends the next values in messages of a WebSocket, of which each has a frame for each
// half, and returns how many messages with such values came back.
func (s *site) plantInSocket(path string, next func() (text, user string)) (heard int) {
	for _, model := range []string{"echo/echo-1", "openai/gpt-realtime", "openai/gpt-4o-mini"} {
		text, user := next()
		dialer := ws.Dialer{Header: ws.HandshakeHeaderHTTP{
			"Authorization": {"Bearer walker-root"}, "Service-Auth": {"Bearer walker-root"},
			"Service-User-Id": {user}, "Service-Session-Id": {user}, "Service-Property-Team": {user},
		}}
		conn, _, _, err := dialer.Dial(s.t.Context(), "ws"+strings.TrimPrefix(s.url, "http")+path+"?model="+model)
		if err != nil {
			continue // this route has no such model, or none of which a budget knows the cost
		}
		_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
		for _, message := range []string{
			`{"type":"response.create","model":"` + model + `","input":"` + text + `"}`,
			`{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_text","text":"` + text + `"}]}}`,
		} {
			half := len(message) / 2
			for _, frame := range []ws.Frame{ws.NewFrame(ws.OpText, false, []byte(message[:half])), ws.NewFrame(ws.OpContinuation, true, []byte(message[half:]))} {
				if _, err := conn.Write(ws.MustCompileFrame(ws.MaskFrameInPlace(frame))); err != nil {
					break
				}
			}
			for ended := false; !ended; {
				got, err := wsutil.ReadServerText(conn)
				kind := gjson.GetBytes(got, "type").Str
				ended = err != nil || kind == "error" || kind == "response.completed" || kind == "response.failed"
				if len(masktest.Find(got)) > 0 {
					heard++
				}
			}
		}
		conn.Close()
	}
	return heard
}

// converse answers each message of a WebSocket as a model that says what the provider says.
func (s *site) converse(conn net.Conn) {
	defer conn.Close()
	for {
		if _, err := wsutil.ReadClientText(conn); err != nil {
			return
		}
		text, _ := s.says.Load().(string)
		half := len(text) / 2
		for _, event := range []string{
			`{"type":"response.created","response":{"id":"resp_1","object":"response","status":"in_progress","model":"gpt-4o-mini","output":[]}}`,
			fmt.Sprintf(`{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":%q}`, text[:half]),
			fmt.Sprintf(`{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":%q}`, text[half:]),
			fmt.Sprintf(`{"type":"response.completed","response":{"id":"resp_1","object":"response","status":"completed","model":"gpt-4o-mini","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":%q}]}],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}}`, text),
		} {
			if wsutil.WriteServerText(conn, []byte(event)) != nil {
				return
			}
		}
	}
}

// plantedBodies are what some route takes, with a text and a user in it.
func (s *site) plantedBodies(text, user string) map[string][]byte {
	bodies := s.bodies(text)
	bodies["a view"] = fmt.Appendf(nil, `{"screen":"requests","state":%q}`, text)
	bodies["a tag"] = fmt.Appendf(nil, `{"tag":%q}`, text)
	bodies["a property"] = fmt.Appendf(nil, `{"key":"Note","value":%q}`, text)
	bodies["a score"] = fmt.Appendf(nil, `{"scores":{%q:1}}`, user)
	return bodies
}

// plantedVersions are the ways in which a body is sent, nil for a body that cannot be sent so.
var plantedVersions = []func(body []byte, user string) []byte{
	func(body []byte, _ string) []byte { return body },
	func(body []byte, _ string) []byte { return replaceAt(body, `\u0040`) },
	func(body []byte, _ string) []byte { return replaceAt(body, "%2540") },
	func(body []byte, user string) []byte { // a stream
		if !bytes.HasPrefix(body, []byte(`{"model"`)) {
			return nil
		}
		return append([]byte(`{"stream":true,"user":"`+user+`",`), body[1:]...)
	},
	func(body []byte, _ string) []byte { // cut
		if !bytes.HasPrefix(body, []byte(`{"model"`)) {
			return nil
		}
		return body[:len(body)-1]
	},
}

// replaceAt writes the @ of a body in JSON in another way.
func replaceAt(body []byte, at string) []byte {
	if typeOf(body) != jsonType {
		return nil
	}
	return bytes.ReplaceAll(body, []byte("@"), []byte(at))
}

// Users whose names are masked remain users of their own: one does not read what another has
// stored, and a limit counts for each.
func TestMaskedUsersStayApart(t *testing.T) {
	s := serveConfig(t, strings.Replace(siteConfig, "\t\torg other {\n", `
		mask email
		org people {
			key walker-people
			limit each 1 requests 1h {
				per user
				trust
			}
		}
		org other {
`, 1))
	call := []byte(`{"model":"echo/echo-1","input":"hi"}`)
	var ids []string
	for _, user := range []string{"alice@leak.example", "bob@leak.example"} {
		a := s.send("POST", "/v1/responses", "walker-people", jsonType, call, "Service-User-Id", user)
		ids = append(ids, gjson.Get(a.body, "id").Str)
		if again := s.send("POST", "/v1/responses", "walker-people", jsonType, call, "Service-User-Id", user); a.status != http.StatusOK || again.status != http.StatusTooManyRequests {
			t.Errorf("%s: %d %s, then %d %s", user, a.status, a.body, again.status, again.body)
		}
	}
	s.flush()
	for user, want := range map[string]int{"alice@leak.example": http.StatusOK, "bob@leak.example": http.StatusNotFound} {
		if a := s.send("GET", "/v1/responses/"+ids[0], "walker-people", jsonType, nil, "Service-User-Id", user); a.status != want {
			t.Errorf("%s asks for the response of alice: %d %s", user, a.status, a.body)
		}
	}
}

// No route brings to a provider what is refused.
func TestRefusedValuesReachNoProvider(t *testing.T) {
	const refusing = "walker-refusing"
	s := serveConfig(t, strings.Replace(siteConfig, "\tllm {\n", "\tllm {\n\t\tkey "+refusing+" query write gateway log admin {\n\t\t\tmask email {\n\t\t\t\ton_match refuse\n\t\t\t}\n\t\t}\n", 1))
	refused := 0
	for _, r := range routes(t) {
		if !r.isLane() || strings.HasSuffix(r.Path, "/cancel") { // which sends no body on
			continue
		}
		for name, body := range s.bodies("refused@leak.example") {
			if !bytes.Contains(body, []byte("refused@")) {
				continue
			}
			asked := s.asked.Load()
			a := s.send(r.Method, s.path(r), refusing, typeOf(body), body)
			if a.status == http.StatusBadRequest && strings.Contains(a.body, "masked_data") {
				refused++
			}
			if s.asked.Load() > asked || strings.Contains(a.body, "refused@") && a.status >= 400 {
				t.Errorf("%s with %s: %d %.200s", r, name, a.status, a.body)
			}
		}
	}
	if refused < 100 {
		t.Errorf("%d bodies were refused: the walk proves nothing", refused)
	}
	for _, path := range []string{"/v1/realtime", mounts["llm_log"] + "/v1/realtime"} {
		asked := s.asked.Load()
		a := s.send("GET", path+"?model=openai/gpt-realtime", refusing, "", nil,
			"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
		if a.status != http.StatusBadRequest || !strings.Contains(a.body, "masked_data") || s.asked.Load() > asked {
			t.Errorf("a WebSocket at %s: %d %.200s", path, a.status, a.body)
		}
	}
}

// leaks fails for what is planted in a content, once for each text around it.
func (s *site) leaks(name string, content []byte) {
	s.t.Helper()
	seen := make(map[string]bool)
	for _, at := range masktest.Find(content) {
		around := content[max(0, at[0]-120):min(len(content), at[1]+20)]
		kind := regexp.MustCompile(`[0-9]+`).ReplaceAllString(string(content[max(0, at[0]-20):at[0]]), "0")
		if !seen[kind] && len(seen) < 15 {
			seen[kind] = true
			s.t.Errorf("%s has %q", name, around)
		}
	}
}

// A key that is made at run time masks the content of its calls from its first call on, and no
// more once an administrator has taken the rule away. A rule that cannot be read makes no key.
func TestCreatedKeysMaskTheirCalls(t *testing.T) {
	s := serveConfig(t, siteConfig)
	if a := s.send("POST", "/v1/keys", "walker-root", jsonType, []byte(`{"name":"k","scopes":["gateway"],"mask":[{"kinds":["emial"]}]}`)); a.status != http.StatusBadRequest || !strings.Contains(a.body, "the kinds are") {
		t.Errorf("a rule that there is not: %d %s", a.status, a.body)
	}
	made := s.send("POST", "/v1/keys", "walker-root", jsonType, []byte(`{"name":"k","scopes":["gateway"],"mask":[{"kinds":["email"]}]}`))
	id, secret := gjson.Get(made.body, "data.id").Str, gjson.Get(made.body, "data.secret").Str
	stored := func() string {
		t.Helper()
		call := s.send("POST", "/v1/responses", secret, jsonType, []byte(`{"model":"echo/echo-1","input":"I am made@leak.example"}`))
		if call.status != http.StatusOK || !strings.Contains(call.body, "made@leak.example") {
			t.Fatalf("%d %s", call.status, call.body)
		}
		s.flush()
		return s.send("POST", "/v1/request/query", "walker-root", jsonType, []byte(`{"filter":"all","limit":1,"sort":{"created_at":"desc"}}`)).body
	}
	if got := stored(); strings.Contains(got, "made@") || !strings.Contains(got, "I am [EMAIL]") {
		t.Errorf("stored: %s", got)
	}
	if a := s.send("PATCH", "/v1/keys/"+id, "walker-root", jsonType, []byte(`{"owner":"ada"}`)); a.status != http.StatusOK || !strings.Contains(a.body, `"email"`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	if got := stored(); strings.Contains(got, "made@") {
		t.Errorf("after another change: %s", got)
	}
	if a := s.send("PATCH", "/v1/keys/"+id, "walker-root", jsonType, []byte(`{"mask":[]}`)); a.status != http.StatusOK {
		t.Errorf("%d %s", a.status, a.body)
	}
	if got := stored(); !strings.Contains(got, "I am made@leak.example") {
		t.Errorf("without the rule: %s", got)
	}
}
