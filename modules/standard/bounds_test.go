//go:build !race

package standard

import (
	"bytes"
	"cmp"
	"compress/flate"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// attack is a request that costs its sender little.
type attack struct {
	name   string
	suffix string // of the path
	header http.Header
	body   func() []byte // nil for none
}

// values are JSON values of about so many bytes that are dear to read, by what is dear in them.
func values(size int) map[string]string {
	list := func(element string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(element+",", size/(len(element)+1)), ",") + "]"
	}
	keys := func(key func(int) string, value string) string {
		var b strings.Builder
		b.WriteString(`{"type":"object"`)
		for i := 0; b.Len() < size; i++ {
			fmt.Fprintf(&b, `,%q:%s`, key(i), value)
		}
		return b.String() + "}"
	}
	numbered := func(i int) string { return "k" + strconv.Itoa(i) }
	text := func(part string) string { return strconv.Quote(strings.Repeat(part, size/len(part))) }
	tool := `{"type":"function","name":"f","function":{"name":"f","parameters":{}},"input_schema":{},"parameters":{}}`
	return map[string]string{
		"nested arrays":       strings.Repeat("[", size/2) + strings.Repeat("]", size/2),
		"nested objects":      strings.Repeat(`{"a":`, size/6) + "0" + strings.Repeat("}", size/6),
		"keys":                keys(numbered, "0"),
		"one key":             keys(func(int) string { return "a" }, "0"),
		"empty objects":       list("{}"),
		"tools":               list(tool),
		"tools, each its own": "[" + strings.TrimSuffix(renumber(list(tool), `"f"`), ",") + "]",
		"messages":            list(`{"role":"user","content":"a"}`),
		"parts":               `[{"role":"user","content":` + list(`{"type":"text","text":"a"}`) + `}]`,
		"calls":               list(`{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}`),
		"alternatives":        `[{"type":"function","name":"f","parameters":{"$defs":{"a":{"anyOf":` + list(`{"$ref":"#/$defs/a"}`) + `}},"anyOf":[{"$ref":"#/$defs/a"}]}}]`,
		"a schema":            `{"format":{"type":"json_schema","name":"n","schema":{"$defs":{"a":{"properties":{"b":{"anyOf":` + list(`{"$ref":"#/$defs/a"}`) + `}}}},"$ref":"#/$defs/a"}}}`,
		"conditions":          strings.Repeat(`{"operator":"or","left":"all","right":`, size/40) + `"all"` + strings.Repeat("}", size/40),
		"a pattern":           `{"request_response_rmt":{"request_body":{"contains":` + text("%a_") + `}}}`,
		"a pattern like":      `{"request_response_rmt":{"user_id":{"ilike":` + text("%a") + `}}}`,
		"digits":              strings.Repeat("7", size),
		"an exponent":         "1e" + strings.Repeat("9", size),
		"a fraction":          "0." + strings.Repeat("1", size),
		"escapes":             `"` + strings.Repeat(`\u00e9`, size/6) + `"`,
		"escaped quotes":      `"` + strings.Repeat(`\"`, size/2) + `"`,
		"json in a text":      strconv.Quote(strings.Repeat(`{"a":`, size/8)),
		"addresses":           text("a.a.a@a.a."),
		"at signs":            text("a@"),
		"numbers of cards":    text("4111 1111 "),
		"words of one letter": text("a "),
		"one word":            text("a"),
		"high letters":        `"` + strings.Repeat("𝔞", size/4) + `"`,
		"data":                strconv.Quote("data:image/png;base64," + strings.Repeat("A", size)),
		"slashes":             text("../"),
		"commas":              text("a,"),
	}
}

// renumber gives each occurrence of a quoted name a number.
func renumber(list, name string) string {
	parts := strings.Split(strings.Trim(list, "[]"), name)
	var b strings.Builder
	for i, part := range parts {
		if i > 0 {
			fmt.Fprintf(&b, `"f%d"`, i)
		}
		b.WriteString(part)
	}
	return b.String()
}

// places are the paths of the values of a JSON object, and of some fields that it may have.
func places(object []byte) []string {
	var all []string
	var walk func(path string, v gjson.Result, depth int)
	walk = func(path string, v gjson.Result, depth int) {
		if path != "" {
			all = append(all, path)
		}
		if depth == 0 {
			return
		}
		i := 0
		v.ForEach(func(key, member gjson.Result) bool {
			name := strconv.Itoa(i)
			if key.Exists() {
				name = strings.NewReplacer(".", `\.`, "*", `\*`).Replace(key.Str)
			}
			walk(strings.TrimPrefix(path+"."+name, "."), member, depth-1)
			i++
			return true
		})
	}
	walk("", gjson.ParseBytes(object), 4)
	return append(all, "tools", "text", "metadata", "filter", "stop", "response_format")
}

// attackedConfig is siteConfig with masking, with providers for which calls are translated, and with
// Caddy's count of requests in flight.
var attackedConfig = strings.NewReplacer(
	"admin off\n", "admin off\n\tmetrics\n",
	"request_memory 32MiB", "request_memory 32MiB\n\t\tmask email phone key card iban",
	"provider echo\n", `provider echo
		provider gemini {
			base_url %[2]s
			api_key walker-platform
		}
		provider mistral {
			base_url %[2]s/v1
			api_key walker-platform
		}
		provider bedrock {
			base_url %[2]s
			access_key_id walker
			secret_access_key walker-platform
		}
`).Replace(siteConfig)

// translated are models of them, and of others to which calls are translated from some API.
var translated = []string{
	"gemini/gemini-2.5-flash", "mistral/mistral-small-latest", "bedrock/anthropic.claude-haiku-4-5-20251001-v1:0", "anthropic/claude-haiku-4-5", "cohere/command-a-03-2025",
}

// queries are bodies of routes that ask about records, or administer.
var queries = []string{
	`{"filter":"all","limit":1}`,
	`{"filter":"all","sort":{"created_at":"desc"},"groupBy":["model"],"metrics":["cost"],"timeFilter":{"start":"2026-01-01T00:00:00Z","end":"2027-01-01T00:00:00Z"}}`,
	`{"query":"a","filter":"all"}`,
	`{"name":"a","limit":"1","quantity":"dollars","window":"month","filter":"all","reason":"a","what":"content","dry_run":true}`,
}

// attacks returns the attacks on a route, of about so many bytes each. Those with a body change a
// body that some route takes, at one place.
func (s *site) attacks(r walked, size int, dear map[string]string) (all []attack) {
	repeat := func(part string) string { return strings.Repeat(part, size/len(part)) }
	lines := make(http.Header)
	for i := range size / 64 {
		lines.Set("Service-Property-"+strconv.Itoa(i), "value")
	}
	all = append(all,
		attack{name: "a long path", suffix: "/" + repeat("a")},
		attack{name: "a path of many parts", suffix: repeat("/a")},
		attack{name: "escapes in the path", suffix: "/" + repeat("%2f")},
		attack{name: "a long query", suffix: "?" + repeat("a=b&")},
		attack{name: "a limit", suffix: "?limit=" + repeat("9") + "&after=" + repeat("a")[:size/2]},
		attack{name: "many lines of header", header: lines})
	for name, value := range map[string]string{
		"Authorization": "Bearer " + repeat("a"), "Cookie": repeat("a=b; "), "Accept-Encoding": repeat("gzip;q=0.1, "), "Service-Tags": repeat("a,"),
		"X-Forwarded-For": repeat("1.1.1.1, "), "Range": "bytes=" + repeat("0-0,"), "If-None-Match": repeat(`"a", `), "Anthropic-Beta": repeat("a-1,"),
		"Traceparent": repeat("0-"), "Accept": repeat("a/b;q=0.1,"), "Service-Session-Path": repeat("/a"), "Content-Type": "multipart/form-data; " + repeat("a=b; "),
		"Baggage": repeat("a=b,"), "Tracestate": repeat("a=b,"), "Connection": repeat("a, "),
	} {
		all = append(all, attack{name: "a long " + name, header: http.Header{name: {value}}})
	}
	if !r.takesBody() {
		return all
	}
	valid := s.bodies("a")
	for _, model := range translated {
		valid["a call of "+model] = bytes.Replace(valid["a call"], []byte("echo/echo-1"), []byte(model), 1)
	}
	for i, question := range queries {
		valid["a question "+strconv.Itoa(i)] = []byte(question)
	}
	for name, body := range valid {
		if !gjson.ValidBytes(body) {
			continue
		}
		for _, place := range places(body) {
			for what, value := range dear {
				all = append(all, attack{name: name + " with " + what + " at " + place, body: func() []byte {
					changed, _ := sjson.SetRawBytes(bytes.Clone(body), place, []byte(value)) // an object, and a plain path
					return changed
				}})
			}
		}
	}
	part := "--walker\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\na\r\n"
	form := http.Header{"Content-Type": {formType}}
	all = append(all,
		attack{name: "a form of many parts", header: form, body: func() []byte { return []byte(repeat(part) + "--walker--\r\n") }},
		attack{name: "a form with a long header", header: form, body: func() []byte {
			return []byte("--walker\r\nContent-Disposition: form-data; " + repeat("a=b; ") + "\r\n\r\na\r\n--walker--\r\n")
		}},
		attack{name: "a form of hyphens", header: form, body: func() []byte { return []byte("--walker\r\n\r\n" + repeat("\r\n--walke")) }},
		attack{name: "no JSON", body: func() []byte { return []byte(repeat(" ")) }},
	)
	for encoding, encode := range encoders {
		all = append(all,
			attack{name: encoding + " twice", header: http.Header{"Content-Encoding": {encoding + "," + encoding}}, body: func() []byte {
				return encode(encode([]byte(`{"model":"echo/echo-1","messages":[{"role":"user","content":"` + strings.Repeat("a", 64*size) + `"}],"filter":"all"}`)))
			}},
			attack{name: encoding + " of many values", header: http.Header{"Content-Encoding": {encoding}}, body: func() []byte {
				return encode([]byte(`{"input":[` + strings.Repeat("{},", 4*size) + `0],"filter":"all"}`))
			}})
	}
	return all
}

// encoders are those of the encodings that a client may use.
var encoders = map[string]func([]byte) []byte{
	"gzip":    encoder(func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }),
	"deflate": encoder(func(w io.Writer) io.WriteCloser { f, _ := flate.NewWriter(w, 9); return f }),
	"br":      encoder(func(w io.Writer) io.WriteCloser { return brotli.NewWriterLevel(w, 5) }),
	"zstd":    encoder(func(w io.Writer) io.WriteCloser { z, _ := zstd.NewWriter(w); return z }),
}

func encoder(open func(io.Writer) io.WriteCloser) func([]byte) []byte {
	return func(text []byte) []byte {
		var b bytes.Buffer
		w := open(&b)
		_, _ = w.Write(text)
		_ = w.Close()
		return b.Bytes()
	}
}

// strike sends an attack, and returns the status of its answer, 0 if there is none.
func (s *site) strike(ctx context.Context, r walked, a *attack, body []byte) int {
	req, err := http.NewRequestWithContext(ctx, r.Method, s.url+s.path(r)+a.suffix, bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	const key = "walker-root"
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Service-Auth", "Bearer "+key)
	if a.body != nil {
		req.Header.Set("Content-Type", jsonType)
	}
	for name, values := range a.header {
		req.Header[name] = values
	}
	if _, own := a.header["Authorization"]; own {
		req.Header["Service-Auth"] = a.header["Authorization"]
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// processorTime is that of this process.
func processorTime(t *testing.T) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

const (
	// attackSize is about how long an attack is, in bytes, and sampled how many are tried on each route.
	attackSize = 32 << 10
	sampled    = 1
	// mostTime bounds the processor time of one attack, that of its sender included.
	mostTime = 150 * time.Millisecond
	// patience is how long a stream is read that does not end.
	patience = 200 * time.Millisecond
)

// One request takes little processor time, whatever is in it and to whichever route it is sent. 300
// times as many attacks take minutes: go test -run TestAttacksAreCheap ./modules/standard -full. The
// variable ATTACK_SEED chooses others, 1 by default.
func TestAttacksAreCheap(t *testing.T) {
	s := serveConfig(t, attackedConfig)
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv("ATTACK_SEED"), "1"), 10, 64)
	if err != nil {
		t.Fatal("ATTACK_SEED: ", err)
	}
	random := rand.New(rand.NewPCG(seed, seed))
	dear, tried, idle := values(attackSize), 0, s.inFlight()
	for _, r := range routes(t) {
		if r.Socket {
			continue
		}
		all := s.attacks(r, attackSize, dear)
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		most := sampled
		if *full {
			most *= 300
		}
		all = all[:min(len(all), most)]
		for i := range all {
			a, took, body := &all[i], time.Duration(0), []byte(nil)
			if a.body != nil {
				body = a.body()
			}
			for range 3 { // other work of the process may fall into one of them
				before := processorTime(t)
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				status := s.strike(ctx, r, a, body)
				cancel()
				if status == 0 { // its work may not be over
					s.settle(idle)
				}
				took = processorTime(t) - before
				if status == http.StatusInternalServerError {
					t.Errorf("%s: %s is answered with %d (ATTACK_SEED=%d)", r, a.name, status, seed)
				}
				if took < mostTime {
					break
				}
			}
			tried++
			if took >= mostTime {
				t.Errorf("%s: %s takes %s (ATTACK_SEED=%d)", r, a.name, took, seed)
			}
		}
	}
	t.Logf("%d attacks, seed %d", tried, seed)
}

var handled = regexp.MustCompile(`(?m)^caddy_http_requests_in_flight\{.*\} (\d+)$`)

// inFlight counts the handlers that are at work, those of its own request included.
func (s *site) inFlight() (n int) {
	s.t.Helper()
	counts := handled.FindAllStringSubmatch(s.send(http.MethodGet, "/metrics", "walker-root", jsonType, nil).body, -1)
	if len(counts) == 0 {
		s.t.Fatal("/metrics does not count requests in flight")
	}
	for _, count := range counts {
		handlers, _ := strconv.Atoi(count[1])
		n += handlers
	}
	return n
}

// settle waits until no more handlers are at work than in an idle site.
func (s *site) settle(idle int) {
	s.t.Helper()
	for end := time.Now().Add(5 * time.Minute); s.inFlight() > idle; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatal("a request is served for five minutes after its client left")
		}
	}
}

const (
	// heldSockets is how many connections are kept open at each route, and idleSockets how many say nothing.
	heldSockets, idleSockets = 4, 200
	// noise is what a call of a neighbour may take on a machine with other work.
	noise = 400 * time.Millisecond
)

// hold opens connections to a route, each with the header of a long body and one byte of it, as
// organisation default and without a key.
func (s *site) hold(r walked) {
	for i := range heldSockets {
		key := "Authorization: Bearer walker-root\r\nService-Auth: Bearer walker-root\r\n"
		if i%2 == 1 {
			key = ""
		}
		s.open(fmt.Sprintf("%s %s HTTP/1.1\r\nHost: a\r\nContent-Type: %s\r\nContent-Length: %d\r\n%s\r\n{", r.Method, s.path(r), jsonType, 1<<18, key))
	}
}

// open opens a connection, and says something.
func (s *site) open(says string) {
	s.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, says); err != nil {
		s.t.Fatal(err)
	}
}

// neighbour makes calls of another organisation, and returns the time in which nine of ten are answered.
func (s *site) neighbour(calls int) time.Duration {
	s.t.Helper()
	took := make([]time.Duration, calls)
	for i := range took {
		method, path, body := http.MethodPost, "/v1/chat/completions", `{"model":"echo/echo-1","messages":[{"role":"user","content":"hi"}]}`
		switch i % 3 {
		case 1:
			path, body = "/v1/request/query", `{"filter":"all","limit":1}`
		case 2:
			method, path, body = http.MethodGet, "/v1/models", ""
		}
		begun := time.Now()
		if a := s.send(method, path, "walker-other", jsonType, []byte(body)); a.status != http.StatusOK {
			s.t.Errorf("a neighbour's %s: %d %.200s", path, a.status, a.body)
		}
		took[i] = time.Since(begun)
	}
	slices.Sort(took)
	return took[len(took)*9/10]
}

// An organisation is served while others, and callers without a key, keep connections open at every
// route: with bodies that do not come, headers that do not end, or nothing. With -full, others also
// attack each route from many clients at once, with what TestAttacksAreCheap tries singly.
func TestNeighboursAreServed(t *testing.T) {
	s := serveConfig(t, attackedConfig)
	before := s.neighbour(90)
	most := max(3*before, noise)
	all := routes(t)
	for _, r := range all {
		if r.takesBody() {
			s.hold(r)
		}
	}
	for range idleSockets {
		s.open("")
		s.open("POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nX-")
	}
	for _, r := range all {
		if r.Socket {
			for range heldSockets {
				s.open("GET " + s.path(r) + " HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer walker-root\r\nService-Auth: Bearer walker-root\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
			}
		}
	}
	took := s.neighbour(90)
	if took > most { // perhaps because of other work of the machine
		took = s.neighbour(90)
	}
	if took > most {
		t.Errorf("a neighbour waits %s while connections are held, and %s before", took, before)
	}
	if !*full {
		return
	}
	dear := values(attackSize)
	for _, r := range all {
		if r.Socket {
			continue
		}
		attacks := s.attacks(r, attackSize, dear)
		ctx, cancel := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		for range 8 {
			wait.Go(func() {
				for ctx.Err() == nil {
					a := &attacks[rand.N(len(attacks))]
					var body []byte
					if a.body != nil {
						body = a.body()
					}
					s.strike(ctx, r, a, body)
				}
			})
		}
		took := s.neighbour(30)
		cancel()
		wait.Wait()
		if took > most {
			t.Errorf("%s: a neighbour waits %s while it is attacked, and %s before", r, took, before)
		}
	}
}
