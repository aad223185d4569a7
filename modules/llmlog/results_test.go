package llmlog

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/weirhq/weir/plugins"
)

// A client that downloads the results of a batch gets their bytes, and each call in them
// has a record of the caller who made the batch.
func TestBatchResults(t *testing.T) {
	const results = `{"custom_id":"a","result":{"type":"succeeded","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5-20250929","content":[{"type":"text","text":"canary-answer"}],"stop_reason":"end_turn","usage":{"input_tokens":1000,"output_tokens":100}}}}` + "\n" +
		`{"custom_id":"b","result":{"type":"canceled"}}` + "\n"
	s := serve(t, options{config: object{"provider": "anthropic"}, handler: caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		if r.Method == http.MethodPost {
			w.Header().Set("Content-Type", "application/json")
			_, err := io.WriteString(w, `{"id":"msgbatch_1","type":"message_batch","processing_status":"in_progress"}`)
			return err
		}
		w.Header().Set("Content-Type", "application/x-jsonl")
		_, err := io.WriteString(w, results)
		return err
	})})
	call := func(method, path, body string, header ...string) string {
		t.Helper()
		r, err := http.NewRequest(method, "http://"+s.addr+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(answer)
	}
	call("POST", "/v1/messages/batches", `{"requests":[]}`, "Service-User-Id", "ada", "Service-Property-Team", "search", "Service-Omit-Response", "true")
	for range 3 {
		if got := call("GET", "/v1/messages/batches/msgbatch_1/results", ""); got != results {
			t.Errorf("the client got %s", got)
		}
	}
	s.kept.mu.Lock()
	defer s.kept.mu.Unlock()
	var calls, costs []string
	for _, e := range s.kept.entries {
		if strings.Contains(string(e.Response.Data), "canary") {
			t.Errorf("the answer is kept at %s", e.Path)
		}
		switch {
		case e.Dialect == plugins.Batches && (e.ResponseID != "msgbatch_1" || e.Cost != plugins.KnownCost(0)):
			t.Errorf("the batch is %+v", e.Record)
		case e.UserID == "ada" && e.Properties["Team"] == "search" && e.Dialect != plugins.Batches:
			calls = append(calls, string(e.Dialect)+" "+e.ErrorType)
			costs = append(costs, string(e.Cost.AppendJSON(nil)))
		}
	}
	if len(calls) != 2 || calls[0] != "messages " || calls[1] != " canceled" || costs[0] != "0.00225" || costs[1] != "0" {
		t.Errorf("the calls are %q, and cost %q", calls, costs)
	}
}

// A response in the background has no usage when it is made. The client asks for it until it
// is complete, and the record of the call that made it then has the usage and the cost.
func TestPolledResponse(t *testing.T) {
	for _, c := range []struct{ provider, path, poll, request, queued, done string }{
		{
			"openai", "/v1/responses", "/v1/responses/x_1", `{"model":"gpt-4o","input":"hi","background":true}`,
			`{"id":"x_1","object":"response","status":"queued","model":"gpt-4o","output":[],"usage":null}`,
			`{"id":"x_1","object":"response","status":"completed","model":"gpt-4o","output":[],"usage":{"input_tokens":1000,"output_tokens":100,"total_tokens":1100}}`,
		},
		{
			"openai", "/v1/threads/t_1/runs", "/v1/threads/t_1/runs/x_1", `{"assistant_id":"asst_1"}`,
			`{"id":"x_1","object":"thread.run","status":"queued","model":"gpt-4o","usage":null}`,
			`{"id":"x_1","object":"thread.run","status":"completed","model":"gpt-4o","usage":{"prompt_tokens":1000,"completion_tokens":100,"total_tokens":1100}}`,
		},
		{
			"gemini", "/v1beta/interactions", "/v1beta/interactions/x_1", `{"model":"gemini-2.5-flash","input":"hi","background":true}`,
			`{"id":"x_1","object":"interaction","status":"in_progress","model":"gemini-2.5-flash"}`,
			`{"id":"x_1","object":"interaction","status":"completed","model":"gemini-2.5-flash","usage":{"total_input_tokens":1000,"total_output_tokens":100,"total_tokens":1100}}`,
		},
	} {
		t.Run(c.path, func(t *testing.T) {
			polls := 0
			s := serve(t, options{config: object{"provider": c.provider}, handler: caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
				answer := c.queued
				if r.Method == http.MethodGet {
					if polls++; polls > 1 {
						answer = c.done
					}
				}
				w.Header().Set("Content-Type", "application/json")
				_, err := io.WriteString(w, answer)
				return err
			})})
			for _, call := range []struct{ method, path, body string }{
				{"POST", c.path, c.request},
				{"GET", c.poll, ""}, {"GET", c.poll, ""},
				{"GET", c.poll, ""}, {"GET", c.path + "/x_2", ""},
			} {
				r, err := http.NewRequest(call.method, "http://"+s.addr+call.path, strings.NewReader(call.body))
				if err != nil {
					t.Fatal(err)
				}
				resp, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			s.kept.mu.Lock()
			defer s.kept.mu.Unlock()
			made := s.kept.entries[0]
			if len(s.kept.amended) != 1 {
				t.Fatalf("%d amendments", len(s.kept.amended))
			}
			want := plugins.KnownCost(3_500_000)
			if c.provider == "gemini" {
				want = plugins.KnownCost(550_000)
			}
			if r := s.kept.amended[0]; r.ID != made.ID || r.Usage.Total() != plugins.Known(1100) || r.Cost != want || r.Finish != "completed" {
				t.Errorf("the record is %+v", r)
			}
			for _, e := range s.kept.entries {
				if e.ID != made.ID && e.Usage != (plugins.Usage{}) {
					t.Errorf("the record of %s has the usage too", e.Path)
				}
			}
		})
	}
}
