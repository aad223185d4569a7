package standard

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"
	"github.com/gobwas/ws"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/testkit/freeport"
	"github.com/weirhq/weir/modules/internal/paths"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/modules/internal/stores/storestest"
	"github.com/weirhq/weir/modules/llmadmin"
	"github.com/weirhq/weir/modules/llmlog"

	_ "github.com/caddyserver/caddy/v2/modules/standard"
)

// full sends each bomb from many clients at once, to every route, and waits for an alert about a
// masked user. It takes minutes:
//
//	go test -run 'TestBombs|TestMasked' ./modules/standard -full
var full = flag.Bool("full", false, "send each bomb from many clients at once, and wait for an alert")

// mounts are where the site of the walker has the handlers that do not stand at its root.
// silent are those through which no content comes that a client may forbid to keep. A
// handler that is new is a lane of content, unless it is added here. Imports come through
// llm_otlp, and copies of stores through storage.Kept.
var (
	mounts = map[string]string{"llm_echo": "/echo", "llm_log": "/logged", "llm_ui": "/ui", paid: "/paid"}
	silent = []string{"llm_control", "llm_echo", "llm_health", "llm_mcp_server", "llm_query", "llm_ui"}
)

// paid is llm_log with the platform's credentials.
const paid = "llm_log, paid"

// walked is a route of the site, as its handler tells it.
type walked struct {
	paths.Route
	handler string
}

func (r walked) String() string { return r.handler + ": " + r.Method + " " + r.Path }

// dashboard is where the dashboard has the query API.
const dashboard = "/ui/api"

// isLane reports whether content comes through the route.
func (r walked) isLane() bool { return r.takesBody() && !slices.Contains(silent, r.handler) }

func (r walked) takesBody() bool {
	return !r.Socket && r.Method != http.MethodGet && r.Method != http.MethodDelete
}

// routes returns the routes of all handlers that are linked. A handler that tells none, or
// that the site of the walker does not have, fails the test.
func routes(t *testing.T) (all []walked) {
	t.Helper()
	for _, m := range caddy.GetModules("http.handlers") {
		name := m.ID.Name()
		if !strings.HasPrefix(name, "llm_") || name == "llm_not_found" || name == "llm_forward" { // llm_forward serves the routes of llm_log
			continue
		}
		router, ok := m.New().(paths.Router)
		if !ok {
			t.Errorf("the handler %s has no table of routes: nobody can walk it", name)
			continue
		}
		if !regexp.MustCompile(`(?m)^\s*` + name + `$`).MatchString(siteConfig) {
			t.Errorf("the site of the walker has no %s: add it to siteConfig", name)
		}
		for _, route := range router.Routes() {
			route.Path = mounts[name] + route.Path
			all = append(all, walked{route, name})
		}
	}
	for _, route := range (&llmlog.Handler{Credentials: "platform"}).Routes() {
		route.Path = mounts[paid] + route.Path
		all = append(all, walked{route, paid})
	}
	if len(all) < 60 {
		t.Errorf("only %d routes", len(all))
	}
	return all
}

// siteConfig is a site with every handler: its folder, its provider, and its port.
const siteConfig = `{
	admin off
	persist_config off
	auto_https off
	log {
		output file %[1]s/log
		format llm
	}
	llm {
		store sqlite %[1]s/weir.db
		request_memory 32MiB
		key walker-root query write gateway log admin
		key walker-viewer metrics
		provider echo
		provider openai {
			base_url %[2]s/v1
			api_key walker-platform
		}
		provider anthropic {
			base_url %[2]s
			api_key walker-platform
		}
		provider cohere {
			base_url %[2]s
			api_key walker-platform
		}
		org other {
			key walker-other
		}
		org poor {
			key walker-poor
			credits 0.000000001
		}
		org capped {
			key walker-capped
			budget nothing 0.000000001 total
		}
		org acme {
			identity jwt %[2]s {
				audience walker
				role role member query write gateway log
				role role admin query write gateway log admin
			}
		}
	}
}
http://127.0.0.1:%[3]s {
	bind 127.0.0.1
	metrics /metrics
	handle_path /echo/* {
		llm_echo
	}
	handle_path /logged/* {
		llm_log
		reverse_proxy %[2]s
	}
	handle_path /paid/* {
		llm_proxy openai {
			credentials platform
		}
	}
	handle_path /ui/* {
		llm_ui
	}
	llm_control
	llm_gateway
	llm_otlp
	llm_query
	llm_mcp_server
	llm_health
	llm_not_found
}`

// site is a Weir with every handler, in front of a provider that answers anything, and whose
// address is that of an issuer, too.
type site struct {
	t       *testing.T
	url     string
	dir     string
	signs   *ecdsa.PrivateKey // the tokens of the issuer
	from    string            // the URL of the issuer
	asked   atomic.Int64      // calls that have come to the provider
	content bytes.Buffer      // of the file that was read last
	says    atomic.Value      // the string that the provider answers, in place of "hi"
	fails   atomic.Bool       // whether the provider answers an error that says it
	socket  func(net.Conn)    // what the provider does with a WebSocket, nil if it has none
	mu      sync.Mutex        // guards told
	told    map[string][]byte // by path, what came to a collector and to channels of alerts
	kept    map[string]string // what stands for {id}, {item} and {name}, by the first segments of a path
}

func serve(t *testing.T) *site {
	t.Helper()
	return serveConfig(t, siteConfig)
}

// serveConfig serves a variant of siteConfig.
func serveConfig(t *testing.T, config string) *site {
	t.Helper()
	signs, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, dir: t.TempDir(), signs: signs, told: make(map[string][]byte)}
	issuer := &oidctest.Server{PublicKeys: []oidctest.PublicKey{{PublicKey: signs.Public(), KeyID: "one", Algorithm: oidc.ES256}}}
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/.well-known/") || r.URL.Path == "/keys" {
			issuer.ServeHTTP(w, r)
			return
		}
		if strings.HasPrefix(r.URL.Path, "/told") {
			s.tell(r)
			return
		}
		if s.socket != nil && r.Header.Get("Upgrade") != "" {
			if conn, _, _, err := ws.UpgradeHTTP(r, w); err == nil {
				s.socket(conn)
			}
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		s.asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/speech") {
			w.Header().Set("Content-Type", "audio/mpeg")
		}
		says, _ := s.says.Load().(string)
		if s.fails.Load() {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error":{"type":"invalid_request_error","code":"invalid_value","message":%q}}`, says)
			return
		}
		_, _ = io.WriteString(w, strings.ReplaceAll(`{"id":"file-1","object":"response","model":"gpt-4o-mini","status":"completed","text":"hi","data":[],"results":[],
			"output":[{"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"output_text","text":"hi","annotations":[]}]}],
			"choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"text":"hi","finish_reason":"stop"}],
			"usage":{"prompt_tokens":1,"completion_tokens":1,"input_tokens":1,"output_tokens":1,"total_tokens":2}}`, `"hi"`, strconv.Quote(cmp.Or(says, "hi"))))
	}))
	t.Cleanup(provider.Close)
	s.from = provider.URL
	issuer.SetIssuer(s.from)
	s.load(config, provider.URL)
	s.keep()
	return s
}

// tell keeps what a collector or a channel of alerts is told.
func (s *site) tell(r *http.Request) {
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		plain, err := gzip.NewReader(body)
		if err != nil {
			s.t.Error(err)
			return
		}
		body = plain
	}
	text, err := io.ReadAll(body)
	if err != nil {
		s.t.Error(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told[r.URL.Path] = append(s.told[r.URL.Path], text...)
}

// load serves a Caddyfile with the folder of the site, the address of its provider, and a port.
func (s *site) load(config, provider string) {
	s.t.Helper()
	s.t.Setenv("XDG_DATA_HOME", s.dir)
	address := freeport.Address(s.t)
	s.url = "http://" + address
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		s.t.Fatal(err)
	}
	load(s.t, fmt.Sprintf(config, s.dir, provider, port))
}

// load runs a Caddyfile until the end of the test.
func load(t *testing.T, config string) {
	t.Helper()
	adapted, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(config), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := caddy.Load(adapted, true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { storestest.Stop(t) })
}

// keep makes what the ids in paths name, all of the first organisation.
func (s *site) keep() {
	made := func(path, body, kind string) string {
		answer := s.send("POST", path, "walker-root", kind, []byte(body), "Service-Session-Id", "kept")
		if answer.status != http.StatusOK {
			s.t.Fatalf("%s: %d %s", path, answer.status, answer.body)
		}
		return gjson.Get(answer.body, "id").Str
	}
	s.kept = map[string]string{
		"/v1/responses":     made("/v1/responses", `{"model":"echo/echo-1","input":"kept"}`, jsonType),
		"/v1/conversations": made("/v1/conversations", `{"items":[{"role":"user","id":"msg_kept","content":"kept"}]}`, jsonType),
		"/v1/files":         made("/v1/files", string(form("kept")), formType),
	}
	s.kept["/v1/batches"] = s.kept["/v1/files"]
	s.kept["/v1/messages/batches"] = made("/v1/messages/batches", string(s.bodies("kept")["a batch of Messages"]), jsonType)
	s.kept["/paid/messages/batches"] = made("/paid/messages/batches", string(s.bodies("kept")["a batch of calls"]), jsonType)
	s.flush()
	for to, body := range map[[2]string]string{
		{"PUT", "/v1/view/kept"}:         `{"screen":"requests","state":"kept"}`,
		{"POST", "/v1/session/kept/tag"}: `{"tag":"kept"}`,
	} {
		if a := s.send(to[0], to[1], "walker-root", jsonType, []byte(body)); a.status != http.StatusOK {
			s.t.Fatalf("%s: %d %s", to, a.status, a.body)
		}
	}
	record := strings.TrimPrefix(s.kept["/v1/responses"], "resp_")
	s.kept["/v1/request"] = record[:8] + "-" + record[8:12] + "-" + record[12:16] + "-" + record[16:20] + "-" + record[20:]
}

// path is that of a route with ids in it.
func (s *site) path(r walked) string {
	path := strings.NewReplacer("{item}", "msg_kept", "{name}", "kept", "{model}", "gpt-4o-mini", "{project}", cmp.Or(s.kept["{project}"], "kept")).Replace(r.Path)
	before, _, _ := strings.Cut(path, "/{id}")
	id := s.kept[strings.TrimPrefix(before, dashboard)]
	if id == "" {
		id = "kept"
	}
	return strings.ReplaceAll(path, "{id}", id)
}

const (
	jsonType = "application/json"
	formType = "multipart/form-data; boundary=walker"
)

// form is a form with a model and a file, as those of audio and of files.
func form(text string) []byte {
	return []byte("--walker\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nopenai/whisper-1\r\n" +
		"--walker\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n" +
		"--walker\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\n" + text + "\r\n" +
		"--walker\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n{\"body\":\"" + text + "\"}\r\n--walker--\r\n")
}

// bodies are what some route of a lane takes, with a text in it. A route that takes none
// of them needs another one here.
func (s *site) bodies(text string) map[string][]byte {
	fields := `"max_tokens":16,"input":"` + text + `","prompt":"` + text + `","voice":"a","query":"` + text + `","documents":["` + text + `"],` +
		`"messages":[{"role":"user","content":"` + text + `"}]}`
	item := `[{"role":"user","content":"` + text + `"}]`
	return map[string][]byte{
		"a call":              []byte(`{"model":"echo/echo-1",` + fields),
		"a call of OpenAI":    []byte(`{"model":"openai/gpt-4o-mini",` + fields),
		"a call of Cohere":    []byte(`{"model":"cohere/rerank-v3.5",` + fields),
		"items":               []byte(`{"items":` + item + `}`),
		"items, metadata":     []byte(`{"items":` + item + `,"metadata":{"k":"` + text + `"}}`),
		"metadata":            []byte(`{"metadata":{"k":"` + text + `"}}`),
		"a batch":             []byte(`{"input_file_id":"` + s.kept["/v1/files"] + `","endpoint":"/v1/chat/completions","metadata":{"k":"` + text + `"}}`),
		"a batch of Messages": []byte(`{"requests":[{"custom_id":"a","params":{"model":"anthropic/claude-haiku-4-5",` + fields + `}]}`),
		"a batch of calls":    []byte(`{"requests":[{"custom_id":"a","params":{"model":"openai/gpt-4o-mini",` + fields + `}]}`),
		"a compaction":        []byte(`{"model":"openai/gpt-4o-mini","input":[{"role":"user","content":"` + text + `"}]}`),
		"an empty object":     []byte(`{}`),
		"a form":              form(text),
		"a key":               []byte(`{"name":"` + text + `","scopes":["query"]}`),
		"spans": []byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"` + fmt.Sprintf("%016x", time.Now().UnixNano()) + `",
			"startTimeUnixNano":"1790000000000000000","endTimeUnixNano":"1790000001000000000","attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},
			{"key":"gen_ai.prompt.0.content","value":{"stringValue":"` + text + `"}},{"key":"gen_ai.completion.0.content","value":{"stringValue":"` + text + `"}}]}]}]}]}`),
	}
}

// answer is what the site answers.
type answer struct {
	status int
	header http.Header
	body   string
}

func (s *site) send(method, path, key, contentType string, body []byte, header ...string) answer {
	s.t.Helper()
	return s.stream(method, path, key, contentType, bytes.NewReader(body), header...)
}

// stream sends a body, chunked unless its length is known.
func (s *site) stream(method, path, key, contentType string, body io.Reader, header ...string) answer {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	if !slices.Contains(header, "Authorization") {
		r.Header.Set("Service-Auth", "Bearer "+key) // a proxy sends the other one on
	}
	r.Header.Set("Content-Type", contentType)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil { // the site may close a connection whose body it does not read
		return answer{body: err.Error()}
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<26))
	return answer{resp.StatusCode, resp.Header, string(text)}
}

func typeOf(body []byte) string {
	if bytes.HasPrefix(body, []byte("--walker")) {
		return formType
	}
	return jsonType
}

// flush waits until the store has all records.
func (s *site) flush() {
	s.t.Helper()
	for _, store := range stores.InUse() {
		if err := store.Opened().Flush(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
	}
}

// files returns those of the site that have a text in them, of the store and the log.
func (s *site) files(text string) (found []string) {
	s.t.Helper()
	s.flush()
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := s.read(path)
		if bytes.Contains(content, []byte(text)) {
			found = append(found, filepath.Base(path))
		}
		return err
	})
	if err != nil {
		s.t.Error(err)
	}
	return found
}

// read returns the content of a file, which the next read overwrites.
func (s *site) read(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	s.content.Reset()
	_, err = s.content.ReadFrom(file)
	return s.content.Bytes(), err
}

// Every route through which content comes takes one of the bodies, and keeps nothing of it
// where a header forbids that.
func TestOmittedContentIsOnNoDisk(t *testing.T) {
	s := serve(t)
	for i, r := range routes(t) {
		if !r.isLane() {
			continue
		}
		takes := strings.HasSuffix(r.Path, "cancel") // which asks for no body
		for _, body := range s.bodies("seen") {
			a := s.send(r.Method, s.path(r), "walker-root", typeOf(body), body)
			takes = takes || a.status == http.StatusOK
		}
		if !takes {
			t.Errorf("%s takes no body of the walker: add one that the route takes to bodies", r)
		}
		canary := fmt.Sprintf("canary-%d", i)
		for _, body := range s.bodies(canary) {
			s.send(r.Method, s.path(r), "walker-root", typeOf(body), body, "Service-Omit-Request", "true", "Service-Omit-Response", "true")
		}
		if found := s.files(canary); len(found) > 0 {
			t.Errorf("%s keeps omitted content in %q", r, found)
		}
	}
	if found := s.files("seen"); len(found) == 0 {
		t.Error("what may be kept is in no file: canaries would not be found")
	}
	for _, secret := range []string{"walker-root", "walker-other", "walker-platform"} {
		if found := s.files(secret); len(found) > 0 {
			t.Errorf("the key %s is in %q", secret, found)
		}
	}
}

// logIn returns the header of a browser that has a session with a key.
func (s *site) logIn(key string) []string {
	s.t.Helper()
	resp, err := http.Post(s.url+dashboard+"/session", jsonType, strings.NewReader(`{"key":"`+key+`"}`))
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	cookies := resp.Cookies()
	if len(cookies) != 1 {
		s.t.Fatalf("logging in with %s: %s", key, resp.Status)
	}
	return []string{"Cookie", cookies[0].String()}
}

// What is kept for one organisation is not there for another.
func TestIDsOfOthersAreNotFound(t *testing.T) {
	s := serve(t)
	own := 0
	mine, theirs := s.logIn("walker-root"), s.logIn("walker-other")
	for _, r := range routes(t) {
		shared := strings.Contains(r.Path, "/models/") || r.handler == "llm_log" || r.handler == paid && !strings.Contains(r.Path, "/batches/") // models are everybody's
		if !strings.Contains(r.Path, "{") || r.Socket || shared {
			continue
		}
		if r.Method == http.MethodGet {
			if a := s.send(r.Method, s.path(r), "walker-root", jsonType, nil, mine...); a.status == http.StatusOK {
				own++
			}
		}
		bodies := map[string][]byte{"nothing": nil}
		if r.takesBody() {
			bodies = s.bodies("other")
		}
		for name, body := range bodies {
			a := s.send(r.Method, s.path(r), "walker-other", typeOf(body), body, theirs...)
			view := strings.Contains(r.Path, "/v1/view/") && r.Method == http.MethodPut // which makes one of its own
			if a.status < 400 && !view || strings.Contains(a.body, "kept\"") {
				t.Errorf("%s with %s of another organisation: %d %s", r, name, a.status, a.body)
			}
		}
	}
	if own < 12 {
		t.Errorf("the organisation finds %d of its own: the walk proves nothing", own)
	}
	for _, path := range []string{"/v1/view/kept", "/v1/session/kept/tag"} {
		if a := s.send("GET", path, "walker-root", jsonType, nil); !strings.Contains(a.body, `kept"`) {
			t.Errorf("another organisation has changed %s: %d %s", path, a.status, a.body)
		}
	}
}

// What a key opens is in no cache between Weir and its clients, which need not know x-api-key or
// Service-Auth for keys: a cache would give one caller's answer to another.
func TestAnswersAreInNoSharedCache(t *testing.T) {
	s := serve(t)
	session, answered := s.logIn("walker-root"), 0
	for _, r := range routes(t) {
		ofProvider := r.handler == "llm_log" || r.handler == paid || r.handler == "llm_echo"
		if r.Method != http.MethodGet || r.Socket || ofProvider || strings.HasSuffix(r.Path, "/openapi.json") || strings.HasSuffix(r.Path, "/tail") { // which does not end
			continue
		}
		a := s.send(r.Method, s.path(r), "walker-root", jsonType, nil, session...)
		if caches := a.header.Get("Cache-Control"); !strings.Contains(caches, "no-store") && !strings.Contains(caches, "no-cache") {
			t.Errorf("%s: %d, Cache-Control %q", r, a.status, caches)
		}
		if a.status == http.StatusOK {
			answered++
		}
	}
	if answered < 30 {
		t.Errorf("%d answers: the walk proves nothing", answered)
	}
}

// secrets are bodies that name an MCP server with a credential, as a route takes them. What
// stands within a text is a body to those alone that read it.
func (r walked) secrets(secret string) [][]byte {
	tools := `"tools":[{"type":"mcp","server_label":"a","server_url":"https://a.example","authorization":"` + secret + `"}]`
	quoted := strconv.Quote("{" + tools + "}")
	switch r.handler {
	case "llm_query":
		return [][]byte{[]byte(`{"screen":"requests","state":` + quoted + `}`)}
	case "llm_otlp":
		return [][]byte{[]byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"` + fmt.Sprintf("%016x", time.Now().UnixNano()) + `",
			"startTimeUnixNano":"1790000000000000000","endTimeUnixNano":"1790000001000000000","attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},
			{"key":"weir.request.body","value":{"stringValue":` + quoted + `}},{"key":"weir.response.body","value":{"stringValue":` + quoted + `}}]}]}]}]}`)}
	}
	servers := `"mcp_servers":[{"type":"url","url":"https://a.example","name":"a","authorization_token":"` + secret + `"}]`
	said := `"max_tokens":16,"input":"a","messages":[{"role":"user","content":"a"}],`
	return [][]byte{
		[]byte(`{"model":"openai/gpt-4o-mini",` + said + tools + `}`),
		[]byte(`{"model":"echo/echo-1",` + said + servers + `}`),
		[]byte(`{"model":"echo/echo-1",` + said + servers), // cut
		[]byte(`{"requests":[{"custom_id":"a","params":{"model":"anthropic/claude-haiku-4-5",` + said + servers + `}}]}`),
		[]byte(`{"items":[{"role":"user","type":"additional_tools","content":"a",` + tools + `}]}`),
	}
}

// Credentials in what clients send are on no disk, whatever the route.
func TestSecretsAreOnNoDisk(t *testing.T) {
	s := serve(t)
	taken := 0
	for i, r := range routes(t) {
		if !r.takesBody() || r.handler == "llm_echo" || strings.HasPrefix(r.Path, dashboard) {
			continue
		}
		secret := fmt.Sprintf("secret-%d-", i)
		for _, body := range r.secrets(secret) {
			if a := s.send(r.Method, s.path(r), "walker-root", jsonType, body); a.status == http.StatusOK {
				taken++
			}
		}
		if found := s.files(secret); len(found) > 0 {
			t.Errorf("%s keeps a credential in %q", r, found)
		}
	}
	if taken < 100 {
		t.Errorf("%d bodies were taken: the walk proves nothing", taken)
	}
}

// The admin API tells no keys, and nothing of what was said.
func TestAdminTellsNoSecrets(t *testing.T) {
	s := serve(t)
	s.send("POST", "/v1/chat/completions", "walker-root", jsonType, s.bodies("said-by-a-user")["a call"])
	for _, r := range new(llmadmin.API).Routes() {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			w := httptest.NewRecorder()
			err := r.Handler.ServeHTTP(w, httptest.NewRequest(method, r.Pattern, strings.NewReader("{}")))
			for _, secret := range []string{"walker-root", "walker-other", "walker-platform", "said-by-a-user"} {
				if strings.Contains(fmt.Sprint(w.Header(), w.Body, err), secret) {
					t.Errorf("%s %s tells %s", method, r.Pattern, secret)
				}
			}
		}
	}
}

// A call that cannot be paid, or that no budget covers, reaches no provider.
func TestNothingIsFree(t *testing.T) {
	s := serve(t)
	refused := make(map[string]int)  // by lane and key
	files := make(map[string]string) // with the calls of a batch, by key
	for _, key := range []string{"walker-poor", "walker-capped"} {
		call := `{"url":"/v1/chat/completions","body":{"model":"gpt-4o-mini","max_tokens":16,"messages":[]}}`
		files[key] = gjson.Get(s.send("POST", "/v1/files", key, formType, bytes.Replace(form(""), []byte(`{"body":""}`), []byte(call), 1)).body, "id").Str
	}
	for _, r := range routes(t) {
		path := s.path(r)
		counts, keeps := strings.HasSuffix(path, "tokens"), strings.HasPrefix(path, "/v1/conversations")
		proxied := r.handler == "llm_log"
		if !r.takesBody() {
			continue
		}
		for _, key := range []string{"walker-poor", "walker-capped"} {
			// Credits pay for no call with the caller's own credentials. Files cost nothing.
			if key == "walker-poor" && proxied || strings.HasSuffix(path, "/files") {
				continue
			}
			s.kept["/v1/files"] = files[key]
			for name, body := range s.bodies("poor") {
				asked := s.asked.Load()
				a := s.send(r.Method, path, key, typeOf(body), body, "Service-Auth", "Bearer "+key)
				if s.asked.Load() > asked && !counts {
					t.Errorf("%s asks a provider %s of %s", r, name, key)
				}
				if a.status < 400 && !counts && !keeps && (proxied || r.handler == paid || r.handler == "llm_gateway") {
					t.Errorf("%s answers %s of %s: %d %s", r, name, key, a.status, a.body)
				}
				if a.status == http.StatusPaymentRequired && (path == "/v1/batches" && name == "a batch" || path == "/v1/messages/batches" && name == "a batch of Messages") {
					refused[name+" "+key]++
				}
				if a.status == http.StatusPaymentRequired || strings.Contains(a.body, "model_not_priced") {
					refused[r.handler+" "+key]++
				}
			}
		}
	}
	for _, lane := range []string{"llm_gateway walker-poor", "llm_gateway walker-capped", "llm_log walker-capped", paid + " walker-poor", paid + " walker-capped"} {
		if refused[lane] < 10 {
			t.Errorf("%s: %d refusals for money prove nothing", lane, refused[lane])
		}
	}
	for _, batch := range []string{"a batch walker-poor", "a batch walker-capped", "a batch of Messages walker-poor", "a batch of Messages walker-capped"} {
		if refused[batch] != 1 {
			t.Errorf("batches of known calls are refused %v", refused)
		}
	}
}

// mostAllocated bounds what a bomb may make the site allocate in all, in bytes: the longest
// body of any route, read in steps, and copied.
const mostAllocated = 512 << 20

// bombSize is the length of a body that has no end. Whoever keeps it allocates more than
// mostAllocated.
const bombSize = 640 << 20

// bombs are bodies that are small on the wire, or have no end.
func bombs(t *testing.T) map[string]func() (body io.Reader, header []string) {
	zipped := func(part []byte, times int) []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		if _, err := w.Write(part); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return bytes.Repeat(b.Bytes(), times) // a member a time
	}
	zeros := zipped(make([]byte, 1<<20), bombSize>>20)
	spans := zipped(append([]byte{0x0a, 0x82, 0x89, 0x7a, 0x12, 0xfe, 0x88, 0x7a}, bytes.Repeat([]byte{0x12, 0}, 1_000_000)...), 1)
	gzipped := []string{"Content-Encoding", "gzip"}
	list := strings.Repeat("[],", 1_000_000) + "0"
	values := `{"model":"echo/echo-1","input":[` + list + `],"items":[` + list + `],"resourceSpans":[` + list + `]}`
	deep := strings.Repeat("[", 4<<20)
	return map[string]func() (io.Reader, []string){
		"gzip":    func() (io.Reader, []string) { return bytes.NewReader(zeros), gzipped },
		"chunked": func() (io.Reader, []string) { return io.LimitReader(endless{}, bombSize), nil },
		"values":  func() (io.Reader, []string) { return strings.NewReader(values), nil },
		"depth":   func() (io.Reader, []string) { return strings.NewReader(deep), nil },
		"spans": func() (io.Reader, []string) {
			return bytes.NewReader(spans), append(gzipped, "Content-Type", "application/x-protobuf")
		},
	}
}

// endless is a string that does not end.
type endless struct{}

// letters are a part of it.
var letters = strings.Repeat("a", 64<<10)

func (endless) Read(p []byte) (int, error) { return copy(p, letters), nil }

// allocated is what f allocates, in bytes.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// attack sends a bomb to a route from many clients at once, and bounds the memory that the
// process has at its peak: that of the site, and of the clients.
func (s *site) attack(r walked, name string, bomb func() (io.Reader, []string)) {
	s.t.Helper()
	const clients, most = 16, 1 << 20 // of the peak, in KiB
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // begins a new peak
		s.t.Skip("the peak of the memory is not known here: ", err)
	}
	var wait sync.WaitGroup
	for range clients {
		wait.Go(func() {
			body, header := bomb()
			s.stream(r.Method, s.path(r), "walker-root", jsonType, body, header...)
		})
	}
	wait.Wait()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		s.t.Fatal(err)
	}
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	kib, err := strconv.Atoi(strings.Fields(peak)[0])
	if err != nil || kib > most {
		s.t.Errorf("%s: %d clients with %s take %d KiB, %v", r, clients, name, kib, err)
	}
}

// A message whose fragments never end is not kept without a bound.
func TestFragmentsAreBounded(t *testing.T) {
	s := serve(t)
	fragment := ws.MustCompileFrame(ws.MaskFrameInPlace(ws.NewFrame(ws.OpContinuation, false, make([]byte, 1<<20))))
	first := ws.MustCompileFrame(ws.MaskFrameInPlace(ws.NewFrame(ws.OpText, false, []byte("{"))))
	sockets := 0
	for _, r := range routes(t) {
		if !r.Socket {
			continue
		}
		sockets++
		dialer := ws.Dialer{Header: ws.HandshakeHeaderHTTP{"Authorization": {"Bearer walker-root"}, "Service-Auth": {"Bearer walker-root"}}}
		conn, _, _, err := dialer.Dial(t.Context(), "ws"+strings.TrimPrefix(s.url, "http")+s.path(r))
		if err != nil {
			continue // the provider has none
		}
		took := allocated(func() {
			_, err := conn.Write(first)
			for n := 0; n < 1<<10 && err == nil; n++ {
				_ = conn.SetWriteDeadline(time.Now().Add(20 * time.Second))
				_, err = conn.Write(fragment)
			}
			if err == nil {
				t.Errorf("%s takes a GiB of fragments", r)
			}
		})
		conn.Close()
		if took > mostAllocated {
			t.Errorf("%s: fragments take %d MiB", r, took>>20)
		}
	}
	if sockets == 0 {
		t.Error("no route is a WebSocket")
	}
}
