package compat

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"
	"github.com/tidwall/gjson"
)

// keeper is a provider that keeps files and batches, and speaks Realtime.
type keeper struct {
	mu    sync.Mutex
	files map[string]string // their contents, by id
}

const batchResults = `{"id":"r1","custom_id":"a","response":{"status_code":200,"body":{"id":"c1","object":"chat.completion","created":1795000000,"model":"gpt-4.1","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1000,"completion_tokens":100,"total_tokens":1100}}},"error":null}` + "\n"

func (k *keeper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	describe := func(id string) string {
		return fmt.Sprintf(`{"id":%q,"object":"file","bytes":%d,"created_at":1795000000,"filename":"calls.jsonl","purpose":"batch","status":"processed"}`, id, len(k.files[id]))
	}
	batch := func(status string) string {
		return fmt.Sprintf(`{"id":"batch_1","object":"batch","endpoint":"/v1/chat/completions","input_file_id":"file-in","output_file_id":"file-out","completion_window":"24h","created_at":1795000000,"status":%q}`, status)
	}
	id := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/v1/files/"), "/content")
	var answer string
	switch call := r.Method + " " + r.URL.Path; {
	case call == "GET /v1/realtime":
		k.realtime(w, r)
		return
	case call == "POST /v1/files":
		file, _, err := r.FormFile("file")
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		content, _ := io.ReadAll(file)
		k.files["file-in"] = string(content)
		answer = describe("file-in")
	case call == "GET /v1/files":
		answer = fmt.Sprintf(`{"object":"list","data":[%s],"first_id":"file-in","last_id":"file-in","has_more":false}`, describe("file-in"))
	case call == "POST /v1/batches":
		answer = batch("validating")
	case call == "GET /v1/batches":
		answer = fmt.Sprintf(`{"object":"list","data":[%s],"first_id":"batch_1","last_id":"batch_1","has_more":false}`, batch("completed"))
	case call == "GET /v1/batches/batch_1":
		answer = batch("completed")
	case call == "POST /v1/batches/batch_1/cancel":
		answer = batch("cancelling")
	case k.files[id] == "":
		http.Error(w, `{"error":{"message":"No such File object"}}`, http.StatusNotFound)
		return
	case strings.HasSuffix(r.URL.Path, "/content"):
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = io.WriteString(w, k.files[id])
		return
	case r.Method == http.MethodDelete:
		delete(k.files, id)
		answer = fmt.Sprintf(`{"id":%q,"object":"file","deleted":true}`, id)
	default:
		answer = describe(id)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, answer)
}

// realtime answers each response.create with a text and what it used.
func (k *keeper) realtime(w http.ResponseWriter, r *http.Request) {
	upgrader := ws.HTTPUpgrader{Protocol: func(p string) bool { return p == "realtime" }}
	conn, _, _, err := upgrader.Upgrade(r, w)
	if err != nil {
		return
	}
	go func() {
		defer conn.Close()
		send := func(events ...string) {
			for _, event := range events {
				_ = wsutil.WriteServerText(conn, []byte(event))
			}
		}
		send(`{"type":"session.created","event_id":"e1","session":{"type":"realtime","id":"sess_1","model":"gpt-realtime"}}`)
		for {
			message, err := wsutil.ReadClientText(conn)
			if err != nil {
				return
			}
			switch gjson.GetBytes(message, "type").Str {
			case "session.update":
				send(`{"type":"session.updated","event_id":"e2","session":{"type":"realtime","output_modalities":["text"]}}`)
			case "response.create":
				send(`{"type":"response.created","event_id":"e3","response":{"object":"realtime.response","id":"resp_1","status":"in_progress","output":[]}}`,
					`{"type":"response.output_text.delta","event_id":"e4","response_id":"resp_1","item_id":"i","output_index":0,"content_index":0,"delta":"spoken"}`,
					`{"type":"response.done","event_id":"e5","response":{"object":"realtime.response","id":"resp_1","status":"completed","output":[{"type":"message","id":"i","role":"assistant","content":[{"type":"output_text","text":"spoken"}]}],"usage":{"total_tokens":8,"input_tokens":3,"output_tokens":5}}}`)
			}
		}
	}()
}

// The official clients keep files, have a batch made and read its results, and speak
// Realtime. What each call of the batch and each response of the WebSocket used is
// recorded.
func TestFilesBatchesAndRealtime(t *testing.T) {
	if !*withClients {
		t.Skip("the clients need Node.js and Python: see README.md, then go test ./test/compat -compat")
	}
	for _, command := range [][]string{{"node", "node/files.js"}, {"python/.venv/bin/python", "python/files.py"}} {
		t.Run(command[0], func(t *testing.T) {
			server := httptest.NewServer(&keeper{files: map[string]string{"file-out": batchResults}})
			t.Cleanup(server.Close)
			w := startWeir(t, strings.NewReader(`{
	admin 127.0.0.1:{$WEIR_ADMIN_PORT}
	persist_config off
	grace_period 3s
	llm {
		store sqlite {$WEIR_DATA}/weir.db
		key weir-quickstart
		provider openai {
			base_url `+server.URL+`/v1
			api_key none
		}
	}
}
http://:{$WEIR_PORT} {
	bind 127.0.0.1
	llm_gateway
	llm_query
}`))
			ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
			defer cancel()
			out, err := exec.CommandContext(ctx, command[0], command[1], w.url+"/v1").CombinedOutput()
			const want = `{"uploaded":18,"listed":true,"content":"{\"custom_id\":\"a\"}","batch":"validating","batches":true,"ended":"completed","cancelled":"cancelling","results":"hi","deleted":true,"missing":true,"updated":true,"spoken":"spoken","tokens":8}`
			if got := strings.TrimSpace(string(out)); err != nil || got != want {
				t.Fatalf("%v: %s\nwant %s", err, got, want)
			}
			for model, tokens := range map[string]int64{"gpt-4.1": 1000, "gpt-realtime": 3} {
				await(t, "the record of "+model, func() bool {
					return slices.ContainsFunc(w.query(t, "model", model), func(r gjson.Result) bool { return r.Get("prompt_tokens").Int() == tokens })
				})
			}
		})
	}
}
