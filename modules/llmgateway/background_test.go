package llmgateway

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/storage"
)

// held is an upstream that begins an answer and goes on when it is told to.
func held(begin, rest upstream) (answer upstream, begun <-chan struct{}, proceed chan<- struct{}) {
	began, next := make(chan struct{}, 8), make(chan struct{})
	return func(w http.ResponseWriter, r *http.Request) {
		begin(w, r)
		_ = http.NewResponseController(w).Flush()
		began <- struct{}{}
		select {
		case <-next:
			rest(w, r)
		case <-r.Context().Done():
		}
	}, began, next
}

// inBackground begins a response in the background, and returns it.
func (s *site) inBackground(body string, header ...string) string {
	s.t.Helper()
	resp, got := s.post(strings.Replace(body, "{", `{"background":true,`, 1), header...)
	if resp.StatusCode != http.StatusOK || gjson.Get(got, "status").Str != "queued" || !gjson.Get(got, "background").Bool() || gjson.Get(got, "usage").Type != gjson.Null {
		s.t.Fatalf("%d %s", resp.StatusCode, got)
	}
	return gjson.Get(got, "id").Str
}

// ended waits for a response in the background.
func (s *site) ended(id string) string {
	s.t.Helper()
	if run := s.handler.responses.Runs.Find("default", "", id); run != nil {
		<-run.Ended()
	}
	status, body := s.get("/v1/responses/" + id)
	if status != http.StatusOK {
		s.t.Fatalf("%d %s", status, body)
	}
	return body
}

func TestAResponseInTheBackgroundIsPolledAndStreamed(t *testing.T) {
	const begin, end = `{"type":"response.created","sequence_number":0,"response":{"id":"resp_up","object":"response","status":"in_progress","output":[]}}`,
		`{"type":"response.completed","sequence_number":1,"response":{"id":"resp_up","object":"response","status":"completed","model":"m","output":[{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"hello","annotations":[]}]}],"usage":{"input_tokens":3,"output_tokens":5}}}`
	for label, c := range map[string][2]upstream{
		"one": {says("model m-1", "text hel"), says("text lo", "usage 3 5", "stop")},
		"raw": {says(begin), says(end)},
	} {
		t.Run(label, func(t *testing.T) {
			var sent remembering
			answer, begun, proceed := held(c[0], c[1])
			s := serve(t, map[string][]upstream{label: {sent.then(answer)}})
			id := s.inBackground(`{"model":"` + label + `/m","input":"hi"}`)
			<-begun
			if strings.Contains(sent.last(), "background") {
				t.Error("the provider is asked for", sent.last())
			}
			if status, got := s.get("/v1/responses/" + id); status != 200 || gjson.Get(got, "id").Str != id || gjson.Get(got, "status").Str != "queued" && gjson.Get(got, "status").Str != "in_progress" {
				t.Errorf("%d %s", status, got)
			}
			if resp, got := s.send("DELETE", "/v1/responses/"+id, nil); resp.StatusCode != http.StatusBadRequest {
				t.Errorf("deleting: %d %s", resp.StatusCode, got)
			}
			if status, _ := s.get("/v1/responses/"+id, "Authorization", "Bearer acme"); status != http.StatusNotFound {
				t.Errorf("another organisation gets it: %d", status)
			}
			close(proceed)
			got := s.ended(id)
			if gjson.Get(got, "status").Str != "completed" || gjson.Get(got, "output.0.content.0.text").Str != "hello" || gjson.Get(got, "id").Str != id || !gjson.Get(got, "background").Bool() {
				t.Error(got)
			}
			_, stream := s.get("/v1/responses/" + id + "?stream=true")
			if label == "one" {
				if _, err := plugintest.Check([]byte(stream)); err != nil {
					t.Errorf("%v\n%s", err, stream)
				}
			}
			last := lastEventData(stream, "response.completed")
			if gjson.Get(last, "response.id").Str != id || strings.Contains(stream, "resp_up") {
				t.Error(stream)
			}
			_, rest := s.get(fmt.Sprintf("/v1/responses/%s?stream=true&starting_after=%d", id, gjson.Get(last, "sequence_number").Int()-1))
			if strings.Count(rest, "data: {") != 1 || lastEventData(rest, "response.completed") != last {
				t.Error("resumed:", rest)
			}
			if records := s.kept.all(); len(records) != 1 || records[0].EndState != storage.Complete || records[0].Usage.Output.N != 5 || !strings.Contains(records[0].request, `"background":true`) {
				t.Errorf("records %+v", records)
			}
			if resp, got := s.post(`{"model":"` + label + `/m","input":"go on","previous_response_id":"` + id + `"}`); resp.StatusCode != 200 {
				t.Errorf("going on: %d %s", resp.StatusCode, got)
			}
		})
	}
}

// A response in the background that is refused before a provider is asked says why, while its
// events are there and afterwards.
func TestARefusedResponseInTheBackgroundSaysWhy(t *testing.T) {
	s := serve(t, map[string][]upstream{"one": {hello}})
	s.grant(1)
	id := s.inBackground(bounded, "Authorization", "Bearer payer")
	<-s.handler.responses.Runs.Find("payer", "", id).Ended()
	for _, query := range []string{"", "?stream=true"} {
		_, got := s.get("/v1/responses/"+id+query, "Authorization", "Bearer payer")
		if query != "" {
			got = gjson.Get(lastEventData(got, "response.failed"), "response").Raw
		}
		if gjson.Get(got, "status").Str != "failed" || gjson.Get(got, "error.code").Str != "insufficient_quota" || !strings.Contains(gjson.Get(got, "error.message").Str, "credit") {
			t.Errorf("%q: %s", query, got)
		}
	}
}

// A stream that its client leaves goes on, and can be taken up where it was.
func TestAStreamInTheBackgroundOutlivesItsClient(t *testing.T) {
	answer, begun, proceed := held(says("model m-1", "text hel"), says("text lo", "usage 3 5", "stop"))
	s := serve(t, map[string][]upstream{"one": {answer}})
	r, err := http.NewRequest("POST", s.URL+"/v1/responses", strings.NewReader(`{"model":"one/m","input":"hi","background":true,"stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer k")
	resp, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 4096)
	n, err := resp.Body.Read(first)
	if err != nil {
		t.Fatal(err)
	}
	<-begun
	resp.Body.Close()
	id := gjson.Get(lastEventData(string(first[:n]), "response.created"), "response.id").Str
	if id == "" {
		t.Fatalf("%s", first[:n])
	}
	close(proceed)
	if got := s.ended(id); gjson.Get(got, "status").Str != "completed" {
		t.Error(got)
	}
	_, rest := s.get("/v1/responses/" + id + "?stream=true&starting_after=0")
	if strings.Contains(rest, "response.created") || !strings.Contains(rest, "response.completed") {
		t.Error(rest)
	}
	if status, got := s.get("/v1/responses/" + id + "?stream=true&starting_after=x"); status != 400 || gjson.Get(got, "error.param").Str != "starting_after" {
		t.Errorf("%d %s", status, got)
	}
}

func TestAResponseInTheBackgroundIsCancelled(t *testing.T) {
	answer, begun, _ := held(says("model m-1", "text hel"), nil)
	s := serve(t, map[string][]upstream{"one": {answer}})
	id := s.inBackground(`{"model":"one/m","input":"hi"}`)
	<-begun
	if resp, _ := s.send("POST", "/v1/responses/"+id+"/cancel", nil, "Authorization", "Bearer acme"); resp.StatusCode != http.StatusNotFound {
		t.Errorf("another organisation cancels it: %d", resp.StatusCode)
	}
	for range 2 {
		resp, got := s.send("POST", "/v1/responses/"+id+"/cancel", nil)
		if resp.StatusCode != 200 || gjson.Get(got, "status").Str != "cancelled" || gjson.Get(got, "id").Str != id || gjson.Get(got, "error").Type != gjson.Null {
			t.Errorf("%d %s", resp.StatusCode, got)
		}
	}
	if got := s.ended(id); gjson.Get(got, "status").Str != "cancelled" {
		t.Error(got)
	}
	_, stream := s.get("/v1/responses/" + id + "?stream=true")
	if _, err := plugintest.Check([]byte(stream)); err != nil {
		t.Errorf("%v\n%s", err, stream)
	}
	if records := s.kept.all(); len(records) != 1 || records[0].EndState != storage.ClientAborted {
		t.Errorf("records %+v", records)
	}
	if resp, got := s.post(`{"model":"one/m","input":"x","previous_response_id":"` + id + `"}`); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("going on: %d %s", resp.StatusCode, got)
	}
}

func TestAResponseInTheBackgroundFails(t *testing.T) {
	s := serve(t, map[string][]upstream{"one": {status(400)}, "raw": {status(401)}, "two": {says("text half", "panic")}})
	for _, model := range []string{"one/m", "raw/m", "two/m"} {
		id := s.inBackground(`{"model":"` + model + `","input":"hi"}`)
		got := s.ended(id)
		if gjson.Get(got, "status").Str != "failed" || gjson.Get(got, "error.message").Str == "" || gjson.Get(got, "id").Str != id || !gjson.Get(got, "background").Bool() {
			t.Errorf("%s: %s", model, got)
		}
		_, stream := s.get("/v1/responses/" + id + "?stream=true")
		if _, err := plugintest.Check([]byte(stream)); err != nil {
			t.Errorf("%s: %v\n%s", model, err, stream)
		}
	}
}

// A version that a crash leaves behind says that the response failed.
func TestAResponseInTheBackgroundEndsWithTheProcess(t *testing.T) {
	answer, begun, proceed := held(says("model m-1", "text hel"), says("stop"))
	s := serve(t, map[string][]upstream{"one": {answer}})
	id := s.inBackground(`{"model":"one/m","input":"hi"}`)
	<-begun
	left := s.kept.all()
	if len(left) != 1 || left[0].EndState != storage.Interrupted || !strings.Contains(left[0].request, "background") {
		t.Fatalf("%+v", left)
	}
	close(proceed)
	s.ended(id)
	s.handler.responses.Runs.Forget(s.handler.responses.Runs.Find("default", "", id))
	s.kept.mu.Lock()
	left[0].EndState = storage.Failed // which the ledger shows
	s.kept.records[left[0].Key()] = left[0]
	s.kept.mu.Unlock()
	if got := s.ended(id); gjson.Get(got, "status").Str != "failed" || gjson.Get(got, "error.code").Str != "server_error" || gjson.Get(got, "id").Str != id {
		t.Error(got)
	}
	if status, got := s.get("/v1/responses/" + id + "?stream=true"); status != http.StatusBadRequest || gjson.Get(got, "error.param").Str != "stream" {
		t.Errorf("%d %s", status, got)
	}
}

func TestBackgroundMustBeKept(t *testing.T) {
	s := serve(t, map[string][]upstream{"one": {hello}})
	for _, c := range []struct {
		body   string
		header []string
	}{
		{`{"model":"one/m","input":"hi","background":true,"store":false}`, nil},
		{`{"model":"one/m","input":"hi","background":true}`, []string{"Service-Omit-Request", "true"}},
		{`{"model":"one/m","input":"hi","background":true}`, []string{"Service-Omit-Response", "true"}},
	} {
		if resp, got := s.post(c.body, c.header...); resp.StatusCode != http.StatusBadRequest || gjson.Get(got, "error.param").Str != "background" {
			t.Errorf("%s: %d %s", c.body, resp.StatusCode, got)
		}
	}
	if resp, got := s.post(`{"model":"one/m","input":"hi","background":false}`); resp.StatusCode != http.StatusOK || gjson.Get(got, "status").Str != "completed" {
		t.Errorf("%d %s", resp.StatusCode, got)
	}
}

func TestCreditsPayForTheBackground(t *testing.T) {
	s := serve(t, map[string][]upstream{"one": {hello}})
	s.grant(1e6)
	resp, got := s.post(`{"model":"one/m","input":"hi","max_output_tokens":9,"background":true}`, "Authorization", "Bearer payer")
	id := gjson.Get(got, "id").Str
	run := s.handler.responses.Runs.Find("payer", "", id)
	if resp.StatusCode != http.StatusOK || run == nil {
		t.Fatalf("%d %s", resp.StatusCode, got)
	}
	<-run.Ended()
	if records := s.kept.all(); len(records) != 1 || !records[0].Cost.Valid || records[0].Cost.N == 0 || !records[0].PassthroughBilling {
		t.Errorf("records %+v", records)
	}
}
