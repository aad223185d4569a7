package llmgateway

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage/credits"
	"github.com/weirhq/weir/storage/credits/embedded"
)

// batchErrors are the results of a call that has failed.
const batchErrors = `{"id":"batch_req_3","custom_id":"c","response":{"status_code":400,"body":{"error":{"message":"no","type":"invalid_request_error"}}},"error":null}` + "\n"

// batchingOf is filesOf with a batch that has ended: of so many calls, two have succeeded, and
// it states more.
func batchingOf(asked *[]string, more *string) upstream {
	files := filesOf(asked)
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.Method + " " + r.URL.Path {
		case "GET /batches/batch_1":
			_, _ = io.WriteString(w, `{"id":"batch_1","object":"batch","status":"completed","input_file_id":"file-in","output_file_id":"file-out","error_file_id":"file-err"`+*more+`}`)
		case "GET /files/file-err/content":
			_, _ = io.WriteString(w, batchErrors)
		default:
			files(w, r)
		}
	}
}

// batchFile is a file with so many calls of a model.
func batchFile(calls int, model string) string {
	return strings.Repeat(`{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"model":"`+model+`","max_tokens":1000,"messages":[]}}`+"\n", calls)
}

// makeBatch uploads a file, and makes a batch of it.
func (s *site) makeBatch(key, file string) (status int, answer gjson.Result) {
	s.t.Helper()
	contentType, body := upload(s.t, file, "purpose", "batch")
	resp, text := s.postTo("/v1/files?provider=raw", strings.NewReader(body), "Content-Type", contentType, "Authorization", "Bearer "+key)
	if resp.StatusCode != http.StatusOK {
		s.t.Fatalf("%s uploads a file: %d %s", key, resp.StatusCode, text)
	}
	made := fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/chat/completions"}`, gjson.Get(text, "id").Str)
	resp, text = s.postTo("/v1/batches", strings.NewReader(made), "Authorization", "Bearer "+key)
	return resp.StatusCode, gjson.Parse(text)
}

// restart ends the process of the ledger, and starts another one.
func (s *site) restart() {
	s.t.Helper()
	if err := s.credits.Close(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	var err error
	if s.credits, err = embedded.Open(s.creditsDir, nil, zap.NewNop()); err != nil {
		s.t.Fatal(err)
	}
}

// Credits and budgets set aside what the calls of a batch can cost since its file was uploaded,
// over a restart, until the results or the batch itself tell what they have cost.
func TestBatchesAreSetAside(t *testing.T) {
	const calls, most = 3, 3 * (51*500 + 1000*1000 + 1) // 51 bytes in
	for key, of := range map[string]credits.Account{"payer": {Org: "payer"}, "agents": {Org: "agents", Budget: "agents"}} {
		for name, c := range map[string]struct {
			object string
			files  []string
			spent  plugins.Nanodollars
		}{
			"the results tell":      {"", []string{"error_file_id", "", "output_file_id"}, 1500*500 + 150*1000},
			"the batch tells":       {`,"usage":{"input_tokens":1500,"output_tokens":150}`, nil, 1500*500 + 150*1000},
			"no call has succeeded": {`,"request_counts":{"total":3,"completed":0,"failed":3}`, nil, 0},
		} {
			var asked []string
			object := ""
			s := serve(t, map[string][]upstream{"raw": {batchingOf(&asked, &object)}})
			want := func(when string, spent, reserved plugins.Nanodollars) {
				t.Helper()
				b, err := s.credits.Balance(t.Context(), credits.Hold{Account: of})
				if err != nil || b.Spent != spent || b.Reserved != reserved {
					t.Errorf("%s, %s, %s: spent %s, reserved %s, %v; want %s and %s", key, name, when, b.Spent, b.Reserved, err, spent, reserved)
				}
			}
			status, made := s.makeBatch(key, batchFile(calls, "batched"))
			if status != http.StatusOK {
				t.Fatalf("%s: %d %s", key, status, made)
			}
			want("while the batch runs", 0, most)
			s.restart()
			want("after a restart", 0, most)
			get := func() gjson.Result {
				_, answer := s.send("GET", "/v1/batches/"+made.Get("id").Str, nil, "Authorization", "Bearer "+key)
				return gjson.Parse(answer)
			}
			state := get()
			want("when the batch tells nothing", 0, most)
			object = c.object
			for _, file := range c.files {
				want("before the results", 0, most)
				if file != "" {
					s.send("GET", "/v1/files/"+state.Get(file).Str+"/content", nil, "Authorization", "Bearer "+key)
				}
			}
			get()
			want("in the end", c.spent, 0)
			s.send("GET", "/v1/files/"+state.Get("output_file_id").Str+"/content", nil, "Authorization", "Bearer "+key)
			want("after the results", c.spent, 0)
			var sum plugins.Nanodollars
			for _, r := range s.kept.all() {
				if sum += r.Cost.N; r.Dialect == plugins.Chat && r.PassthroughBilling != (key == "payer") {
					t.Errorf("the record of a call of %s says %v", key, r.PassthroughBilling)
				}
			}
			if c.spent > 0 && sum != c.spent {
				t.Errorf("%s, %s: the records cost %s", key, name, sum)
			}
		}
	}
}

// A batch that does not fit, or whose cost is not known, is not made.
func TestBatchesThatAreNotPaid(t *testing.T) {
	for name, c := range map[string]struct {
		key, file string
		status    int
	}{
		"beyond the credits":       {"payer", batchFile(1000, "batched"), http.StatusPaymentRequired},
		"beyond a budget":          {"brisk", batchFile(3000, "batched"), http.StatusPaymentRequired},
		"no price of batches":      {"payer", batchFile(1, "priced"), http.StatusBadRequest},
		"an unknown model":         {"brisk", batchFile(1, "batched") + batchFile(1, "unknown"), http.StatusBadRequest},
		"several answers":          {"brisk", strings.ReplaceAll(batchFile(30, "batched"), `"max_tokens"`, `"n":128,"max_tokens"`), http.StatusPaymentRequired},
		"a field of another case":  {"brisk", strings.Replace(batchFile(1, "batched"), `"max_tokens"`, `"MAX_tokens":100000,"max_tokens"`, 1), http.StatusBadRequest},
		"nothing bounds the batch": {"k", batchFile(1, "unknown"), http.StatusOK},
	} {
		var asked []string
		s := serve(t, map[string][]upstream{"raw": {filesOf(&asked)}})
		status, answer := s.makeBatch(c.key, c.file)
		if status != c.status || len(asked) > 1 != (c.status == http.StatusOK) {
			t.Errorf("%s: %d %s, the provider was asked %d times", name, status, answer, len(asked))
		}
	}
}

// What a provider has not taken is free again, and what it may have taken is not.
func TestBatchesThatAProviderRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		answer   upstream
		reserved bool
	}{
		"refused": {status(http.StatusTooManyRequests), false},
		"broken":  {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, true},
	} {
		var asked []string
		s := serve(t, map[string][]upstream{"raw": {filesOf(&asked), c.answer}})
		if status, answer := s.makeBatch("payer", batchFile(1, "batched")); status == http.StatusOK {
			t.Errorf("%s: %d %s", name, status, answer)
		}
		b, err := s.credits.Balance(t.Context(), credits.Hold{Account: credits.Account{Org: "payer"}})
		if err != nil || b.Spent != 0 || b.Reserved > 0 != c.reserved {
			t.Errorf("%s: %+v, %v", name, b, err)
		}
	}
}
