package compat

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"
)

// messageBatches is a provider of batches of Messages. Each has ended when a client asks for it,
// and its last call has failed. It takes what Anthropic takes.
type messageBatches struct {
	mu      sync.Mutex
	made    []string // the requests that made the batches, "" for those that were deleted
	latest  string
	refused []string
}

var customID = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// refuses says what is wrong with a request, "" if nothing is.
func (m *messageBatches) refuses(r *http.Request, body string) string {
	if r.Header.Get("Anthropic-Version") == "" || r.Header.Get("X-Api-Key") != "upstream" || r.Header.Get("Authorization") != "" {
		return fmt.Sprintf("header: %v", r.Header)
	}
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/batches") {
		return ""
	}
	known := make(map[string]bool)
	for _, call := range gjson.Get(body, "requests").Array() {
		id, params := call.Get("custom_id").Str, call.Get("params")
		if known[id] || !customID.MatchString(id) || params.Get("model").Str != "claude-haiku-4-5" || params.Get("max_tokens").Int() < 1 || params.Get("stream").Exists() {
			return "requests: " + call.Raw
		}
		known[id] = true
	}
	if len(known) == 0 {
		return "requests: too few"
	}
	return ""
}

func (m *messageBatches) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.URL.Path == "/received" {
		_, _ = io.WriteString(w, m.latest)
		return
	}
	text, _ := io.ReadAll(r.Body)
	fail := func(status int, kind, message string) {
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"type":"error","error":{"type":%q,"message":%q},"request_id":"req_1"}`, kind, message)
	}
	w.Header().Set("Content-Type", "application/json")
	if wrong := m.refuses(r, string(text)); wrong != "" {
		m.refused = append(m.refused, wrong)
		fail(http.StatusBadRequest, "invalid_request_error", wrong)
		return
	}
	object := func(n int, status string) string {
		calls, ended := gjson.Get(m.made[n], "requests.#").Int(), status == "ended"
		counts := fmt.Sprintf(`{"processing":%d,"succeeded":0,"errored":0,"canceled":0,"expired":0}`, calls)
		url, at, cancelled := "null", "null", "null"
		if ended {
			counts = fmt.Sprintf(`{"processing":0,"succeeded":%d,"errored":1,"canceled":0,"expired":0}`, calls-1)
			url, at = fmt.Sprintf(`"https://api.anthropic.com/v1/messages/batches/msgbatch_%d/results"`, n), `"2026-11-20T15:14:05Z"`
		}
		if status == "canceling" {
			cancelled = `"2026-11-20T15:05:05Z"`
		}
		return fmt.Sprintf(`{"id":"msgbatch_%d","type":"message_batch","processing_status":%q,"request_counts":%s,"ended_at":%s,"created_at":"2026-11-20T15:04:05Z",`+
			`"expires_at":"2026-11-21T15:04:05Z","archived_at":null,"cancel_initiated_at":%s,"results_url":%s}`, n, status, counts, at, cancelled, url)
	}
	path := strings.TrimPrefix(r.URL.Path, "/v1/messages/batches")
	if path == "" && r.Method == http.MethodPost {
		m.made, m.latest = append(m.made, string(text)), string(text)
		_, _ = io.WriteString(w, object(len(m.made)-1, "in_progress"))
		return
	}
	if path == "" {
		last := len(m.made) - 1
		fmt.Fprintf(w, `{"data":[%s],"has_more":false,"first_id":"msgbatch_%d","last_id":"msgbatch_%[2]d"}`, object(last, "ended"), last)
		return
	}
	var n int
	if _, err := fmt.Sscanf(path, "/msgbatch_%d", &n); err != nil || n >= len(m.made) || m.made[n] == "" {
		fail(http.StatusNotFound, "not_found_error", "No such batch.")
		return
	}
	switch {
	case r.Method == http.MethodDelete:
		m.made[n] = ""
		fmt.Fprintf(w, `{"id":"msgbatch_%d","type":"message_batch_deleted"}`, n)
	case r.Method == http.MethodPost:
		_, _ = io.WriteString(w, object(n, "canceling"))
	case strings.HasSuffix(path, "/results"):
		w.Header().Set("Content-Type", "application/x-jsonl")
		calls := gjson.Get(m.made[n], "requests.#.custom_id").Array()
		for i := len(calls) - 1; i >= 0; i-- { // in no order
			result := `{"type":"succeeded","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-haiku-4-5","content":[{"type":"text","text":"hello","citations":null}],` +
				`"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1000,"output_tokens":100}}}`
			if i == len(calls)-1 {
				result = `{"type":"errored","error":{"type":"error","error":{"type":"invalid_request_error","message":"no"},"request_id":null}}`
			}
			fmt.Fprintf(w, `{"custom_id":%q,"result":%s}`+"\n", calls[i].Str, result)
		}
	default:
		_, _ = io.WriteString(w, object(n, "ended"))
	}
}

// lanesOfBatches are the ways to a provider of batches, by their paths, with names of its model.
var lanesOfBatches = map[string][]string{
	"/llm":  {"fast", "anthropic/claude-haiku-4-5"},
	"/paid": {"claude-haiku-4-5", "claude-haiku-4-5"},
}

// Anthropic's clients have batches made, list, read, end and delete them, and read their results
// where the batch says. What each call used is recorded.
func TestMessageBatches(t *testing.T) {
	if !*withClients {
		t.Skip("the clients need Node.js and Python: see README.md, then go test ./test/compat -compat")
	}
	for _, command := range [][]string{{"node", "node/batches.js"}, {"python/.venv/bin/python", "python/batches.py"}} {
		for lane, models := range lanesOfBatches {
			t.Run(command[0]+lane, func(t *testing.T) { testMessageBatches(t, command, lane, models) })
		}
	}
}

func testMessageBatches(t *testing.T, command []string, lane string, models []string) {
	m := new(messageBatches)
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	w := startWeir(t, strings.NewReader(`{
	admin 127.0.0.1:{$WEIR_ADMIN_PORT}
	persist_config off
	grace_period 3s
	llm {
		store sqlite {$WEIR_DATA}/weir.db
		key weir-quickstart
		provider anthropic {
			base_url `+server.URL+`
			api_key upstream
		}
		provider echo
		alias fast anthropic/claude-haiku-4-5
		budget all 1 total
	}
}
http://:{$WEIR_PORT} {
	bind 127.0.0.1
	handle_path /llm/* {
		llm_gateway
	}
	handle_path /paid/* {
		llm_proxy anthropic {
			credentials platform
		}
	}
	llm_query
}`))
	ctx, cancel := context.WithTimeout(t.Context(), 12*patience) // the types of the library for Python take long to be read
	defer cancel()
	args := append([]string{command[1], w.url + lane, server.URL + "/received"}, models...)
	out, err := exec.CommandContext(ctx, command[0], args...).CombinedOutput()
	const one = `{"batch":"in_progress","ended":"ended","listed":[true],"models":["claude-haiku-4-5"],"results":{"b":"errored","a":"hello"},` +
		`"cancelled":"canceling","deleted":"message_batch_deleted","missing":"not_found_error","mixed":"invalid_request_error"}`
	const want = `{"messages":` + one + `,"beta":` + one + `}`
	if got := strings.TrimSpace(string(out)); err != nil || got != want {
		t.Fatalf("%v: %s\nwant %s", err, got, want)
	}
	if len(m.refused) > 0 && lane == "/llm" {
		t.Errorf("the provider refused %q", m.refused)
	}
	await(t, "the records of the calls", func() bool {
		charged := 0
		for _, r := range w.query(t, "model", "claude-haiku-4-5") {
			if r.Get("prompt_tokens").Int() == 1000 && r.Get("cost").Float() == 0.00075 {
				charged++
			}
		}
		return charged == 2
	})
}
