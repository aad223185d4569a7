package llmgateway

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/providers"
	"github.com/weirhq/weir/modules/internal/routing"
)

// failing is how one attempt fails: a status, and for how many seconds the
// provider asks to wait.
type failing struct{ status, retryAfter int }

// answered is what a native provider answers.
const answered = `{"id":"resp_1","object":"response","status":"completed","model":"m","output":[]}`

// script lets the attempts at each provider fail as told, in their order; what
// follows succeeds. It returns which attempts were made when.
func (s *site) script(failures map[string][]failing) func() string {
	begin := time.Now()
	var made []string
	for _, account := range s.handler.site.App.Accounts().Of("default") {
		account.ID = sha256.Sum256([]byte(s.t.Name() + account.Label)) // whose circuit no other test has opened
		account.Transport = providers.NewTransport(transport(func(*http.Request) (*http.Response, error) {
			made = append(made, fmt.Sprintf("%s@%s", account.Label, time.Since(begin).Round(time.Second)))
			resp := &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(answered))}
			if left := failures[account.Label]; len(left) > 0 {
				failures[account.Label] = left[1:]
				resp.StatusCode = left[0].status
				resp.Header.Set("Retry-After", fmt.Sprint(left[0].retryAfter))
			}
			return resp, nil
		}))
	}
	return func() string { return strings.Join(made, " ") }
}

func TestAttempts(t *testing.T) {
	standard := routing.Policy{Retries: 1, Backoff: backoff, TryDuration: time.Minute}
	for name, c := range map[string]struct {
		policy routing.Policy
		script map[string][]failing
		want   string
		status int
	}{
		"the first answers":    {standard, nil, "raw@0s", 200},
		"a retry answers":      {standard, map[string][]failing{"raw": {{500, 0}}}, "raw@0s raw@0s", 200},
		"the next answers":     {standard, map[string][]failing{"raw": {{500, 0}, {500, 0}}}, "raw@0s raw@0s raw2@0s", 200},
		"failover alone":       {standard, map[string][]failing{"raw": {{401, 0}}}, "raw@0s raw2@0s", 200},
		"a redirect":           {standard, map[string][]failing{"raw": {{307, 0}}}, "raw@0s raw2@0s", 200},
		"redirects alone":      {standard, map[string][]failing{"raw": {{307, 0}}, "raw2": {{307, 0}}}, "raw@0s raw2@0s", 502},
		"the client's fault":   {standard, map[string][]failing{"raw": {{400, 0}}}, "raw@0s", 400},
		"a wait asked for":     {standard, map[string][]failing{"raw": {{429, 20}}}, "raw@0s raw@20s", 200},
		"too long a wait":      {standard, map[string][]failing{"raw": {{429, 31}}}, "raw@0s raw2@0s", 200},
		"a wait over the time": {routing.Policy{Retries: 1, Backoff: backoff, TryDuration: 10 * time.Second}, map[string][]failing{"raw": {{429, 20}}}, "raw@0s raw2@0s", 200},
		"no retries":           {routing.Policy{Backoff: backoff, TryDuration: time.Minute}, map[string][]failing{"raw": {{500, 0}}}, "raw@0s raw2@0s", 200},
		"all fail":             {standard, map[string][]failing{"raw": {{500, 0}, {500, 0}}, "raw2": {{500, 0}, {503, 0}}}, "raw@0s raw@0s raw2@0s raw2@0s", 503},
		"time is over": {routing.Policy{Retries: 2, Backoff: backoff, TryDuration: 15 * time.Second}, map[string][]failing{"raw": {{429, 10}, {429, 10}, {429, 10}}},
			"raw@0s raw@10s raw2@10s", 200},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, nil)
			s.handler.policy = c.policy
			synctest.Test(t, func(t *testing.T) {
				made := s.script(c.script)
				w := httptest.NewRecorder()
				s.call(t, w, "/v1/responses", `{"model":"raws","input":"hi"}`)
				if got := made(); got != c.want || w.Code != c.status {
					t.Errorf("attempts %s, %d %s; want %s, %d", got, w.Code, w.Body, c.want, c.status)
				}
			})
		})
	}
}

// An answer that the provider charges, and that is none for the model's fault, is not asked
// for again: it would be charged again.
func TestTheModelsFaultIsAskedForOnce(t *testing.T) {
	asked := 0
	s := serve(t, map[string][]upstream{"one": {func(w http.ResponseWriter, _ *http.Request) {
		asked++
		_, _ = io.WriteString(w, "data: usage 3 5\n\ndata: wrong call\n\n")
	}}})
	resp, body := s.post(`{"model":"one/m","input":"hi"}`)
	if asked != 1 || resp.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(body, `"call"`) {
		t.Errorf("asked %d times, the client got %d %s", asked, resp.StatusCode, body)
	}
	if kept := s.kept.all(); len(kept) != 1 || kept[0].Usage.Output.N != 5 {
		t.Errorf("%d records, the first is %+v", len(kept), kept[0].Usage)
	}
}

// A client that leaves between two attempts is waited for no longer.
func TestClientGoneEndsAttempts(t *testing.T) {
	s := serve(t, nil)
	synctest.Test(t, func(t *testing.T) {
		made := s.script(map[string][]failing{"raw": {{429, 20}}})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		r := httptest.NewRequestWithContext(ctx, "POST", "/v1/responses", strings.NewReader(`{"model":"raws","input":"hi"}`))
		r.Header.Set("Authorization", "Bearer k")
		if err := s.handler.ServeHTTP(httptest.NewRecorder(), r, nil); err != nil {
			t.Fatal(err)
		}
		if got := made(); got != "raw@0s" {
			t.Errorf("attempts %s", got)
		}
	})
}

// One model that fails moves the calls of that model to another provider, and no
// others.
func TestOneModelsFailuresAreItsOwn(t *testing.T) {
	s := serve(t, nil)
	s.handler.policy = routing.Policy{Backoff: backoff, TryDuration: time.Minute}
	synctest.Test(t, func(t *testing.T) {
		made := s.script(map[string][]failing{"raw": {{500, 0}, {500, 0}, {500, 0}}})
		for range 4 {
			s.call(t, httptest.NewRecorder(), "/v1/responses", `{"model":"raw/bad,raw2/bad","input":"hi"}`)
		}
		s.call(t, httptest.NewRecorder(), "/v1/responses", `{"model":"raw/good,raw2/good","input":"hi"}`)
		const want = "raw@0s raw2@0s raw@0s raw2@0s raw@0s raw2@0s raw2@0s raw@0s"
		if got := made(); got != want {
			t.Errorf("attempts %s, want %s", got, want)
		}
	})
}

// A provider that never begins to answer is given up for the next one.
func TestHangingProvider(t *testing.T) {
	for name, c := range map[string]struct {
		body    string
		timeout time.Duration
		status  int
		after   time.Duration
	}{
		"a stream":                 {`{"model":"raws","input":"hi","stream":true}`, 0, 200, 30 * time.Second},
		"an object, bounded":       {`{"model":"raws","input":"hi"}`, 5 * time.Second, 200, 5 * time.Second},
		"the only one, bounded":    {`{"model":"raw/m","input":"hi"}`, 5 * time.Second, 504, 5 * time.Second},
		"the only one, of streams": {`{"model":"raw/m","input":"hi","stream":true}`, 0, 200, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, nil)
			s.handler.policy.FirstByteTimeout = c.timeout
			synctest.Test(t, func(t *testing.T) {
				s.script(nil)
				s.handler.site.App.Accounts().Of("default")[2].Transport = providers.NewTransport(transport(func(r *http.Request) (*http.Response, error) {
					select {
					case <-r.Context().Done():
						return nil, r.Context().Err()
					case <-time.After(time.Hour):
						return &http.Response{
							StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(answered)),
						}, nil
					}
				}))
				begin := time.Now()
				w := httptest.NewRecorder()
				s.call(t, w, "/v1/responses", c.body)
				if w.Code != c.status || time.Since(begin) != c.after {
					t.Errorf("after %s: %d %s", time.Since(begin), w.Code, w.Body)
				}
			})
		})
	}
}

// endless is a body that sends nothing until its request is cancelled, or for ever.
type endless struct{ cancelled <-chan struct{} }

func (b endless) Read([]byte) (int, error) {
	<-b.cancelled
	return 0, context.Canceled
}

func (endless) Close() error { return nil }

// No call waits for a body that belongs to no answer.
func TestErrorsWithoutAnEnd(t *testing.T) {
	for status, after := range map[int]time.Duration{101: 0, 302: 0, 400: maxErrorTime, 404: maxErrorTime, 429: maxErrorTime, 500: maxErrorTime} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			s := serve(t, nil)
			s.handler.policy.Retries = 0
			synctest.Test(t, func(t *testing.T) {
				s.script(nil)
				s.handler.site.App.Accounts().Of("default")[2].Transport = providers.NewTransport(transport(func(r *http.Request) (*http.Response, error) {
					body := endless{r.Context().Done()}
					if status < 400 {
						body.cancelled = nil // an upgraded connection has no end, a redirect's body no use
					}
					return &http.Response{StatusCode: status, Header: http.Header{}, Body: body}, nil
				}))
				begin := time.Now()
				w := httptest.NewRecorder()
				s.call(t, w, "/v1/responses", `{"model":"raws","input":"hi"}`)
				want := http.StatusOK // the other target's
				if status == http.StatusBadRequest {
					want = status
				}
				if w.Code != want || time.Since(begin) != after {
					t.Errorf("after %s: %d %s", time.Since(begin), w.Code, w.Body)
				}
			})
		})
	}
}

// A model that a provider has no more is no fault of the client: another target may have it.
func TestMissingModelsAreLookedForElsewhere(t *testing.T) {
	for name, refusal := range map[string]struct {
		status int
		body   string
	}{
		"OpenAI":       {404, `{"error":{"message":"The model does not exist or you do not have access to it.","type":"invalid_request_error","code":"model_not_found"}}`},
		"Azure":        {404, `{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}`},
		"Groq":         {400, `{"error":{"message":"The model has been decommissioned.","type":"invalid_request_error","code":"model_decommissioned"}}`},
		"Groq's plan":  {413, `{"error":{"message":"Request too large for model on tokens per minute.","type":"tokens","code":"rate_limit_exceeded"}}`},
		"another path": {405, `{"error":{"message":"Method Not Allowed"}}`},
	} {
		asked := 0
		refuse := func(w http.ResponseWriter, _ *http.Request) {
			asked++
			w.WriteHeader(refusal.status)
			_, _ = io.WriteString(w, refusal.body)
		}
		s := serve(t, map[string][]upstream{"raw": {refuse}, "raw2": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answered) }}})
		if resp, body := s.post(`{"model":"raws","input":"hi"}`); resp.StatusCode != http.StatusOK || asked != 1 {
			t.Errorf("%s: %d %s, asked %d times", name, resp.StatusCode, body, asked)
		}
		if resp, body := s.post(`{"model":"raw/m","input":"hi"}`); resp.StatusCode != refusal.status || asked != 2 {
			t.Errorf("%s, alone: %d %s, asked %d times", name, resp.StatusCode, body, asked)
		}
	}
}

// What a client names at its provider, and is missing there, is at no other target: the client gets the words
// of the one that was asked. A request that names such things can still have a model that is missing.
func TestMissingFilesAreNotLookedForElsewhere(t *testing.T) {
	for refusal, elsewhere := range map[string]bool{
		`{"error":{"message":"No such File object: file-1","type":"invalid_request_error","param":"id","code":null}}`:                false,
		`{"error":{"message":"Not found.","type":"invalid_request_error"}}`:                                                          false,
		`{"error":{"message":"The model does not exist.","type":"invalid_request_error","code":"model_not_found"}}`:                  true,
		`{"error":{"code":"DeploymentNotFound","message":"The API resource does not exist. If you created it, wait some minutes."}}`: true,
	} {
		s := serve(t, map[string][]upstream{"raw": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, refusal)
		}}})
		resp, body := s.postTo("/v1/responses", strings.NewReader(`{"model":"raws","input":[{"type":"message","role":"user","content":[{"type":"input_file","file_id":"file-1"}]}]}`), "Authorization", "Bearer both")
		if tried := gjson.Get(body, "error.attempts.#").Int(); elsewhere != (tried > 1) || !elsewhere && (resp.StatusCode != http.StatusNotFound || !strings.Contains(body, gjson.Get(refusal, "error.message").Str)) {
			t.Errorf("%s: %d %s", refusal, resp.StatusCode, body)
		}
	}
}

// A request that is too long for a model goes to the larger ones of its targets, also to one that has
// refused it for a time: whether the conversation is too long depends on them.
func TestLargerModelsTakeLongRequests(t *testing.T) {
	tooLong := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":{"message":"This model's maximum context length is 1000 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}`)
	}
	busy := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"error":{"message":"Slow down.","type":"rate_limit_error","code":"rate_limit_exceeded"}}`)
	}
	takes := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answered) }
	for name, c := range map[string]struct {
		models       string
		small, large upstream
		status       int
		attempts     string // the targets that failed
	}{
		"the small one first":   {"raw/priced,raw2/m", tooLong, takes, 200, ``},
		"no larger one":         {"raw/priced", tooLong, takes, 400, ``},
		"too long for both":     {"raw/priced,raw2/m", tooLong, tooLong, 400, `["raw/priced","raw2/m"]`},
		"the large one first":   {"raw2/m,raw/priced", tooLong, tooLong, 400, ``},
		"the large one is busy": {"raw2/m,raw/priced", tooLong, busy, 429, `["raw2/m","raw2/m","raw/priced","raw2/m","raw2/m"]`},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, map[string][]upstream{"raw": {c.small}, "raw2": {c.large}})
			resp, body := s.post(`{"model":"` + c.models + `","input":"hi"}`)
			if got := gjson.Get(body, "error.attempts.#.target").Raw; resp.StatusCode != c.status || got != c.attempts {
				t.Errorf("%d %s", resp.StatusCode, body)
			}
		})
	}
}
