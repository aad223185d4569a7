//go:build linux

package durability

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testkit/freeport"
)

// key opens the store of a weir.
const key = "trust-key"

// waitLimit bounds every wait for something that must happen.
const waitLimit = 30 * time.Second

// weir is a process of Weir with files and addresses of its own, which outlive
// the process.
type weir struct {
	t *testing.T
	// dir holds all that the process may write: data, home, tmp and logs.
	dir         string
	admin, site string // host:port
	upstream    string // URL
	process     *exec.Cmd
	program     string   // the binary
	env         []string // variables of the process, beside its own
}

// config is what differs from one configuration to another.
type config struct {
	global string // global options
	// backend is the name of the default store's backend, and its arguments.
	// Default: sqlite, and the database.
	backend string
	store   string // options of the default store
	llm     string // options of llm
	site    string // directives of the site
}

func newWeir(t *testing.T, p *provider) *weir {
	t.Helper()
	w := &weir{t: t, program: *program, dir: t.TempDir(), admin: freeport.Address(t), site: freeport.Address(t), upstream: p.URL}
	for _, dir := range []string{"data", "home", "tmp", "logs"} {
		if err := os.Mkdir(filepath.Join(w.dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if w.process != nil && !t.Failed() {
			w.balances()
		}
		w.kill()
		log, _ := os.ReadFile(w.log())
		if trouble := troubles.FindIndex(log); trouble != nil {
			t.Errorf("the log tells of trouble:\n%s", log[trouble[0]:min(len(log), trouble[0]+4000)])
		} else if t.Failed() {
			t.Logf("the end of the log:\n%s", log[max(0, len(log)-4000):])
		}
	})
	return w
}

// troubles are what a Go program says when something is wrong with it.
var troubles = regexp.MustCompile(`panic: |panic serving|fatal error: |DATA RACE|unexpected fault`)

func (w *weir) log() string { return filepath.Join(w.dir, "logs", "output.log") }

func (w *weir) database() string { return filepath.Join(w.dir, "data", "weir.db") }

// caddyfile is the quickstart's, on the weir's addresses and files.
func (w *weir) caddyfile(c config) string {
	_, port, _ := net.SplitHostPort(w.site)
	return strings.NewReplacer(
		"$admin", w.admin, "$port", port, "$upstream", w.upstream, "$key", key,
		"$global", c.global, "$backend", cmp.Or(c.backend, "sqlite "+w.database()), "$store", c.store, "$llm", c.llm, "$site", c.site,
	).Replace(`{
	admin $admin
	persist_config off
	$global
	llm {
		store $backend {
			$store
		}
		key $key
		$llm
	}
}
http://:$port {
	bind 127.0.0.1
	$site
	handle_path /openai/* {
		llm_proxy openai $upstream
	}
	handle_path /anthropic/* {
		llm_proxy anthropic $upstream
	}
	handle_path /gemini/* {
		llm_proxy gemini $upstream
	}
	llm_query
}
`)
}

// launch starts a process and does not wait for it.
func (w *weir) launch(c config) {
	w.t.Helper()
	path := filepath.Join(w.dir, "Caddyfile")
	if err := os.WriteFile(path, []byte(w.caddyfile(c)), 0o600); err != nil {
		w.t.Fatal(err)
	}
	log, err := os.OpenFile(w.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		w.t.Fatal(err)
	}
	defer log.Close()
	home := filepath.Join(w.dir, "home")
	w.process = exec.Command(w.program, "run", "--config", path, "--adapter", "caddyfile")
	w.process.Dir = home
	w.process.Env = append([]string{asWeir + "=1", "HOME=" + home, "TMPDIR=" + filepath.Join(w.dir, "tmp"), "PATH=" + os.Getenv("PATH")}, w.env...)
	w.process.Stdout, w.process.Stderr = log, log
	w.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := w.process.Start(); err != nil {
		w.t.Fatal(err)
	}
}

// start starts a process and waits until it takes calls and records: Caddy
// starts its apps in no particular order.
func (w *weir) start(c config) {
	w.t.Helper()
	w.launch(c)
	w.await("the process is ready", func() bool { return w.ready() == nil && w.listens() })
}

// listens reports whether the site takes connections.
func (w *weir) listens() bool {
	connection, err := net.Dial("tcp", w.site)
	if err != nil {
		return false
	}
	connection.Close()
	return true
}

// await waits until something is true, which must happen.
func (w *weir) await(what string, happened func() bool) {
	w.t.Helper()
	for end := time.Now().Add(waitLimit); !happened(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("%s: that did not come about", what)
		}
	}
}

// kill ends the process as a crash does.
func (w *weir) kill() {
	if w.process != nil {
		_ = w.process.Process.Kill()
		_ = w.process.Wait()
		w.process = nil
	}
}

// terminate asks the process to end; wait waits until it has.
func (w *weir) terminate() {
	w.t.Helper()
	if err := w.process.Process.Signal(syscall.SIGTERM); err != nil {
		w.t.Fatal(err)
	}
}

func (w *weir) wait() {
	w.t.Helper()
	if err := w.process.Wait(); err != nil {
		w.t.Errorf("the process ended with %v", err)
	}
	w.process = nil
}

func (w *weir) pid() int { return w.process.Process.Pid }

// ask asks the admin endpoint.
func (w *weir) ask(method, path, body string) ([]byte, error) {
	r, err := http.NewRequest(method, "http://"+w.admin+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != "" {
		r.Header.Set("Content-Type", "text/caddyfile")
	}
	return exchange(r)
}

var direct = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: waitLimit}

func exchange(r *http.Request) ([]byte, error) {
	response, err := direct.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: %s: %s", r.Method, r.URL.Path, response.Status, answer)
	}
	return answer, err
}

func (w *weir) ready() error {
	_, err := w.ask("GET", "/llm/health/ready", "")
	return err
}

// reload replaces the configuration, and Caddy its admin server with it.
func (w *weir) reload(c config) error {
	_, err := w.ask("POST", "/load", w.caddyfile(c))
	for range 2 {
		if !isDropped(err) {
			break
		}
		_, err = w.ask("POST", "/load", w.caddyfile(c))
	}
	return err
}

// isDropped reports whether a reload dropped a request before anything acted on it: the
// kernel gave its connection to the listener that was closed, or the server before read
// the request after its Shutdown had begun (net/http's conn.serve). It may be sent again.
func isDropped(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)
}

// flush waits until everything that was recorded can be queried.
func (w *weir) flush() {
	w.t.Helper()
	if _, err := w.ask("POST", "/llm/flush", ""); err != nil {
		w.t.Fatal(err)
	}
}

// status is what /llm/status says of the default store.
type status struct {
	Store          string           `json:"store"`
	PendingRecords int64            `json:"pending_records"`
	RawSegments    int              `json:"raw_segments"`
	SealedSegments int              `json:"sealed_segments"`
	Appended       int64            `json:"appended"`
	Lost           map[string]int64 `json:"lost"`
	Error          string           `json:"error"`
}

func (s *status) lost() (n int64) {
	for _, lost := range s.Lost {
		n += lost
	}
	return n
}

func (w *weir) status() *status {
	w.t.Helper()
	answer, err := w.ask("GET", "/llm/status", "")
	if err != nil {
		w.t.Fatal(err)
	}
	var stores []*status
	if err := json.Unmarshal(answer, &stores); err != nil {
		w.t.Fatalf("%v in %s", err, answer)
	}
	for _, s := range stores {
		if s.Store == "default" {
			return s
		}
	}
	w.t.Fatalf("the default store is not in %s", answer)
	return nil
}

// metric is the sum of all series of a metric.
func (w *weir) metric(name string) (sum float64) {
	w.t.Helper()
	answer, err := w.ask("GET", "/metrics", "")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, line := range strings.Split(string(answer), "\n") {
		if rest, ok := strings.CutPrefix(line, name); ok && (rest[0] == '{' || rest[0] == ' ') {
			value, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
			if err != nil {
				w.t.Fatalf("%v in %s", err, line)
			}
			sum += value
		}
	}
	return sum
}

var goroutineCount = regexp.MustCompile(`goroutine profile: total (\d+)`)

func (w *weir) goroutines() int {
	w.t.Helper()
	answer, err := w.ask("GET", "/debug/pprof/goroutine?debug=1", "")
	if err != nil {
		w.t.Fatal(err)
	}
	count := goroutineCount.FindSubmatch(answer)
	if count == nil {
		w.t.Fatalf("no count in %.200s", answer)
	}
	n, _ := strconv.Atoi(string(count[1]))
	return n
}

func (w *weir) descriptors() int {
	w.t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", w.pid()))
	if err != nil {
		w.t.Fatal(err)
	}
	return len(entries)
}

// record is what a query answers of one call.
type record struct {
	ID                string          `json:"request_id"`
	User              string          `json:"request_user_id"`
	Status            *int            `json:"response_status"`
	EndState          string          `json:"end_state"`
	PromptTokens      *int            `json:"prompt_tokens"`
	CompletionTokens  *int            `json:"completion_tokens"`
	Cost              *float64        `json:"cost"`
	Latency           *int            `json:"delay_ms"`
	RequestOmitted    bool            `json:"request_omitted"`
	ResponseOmitted   bool            `json:"response_omitted"`
	RequestTruncated  bool            `json:"request_truncated"`
	ResponseTruncated bool            `json:"response_truncated"`
	RequestBody       json.RawMessage `json:"request_body"`
	ResponseBody      json.RawMessage `json:"response_body"`
	Inputs            json.RawMessage `json:"inputs"`
}

// records are those of the default store since a time, by what calls they are
// of, or by their own ids where no user is named. A call that has two is an error.
func (w *weir) records(since time.Time) map[string]*record {
	w.t.Helper()
	return w.query("", key, since)
}

func (w *weir) query(prefix, key string, since time.Time) map[string]*record {
	w.t.Helper()
	const page = 1000
	records := map[string]*record{}
	for offset := 0; ; offset += page {
		body := fmt.Sprintf(`{"filter":{"request_response_rmt":{"request_created_at":{"gte":%q}}},
			"sort":{"created_at":"asc"},"limit":%d,"offset":%d,"includeInputs":true}`,
			since.UTC().Format("2006-01-02T15:04:05.000Z"), page, offset)
		r, err := http.NewRequest("POST", "http://"+w.site+prefix+"/v1/request/query-clickhouse", strings.NewReader(body))
		if err != nil {
			w.t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+key)
		answer, err := exchange(r)
		if err != nil {
			w.t.Fatal(err)
		}
		var result struct{ Data []*record }
		if err := json.Unmarshal(answer, &result); err != nil {
			w.t.Fatalf("%v in %.300s", err, answer)
		}
		for _, r := range result.Data {
			name := cmp.Or(r.User, r.ID)
			if first := records[name]; first != nil {
				w.t.Errorf("%s has two records: %s and %s", name, first.ID, r.ID)
			}
			records[name] = r
		}
		if len(result.Data) < page {
			return records
		}
	}
}

// has reports whether a body that was answered has a text.
func has(body json.RawMessage, text string) bool {
	return bytes.Contains(body, []byte(text))
}
