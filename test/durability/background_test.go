//go:build linux

package durability

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

// TestBackgroundAndConversationsSurvive reloads, kills and starts Weir. A response in
// the background outlives a configuration, and one that a kill has cut off has failed; a
// conversation has each turn whose end its client saw.
func TestBackgroundAndConversationsSurvive(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	w := newWeir(t, p)
	begun, proceed := make(chan struct{}, 8), make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		if strings.Contains(string(body), "hold") {
			begun <- struct{}{}
			select {
			case <-proceed:
			case <-r.Context().Done():
				return
			}
		}
		p.answerPrompt(w, r)
	}))
	t.Cleanup(upstream.Close)
	defer close(proceed) // a test that fails leaves no call behind that Close would wait for
	c := config{site: "llm_gateway", llm: fmt.Sprintf("provider anthropic {\nbase_url %s\napi_key x\n}", upstream.URL)}
	w.start(c)
	do := func(method, path, body string) string {
		t.Helper()
		status, answer := w.as(t, key, method, path, body)
		if status != http.StatusOK {
			t.Fatalf("%s %s: %d %s", method, path, status, answer)
		}
		return answer
	}
	request := func(prompt, fields string) string {
		return fmt.Sprintf(`{"model":"claude-haiku-4-5","input":%q%s}`, prompt, fields)
	}
	conversation := "/v1/conversations/" + gjson.Get(do("POST", "/v1/conversations", `{"items":[{"role":"user","content":"zeroth"}]}`), "id").Str
	named := fmt.Sprintf(`,"conversation":%q`, strings.TrimPrefix(conversation, "/v1/conversations/"))
	do("POST", "/v1/responses", request(p.call(messages).prompt, named))
	waitFor := func(id string, statuses ...string) string {
		t.Helper()
		for until := time.Now().Add(20 * time.Second); ; {
			answer := do("GET", "/v1/responses/"+id, "")
			status := gjson.Get(answer, "status").Str
			for _, s := range statuses {
				if status == s {
					return answer
				}
			}
			if time.Now().After(until) {
				t.Fatalf("the response is %s", answer)
			}
		}
	}

	held := gjson.Get(do("POST", "/v1/responses", request("hold "+p.call(messages).prompt, `,"background":true`)), "id").Str
	<-begun
	c.site = "llm_gateway {\nretries 0\n}"
	if err := w.reload(c); err != nil {
		t.Fatal(err)
	}
	if status := gjson.Get(do("GET", "/v1/responses/"+held, ""), "status").Str; status != "queued" && status != "in_progress" {
		t.Errorf("after a reload it is %s", status)
	}
	proceed <- struct{}{}
	waitFor(held, "completed")

	killed := gjson.Get(do("POST", "/v1/responses", request("hold "+p.call(messages).prompt, `,"background":true`)), "id").Str
	<-begun
	w.kill()
	w.start(c)
	if answer := waitFor(killed, "failed"); gjson.Get(answer, "id").Str != killed || gjson.Get(answer, "error.code").Str != "server_error" {
		t.Error(answer)
	}
	if items := do("GET", conversation+"/items?order=asc", ""); gjson.Get(items, "data.#").Int() != 3 || gjson.Get(items, "data.0.content.0.text").Str != "zeroth" {
		t.Error(items)
	}
	do("POST", "/v1/responses", request(p.call(messages).prompt, named))
	if items := do("GET", conversation+"/items", ""); gjson.Get(items, "data.#").Int() != 5 {
		t.Error(items)
	}
}
