package llmgateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/modules/internal/recording"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/plugins/echo"
	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/storage"
)

var hello = says("model m-1", "text hel", "text lo", "usage 3 5", "stop")

const (
	ask    = `{"model":"one/m","input":"hi"}`
	stream = `{"model":"one/m","input":"hi","stream":true}`
)

// speaksResponses is a provider that speaks Responses, and has every response from which
// it shall go on.
func speaksResponses(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		body, err = sjson.DeleteBytes(body, "previous_response_id")
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	new(echo.Handler).Answer(w, r, body)
}

func TestResponses(t *testing.T) {
	for name, c := range map[string]struct {
		body, model, text string
		upstreams         map[string][]upstream
	}{
		"translated":        {ask, "m-1", "hello", map[string][]upstream{"one": {hello}}},
		"translated stream": {stream, "m-1", "hello", map[string][]upstream{"one": {hello}}},
		"native":            {`{"model":"raw/m","input":"hi"}`, "raw/m", "You said: hi", map[string][]upstream{"raw": {speaksResponses}}},
		"native stream":     {`{"model":"raw/m","input":"hi","stream":true}`, "raw/m", "You said: hi", map[string][]upstream{"raw": {speaksResponses}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, c.upstreams)
			resp, body := s.post(c.body, "Service-User-Id", "u-1")
			if resp.StatusCode != 200 {
				t.Fatalf("%d %s", resp.StatusCode, body)
			}
			object := `{"response":` + body + `}`
			if strings.Contains(c.body, "stream") {
				if _, err := plugintest.Check([]byte(body)); err != nil {
					t.Fatalf("%v\n%s", err, body)
				}
				object = lastEventData(body, "response.completed")
			}
			if got := gjson.Get(object, "response.output.0.content.0.text").Str; got != c.text {
				t.Errorf("it says %q\n%s", got, body)
			}
			records := s.kept.all()
			if len(records) != 1 {
				t.Fatalf("%d records", len(records))
			}
			r := records[0]
			if r.ID.String() != resp.Header.Get("Service-Id") || r.Model != c.model || r.UserID != "u-1" || r.Org != "default" ||
				r.EndState != storage.Complete || r.Status.N != 200 || r.Attempt != 1 || !r.Usage.Input.Valid || r.Referrer != "gateway" ||
				r.request != c.body || !strings.Contains(r.response, c.text[:3]) || r.Stream != strings.Contains(c.body, "stream") {
				t.Errorf("the record is %+v", r)
			}
			if r.Stream != r.TimeToFirstToken.Valid {
				t.Errorf("time to first token %v", r.TimeToFirstToken)
			}
		})
	}
}

// lastEventData is the data of the last event of that name.
func lastEventData(body, name string) string {
	i := strings.LastIndex(body, "event: "+name+"\ndata: ")
	if i < 0 {
		return ""
	}
	data, _, _ := strings.Cut(body[i+len("event: "+name+"\ndata: "):], "\n")
	return data
}

func TestFallback(t *testing.T) {
	const cut = `{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","model":"m"}}`
	for name, c := range map[string]struct {
		model     string
		upstreams map[string][]upstream
		statuses  []int64 // of the records, by attempt
		states    []storage.EndState
	}{
		"a retry":              {"both", map[string][]upstream{"one": {status(500), hello}}, []int64{500, 200}, []storage.EndState{0, 0}},
		"another target":       {"both", map[string][]upstream{"one": {status(500)}, "two": {hello}}, []int64{500, 500, 200}, []storage.EndState{0, 0, 0}},
		"platform credentials": {"both", map[string][]upstream{"one": {status(401)}, "two": {hello}}, []int64{401, 200}, []storage.EndState{0, 0}},
		"before content":       {"both", map[string][]upstream{"one": {says("model m-1"), hello}}, []int64{200, 200}, []storage.EndState{storage.UpstreamAborted, 0}},
		"a plugin's panic":     {"both", map[string][]upstream{"one": {says("panic"), hello}}, []int64{200, 200}, []storage.EndState{storage.UpstreamAborted, 0}},
		"native, no content":   {"raws", map[string][]upstream{"raw": {says(cut)}, "raw2": {speaksResponses}}, []int64{200, 200, 200}, []storage.EndState{storage.UpstreamAborted, storage.UpstreamAborted, 0}},
		"native, then other":   {"raw/m,one/m", map[string][]upstream{"raw": {status(503)}, "one": {hello}}, []int64{503, 503, 200}, []storage.EndState{0, 0, 0}},
	} {
		for _, mode := range []string{"false", "true"} {
			t.Run(name+", stream "+mode, func(t *testing.T) {
				s := serve(t, c.upstreams)
				resp, body := s.post(fmt.Sprintf(`{"model":%q,"input":"hi","stream":%s}`, c.model, mode))
				if resp.StatusCode != 200 || strings.Contains(body, `"error":{`) {
					t.Fatalf("%d %s", resp.StatusCode, body)
				}
				records := s.kept.all()
				if len(records) != len(c.statuses) {
					t.Fatalf("%d records, want %d", len(records), len(c.statuses))
				}
				answer := records[len(records)-1]
				if answer.ID.String() != resp.Header.Get("Service-Id") || answer.AttemptOf != uuid.Nil || answer.request == "" {
					t.Errorf("the record of the answer is %+v", answer)
				}
				for i, r := range records {
					if r.Attempt != i+1 || r.Status.N != c.statuses[i] || r.EndState != c.states[i] {
						t.Errorf("attempt %d: number %d, status %d, %s", i+1, r.Attempt, r.Status.N, r.EndState)
					}
					if i < len(records)-1 && r.AttemptOf != answer.ID {
						t.Errorf("attempt %d is of %s", i+1, r.AttemptOf)
					}
				}
			})
		}
	}
}

func TestErrors(t *testing.T) {
	refuses := map[string][]upstream{"one": {status(400)}, "two": {status(500)}, "raw": {status(422)}, "raw2": {status(500)}}
	for name, c := range map[string]struct {
		body   string
		header []string
		status int
		code   string
		says   string // somewhere in the error
	}{
		"no key":             {ask, []string{"Authorization", ""}, 401, "missing_api_key", ""},
		"unknown key":        {ask, []string{"Authorization", "Bearer x"}, 401, "invalid_api_key", ""},
		"narrow key":         {ask, []string{"Authorization", "Bearer narrow"}, 403, "insufficient_scope", ""},
		"no JSON":            {`{`, nil, 400, "", ""},
		"no model":           {`{"input":"hi"}`, nil, 400, "missing_required_parameter", "model"},
		"unknown model":      {`{"model":"mystery","input":"hi"}`, nil, 404, "model_not_found", "mystery"},
		"bad field":          {`{"model":"one/m","input":5}`, nil, 400, "invalid_type", "input"},
		"unknown encoding":   {ask, []string{"Content-Encoding", "lzma"}, 415, "unsupported_content_encoding", ""},
		"state, translated":  {`{"model":"one/m","input":"hi","previous_response_id":"r"}`, nil, 400, "previous_response_not_found", "previous_response_id"},
		"state, two targets": {`{"model":"raws","input":"hi","previous_response_id":"r"}`, nil, 400, "unsupported_parameter", "raw/m"},
		"strict":             {`{"model":"one/m","input":"hi","service_tier":"flex"}`, []string{"Service-Strict", "true"}, 400, "unsupported_parameter", "service_tier"},
		"the provider's 4xx": {ask, nil, 400, "server_error", "no luck"},
		"native 4xx":         {`{"model":"raw/m","input":"hi"}`, nil, 422, "", "no luck"},
		"all fail":           {`{"model":"two/m,raw2/m","input":"hi"}`, nil, 500, "server_error", `"attempts":[{"target":"two/m","status":500,"message":"no luck\n"},{"target":"two/m"`},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, refuses)
			resp, body := s.post(c.body, c.header...)
			if resp.StatusCode != c.status || c.code != "" && gjson.Get(body, "error.code").Str != c.code || !strings.Contains(body, c.says) ||
				!gjson.Get(body, "error.message").Exists() {
				t.Errorf("%d %s", resp.StatusCode, body)
			}
			if c.status == 401 || c.status == 403 {
				if n := len(s.kept.all()); n != 0 {
					t.Errorf("%d records of nobody's call", n)
				}
				return
			}
			records := s.kept.all()
			if len(records) == 0 {
				t.Fatal("no record")
			}
			if r := records[len(records)-1]; r.Status.N != int64(c.status) || r.ID.String() != resp.Header.Get("Service-Id") || r.ErrorType == "" {
				t.Errorf("the record is %+v", r)
			}
		})
	}
}

func TestPlatformCredentialsRefused(t *testing.T) {
	for key, want := range map[string]int{"k": http.StatusBadGateway, "acme": http.StatusUnauthorized} {
		s := serve(t, map[string][]upstream{"one": {func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "no such key: "+r.Header.Get("Authorization"), http.StatusUnauthorized)
		}}})
		resp, body := s.post(ask, "Authorization", "Bearer "+key)
		if resp.StatusCode != want {
			t.Errorf("with key %s: %d %s, want %d", key, resp.StatusCode, body, want)
		}
		if kept := s.kept.all()[0].response; strings.Contains(body+kept, "platform-key") {
			t.Errorf("with key %s: the client can read %s and %s", key, body, kept)
		}
	}
}

// An organisation that OpenAI has not verified gets its answers without summaries of the reasoning.
func TestARefusedSummaryIsNotAskedForAgain(t *testing.T) {
	var refused sync.WaitGroup
	refused.Add(2)
	var asked atomic.Int64
	s := serve(t, map[string][]upstream{"raw": {func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) <= 2 {
			refused.Done()
			refused.Wait() // neither call knows of the other's refusal
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":{"message":"Your organization must be verified to generate reasoning summaries.","type":"invalid_request_error","param":"reasoning.summary","code":"unsupported_value"}}`)
			return
		}
		speaksResponses(w, r)
	}}})
	const ask = `{"model":"raw/m","max_tokens":9,"thinking":{"type":"adaptive"},"messages":[{"role":"user","content":"hi"}]}`
	call := func() {
		if resp, body := s.postTo("/v1/messages", strings.NewReader(ask)); resp.StatusCode != http.StatusOK {
			t.Errorf("%d %s", resp.StatusCode, body)
		}
	}
	var first sync.WaitGroup
	first.Go(call)
	first.Go(call)
	first.Wait()
	call()
	if asked.Load() != 5 {
		t.Errorf("asked %d times, want 2 of the first two calls and one of the last", asked.Load())
	}
}

func TestOwnKeyFirst(t *testing.T) {
	var got string
	s := serve(t, map[string][]upstream{"one": {func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Authorization")
		hello(w, r)
	}}})
	s.post(ask, "Authorization", "Bearer acme")
	if got != "Bearer own-key" {
		t.Errorf("called with %s", got)
	}
}

// A provider that breaks off within its answer: the client is told, in a legal
// stream, and no other attempt is made.
func TestBrokenStream(t *testing.T) {
	const begin = `{"type":"response.created","sequence_number":0,"response":{"id":"resp\n\"1\"","model":"m","status":"in_progress"}}`
	const delta = `{"type":"response.output_text.delta","sequence_number":1,"delta":"hel"}`
	for name, upstreams := range map[string]map[string][]upstream{
		"translated": {"one": {says("text hel"), hello}},
		"native":     {"raw": {says(begin, delta, `{"type":"response.output_te`)}},
		"native, behind a comment": {"raw": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, ": here it comes\n\n")
			says(begin, delta)(w, r)
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, upstreams)
			native := upstreams["raw"] != nil
			model := map[bool]string{false: "one/m", true: "raw/m"}[native]
			_, body := s.post(fmt.Sprintf(`{"model":%q,"input":"hi","stream":true}`, model))
			failed := gjson.Parse(lastEventData(body, "response.failed"))
			told := gjson.Parse(lastEventData(body, "error"))
			if failed.Get("response.status").Str != "failed" || told.Get("error.message").Str == "" ||
				failed.Get("sequence_number").Int() != told.Get("sequence_number").Int()+1 {
				t.Errorf("the stream is\n%s", body)
			}
			if native && (failed.Get("response.id").Str != "resp\n\"1\"" || told.Get("sequence_number").Int() != 2) {
				t.Errorf("the stream is\n%s", body)
			}
			records := s.kept.all()
			if len(records) != 1 || records[0].EndState != storage.UpstreamAborted || !strings.Contains(records[0].response, "hel") {
				t.Errorf("records %+v", records)
			}
		})
	}
}

// The record stands before the client can see the end of the answer, and
// content is passed on as it comes.
func TestRecordBeforeEnd(t *testing.T) {
	for _, model := range []string{"one/m", "raw/m"} {
		t.Run(model, func(t *testing.T) {
			proceed := make(chan bool)
			s := serve(t, map[string][]upstream{
				"one": {func(w http.ResponseWriter, r *http.Request) {
					says("text first")(w, r)
					<-proceed
					says("stop")(w, r)
				}},
				"raw": {func(w http.ResponseWriter, r *http.Request) {
					says(`{"type":"response.output_text.delta","sequence_number":1,"delta":"first"}`)(w, r)
					<-proceed
					says(`{"type":"response.completed","sequence_number":2,"response":{"id":"r","status":"completed"}}`)(w, r)
				}},
			})
			r, _ := http.NewRequest("POST", s.URL+"/v1/responses", strings.NewReader(fmt.Sprintf(`{"model":%q,"input":"hi","stream":true}`, model)))
			r.Header.Set("Authorization", "Bearer k")
			resp, err := s.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			lines := bufio.NewScanner(resp.Body)
			for lines.Scan() && !strings.Contains(lines.Text(), "first") {
			}
			if n := len(s.kept.all()); n != 0 {
				t.Fatalf("%d records in the middle", n)
			}
			close(proceed)
			for lines.Scan() && !strings.Contains(lines.Text(), "response.completed") {
			}
			if n := len(s.kept.all()); n != 1 {
				t.Fatalf("%d records when the client has the end", n)
			}
		})
	}
}

// A client that leaves, at whatever point, is what its record says, and not that
// the provider failed.
func TestClientLeaves(t *testing.T) {
	hang := func(first string) upstream {
		return func(w http.ResponseWriter, r *http.Request) {
			says(first)(w, r)
			<-r.Context().Done()
		}
	}
	for name, c := range map[string]struct {
		model    string
		upstream upstream
		begun    bool // the client has got something
		status   int64
	}{
		"translated":                 {"one/m", hang("text first"), true, 200},
		"translated, before content": {"one/m", hang("model m-1"), false, 200},
		"native":                     {"raw/m", hang(`{"type":"response.output_text.delta","sequence_number":1,"delta":"first"}`), true, 200},
		"native, before content":     {"raw/m", hang(`{"type":"response.created","response":{"id":"resp_1"}}`), false, 200},
		"before an answer":           {"raw/m", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, false, storage.StatusClientLeft},
		"between attempts":           {"raw/m", status(429), false, 429},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			answer := func(w http.ResponseWriter, r *http.Request) {
				if _, err := io.ReadAll(r.Body); err != nil { // else the server would not see that the gateway leaves
					t.Error(err)
				}
				if !c.begun {
					time.AfterFunc(50*time.Millisecond, cancel)
				}
				c.upstream(w, r)
			}
			s := serve(t, map[string][]upstream{"one": {answer}, "raw": {answer}})
			s.handler.policy.Backoff = backoff // to leave meanwhile
			r, _ := http.NewRequestWithContext(ctx, "POST", s.URL+"/v1/responses", strings.NewReader(fmt.Sprintf(`{"model":%q,"input":"hi","stream":true}`, c.model)))
			r.Header.Set("Authorization", "Bearer k")
			resp, err := s.Client().Do(r)
			if (err == nil) != c.begun {
				t.Fatalf("begun: %v", err)
			}
			if err == nil {
				_, _ = resp.Body.Read(make([]byte, 1))
				cancel()
				resp.Body.Close()
			}
			for len(s.kept.all()) == 0 {
				time.Sleep(time.Millisecond)
			}
			s.Close()
			e := s.kept.all()[0]
			if e.EndState != storage.ClientAborted || e.Status.N != c.status || e.Status.N == 200 && (e.ErrorType != "" || strings.Contains(e.response, "rovider")) {
				t.Errorf("the record is %+v with %s", e.Record, e.response)
			}
		})
	}
}

// A client that is still there when the process ends is told so.
func TestCutOff(t *testing.T) {
	const delta = `{"type":"response.output_text.delta","sequence_number":1,"delta":"first"}`
	for name, c := range map[string]struct {
		model, first string
		status       int
	}{
		"translated":         {"one/m", "text first", 200},
		"native":             {"raw/m", delta, 200},
		"before content":     {"raw/m", `{"type":"response.created"}`, 503},
		"before its content": {"one/m", "model m-1", 503},
	} {
		t.Run(name, func(t *testing.T) {
			hang := func(w http.ResponseWriter, r *http.Request) {
				says(c.first)(w, r)
				<-r.Context().Done()
			}
			s := serve(t, map[string][]upstream{"one": {hang}, "raw": {hang}})
			s.handler.site.Open = func(cancel context.CancelFunc) (recording.Recorder, func(), error) {
				time.AfterFunc(50*time.Millisecond, cancel)
				return s.kept, func() {}, nil
			}
			resp, body := s.post(fmt.Sprintf(`{"model":%q,"input":"hi","stream":true}`, c.model))
			if resp.StatusCode != c.status || !strings.Contains(body, `"error":{`) {
				t.Errorf("%d %s", resp.StatusCode, body)
			}
		})
	}
}

func TestOmission(t *testing.T) {
	s := serve(t, map[string][]upstream{"one": {hello}, "raw": {speaksResponses}, "two": {status(400)}})
	for _, model := range []string{"one/m", "raw/m", "two/m"} {
		for _, mode := range []string{"false", "true"} {
			s.post(fmt.Sprintf(`{"model":%q,"input":"hi","stream":%s}`, model, mode),
				"Service-Omit-Request", "true", "Service-Omit-Response", "true", "Service-Prompt-Input-City", "Bern")
		}
	}
	records := s.kept.all()
	if len(records) != 6 {
		t.Fatalf("%d records", len(records))
	}
	for _, r := range records {
		if r.request != "" || r.response != "" || !r.RequestOmitted || !r.ResponseOmitted {
			t.Errorf("kept %q and %q", r.request, r.response)
		}
	}
}

func TestOtherPaths(t *testing.T) {
	s := serve(t, nil)
	for request, want := range map[string]int{
		"GET /v1/responses":         405,
		"POST /v1/models":           405,
		"GET /v1/models":            200,
		"GET /v1/models/multimodal": 200,
		"GET /v1/responses/resp_1":  401,
		"GET /v1/chat/completions":  405,
		"POST /v1/fine_tuning/jobs": 418,
		"GET /":                     418,
	} {
		method, path, _ := strings.Cut(request, " ")
		r, _ := http.NewRequest(method, s.URL+path, nil)
		resp, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s answers %d, want %d", request, resp.StatusCode, want)
		}
	}
}

// Clients that offer another protocol, such as HTTP/2, are answered in this one
// (RFC 9110, section 7.8).
func TestUpgradesToOtherProtocolsAreIgnored(t *testing.T) {
	s := serve(t, map[string][]upstream{"one": {hello}})
	for _, protocol := range []string{"h2c", "websocket"} {
		if resp, body := s.post(ask, "Connection", "Upgrade", "Upgrade", protocol); resp.StatusCode != http.StatusOK {
			t.Errorf("a POST with Upgrade: %s: %d %s", protocol, resp.StatusCode, body)
		}
	}
}

// What cannot be served says so in JSON, on every endpoint that calls models.
func TestRefusals(t *testing.T) {
	s := serve(t, nil)
	for request, want := range map[string]int{
		"GET /v1/chat/completions":        http.StatusUpgradeRequired, // a WebSocket
		"GET /v1/responses/r":             http.StatusUnauthorized,
		"DELETE /v1/responses/r":          http.StatusUnauthorized,
		"POST /v1/responses/r/cancel":     http.StatusUnauthorized,
		"GET /v1/responses/r/input_items": http.StatusUnauthorized,
		"POST /v1/responses/input_tokens": http.StatusUnauthorized,
		"POST /v1/responses/compact":      http.StatusUnauthorized,
	} {
		method, path, _ := strings.Cut(request, " ")
		r, err := http.NewRequest(method, s.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if want == http.StatusUpgradeRequired {
			r.Header.Set("Connection", "Upgrade")
			r.Header.Set("Upgrade", "websocket")
		}
		resp, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != want || resp.Header.Get("Content-Type") != "application/json" || gjson.GetBytes(body, "error.message").Str == "" {
			t.Errorf("%s answers %d %s, %v", request, resp.StatusCode, body, err)
		}
	}
}

// A name that no model can have is cut in the record, which would not fit into
// the journal else.
func TestLongModel(t *testing.T) {
	s := serve(t, nil)
	resp, answer := s.post(`{"model":"` + strings.Repeat("é", 1<<20) + `","input":"hi"}`)
	if resp.StatusCode != http.StatusBadRequest || !strings.Contains(answer, "model") {
		t.Errorf("%s %s", resp.Status, answer)
	}
	if all := s.kept.all(); len(all) != 1 || len(all[0].RequestModel) > routing.MaxModel {
		t.Errorf("%d records", len(all))
	}
}

// The record of a call that Weir refuses, or that reaches no provider, has the error that the
// client got.
func TestARefusalIsTheAnswerOfItsRecord(t *testing.T) {
	s := serve(t, map[string][]upstream{"one": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }}})
	for model, says := range map[string]string{"nobody/m": "nobody", "one/m": "ended the connection before it answered"} {
		_, answer := s.post(`{"model":"` + model + `","input":"hi"}`)
		all := s.kept.all()
		last := all[len(all)-1]
		if !strings.Contains(answer, says) || gjson.Get(last.response, "error.message").Str != gjson.Get(answer, "error.message").Str || last.RequestModel != model {
			t.Errorf("%s: the answer %s, on the record of %q: %s", model, answer, last.RequestModel, last.response)
		}
	}
}

// forever is a body of one byte.
type forever byte

func (f forever) Read(p []byte) (int, error) {
	p[0] = byte(f)
	for n := 1; n < len(p); n *= 2 {
		copy(p[n:], p[:n])
	}
	return len(p), nil
}

// The pause before another attempt is no part of the one that failed.
func TestPauseIsNobodys(t *testing.T) {
	s := serve(t, map[string][]upstream{"one": {status(500), hello}})
	s.handler.policy.Backoff = backoff
	s.post(ask)
	failed, answer := s.kept.all()[0], s.kept.all()[1]
	if pause := answer.CreatedAt - failed.RespondedAt; pause < 125 {
		t.Errorf("the first attempt ended %d ms before the second", pause)
	}
}
