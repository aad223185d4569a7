package llmgateway

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// batchOutput are the results of a batch of two calls.
const batchOutput = `{"id":"batch_req_1","custom_id":"a","response":{"status_code":200,"body":{"id":"chatcmpl-1","object":"chat.completion","created":1795000000,"model":"batched","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1000,"completion_tokens":100,"total_tokens":1100}}},"error":null}` + "\n" +
	`{"id":"batch_req_2","custom_id":"b","response":{"status_code":200,"body":{"id":"chatcmpl-2","object":"chat.completion","created":1795000000,"model":"batched","choices":[{"index":0,"message":{"role":"assistant","content":"ho"},"finish_reason":"stop"}],"usage":{"prompt_tokens":500,"completion_tokens":50,"total_tokens":550}}},"error":null}` + "\n"

// filesOf is a provider with the endpoints of files and batches. It answers what was asked
// of it, and an error to ids that are not its own.
func filesOf(asked *[]string) upstream {
	const batch = `{"id":"batch_1","object":"batch","input_file_id":"file-in","output_file_id":"file-out", "error_file_id":null,"metadata":{"id":"mine"}}`
	return func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.Method+" "+r.URL.RequestURI()+" "+readAndRestore(r))
		w.Header().Set("Content-Type", "application/json")
		switch r.Method + " " + r.URL.Path {
		case "POST /files":
			_, _ = io.WriteString(w, `{"id":"file-in", "object":"file","purpose":"batch"}`)
		case "GET /files":
			_, _ = io.WriteString(w, `{"object":"list","data":[ {"id":"file-in","object":"file"},{"id":"file-out"}],"first_id":"file-in","last_id":"file-out","has_more":false}`)
		case "GET /files/file-in":
			_, _ = io.WriteString(w, `{"id":"file-in"}`)
		case "DELETE /files/file-in":
			_, _ = io.WriteString(w, `{"id":"file-in","deleted":true}`)
		case "POST /batches", "GET /batches/batch_1", "POST /batches/batch_1/cancel":
			_, _ = io.WriteString(w, batch)
		case "GET /files/file-out/content":
			w.Header().Set("Content-Type", "application/octet-stream")
			_, _ = io.WriteString(w, batchOutput)
		case "POST /responses":
			_, _ = io.WriteString(w, `{"id":"resp_1","object":"response","output":[]}`)
		default:
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"error":{"message":"No such File object"}}`)
		}
	}
}

// A batch passes as it is but for its ids, and each of its calls is recorded once, for
// whoever made the batch, however often, by whichever node and in whatever process its
// results are downloaded.
func TestBatches(t *testing.T) {
	var asked []string
	s := serve(t, map[string][]upstream{"raw": {filesOf(&asked)}})
	contentType, body := upload(t, strings.Repeat(`{"custom_id":"a"}`+"\n", 10_000), "purpose", "batch")
	resp, answer := s.postTo("/v1/files?provider=raw", strings.NewReader(body), "Content-Type", contentType)
	input := gjson.Get(answer, "id").Str
	if resp.StatusCode != http.StatusOK || !strings.HasPrefix(input, "file-in.") || answer != `{"id":"`+input+`", "object":"file","purpose":"batch"}` {
		t.Fatalf("the upload: %d %s", resp.StatusCode, answer)
	}
	if asked[0] != "POST /files "+body {
		t.Errorf("the provider got %.200s", asked[0])
	}
	request := `{ "input_file_id":%q,"endpoint":"/v1/chat/completions"}`
	resp, answer = s.postTo("/v1/batches", strings.NewReader(fmt.Sprintf(request, input)),
		"Service-User-Id", "ada", "Service-Property-Team", "search", "Service-Session-Id", "night")
	batch := gjson.Get(answer, "id").Str
	if resp.StatusCode != http.StatusOK || gjson.Get(answer, "input_file_id").Str != input || gjson.Get(answer, "metadata.id").Str != "mine" {
		t.Fatalf("the batch: %d %s", resp.StatusCode, answer)
	}
	if want := "POST /batches " + fmt.Sprintf(request, "file-in"); asked[1] != want {
		t.Errorf("the provider got %s", asked[1])
	}
	_, answer = s.send("GET", "/v1/batches/"+batch, nil)
	output := gjson.Get(answer, "output_file_id").Str

	other := serve(t, map[string][]upstream{"raw": {filesOf(&asked)}})
	other.kept = s.kept
	for _, node := range []*site{s, other, s} {
		resp, got := node.send("GET", "/v1/files/"+output+"/content", nil)
		if got != batchOutput || resp.Header.Get("Content-Type") != "application/octet-stream" {
			t.Errorf("the client got %s %s", resp.Header.Get("Content-Type"), got)
		}
	}
	var calls int
	var tokens, nanos int64
	for _, r := range s.kept.all() {
		if r.Dialect == plugins.Batches {
			if r.Cost != plugins.KnownCost(0) || r.EndState != storage.Complete || strings.Contains(r.request+r.response, `"custom_id"`) {
				t.Errorf("the record of %s is %+v", r.Path, r)
			}
			continue
		}
		calls++
		tokens += r.Usage.Total().N
		nanos += int64(r.Cost.N)
		if r.UserID != "ada" || r.Properties["Team"] != "search" || r.SessionID != "night" || r.Provider != "raw" || r.Account != "raw" || !strings.Contains(r.response, `"chatcmpl-`) {
			t.Errorf("the record of a call is %+v", r)
		}
	}
	if calls != 2 || tokens != 1650 || nanos != 1500*500+150*1000 {
		t.Errorf("%d calls with %d tokens cost %d", calls, tokens, nanos)
	}
	if r := s.kept.all()[0]; r.RequestBytes != int64(len(body)) {
		t.Errorf("the upload counts %d bytes of %d", r.RequestBytes, len(body))
	}
}

// The ids of files mean something to the organisation alone that has them.
func TestFilesOfOthers(t *testing.T) {
	var asked []string
	s := serve(t, map[string][]upstream{"raw": {filesOf(&asked)}})
	contentType, body := upload(t, "{}", "purpose", "batch")
	_, answer := s.postTo("/v1/files?provider=raw", strings.NewReader(body), "Content-Type", contentType)
	id := gjson.Get(answer, "id").Str
	asked = nil
	for _, c := range []struct {
		method, path, body, key string
		status                  int
		code                    string
	}{
		{"GET", "/v1/files/" + id, "", "acme", 404, "not_found"},
		{"GET", "/v1/files/" + id + "/content", "", "acme", 404, "not_found"},
		{"DELETE", "/v1/files/" + id, "", "acme", 404, "not_found"},
		{"GET", "/v1/files/file-in", "", "k", 404, "not_found"},
		{"GET", "/v1/files/file-out" + id[len("file-in"):], "", "k", 404, "not_found"},
		{"GET", "/v1/batches/" + id + "x", "", "k", 404, "not_found"},
		{"POST", "/v1/batches/" + id + "/cancel", "", "acme", 404, "not_found"},
		{"POST", "/v1/batches", `{"input_file_id":"` + id + `"}`, "acme", 400, "input_file_id"},
		{"POST", "/v1/batches", `{"input_file_id":"file-in"}`, "k", 400, "input_file_id"},
		{"POST", "/v1/batches", `{`, "k", 400, ""},
		{"GET", "/v1/files?provider=raw", "", "k", 400, unsupportedEndpoint}, // other organisations use it too
		{"GET", "/v1/files?provider=nobody", "", "k", 400, "provider"},
		{"GET", "/v1/files?provider=one", "", "k", 400, unsupportedEndpoint},
		{"GET", "/v1/files?provider=raw", "", "payer", 400, unsupportedEndpoint},
		{"PUT", "/v1/files", "", "k", 405, "method_not_allowed"},
		{"GET", "/v1/files", "", "narrow", 403, ""},
	} {
		resp, got := s.send(c.method, c.path, strings.NewReader(c.body), "Authorization", "Bearer "+c.key)
		if resp.StatusCode != c.status || !strings.Contains(got, c.code) {
			t.Errorf("%s %s by %s: %d %s", c.method, c.path, c.key, resp.StatusCode, got)
		}
	}
	if len(asked) > 0 {
		t.Errorf("the provider was asked %q", asked)
	}
}

// An organisation with an account of its own lists what it has, page by page.
func TestBatchesOfSharedAccountsNameNothingOfOthers(t *testing.T) {
	for line, status := range map[string]int{
		`{"custom_id":"a","url":"/v1/responses","body":{"input":"hi","previous_response_id":"resp_others"}}`:                            http.StatusBadRequest,
		`{"url":"/v1/responses","body":{},"body":{"input":[{"type":"item_reference","id":"msg_others"}]}}`:                              http.StatusBadRequest,
		`{"url":"/v1/chat/completions","body":{"messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"file-in"}}]}]}}`: http.StatusBadRequest,
		`{"url":"/v1/unknown","body":{"conversation":"conv_others"}}`:                                                                   http.StatusBadRequest,
		`{"url":"/v1/chat/completions","url":"/v1/responses","body":{"input":"hi","previous_response_id":"resp_others"}}`:               http.StatusBadRequest,
		"{\"url\":\"/v1/responses\"}\r{}":                  http.StatusBadRequest, // which are two lines to some
		`{"url":"/v1/completions","body":{"prompt":"hi"}}`: http.StatusOK,
		`{"url":"/v1/embeddings","body":{"input":["hi"]}}`: http.StatusOK,
	} {
		var asked []string
		s := serve(t, map[string][]upstream{"raw": {filesOf(&asked)}})
		contentType, body := upload(t, "{}\n\n"+line+"\n", "purpose", "batch")
		resp, answer := s.postTo("/v1/files?provider=raw", strings.NewReader(body), "Content-Type", contentType, "Authorization", "Bearer acme")
		if resp.StatusCode != status || len(asked) > 0 != (status == http.StatusOK) {
			t.Errorf("%s: %d %s, asked %d times", line, resp.StatusCode, answer, len(asked))
		}
	}
}

func TestListsOfFiles(t *testing.T) {
	var asked []string
	s := serve(t, map[string][]upstream{"raw": {filesOf(&asked)}})
	_, first := s.send("GET", "/v1/files?limit=2", nil, "Authorization", "Bearer both")
	last := gjson.Get(first, "last_id").Str
	if last == "" || last != gjson.Get(first, "data.1.id").Str || gjson.Get(first, "data.0.id").Str != gjson.Get(first, "first_id").Str || !strings.Contains(first, `"data":[ {"id":"file-in.`) {
		t.Errorf("the list is %s", first)
	}
	s.send("GET", "/v1/files?after="+last, nil, "Authorization", "Bearer both")
	resp, deleted := s.send("DELETE", "/v1/files/"+gjson.Get(first, "first_id").Str, nil, "Authorization", "Bearer both")
	if resp.StatusCode != http.StatusOK || !strings.Contains(deleted, `"deleted":true`) {
		t.Errorf("%d %s", resp.StatusCode, deleted)
	}
	if want := "GET /files?limit=2 ,GET /files?after=file-out ,DELETE /files/file-in "; strings.Join(asked, ",") != want {
		t.Errorf("the provider was asked %q", asked)
	}
}

// A call that names a file goes to the account that has it, which gets its own id.
func TestCallsThatNameFiles(t *testing.T) {
	var asked []string
	s := serve(t, map[string][]upstream{"raw": {filesOf(&asked)}})
	contentType, body := upload(t, "{}", "purpose", "user_data")
	_, answer := s.postTo("/v1/files?provider=raw", strings.NewReader(body), "Content-Type", contentType)
	id := gjson.Get(answer, "id").Str
	ask := `{"model":%q,"input":[{"role":"user","content":[{"type":"input_file","file_id":%q}]}]}`
	resp, got := s.post(fmt.Sprintf(ask, "one/m,raw/m", id))
	if want := "POST /responses " + fmt.Sprintf(ask, "one/m,raw/m", "file-in"); resp.StatusCode != http.StatusOK || asked[1] != want {
		t.Errorf("%d %s: the provider was asked %s", resp.StatusCode, got, asked[1])
	}
	if resp, got := s.post(fmt.Sprintf(ask, "one/m", id)); resp.StatusCode != http.StatusBadRequest || !strings.Contains(got, "a file that raw has") {
		t.Errorf("another provider: %d %s", resp.StatusCode, got)
	}
}

// A client must not take a file that broke off for all of it, and a provider's error is
// the answer.
func TestFilesThatBreakOff(t *testing.T) {
	var asked []string
	files := filesOf(&asked)
	s := serve(t, map[string][]upstream{"raw": {files, status(http.StatusTooManyRequests), status(http.StatusUnauthorized), func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, batchOutput)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}}})
	contentType, body := upload(t, "{}", "purpose", "user_data")
	_, answer := s.postTo("/v1/files?provider=raw", strings.NewReader(body), "Content-Type", contentType)
	id := gjson.Get(answer, "id").Str
	if resp, got := s.send("GET", "/v1/files/"+id, nil); resp.StatusCode != http.StatusTooManyRequests {
		t.Errorf("%d %s", resp.StatusCode, got)
	}
	if resp, got := s.send("GET", "/v1/files/"+id, nil); resp.StatusCode != http.StatusBadGateway || !strings.Contains(got, "upstream_auth") {
		t.Errorf("%d %s", resp.StatusCode, got)
	}
	r, err := http.NewRequest("GET", s.URL+"/v1/files/"+id+"/content", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer k")
	resp, err := s.Client().Do(r)
	if err == nil {
		_, err = io.ReadAll(resp.Body)
		resp.Body.Close()
	}
	if err == nil && resp.StatusCode != http.StatusBadGateway {
		t.Errorf("the client took it for all: %d", resp.StatusCode)
	}
	for _, r := range s.kept.all()[3:] {
		if r.Dialect == plugins.Batches && r.EndState != storage.UpstreamAborted {
			t.Errorf("the record says %s", r.EndState)
		}
	}
}
