//go:build linux

package cluster

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// A node answers for a response that another one generates in the background, cancels it,
// and says that it failed when its node was killed.
func TestNodesAnswerForEachOther(t *testing.T) {
	proceed := make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"id":"1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"hel"}}]}`+"\n\n")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-proceed:
		case <-r.Context().Done():
			return
		}
		fmt.Fprint(w, `data: {"id":"1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(upstream.Close)
	_, started := sharing(t, `{
		admin off
		persist_config off
		llm {
			store sqlite {$WEIR_DATA}/weir.db {
				shared redis {$REDIS_URL} {
					lease 2s
				}
			}
			secret the-same
			provider lab compatible {
				base_url {$UPSTREAM}
				api_key x
			}
			key k
		}
	}
	http://:{$WEIR_PORT} {
		bind 127.0.0.1
		llm_gateway
		llm_health
	}
	`, 2, "UPSTREAM="+upstream.URL)
	a, b := started[0].address()+"/v1/responses", started[1].address()+"/v1/responses"
	do := func(method, url, body string) string {
		t.Helper()
		_, answer := ask(t, method, url, body)
		return answer
	}
	begin := func() string {
		t.Helper()
		answer := do("POST", a, `{"model":"lab/m","input":"hi","background":true}`)
		id := gjson.Get(answer, "id").Str
		if id == "" {
			t.Fatal(answer)
		}
		return "/" + id
	}
	until := func(url, status string) string {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			answer := do("GET", url, "")
			if gjson.Get(answer, "status").Str == status {
				return answer
			}
			if time.Now().After(deadline) {
				t.Fatalf("it is not %s: %s", status, answer)
			}
		}
	}

	id := begin()
	until(b+id, "in_progress")
	if answer := do("POST", b+id+"/cancel", ""); gjson.Get(answer, "status").Str != "cancelled" {
		t.Error(answer)
	}
	until(a+id, "cancelled")

	id = begin()
	until(b+id, "in_progress")
	streamed := make(chan string)
	go func() { streamed <- do("GET", b+id+"?stream=true", "") }()
	proceed <- struct{}{}
	if stream := <-streamed; !strings.Contains(stream, "response.completed") || stream != do("GET", a+id+"?stream=true", "") {
		t.Error(stream)
	}
	if answer := until(b+id, "completed"); gjson.Get(answer, "output.0.content.0.text").Str != "hello" {
		t.Error(answer)
	}

	id = begin()
	until(b+id, "in_progress")
	_ = started[0].process.Process.Kill()
	if answer := until(b+id, "failed"); gjson.Get(answer, "error.code").Str != "server_error" {
		t.Error(answer)
	}
	if stream := do("GET", b+id+"?stream=true", ""); !strings.Contains(stream, "event: response.failed") || !strings.HasSuffix(stream, "data: [DONE]\n\n") {
		t.Error(stream)
	}
}
