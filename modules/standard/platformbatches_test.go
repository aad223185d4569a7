package standard

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tidwall/gjson"
)

// batcher is a provider of batches of Messages: each of their calls has read 10 tokens and
// written 10 when a client asks for the batch.
type batcher struct {
	*httptest.Server
	mu    sync.Mutex
	made  []int // how many calls each batch has
	asked []string
}

func newBatcher(t *testing.T) *batcher {
	b := new(batcher)
	b.Server = httptest.NewServer(b)
	t.Cleanup(b.Close)
	return b
}

func (b *batcher) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	b.asked = append(b.asked, r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("X-Api-Key")+" "+string(body))
	state := func(n int, status, url string) string {
		return fmt.Sprintf(`{"id":"msgbatch_%d", "type":"message_batch","processing_status":%q,"request_counts":{"succeeded":%d},"results_url":%s}`, n, status, b.made[n], url)
	}
	results := func(n int) string {
		return fmt.Sprintf(`"https://api.anthropic.com/v1/messages/batches/msgbatch_%d/results"`, n)
	}
	w.Header().Set("Content-Type", jsonType)
	if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/batches") {
		b.made = append(b.made, int(gjson.GetBytes(body, "requests.#").Int()))
		_, _ = io.WriteString(w, state(len(b.made)-1, "in_progress", "null"))
		return
	}
	if strings.HasSuffix(r.URL.Path, "/batches") {
		fmt.Fprintf(w, `{"data":[%s],"has_more":false,"first_id":"msgbatch_0","last_id":"msgbatch_0"}`, state(0, "ended", results(0)))
		return
	}
	var n int
	if _, err := fmt.Sscanf(r.URL.Path, "/v1/messages/batches/msgbatch_%d", &n); err != nil || n >= len(b.made) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"type":"error","error":{"type":"not_found_error","message":"No batch"}}`)
		return
	}
	switch {
	case r.Method == http.MethodDelete:
		fmt.Fprintf(w, `{"id":"msgbatch_%d","type":"message_batch_deleted"}`, n)
	case strings.HasSuffix(r.URL.Path, "/results"):
		_, _ = io.WriteString(w, batchLines(b.made[n]))
	case r.Method == http.MethodPost:
		_, _ = io.WriteString(w, state(n, "canceling", "null"))
	default:
		_, _ = io.WriteString(w, state(n, "ended", results(n)))
	}
}

// batchLines are the results of so many calls.
func batchLines(calls int) (lines string) {
	for n := range calls {
		lines += fmt.Sprintf(`{"custom_id":"%d","result":{"type":"succeeded","message":{"id":"msg_%d","type":"message","role":"assistant","model":"claude-haiku-4-5","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{"input_tokens":10,"output_tokens":10}}}}`+"\n", n, n)
	}
	return lines
}

// batchOf is a request with so many calls of a model.
func batchOf(calls int, model, more string) string {
	var list []string
	for n := range calls {
		list = append(list, fmt.Sprintf(`{"custom_id":"%d","params":{"model":%q,"max_tokens":1000,"messages":[{"role":"user","content":"hi"}]%s}}`, n, model, more))
	}
	return `{"requests":[` + strings.Join(list, ",") + `]}`
}

const batchesPath = "/anthropic/v1/messages/batches"

// A batch is made with the credentials of the gateway, and who made it has its state and its
// results, at the proxy's address: bytes pass as they are but for this.
func TestKeysOfWeirPayForBatches(t *testing.T) {
	b := newBatcher(t)
	s := serveWith(t, paidConfig, b.URL)
	for n, key := range []string{"weir-root", "weir-rich", "weir-acme"} {
		account := "platform-anthropic"
		if key == "weir-acme" {
			account = "acme-anthropic"
		}
		request := batchOf(2, "claude-haiku-4-5", "")
		id := fmt.Sprintf("msgbatch_%d", n)
		address := s.url + batchesPath + "/" + id + "/results"
		for _, c := range []struct{ method, path, body, want string }{
			{"POST", "", request, `{"id":"` + id + `", "type":"message_batch","processing_status":"in_progress","request_counts":{"succeeded":2},"results_url":null}`},
			{"GET", "/" + id, "", `{"id":"` + id + `", "type":"message_batch","processing_status":"ended","request_counts":{"succeeded":2},"results_url":"` + address + `"}`},
			{"POST", "/" + id + "/cancel", "", `{"id":"` + id + `", "type":"message_batch","processing_status":"canceling","request_counts":{"succeeded":2},"results_url":null}`},
			{"GET", "/" + id + "/results", "", batchLines(2)},
			{"DELETE", "/" + id, "", `{"id":"` + id + `","type":"message_batch_deleted"}`},
		} {
			resp, answer := s.ask(c.method, batchesPath+c.path, c.body, "X-Api-Key", key)
			if resp.StatusCode != http.StatusOK || answer != c.want {
				t.Errorf("%s: %s %s: %d %s\nwant %s", key, c.method, c.path, resp.StatusCode, answer, c.want)
			}
			if want := c.method + " /v1/messages/batches" + c.path + " " + account + " " + c.body; b.asked[len(b.asked)-1] != want {
				t.Errorf("the provider got %s", b.asked[len(b.asked)-1])
			}
		}
	}
	s.flush()
	_, answer := s.ask("POST", "/v1/request/query", `{"filter":{"request_response_rmt":{"model":{"equals":"claude-haiku-4-5"}}}}`, "Authorization", "Bearer weir-rich")
	if got := gjson.Get(answer, "data"); got.Get("#").Int() != 2 || !got.Get("0.is_passthrough_billing").Bool() || got.Get("0.cost").Float() != 0.00003 {
		t.Errorf("the records of the calls are %s", answer)
	}
}

// An account that others use tells nobody of their batches.
func TestBatchesOfOthersAreNotFound(t *testing.T) {
	b := newBatcher(t)
	s := serveWith(t, paidConfig, b.URL)
	resp, answer := s.ask("POST", batchesPath, batchOf(1, "claude-haiku-4-5", ""), "X-Api-Key", "weir-rich")
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", resp.StatusCode, answer)
	}
	asked := len(b.asked)
	for name, c := range map[string]struct {
		method, path, body, key string
		status                  int
		kind                    string
	}{
		"the batch":         {"GET", "/msgbatch_0", "", "weir-root", 404, "not_found_error"},
		"its results":       {"GET", "/msgbatch_0/results", "", "weir-root", 404, "not_found_error"},
		"its end":           {"POST", "/msgbatch_0/cancel", "", "weir-root", 404, "not_found_error"},
		"its deletion":      {"DELETE", "/msgbatch_0", "", "weir-root", 404, "not_found_error"},
		"an unknown batch":  {"GET", "/msgbatch_1", "", "weir-rich", 404, "not_found_error"},
		"at an own account": {"GET", "/msgbatch_1", "", "weir-solvent", 404, "not_found_error"},
		"all batches":       {"GET", "", "", "weir-rich", 403, "permission_error"},
		"another method":    {"PUT", "/msgbatch_0", "{}", "weir-rich", 403, "permission_error"},
		"another part":      {"GET", "/msgbatch_0/requests", "", "weir-rich", 403, "permission_error"},
		"a WebSocket":       {"GET", "/msgbatch_0", "", "upgrade", 403, "permission_error"},
		"a container":       {"POST", "", batchOf(1, "claude-haiku-4-5", `,"container":"c_1"`), "weir-rich", 400, "invalid_request_error"},
		"a thread":          {"POST", "", batchOf(1, "claude-haiku-4-5", `,"thread":{"id":"t_1"}`), "weir-root", 400, "invalid_request_error"},
		"params twice":      {"POST", "", strings.Replace(batchOf(1, "claude-haiku-4-5", ""), `"params"`, `"params":{"thread":{"id":"t_1"}},"params"`, 1), "weir-root", 400, "invalid_request_error"},
		"no key":            {"GET", "/msgbatch_0", "", "", 401, "authentication_error"},
	} {
		header := []string{"X-Api-Key", c.key}
		if c.key == "upgrade" {
			header = []string{"X-Api-Key", "weir-rich", "Connection", "Upgrade", "Upgrade", "websocket"}
		}
		resp, answer := s.ask(c.method, batchesPath+c.path, c.body, header...)
		if resp.StatusCode != c.status || name != "another part" && gjson.Get(answer, "error.type").Str != c.kind {
			t.Errorf("%s: %d %s", name, resp.StatusCode, answer)
		}
	}
	if len(b.asked) > asked {
		t.Errorf("the provider was asked %q", b.asked[asked:])
	}
	if resp, answer := s.ask("GET", batchesPath, "", "X-Api-Key", "weir-acme"); resp.StatusCode != http.StatusOK || gjson.Get(answer, "data.0.results_url").Str != s.url+batchesPath+"/msgbatch_0/results" {
		t.Errorf("the list of an account of one's own: %d %s", resp.StatusCode, answer)
	}
}

// Credits cover a batch before it is made, and pay what its results say, once.
func TestCreditsPayForBatches(t *testing.T) {
	b := newBatcher(t)
	s := serveWith(t, paidConfig, b.URL)
	credits := func() (spent, reserved float64) {
		_, answer := s.ask("GET", "/v1/key", "", "Authorization", "Bearer weir-rich")
		return gjson.Get(answer, "data.credits.spent").Float(), gjson.Get(answer, "data.credits.reserved").Float()
	}
	for name, c := range map[string]struct {
		body   string
		status int
	}{
		"more than is left":     {batchOf(1000, "claude-haiku-4-5", ""), 402},
		"an unknown model":      {batchOf(1, "made-up", ""), 400},
		"a tier without prices": {batchOf(1, "claude-haiku-4-5", `,"service_tier":"priority"`), 400},
	} {
		resp, answer := s.ask("POST", batchesPath, c.body, "X-Api-Key", "weir-rich")
		if spent, reserved := credits(); resp.StatusCode != c.status || gjson.Get(answer, "type").Str != "error" || spent+reserved > 0 || len(b.asked) > 0 {
			t.Errorf("%s: %d %s, %v spent and %v held, the provider got %q", name, resp.StatusCode, answer, spent, reserved, b.asked)
		}
	}
	resp, answer := s.ask("POST", batchesPath, batchOf(100, "claude-haiku-4-5", ""), "X-Api-Key", "weir-rich")
	if spent, reserved := credits(); resp.StatusCode != http.StatusOK || spent > 0 || reserved < 0.25 || reserved > 0.26 {
		t.Errorf("%d %s: %v spent and %v held", resp.StatusCode, answer, spent, reserved)
	}
	for range 2 {
		s.ask("GET", batchesPath+"/msgbatch_0/results", "", "X-Api-Key", "weir-rich")
		if spent, reserved := credits(); spent != 0.003 || reserved > 0 {
			t.Errorf("after the results: %v spent and %v held", spent, reserved)
		}
	}
}

// A key makes batches of the models that it may call.
func TestModelsOfKeysInBatches(t *testing.T) {
	b := newBatcher(t)
	s := serveWith(t, paidConfig, b.URL)
	_, answer := s.ask("POST", "/v1/keys", `{"name":"a","scopes":["gateway"],"models":["claude-haiku-4-5"]}`, "Authorization", "Bearer weir-root")
	key := gjson.Get(answer, "data.secret").Str
	for name, c := range map[string]struct {
		body string
		ok   bool
	}{
		"the model":        {batchOf(2, "claude-haiku-4-5", ""), true},
		"another model":    {batchOf(1, "claude-opus-4-5", ""), false},
		"fallbacks":        {batchOf(1, "claude-haiku-4-5", `,"fallbacks":[{"model":"claude-opus-4-5"}]`), false},
		"no model":         {`{"requests":[{"custom_id":"a","params":{}}]}`, false},
		"nothing":          {`{}`, false},
		"an advisor":       {batchOf(1, "claude-haiku-4-5", `,"tools":[{"type":"advisor_20260301","name":"advisor","model":"claude-opus-4-5"}]`), false},
		"its model, twice": {strings.Replace(batchOf(1, "claude-haiku-4-5", ""), `"model"`, `"model":"claude-opus-4-5","model"`, 1), false},
	} {
		asked := len(b.asked)
		resp, answer := s.ask("POST", batchesPath, c.body, "X-Api-Key", key)
		if (resp.StatusCode == http.StatusOK) != c.ok || len(b.asked) > asked != c.ok || !c.ok && resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d %s", name, resp.StatusCode, answer)
		}
	}
	if resp, answer := s.ask("GET", batchesPath+"/msgbatch_0", "", "X-Api-Key", key); resp.StatusCode != http.StatusOK {
		t.Errorf("its batch: %d %s", resp.StatusCode, answer)
	}
}

// geminiBatch is a request with calls of Gemini, and more within the batch.
func geminiBatch(calls int, more string) string {
	call := `{"request":{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"generationConfig":{"maxOutputTokens":1000}}}`
	return `{"batch":{"input_config":{"requests":{"requests":[` + strings.TrimSuffix(strings.Repeat(call+",", calls), ",") + `]}` + more + `}}}`
}

// Gemini's batches are paid and bound to who made them, as Anthropic's are.
func TestKeysOfWeirPayForBatchesOfGemini(t *testing.T) {
	var asked []string
	var made atomic.Int64
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("X-Goog-Api-Key")+" "+string(body))
		w.Header().Set("Content-Type", jsonType)
		result := `{"response":{"candidates":[{"content":{"role":"model","parts":[{"text":"hi"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":10,"totalTokenCount":20},"modelVersion":"gemini-2.5-flash"}}`
		switch {
		case strings.HasSuffix(r.URL.Path, ":batchGenerateContent"):
			fmt.Fprintf(w, `{"name":"batches/%d","metadata":{"state":"BATCH_STATE_PENDING"}}`, made.Add(1))
		case r.Method == http.MethodGet:
			_, _ = io.WriteString(w, `{"name":"batches/1","done":true,"response":{"inlinedResponses":{"inlinedResponses":[`+result+`,`+result+`]}}}`)
		default:
			_, _ = io.WriteString(w, `{}`)
		}
	}))
	t.Cleanup(provider.Close)
	s := serveWith(t, paidConfig, provider.URL)
	const making = "/gemini/v1beta/models/gemini-2.5-flash:batchGenerateContent"
	for name, c := range map[string]struct {
		path, body string
		status     int
	}{
		"more than is left":    {making, geminiBatch(10_000, ""), 402},
		"a model of no price":  {strings.Replace(making, "gemini-2.5-flash", "made-up", 1), geminiBatch(1, ""), 400},
		"a file of calls":      {making, `{"batch":{"inputConfig":{"fileName":"files/1"}}}`, 400},
		"a file beside calls":  {making, geminiBatch(1, `,"file_name":"files/1"`), 400},
		"a cache of others":    {making, strings.Replace(geminiBatch(1, ""), `"contents"`, `"cachedContent":"cachedContents/1","contents"`, 1), 400},
		"a file within a call": {making, strings.Replace(geminiBatch(1, ""), `{"text":"hi"}`, `{"file_data":{"file_uri":"https://generativelanguage.googleapis.com/v1beta/files/1"}}`, 1), 400},
		"an unknown batch":     {"/gemini/v1beta/batches/7:cancel", "{}", 404},
		"another operation":    {"/gemini/v1beta/batches/7:update", "{}", 403},
	} {
		if resp, answer := s.ask("POST", c.path, c.body, "X-Goog-Api-Key", "weir-rich"); resp.StatusCode != c.status || len(asked) > 0 {
			t.Errorf("%s: %d %s, the provider got %q", name, resp.StatusCode, answer, asked)
		}
	}
	credits := func() (spent, reserved float64) {
		_, answer := s.ask("GET", "/v1/key", "", "Authorization", "Bearer weir-rich")
		return gjson.Get(answer, "data.credits.spent").Float(), gjson.Get(answer, "data.credits.reserved").Float()
	}
	resp, answer := s.ask("POST", making, geminiBatch(2, ""), "X-Goog-Api-Key", "weir-rich")
	if spent, reserved := credits(); resp.StatusCode != http.StatusOK || gjson.Get(answer, "name").Str != "batches/1" || spent > 0 || reserved < 0.002 {
		t.Errorf("%d %s: %v spent and %v held", resp.StatusCode, answer, spent, reserved)
	}
	if want := "POST /v1beta/models/gemini-2.5-flash:batchGenerateContent platform-gemini " + geminiBatch(2, ""); asked[0] != want {
		t.Errorf("the provider got %s", asked[0])
	}
	before := len(asked)
	for _, c := range []struct{ method, path, key string }{
		{"GET", "/1", "weir-root"}, {"DELETE", "/1", "weir-root"}, {"POST", "/1:cancel", "weir-root"}, {"GET", "", "weir-rich"}, {"PATCH", "/1", "weir-rich"},
	} {
		resp, answer := s.ask(c.method, "/gemini/v1beta/batches"+c.path, "", "X-Goog-Api-Key", c.key)
		if resp.StatusCode != 404 && resp.StatusCode != 403 || gjson.Get(answer, "error.status").Str == "" || len(asked) > before {
			t.Errorf("%s %s by %s: %d %s", c.method, c.path, c.key, resp.StatusCode, answer)
		}
	}
	for range 2 {
		resp, answer := s.ask("GET", "/gemini/v1beta/batches/1", "", "X-Goog-Api-Key", "weir-rich")
		if spent, reserved := credits(); resp.StatusCode != http.StatusOK || spent < 0.00001 || spent > 0.0001 || reserved > 0 {
			t.Errorf("%d %s: %v spent and %v held", resp.StatusCode, answer, spent, reserved)
		}
	}
	for _, c := range []struct{ method, path string }{{"POST", "/1:cancel"}, {"DELETE", "/1"}} {
		if resp, answer := s.ask(c.method, "/gemini/v1beta/batches"+c.path, "", "X-Goog-Api-Key", "weir-rich"); resp.StatusCode != http.StatusOK {
			t.Errorf("%s %s: %d %s", c.method, c.path, resp.StatusCode, answer)
		}
	}
}
