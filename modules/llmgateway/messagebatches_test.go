package llmgateway

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/credits"
)

const (
	messageBatch1 = `{"id":"msgbatch_1", "type":"message_batch","processing_status":%q,"request_counts":{"processing":0,"succeeded":%d,"errored":1,"canceled":0,"expired":0},` +
		`"ended_at":null,"created_at":"2026-11-20T15:04:05.678Z","expires_at":"2026-11-21T15:04:05.678Z","cancel_initiated_at":null,"archived_at":null,"results_url":%s}`
	messageResultsURL = `"https://api.anthropic.com/v1/messages/batches/msgbatch_1/results"`

	// messageResults are the results of a batch of three calls, of which two are charged.
	messageResults = `{"custom_id":"b","result":{"type":"succeeded","message":{"id":"msg_2","type":"message","role":"assistant","model":"batched","content":[{"type":"text","text":"ho"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":500,"output_tokens":50}}}}` + "\n" +
		`{"custom_id":"a", "result":{"type":"succeeded","message":{"id":"msg_1","type":"message","role":"assistant","model":"batched","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1000,"output_tokens":100}}}}` + "\n" +
		`{"custom_id":"c","result":{"type":"errored","error":{"type":"error","error":{"type":"invalid_request_error","message":"no"},"request_id":"req_1"}}}` + "\n"
)

// batchesOfMessages is a provider of batches of Messages that answers what was asked of it, and
// an error to ids that are not its own.
func batchesOfMessages(asked *[]string) upstream {
	return func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.Method+" "+r.URL.RequestURI()+" "+readAndRestore(r))
		w.Header().Set("Content-Type", "application/json")
		switch r.Method + " " + r.URL.Path {
		case "POST /messages/batches":
			fmt.Fprintf(w, messageBatch1, "in_progress", 0, "null")
		case "GET /messages/batches":
			fmt.Fprintf(w, `{"data":[`+messageBatch1+`],"has_more":true,"first_id":"msgbatch_1","last_id":"msgbatch_1"}`, "ended", 2, messageResultsURL)
		case "GET /messages/batches/msgbatch_1":
			fmt.Fprintf(w, messageBatch1, "ended", 2, messageResultsURL)
		case "POST /messages/batches/msgbatch_1/cancel":
			fmt.Fprintf(w, messageBatch1, "canceling", 0, "null")
		case "DELETE /messages/batches/msgbatch_1":
			_, _ = io.WriteString(w, `{"id":"msgbatch_1","type":"message_batch_deleted"}`)
		case "GET /messages/batches/msgbatch_1/results":
			w.Header().Set("Content-Type", "application/x-jsonl")
			_, _ = io.WriteString(w, messageResults)
		default:
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"type":"error","error":{"type":"not_found_error","message":"No batch"}}`)
		}
	}
}

// batchOfMessages is a request with calls of models.
func batchOfMessages(models ...string) string {
	var calls []string
	for i, model := range models {
		calls = append(calls, fmt.Sprintf(`{"custom_id":"%c", "params":{"max_tokens":1000,"model":%q ,"messages":[]}}`, 'a'+i, model))
	}
	return `{ "requests":[` + strings.Join(calls, " , ") + `]}`
}

// A batch of Messages passes as it is but for the names of models and the ids, and each of
// its calls is recorded once, for whoever made the batch, however often, by whichever node its
// results are downloaded.
func TestMessageBatches(t *testing.T) {
	var asked []string
	s := serve(t, map[string][]upstream{"raw": {batchesOfMessages(&asked)}})
	resp, answer := s.postTo("/v1/messages/batches?beta=true", strings.NewReader(batchOfMessages("raw/batched", "batched", "batched,raws")),
		"Service-User-Id", "ada", "Service-Property-Team", "search", "Anthropic-Beta", "a-beta", "Authorization", "", "X-Api-Key", "k")
	batch := gjson.Get(answer, "id").Str
	if resp.StatusCode != http.StatusOK || !strings.HasPrefix(batch, "msgbatch_1.") || answer != strings.Replace(fmt.Sprintf(messageBatch1, "in_progress", 0, "null"), "msgbatch_1", batch, 1) {
		t.Fatalf("the batch: %d %s", resp.StatusCode, answer)
	}
	if want := "POST /messages/batches?beta=true " + batchOfMessages("batched", "batched", "batched"); asked[0] != want {
		t.Errorf("the provider got %s\nwant %s", asked[0], want)
	}
	results := s.URL + "/v1/messages/batches/" + batch + "/results"
	if _, answer = s.send("GET", "/v1/messages/batches/"+batch, nil); gjson.Get(answer, "results_url").Str != results || gjson.Get(answer, "id").Str != batch {
		t.Errorf("the batch that has ended: %s", answer)
	}
	_, list := s.send("GET", "/v1/messages/batches?limit=1&after_id="+batch, nil, "Authorization", "Bearer both")
	if theirs := gjson.Get(list, "last_id").Str; theirs == batch || gjson.Get(list, "data.0.id").Str != theirs || !strings.Contains(gjson.Get(list, "data.0.results_url").Str, theirs+"/results") {
		t.Errorf("the list of another organisation is %s", list)
	}
	other := serve(t, map[string][]upstream{"raw": {batchesOfMessages(&asked)}})
	other.kept = s.kept
	for _, node := range []*site{s, other, s} {
		resp, got := node.send("GET", strings.TrimPrefix(results, s.URL), nil)
		if got != messageResults || resp.Header.Get("Content-Type") != "application/x-jsonl" {
			t.Errorf("the client got %s %s", resp.Header.Get("Content-Type"), got)
		}
	}
	if _, answer = s.postTo("/v1/messages/batches/"+batch+"/cancel", nil); gjson.Get(answer, "processing_status").Str != "canceling" || gjson.Get(answer, "id").Str != batch {
		t.Errorf("the end: %s", answer)
	}
	if _, answer = s.send("DELETE", "/v1/messages/batches/"+batch, nil); answer != `{"id":"`+batch+`","type":"message_batch_deleted"}` {
		t.Errorf("it is deleted: %s", answer)
	}
	var calls int
	var tokens, nanos int64
	for _, r := range s.kept.all() {
		if r.Dialect == plugins.Batches {
			if r.Cost != plugins.KnownCost(0) || r.EndState != storage.Complete {
				t.Errorf("the record of %s is %+v", r.Path, r)
			}
			continue
		}
		calls++
		tokens += r.Usage.Total().N
		nanos += int64(r.Cost.N)
		if r.UserID != "ada" || r.Properties["Team"] != "search" || r.Provider != "raw" || r.Account != "raw" || r.Status.N == 200 != strings.Contains(r.response, `"msg_`) {
			t.Errorf("the record of a call is %+v", r)
		}
	}
	if calls != 3 || tokens != 1650 || nanos != 1500*500+150*1000 {
		t.Errorf("%d calls with %d tokens cost %d", calls, tokens, nanos)
	}
}

// Clients find the results where they found the batch, also after a prefix or another path.
func TestAddressesOfResults(t *testing.T) {
	for name, c := range map[string]struct {
		from func(*http.Request)
		want string
	}{
		"a prefix":      {func(r *http.Request) { r.URL.Path = "/llm" + r.URL.Path }, "http://weir.example/llm/v1/messages/batches/"},
		"another path":  {func(r *http.Request) { r.URL.Path = strings.TrimPrefix(r.URL.Path, "/v1") }, "http://weir.example/messages/batches/"},
		"the same path": {func(*http.Request) {}, "http://weir.example/v1/messages/batches/"},
	} {
		var asked []string
		s := serve(t, map[string][]upstream{"raw": {batchesOfMessages(&asked)}})
		_, made := s.postTo("/v1/messages/batches", strings.NewReader(batchOfMessages("raw/batched")))
		id := gjson.Get(made, "id").Str
		r := httptest.NewRequest("GET", "/v1/messages/batches/"+id, nil)
		r.Host = "weir.example"
		r.Header.Set("X-Api-Key", "k")
		original := r.Clone(t.Context())
		c.from(original)
		r = r.WithContext(context.WithValue(r.Context(), caddyhttp.OriginalRequestCtxKey, *original))
		w := httptest.NewRecorder()
		if err := s.handler.ServeHTTP(w, r, nil); err != nil || gjson.Get(w.Body.String(), "results_url").Str != c.want+id+"/results" {
			t.Errorf("%s: %v, %s", name, err, w.Body)
		}
	}
}

// The ids of batches mean something to the organisation alone that has them.
func TestMessageBatchesOfOthers(t *testing.T) {
	var asked []string
	s := serve(t, map[string][]upstream{"raw": {batchesOfMessages(&asked)}})
	_, answer := s.postTo("/v1/messages/batches", strings.NewReader(batchOfMessages("raw/batched")))
	id := gjson.Get(answer, "id").Str
	asked = nil
	for _, c := range []struct {
		method, path, key string
		status            int
		kind              string
	}{
		{"GET", "/" + id, "acme", 404, "not_found_error"},
		{"GET", "/" + id + "/results", "acme", 404, "not_found_error"},
		{"DELETE", "/" + id, "acme", 404, "not_found_error"},
		{"POST", "/" + id + "/cancel", "acme", 404, "not_found_error"},
		{"GET", "/msgbatch_1", "k", 404, "not_found_error"},
		{"GET", "/msgbatch_1/results", "k", 404, "not_found_error"},
		{"GET", "/msgbatch_2" + id[len("msgbatch_1"):], "k", 404, "not_found_error"},
		{"GET", "", "k", 400, "invalid_request_error"}, // other organisations use the account too
		{"GET", "?provider=one", "k", 400, "invalid_request_error"},
		{"PUT", "", "k", 405, "invalid_request_error"},
		{"POST", "", "narrow", 403, "permission_error"},
		{"POST", "", "unknown", 401, "authentication_error"},
	} {
		resp, got := s.send(c.method, "/v1/messages/batches"+c.path, strings.NewReader(batchOfMessages("raw/batched")), "Authorization", "Bearer "+c.key)
		if resp.StatusCode != c.status || gjson.Get(got, "type").Str != "error" || gjson.Get(got, "error.type").Str != c.kind {
			t.Errorf("%s %s by %s: %d %s", c.method, c.path, c.key, resp.StatusCode, got)
		}
	}
	if len(asked) > 0 {
		t.Errorf("the provider was asked %q", asked)
	}
}

// The calls of a batch go to one account: that of the organisation before that of the platform.
func TestAccountsOfMessageBatches(t *testing.T) {
	for name, c := range map[string]struct {
		models   []string
		provider string
	}{
		"one model":                   {[]string{"raw/m"}, "raw"},
		"two models":                  {[]string{"raw2/m", "raw2/n"}, "raw2"},
		"an alias of two accounts":    {[]string{"raws", "raws"}, "raw"},
		"what both can have":          {[]string{"raws", "raw2/n"}, "raw2"},
		"a fallback without batches":  {[]string{"one/m,raw2/m"}, "raw2"},
		"a name that nobody serves":   {[]string{"nobody/m,raw2/m"}, "raw2"},
		"a model without a provider":  {[]string{"batched"}, "raw"},
		"the alias of another model":  {[]string{"raw/m", "raw/batched", "raws"}, "raw"},
		"a list that all accounts do": {[]string{"raw/m,raw2/m", "raw2/m,raw/m"}, "raw"},
	} {
		asked := make(map[string]*[]string)
		ups := make(map[string][]upstream)
		for _, label := range []string{"raw", "raw2"} {
			asked[label] = new([]string)
			ups[label] = []upstream{batchesOfMessages(asked[label])}
		}
		s := serve(t, ups)
		resp, answer := s.postTo("/v1/messages/batches", strings.NewReader(batchOfMessages(c.models...)))
		if resp.StatusCode != http.StatusOK || len(*asked[c.provider]) != 1 || len(*asked["raw"])+len(*asked["raw2"]) != 1 {
			t.Errorf("%s: %d %s, asked %q and %q", name, resp.StatusCode, answer, *asked["raw"], *asked["raw2"])
		}
	}
}

// What is no batch of one account is refused in Anthropic's form, and names the call.
func TestMessageBatchesThatAreNotMade(t *testing.T) {
	good := batchOfMessages("raw/batched")
	call := strings.TrimSuffix(strings.TrimPrefix(good, `{ "requests":[`), "]}")
	for name, c := range map[string]struct{ body, message string }{
		"two providers":             {batchOfMessages("raw/m", "raw/m", "raw2/m"), "requests.2.params.model: 'raw2/m'"},
		"a provider without it":     {batchOfMessages("raw/m", "one/m"), "requests.1.params.model: no provider"},
		"an unknown model":          {batchOfMessages("nobody/m"), "requests.0.params.model"},
		"a choice by each call":     {batchOfMessages("raw/m", "chosen"), "requests.1.params.model: 'chosen' chooses"},
		"no model":                  {strings.Replace(good, `"model":"raw/batched" ,`, "", 1), "requests.0.params.model"},
		"a model that stands twice": {strings.Replace(good, `"model"`, `"model":"raw/m","model"`, 1), "'model' stands twice"},
		"params that stand twice":   {strings.Replace(good, `"params"`, `"params":{},"params"`, 1), "'params' stands twice"},
		"requests twice":            {strings.Replace(good, `"requests"`, `"requests":[],"requests"`, 1), "'requests' stands twice"},
		"no params":                 {`{"requests":[` + call + `,{"custom_id":"b"}]}`, "requests.1.params"},
		"a call that is a text":     {`{"requests":["a"]}`, "requests.0: an object"},
		"no calls":                  {`{"requests":[]}`, "requests: a list"},
		"no list":                   {`{"requests":{"a":1}}`, "requests: a list"},
		"nothing":                   {`{}`, "requests: a list"},
		"no JSON":                   {`{`, "JSON"},
		"no object":                 {`[]`, "JSON object"},
		"too many":                  {`{"requests":[` + strings.Repeat("0,", maxBatched) + `0]}`, "100001 calls"},
		"a file of others":          {strings.Replace(good, `"messages":[]`, `"messages":[{"role":"user","content":[{"type":"document","source":{"type":"file","file_id":"file_1"}}]}]`, 1), "requests.0.params.messages"},
		"a container of others":     {strings.Replace(good, `"messages"`, `"container":"c_1","messages"`, 1), "requests.0.params.container"},
	} {
		var asked []string
		s := serve(t, map[string][]upstream{"raw": {batchesOfMessages(&asked)}, "raw2": {batchesOfMessages(&asked)}})
		resp, answer := s.postTo("/v1/messages/batches", strings.NewReader(c.body), "Authorization", "Bearer acme")
		if e := gjson.Get(answer, "error"); resp.StatusCode/100 != 4 || gjson.Get(answer, "type").Str != "error" || !strings.Contains(e.Get("message").Str, c.message) || len(asked) > 0 {
			t.Errorf("%s: %d %s, the provider was asked %q", name, resp.StatusCode, answer, asked)
		}
	}
}

// An alias's parameters apply to each call that names it.
func TestMessageBatchesWithParameters(t *testing.T) {
	var asked []string
	s := serve(t, map[string][]upstream{"raw": {batchesOfMessages(&asked)}})
	body := batchOfMessages("raw/m", "brief")
	resp, answer := s.postTo("/v1/messages/batches", strings.NewReader(body))
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", resp.StatusCode, answer)
	}
	if got := gjson.Get(asked[0][strings.Index(asked[0], "{"):], "requests.#.params.max_tokens").Raw; got != "[1000,64]" {
		t.Errorf("the provider got %s", asked[0])
	}
	if w := resp.Header.Get("Service-Warnings"); !strings.Contains(w, "requests.1.params.max_tokens: limited to 64") {
		t.Errorf("the warning is %q", w)
	}
}

// Reasoning that another provider wrote is not sent, as in any call.
func TestMessageBatchesWithReasoningOfOthers(t *testing.T) {
	var asked []string
	s := serve(t, map[string][]upstream{"raw": {batchesOfMessages(&asked)}})
	body := strings.Replace(batchOfMessages("raw/batched", "raw/batched"), `"messages":[]`,
		`"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"a","signature":"weir1.x"},{"type":"text","text":"b"}]}]`, 1)
	resp, answer := s.postTo("/v1/messages/batches", strings.NewReader(body))
	if resp.StatusCode != http.StatusOK || strings.Contains(asked[0], "weir1.") || gjson.Get(asked[0][strings.Index(asked[0], "{"):], "requests.#").Int() != 2 {
		t.Errorf("%d %s: the provider got %q", resp.StatusCode, answer, asked)
	}
	if w := resp.Header.Get("Service-Warnings"); !strings.HasPrefix(w, "requests.0.params.messages[0].content[0]") {
		t.Errorf("the warning is %q", w)
	}
}

// Credits and budgets set aside what the calls of a batch of Messages can cost, over a restart,
// until the results tell what they have cost, and charge that once.
func TestMessageBatchesAreSetAside(t *testing.T) {
	call := len(`{"max_tokens":1000,"model":"batched" ,"messages":[]}`)
	most := plugins.Nanodollars(3 * (call*500 + 1000*1000 + 1))
	for key, of := range map[string]credits.Account{"payer": {Org: "payer"}, "agents": {Org: "agents", Budget: "agents"}} {
		var asked []string
		s := serve(t, map[string][]upstream{"raw": {batchesOfMessages(&asked)}})
		want := func(when string, spent, reserved plugins.Nanodollars) {
			t.Helper()
			b, err := s.credits.Balance(t.Context(), credits.Hold{Account: of})
			if err != nil || b.Spent != spent || b.Reserved != reserved {
				t.Errorf("%s, %s: spent %s, reserved %s, %v; want %s and %s", key, when, b.Spent, b.Reserved, err, spent, reserved)
			}
		}
		resp, answer := s.postTo("/v1/messages/batches", strings.NewReader(batchOfMessages("raw/batched", "batched", "raw/batched")), "Authorization", "Bearer "+key)
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %s", key, resp.StatusCode, answer)
		}
		batch := "/v1/messages/batches/" + gjson.Get(answer, "id").Str
		want("while the batch runs", 0, most)
		s.restart()
		for _, asks := range []string{"GET " + batch, "POST " + batch + "/cancel"} {
			method, path, _ := strings.Cut(asks, " ")
			s.send(method, path, nil, "Authorization", "Bearer "+key)
			want(asks, 0, most)
		}
		for range 2 {
			s.send("GET", batch+"/results", nil, "Authorization", "Bearer "+key)
			want("after the results", 1500*500+150*1000, 0)
			s.restart()
		}
		var sum plugins.Nanodollars
		for _, r := range s.kept.all() {
			if sum += r.Cost.N; r.Dialect == plugins.Messages && r.PassthroughBilling != (key == "payer") {
				t.Errorf("the record of a call of %s says %v", key, r.PassthroughBilling)
			}
		}
		if sum != 1500*500+150*1000 {
			t.Errorf("%s: the records cost %s", key, sum)
		}
	}
}

// A batch of Messages that does not fit, or whose cost is not known, is not made, and holds
// nothing; nor does one that the provider refuses.
func TestMessageBatchesThatAreNotPaid(t *testing.T) {
	for name, c := range map[string]struct {
		key, body string
		status    int
	}{
		"beyond the credits":      {"payer", strings.ReplaceAll(batchOfMessages("raw/batched"), "1000", "10000000"), http.StatusPaymentRequired},
		"no price of batches":     {"payer", batchOfMessages("raw/priced"), http.StatusBadRequest},
		"an unknown model":        {"brisk", batchOfMessages("raw/batched", "raw/unknown"), http.StatusBadRequest},
		"another tier":            {"brisk", strings.Replace(batchOfMessages("raw/batched"), `"messages"`, `"speed":"fast","messages"`, 1), http.StatusBadRequest},
		"nothing bounds the call": {"k", batchOfMessages("raw/unknown"), http.StatusOK},
	} {
		var asked []string
		s := serve(t, map[string][]upstream{"raw": {batchesOfMessages(&asked)}})
		resp, answer := s.postTo("/v1/messages/batches", strings.NewReader(c.body), "Authorization", "Bearer "+c.key)
		if resp.StatusCode != c.status || len(asked) > 0 != (c.status == http.StatusOK) {
			t.Errorf("%s: %d %s, the provider was asked %d times", name, resp.StatusCode, answer, len(asked))
		}
		if kind := gjson.Get(answer, "error.type").Str; c.status == http.StatusPaymentRequired && (kind != "billing_error" || resp.Header.Get("X-Should-Retry") != "false") {
			t.Errorf("%s: %s %v", name, answer, resp.Header)
		}
	}
	for name, c := range map[string]struct {
		answer   upstream
		reserved bool
	}{
		"refused": {status(http.StatusTooManyRequests), false},
		"broken":  {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, true},
	} {
		s := serve(t, map[string][]upstream{"raw": {c.answer}})
		resp, answer := s.postTo("/v1/messages/batches", strings.NewReader(batchOfMessages("raw/batched")), "Authorization", "Bearer payer")
		b, err := s.credits.Balance(t.Context(), credits.Hold{Account: credits.Account{Org: "payer"}})
		if err != nil || resp.StatusCode == http.StatusOK || b.Spent != 0 || b.Reserved > 0 != c.reserved || gjson.Get(answer, "type").Str != "error" {
			t.Errorf("%s: %d %s, %+v, %v", name, resp.StatusCode, answer, b, err)
		}
	}
}

// Whatever stands around the calls, each is found where it is.
func FuzzMessageBatch(f *testing.F) {
	f.Add(batchOfMessages("a", "b"))
	f.Add("{\"\\u0072equests\" :\t[ {\"par\\u0061ms\":{\"model\":\"\\u00e9\"},\"custom_id\":\"{\"}\n,{\"params\" : { }} ],\"x\":[[]]}")
	f.Add(`{"requests":[{"params":{}},0]}`)
	f.Fuzz(func(t *testing.T, body string) {
		if translate.CheckObject([]byte(body)) != nil {
			return
		}
		c := new(call)
		c.input.body = []byte(body)
		b := messageBatch{call: c}
		list, found := gjson.Get(body, "requests"), 0
		err := b.each(func(at string, params *plugins.Object, index int) error {
			if at != fmt.Sprintf("requests.%d.params", found) || body[index:index+len(params.Data)] != string(params.Data) {
				t.Fatalf("%s: %d %q", at, index, params.Data)
			}
			if want := list.Get(fmt.Sprintf("%d.params", found)).Raw; want != string(params.Data) {
				t.Fatalf("%s is %q, want %q", at, params.Data, want)
			}
			found++
			return nil
		})
		if err == nil && int64(found) != list.Get("#").Int() {
			t.Fatalf("%d calls of %s", found, list.Get("#"))
		}
	})
}
