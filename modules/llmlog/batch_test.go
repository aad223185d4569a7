package llmlog

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/tidwall/gjson"
)

// batching is a proxy to a provider of batches, whose calls a budget counts: a token in costs
// a thousandth of a dollar in a batch, a token out two.
type batching struct {
	*site
	t     *testing.T
	calls atomic.Int64
	// answers are those of the provider, by method and path.
	answers map[string]string
	status  int   // of a POST of a batch; 0: 200
	fails   error // of all requests
}

func newBatching(t *testing.T, budget object) *batching {
	t.Helper()
	b := &batching{t: t, answers: make(map[string]string)}
	prices := filepath.Join(t.TempDir(), "prices.json")
	price := `"context": 1000, "max_output": 1000, "input": ["text"], "output": ["text"], "prices": [{"input": "2000", "output": "4000"}`
	if err := os.WriteFile(prices, []byte(`{"providers": [{"id": "one", "models": [
		{"id": "m", `+price+`, {"tier": "batch", "input": "1000", "output": "2000"}]}, {"id": "n", `+price+`, {"tier": "batch", "input": "1000", "output": "2000"}]},
		{"id": "dear", `+price+`]}]}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	budget["name"] = "all"
	budget["window"] = "total"
	b.site = serve(t, options{
		config: object{"provider": "one"}, app: object{"catalog": prices, "budgets": []object{budget}},
		handler: caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
			if b.fails != nil {
				return b.fails
			}
			b.calls.Add(1)
			_, _ = io.Copy(io.Discard, r.Body)
			answer := b.answers[r.Method+" "+r.URL.Path]
			w.Header().Set("Content-Type", "application/json")
			if r.Method == http.MethodPost && b.status != 0 && strings.HasSuffix(r.URL.Path, "/batches") {
				w.WriteHeader(b.status)
			}
			_, err := io.WriteString(w, answer)
			return err
		}),
	})
	return b
}

// ask sends a request, and waits until its record has ended.
func (b *batching) ask(method, path, body string, header ...string) (int, gjson.Result) {
	b.t.Helper()
	resp, answer := b.do(method, path, body, header...)
	eventually(b.t, b.kept.ended)
	return resp.StatusCode, gjson.Parse(answer)
}

// last is the last record.
func (b *batching) last() *entry {
	b.kept.mu.Lock()
	defer b.kept.mu.Unlock()
	return &b.kept.entries[len(b.kept.entries)-1]
}

// want checks what the budget counts, in thousandths of a dollar.
func (b *batching) want(when string, spent, reserved int64) {
	b.t.Helper()
	if s, r := counted(b.t); s != spent || r != reserved {
		b.t.Errorf("%s: spent %d, reserved %d, want %d and %d", when, s, r, spent, reserved)
	}
}

// params is a call that takes 46 bytes and 10 tokens out: at most 46 + 20.
const params = `{"model":"m","max_tokens":10,"messages":["a"]}`

func claude(calls ...string) string {
	for i, call := range calls {
		calls[i] = fmt.Sprintf(`{"custom_id":"%d","params":%s}`, i, call)
	}
	return `{"requests":[` + strings.Join(calls, ",") + `]}`
}

const (
	claudeMade  = `{"id":"msgbatch_1","type":"message_batch","processing_status":"in_progress","request_counts":{"processing":2,"succeeded":0}}`
	claudeEnded = `{"id":"msgbatch_1","type":"message_batch","processing_status":"ended","request_counts":{"processing":0,"succeeded":%d,"errored":%d}}`
	claudeOne   = `{"custom_id":"0","result":{"type":"succeeded","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"a"}],"stop_reason":"end_turn","usage":{"input_tokens":7,"output_tokens":3}}}}` + "\n"
	claudeTwo   = `{"custom_id":"1","result":{"type":"errored","error":{"type":"error","error":{"type":"invalid_request_error","message":"no"}}}}` + "\n"
	results     = "/v1/messages/batches/msgbatch_1/results"
)

// The calls of a batch of Anthropic's are set aside until its results tell what they cost.
func TestBudgetsBoundBatchesOfCalls(t *testing.T) {
	b := newBatching(t, object{"limit": "0.15"})
	b.answers["POST /v1/messages/batches"] = claudeMade
	if status, answer := b.ask("POST", "/v1/messages/batches", claude(params, params, params)); status != http.StatusPaymentRequired || b.calls.Load() != 0 {
		t.Fatalf("three calls of 66: %d %s", status, answer)
	}
	for name, body := range map[string]string{
		"a model without a price of batches": claude(params, strings.Replace(params, `"m"`, `"dear"`, 1)),
		"a file that is not known":           `{"input_file_id":"file-1","endpoint":"/v1/chat/completions"}`,
		"nothing":                            `{}`,
	} {
		if status, answer := b.ask("POST", "/v1/messages/batches", body); status != http.StatusBadRequest || answer.Get("error.details.error_code").Str != "model_not_priced" || b.calls.Load() != 0 {
			t.Errorf("%s: %d %s", name, status, answer)
		}
	}
	if status, answer := b.ask("POST", "/v1/messages/batches", claude(params, params)); status != http.StatusOK {
		t.Fatalf("two calls: %d %s", status, answer)
	}
	b.want("while the batch runs", 0, 132)
	if status, answer := b.ask("POST", "/v1/messages/batches", claude(params)); status != http.StatusTooManyRequests || answer.Get("error.details.error_code").Str != "budget_reserved" {
		t.Errorf("a call beside: %d %s", status, answer)
	}
	get := "GET /v1/messages/batches/msgbatch_1"
	for _, b.answers[get] = range []string{claudeMade, fmt.Sprintf(claudeEnded, 1, 1), "{}"} {
		b.ask("GET", "/v1/messages/batches/msgbatch_1", "")
		b.want("when its results are unknown", 0, 132)
	}
	b.answers["GET "+results] = claudeOne
	b.ask("GET", results, "")
	b.want("after a part of the results", 0, 132)
	b.answers["GET "+results] = claudeOne + claudeTwo
	for range 2 {
		b.ask("GET", results, "", "Service-Model-Override", "dear")
		b.want("after the results", 13, 0)
	}
	var sum int64
	b.kept.mu.Lock()
	defer b.kept.mu.Unlock()
	for _, e := range b.kept.entries {
		sum += int64(e.Cost.N)
	}
	if sum != 13e6 {
		t.Errorf("the records cost %d", sum)
	}
}

// What a batch has set aside is free when no call of it is charged.
func TestBatchesThatCostNothing(t *testing.T) {
	for name, end := range map[string]func(*batching){
		"the provider refuses it": func(b *batching) { b.status = http.StatusTooManyRequests },
		"the provider fails":      func(b *batching) { b.status = http.StatusInternalServerError },
		"all calls have failed": func(b *batching) {
			b.answers["GET /v1/messages/batches/msgbatch_1"] = fmt.Sprintf(claudeEnded, 0, 2)
		},
	} {
		b := newBatching(t, object{"limit": "0.15"})
		b.answers["POST /v1/messages/batches"] = claudeMade
		end(b)
		b.ask("POST", "/v1/messages/batches", claude(params, params))
		b.ask("GET", "/v1/messages/batches/msgbatch_1", "")
		b.want(name, 0, 0)
		stop(t, b.site)
	}
}

// A provider that may have taken a batch works on: what may be spent stays set aside.
func TestBatchesWhoseAnswerIsLost(t *testing.T) {
	b := newBatching(t, object{"limit": "0.15"})
	b.fails = caddyhttp.Error(http.StatusBadGateway, io.ErrUnexpectedEOF)
	b.ask("POST", "/v1/messages/batches", claude(params, params))
	b.want("without an answer", 0, 132)
}

// file is a form with the calls of a batch.
func file(calls ...string) (body string, header []string) {
	var lines []string
	for i, call := range calls {
		lines = append(lines, fmt.Sprintf(`{"custom_id":"%d","method":"POST","url":"/v1/chat/completions","body":%s}`, i, call))
	}
	return "--b\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n" +
		strings.Join(lines, "\n") + "\r\n--b--\r\n", []string{"Content-Type", "multipart/form-data; boundary=b"}
}

// openAI is an object of a batch in a state, with what it states.
func openAI(status, more string) string {
	return `{"id":"batch_1","object":"batch","input_file_id":"file-1","status":"` + status + `"` + more + `}`
}

const madeOf = `{"input_file_id":"file-1","endpoint":"/v1/chat/completions","completion_window":"24h"}`

// The calls of a batch of OpenAI's are known since its file was uploaded, and cost what the
// batch states in the end.
func TestBudgetsBoundBatchesOfFiles(t *testing.T) {
	b := newBatching(t, object{"limit": "0.15"})
	b.answers["POST /v1/files"] = `{"id":"file-1","object":"file"}`
	b.answers["POST /v1/batches"] = openAI("validating", `,"usage":{"input_tokens":0,"output_tokens":0},"request_counts":{"total":0,"completed":0,"failed":0}`)
	b.answers["POST /v1/batches/batch_1/cancel"] = openAI("cancelling", "")
	refused := func(when string, body string) {
		t.Helper()
		before := b.calls.Load()
		if status, answer := b.ask("POST", "/v1/batches", body); status != http.StatusBadRequest || answer.Get("error.code").Str != "model_not_priced" || b.calls.Load() != before {
			t.Errorf("%s: %d %s", when, status, answer)
		}
	}
	refused("a file that was not uploaded", madeOf)
	form, header := file(params, params)
	if status, answer := b.ask("POST", "/v1/files", form, header...); status != http.StatusOK {
		t.Fatalf("the upload: %d %s", status, answer)
	}
	b.want("after the upload", 0, 0)
	refused("another endpoint", strings.Replace(madeOf, "chat/completions", "responses", 1))
	refused("two files", strings.Replace(madeOf, "{", `{"input_file_id":"file-2",`, 1))
	refused("another file", strings.Replace(madeOf, "file-1", "file-2", 1))
	if status, answer := b.ask("POST", "/v1/batches", madeOf); status != http.StatusOK {
		t.Fatalf("the batch: %d %s", status, answer)
	}
	b.want("while the batch runs", 0, 132)
	if r := b.last(); gjson.Get(string(r.Batch), "parts.0.calls").Int() != 2 || r.Cost.N != 0 {
		t.Errorf("the record of the batch has %s and costs %v", r.Batch, r.Cost)
	}
	if status, answer := b.ask("POST", "/v1/batches/batch_1/cancel", ""); status != http.StatusOK {
		t.Errorf("the end of the batch: %d %s", status, answer)
	}
	get := "GET /v1/batches/batch_1"
	for _, b.answers[get] = range []string{
		openAI("in_progress", `,"usage":{"input_tokens":7,"output_tokens":3}`), openAI("completed", `,"request_counts":{"total":2,"completed":1,"failed":1}`),
	} {
		b.ask("GET", "/v1/batches/batch_1", "")
		b.want("when its usage is unknown", 0, 132)
	}
	b.answers[get] = openAI("cancelled", `,"request_counts":{"total":2,"completed":1,"failed":1},"usage":{"input_tokens":7,"input_tokens_details":{"cached_tokens":0},"output_tokens":3,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":10}`)
	for range 2 {
		b.ask("GET", "/v1/batches/batch_1", "")
		b.want("when its usage is stated", 13, 0)
	}
}

// A file that another organisation has uploaded, one that the provider has not taken, and one
// that came encoded tell nothing.
func TestFilesThatAreNotKnown(t *testing.T) {
	b := newBatching(t, object{"limit": "0.15"})
	b.answers["POST /v1/batches"] = openAI("validating", "")
	form, header := file(params)
	b.answers["POST /v1/files"] = `{"id":"file-1","object":"file"}`
	b.ask("POST", "/v1/files", form, append(header, "Content-Encoding", "gzip")...)
	if status, answer := b.ask("POST", "/v1/batches", madeOf); status != http.StatusBadRequest {
		t.Errorf("of a file that came encoded: %d %s", status, answer)
	}
	b.ask("POST", "/v1/files", form, header...)
	b.last().Org = "other"
	if status, answer := b.ask("POST", "/v1/batches", madeOf); status != http.StatusBadRequest {
		t.Errorf("of another organisation's file: %d %s", status, answer)
	}
	b.kept.mu.Lock()
	for i := range b.kept.entries {
		e := &b.kept.entries[i]
		e.Org, e.GatewayNode = "default", "" // as of what was imported
	}
	b.kept.mu.Unlock()
	if status, answer := b.ask("POST", "/v1/batches", madeOf); status != http.StatusBadRequest {
		t.Errorf("of a file whose record was imported: %d %s", status, answer)
	}
}

// A budget of tokens, one of a single model, and one that lets batches of unknown cost pass
// count batches as they count calls.
func TestWhichBudgetsCountBatches(t *testing.T) {
	of := func(model string) object {
		return object{"limit": "0.15", "filter": object{"request_response_rmt": object{"model": object{"equals": model}}}}
	}
	both := claude(params, strings.Replace(params, `"m"`, `"n"`, 1))
	for name, c := range map[string]struct {
		budget   object
		body     string
		status   int
		reserved int64
	}{
		"a budget of the model":           {of("m"), claude(params), 200, 66},
		"a budget of one of two models":   {of("n"), both, 200, 132},
		"a budget of another model":       {of("x"), both, 200, 0},
		"a model that is not known":       {of("x"), `{"requests":[]}`, 400, 0},
		"a batch of unknown cost passes":  {object{"limit": "0.15", "on_unpriced": "pass"}, `{"requests":[]}`, 200, 0},
		"a batch whose cost is known":     {object{"limit": "0.15", "on_unpriced": "pass"}, claude(params), 200, 66},
		"a limit of requests":             {object{"limit": "1", "quantity": "requests"}, claude(params, params), 200, 0},
		"a limit of tokens":               {object{"limit": "112", "quantity": "tokens"}, claude(params, params), 200, 0},
		"a limit of tokens that is short": {object{"limit": "111", "quantity": "tokens"}, claude(params, params), 429, 0},
	} {
		b := newBatching(t, c.budget)
		b.answers["POST /v1/messages/batches"] = claudeMade
		if status, answer := b.ask("POST", "/v1/messages/batches", c.body); status != c.status {
			t.Errorf("%s: %d %s", name, status, answer)
		}
		b.want(name, 0, c.reserved)
		stop(t, b.site)
	}
}

// A path is that of an upload or of the end of a batch only if it is theirs: what a provider
// charges for has a price, or is refused.
func TestWhatIsFreeBesideBatches(t *testing.T) {
	b := newBatching(t, object{"limit": "0.15"})
	for path, status := range map[string]int{
		"/v1/files": 200, "/v1/batches/batch_1/cancel": 200, "/v1beta/batches/a:cancel": 200, "/v1/messages/batches/a/cancel": 200,
		"/v1/vector_stores/vs_1/files": 400, "/v1/containers/c_1/files": 400, "/v1/batches/a/b/cancel": 400, "/v1/fine_tuning/jobs/a/cancel": 400,
	} {
		if got, answer := b.ask("POST", path, "{}"); got != status {
			t.Errorf("%s: %d %s", path, got, answer)
		}
	}
}

// Gemini's calls stand in the request, and their results in the batch: a client may ask for a
// part of them, which tells nothing.
func TestBudgetsBoundBatchesOfGemini(t *testing.T) {
	b := newBatching(t, object{"limit": "5"})
	b.answers["POST /v1beta/models/m:batchGenerateContent"] = `{"name":"batches/1","metadata":{"state":"BATCH_STATE_PENDING"}}`
	request := `{"request":{"contents":[{"parts":[{"text":"a"}]}]}}`
	if status, answer := b.ask("POST", "/v1beta/models/m:batchGenerateContent", `{"batch":{"input_config":{"requests":{"requests":[`+request+`]}}}}`); status != http.StatusOK {
		t.Fatalf("%d %s", status, answer)
	}
	b.want("while the batch runs", 0, 2039) // all that the model writes
	state := func(responses string) string {
		return `{"name":"batches/1","metadata":{"state":"BATCH_STATE_SUCCEEDED"},"done":true,"response":{"inlinedResponses":{"inlinedResponses":[` + responses + `]}}}`
	}
	b.answers["GET /v1beta/batches/1"] = state("")
	b.ask("GET", "/v1beta/batches/1", "")
	b.want("without the results", 0, 2039)
	b.answers["GET /v1beta/batches/1"] = state(`{"response":{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":3,"totalTokenCount":10},"modelVersion":"m"}}`)
	b.ask("GET", "/v1beta/batches/1", "")
	b.want("with the results", 13, 0)
}

// Nobody works at a batch that has reached no provider.
func TestBatchesThatReachNobody(t *testing.T) {
	p := newPriced(t)
	p.Close()
	s := budgeted(t, p, object{"limit": "0.15", "window": "total"})
	if resp, answer := s.do("POST", "/v1/messages/batches", claude(params)); resp.StatusCode != http.StatusBadGateway {
		t.Errorf("%d %s", resp.StatusCode, answer)
	}
	eventually(t, s.kept.ended)
	if spent, reserved := counted(t); spent != 0 || reserved != 0 {
		t.Errorf("spent %d, reserved %d", spent, reserved)
	}
}
