package compat

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/plugintest"
)

// known are recordings that are not held against the gateway's answer, each with
// the reason: a defect, or another test that is about it.
var known = map[string]string{
	"gemini_bad_key": "the house's key is refused: a 502 and a line in the log, which llmgateway tests",
}

// TestGateway has each recorded answer translated into a response, in the mode
// that was recorded and in the other one: they come to the same, with the usage
// that the provider reported, and so does the record.
func TestGateway(t *testing.T) {
	w, pairs := startGateway(t)
	for _, p := range pairs {
		t.Run(p.account.Name, func(t *testing.T) {
			skipKnown(t, p.account)
			response := w.respond(t, p.account)
			if p.twin == nil {
				return
			}
			skipKnown(t, *p.twin)
			checkTwins(t, response, w.respond(t, *p.twin))
		})
	}
}

func skipKnown(t *testing.T, a account) {
	t.Helper()
	if defect := known[a.Name]; defect != "" {
		t.Skip(defect)
	}
}

// pair is an answer in both modes.
type pair struct {
	account account
	twin    *account // nil for an answer that is in one mode only
}

func startGateway(t *testing.T) (*weir, []pair) {
	t.Helper()
	var pairs []pair
	var accounts []account
	for _, r := range recordings(t) {
		a, ok := newAccount(r)
		if !ok {
			continue // nobody calls that
		}
		p := pair{account: a}
		accounts = append(accounts, a)
		if other := twin(t, r); other != nil {
			b, _ := newAccount(other)
			p.twin = &b
			accounts = append(accounts, b)
		}
		pairs = append(pairs, p)
	}
	return startGatewayOf(t, accounts), pairs
}

func startGatewayOf(t *testing.T, accounts []account) *weir {
	t.Helper()
	var all []*Recording
	for _, a := range accounts {
		all = append(all, a.Recording)
	}
	provider := httptest.NewServer(newReplayServer(all, func(r *Recording, received *http.Request, _ []byte) {
		checkReceived(t, r, received)
	}))
	t.Cleanup(provider.Close)
	p := newPublished(t)
	w := startWeir(t, strings.NewReader(gatewayConfig(provider.URL, accounts)))
	p.watchAnswers(t, w)
	return w
}

// respond makes a call of the account, and returns the response object or the
// error that came.
func (w *weir) respond(t *testing.T, a account) gjson.Result {
	t.Helper()
	request, status, answer := w.post(t, a)
	if want := a.status(); status != want {
		t.Fatalf("%s: status %d, want %d: %.500s", a.Name, status, want, answer)
	}
	if a.Stream && status == http.StatusOK {
		result, err := plugintest.Check(answer)
		if err != nil {
			t.Fatalf("%s: an illegal stream: %v\n%.2000s", a.Name, err, answer)
		}
		answer = result.Response
	}
	if !json.Valid(answer) {
		t.Fatalf("%s: not JSON: %.500q", a.Name, answer)
	}
	response := gjson.ParseBytes(answer)
	checkResponse(t, a, response)

	record := w.record(t, a.Name)
	checkRecord(t, record, a.Recording)
	if got := record.Get("provider").Str; got != a.kind {
		t.Errorf("%s: the recorded provider is %q, want %q", a.Name, got, a.kind)
	}
	if got := record.Get("attempt").Int(); got != 1 {
		t.Errorf("%s: the recorded attempt is %d", a.Name, got)
	}
	checkSame(t, a.Name+": the stored request", record.Get("request_body").Raw, string(request))
	if status == http.StatusOK {
		checkSame(t, a.Name+": the stored response", record.Get("response_body").Raw, response.Raw)
	}
	return response
}

// post makes a call of the account as its user.
func (w *weir) post(t *testing.T, a account) (request []byte, status int, answer []byte) {
	t.Helper()
	request, err := json.Marshal(a.request(nil))
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequest("POST", w.url+"/v1/responses", bytes.NewReader(request))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer none")
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Service-User-Id", a.Name)
	status, _, answer = do(t, r)
	return request, status, answer
}

// checkResponse holds what a client gets against what the provider said.
func checkResponse(t *testing.T, a account, response gjson.Result) {
	t.Helper()
	if a.Status != http.StatusOK {
		if e := response.Get("error"); e.Get("message").Str == "" || e.Get("type").Str == "" {
			t.Errorf("%s: the error is %s", a.Name, response.Raw)
		}
		return
	}
	if len(response.Get("output").Array()) == 0 && response.Get("status").Str == "completed" {
		t.Errorf("%s: there is no output: %s", a.Name, response.Raw)
	}
	if got, want := response.Get("model").Str, cmp.Or(a.Expected.Model, a.model); got != want {
		t.Errorf("%s: the model is %q, want %q", a.Name, got, want)
	}
	usage, want := response.Get("usage"), a.Expected.Usage
	if want == nil {
		if usage.Type != gjson.Null {
			t.Errorf("%s: the usage is %s, the provider reports none", a.Name, usage.Raw)
		}
		return
	}
	for field, want := range map[string]int64{
		"input_tokens":                            want.Input,
		"output_tokens":                           want.Output,
		"total_tokens":                            want.Input + want.Output,
		"input_tokens_details.cached_tokens":      want.CacheRead,
		"output_tokens_details.reasoning_tokens":  min(want.Reasoning, want.Output), // clients get no more than the whole
		"input_tokens_details.cache_write_tokens": want.CacheWrite,
	} {
		if got := usage.Get(field).Int(); got != want {
			t.Errorf("%s: usage.%s is %d, want %d", a.Name, field, got, want)
		}
	}
}

// checkTwins holds that two responses differ only in what is new in each.
func checkTwins(t *testing.T, a, b gjson.Result) {
	t.Helper()
	x, y := decoded(t, a.Raw), decoded(t, b.Raw)
	forget(x)
	forget(y)
	if !reflect.DeepEqual(x, y) {
		t.Errorf("one mode comes to\n%.3000s\nthe other to\n%.3000s", a.Raw, b.Raw)
	}
}

// fresh are the fields that are made anew for each response. The model is that
// of the request where the provider doesn't name it.
var fresh = []string{"id", "model", "call_id", "created_at", "completed_at", "encrypted_content"}

func forget(v any) {
	switch v := v.(type) {
	case []any:
		for _, element := range v {
			forget(element)
		}
	case map[string]any:
		for name, value := range v {
			if slices.Contains(fresh, name) {
				delete(v, name)
			}
			forget(value)
		}
	}
}
