package llmlog

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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
				s.do(call.method, call.path, call.body)
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

// A session of an agent goes on at the provider. Whatever reports its usage to a client, the session
// or the stream of its events, replaces the usage of the call that created it, if it has become more. Its
// cost is the provider's, or unknown.
func TestPolledSession(t *testing.T) {
	for _, c := range []struct {
		name, provider, path, request, created string
		polls                                  []string // the path after the session's, a space and the answer
		usage                                  int64
		cost                                   plugins.Cost
		amended                                int
		finish                                 string
	}{
		{
			"OpenAI", "openai", "/v1/agents/sessions", `{"agent":{"model":"gpt-4o"},"environment":{"type":"none"},"input":"hi"}`,
			`{"id":"s_1","object":"agent.session","agent":{"model":"gpt-4o"},"status":"in_progress","usage":null}`,
			[]string{
				` {"id":"s_1","object":"agent.session","agent":{"model":"gpt-4o"},"status":"idle","usage":{"input_tokens":10,"output_tokens":1,"total_tokens":11}}`,
				"/events data: {\"event_id\":\"e\",\"type\":\"agent.session.idle\",\"session\":{\"id\":\"s_1\",\"agent\":{\"model\":\"gpt-4o\"},\"status\":\"idle\",\"usage\":{\"input_tokens\":30,\"output_tokens\":3,\"total_tokens\":33}}}\n\n",
				` {"id":"s_1","object":"agent.session","agent":{"model":"gpt-4o"},"status":"idle","usage":{"input_tokens":20,"output_tokens":2,"total_tokens":22}}`, // late
			},
			33, plugins.Cost{}, 2, "idle",
		},
		{
			"OpenAI's turns", "openai", "/v1/agents/sessions", `{"agent":{"model":"gpt-4o"},"environment":{"type":"none"},"input":"hi"}`,
			`{"id":"s_1","object":"agent.session","agent":{"model":"gpt-4o"},"status":"in_progress","usage":null}`,
			[]string{
				"/events data: {\"event_id\":\"e1\",\"type\":\"agent.session.idle\",\"session\":{\"id\":\"s_1\",\"agent\":{\"model\":\"gpt-4o\"},\"status\":\"idle\",\"usage\":{\"input_tokens\":1000,\"output_tokens\":100,\"total_tokens\":1100}}}\n\n" +
					"data: {\"event_id\":\"e2\",\"type\":\"agent.session.turn.completed\",\"session_id\":\"s_1\",\"usage\":{\"input_tokens\":50,\"output_tokens\":5,\"total_tokens\":55}}\n\n",
			},
			1100, plugins.Cost{}, 1, "idle",
		},
		{
			"Anthropic", "anthropic", "/v1/sessions", `{"agent":"agent_1","environment_id":"env_1"}`,
			`{"id":"s_1","type":"session","agent":{"model":{"id":"claude-sonnet-4-6"}},"status":"idle","usage":{"input_tokens":0,"output_tokens":0,"list_cost":{"amount":"0","currency":"USD"}}}`,
			[]string{
				"/events/stream data: {\"id\":\"sevt_1\",\"type\":\"session.usage\",\"usage\":{\"input_tokens\":10,\"cache_read_input_tokens\":5,\"output_tokens\":1,\"list_cost\":{\"amount\":\"2\",\"currency\":\"USD\"}}}\n\n",
				` {"id":"s_2","type":"session","usage":{"input_tokens":99,"output_tokens":99}}`,
				` {"id":"s_1","type":"session","agent":{"model":{"id":"claude-sonnet-4-6"}},"status":"idle","usage":{"input_tokens":10,"cache_read_input_tokens":5,"output_tokens":1,"list_cost":{"amount":"3","currency":"USD"}}}`, // its runtime
			},
			16, plugins.KnownCost(30_000_000), 2, "idle",
		},
		{
			"Anthropic's error, and a report without cost", "anthropic", "/v1/sessions", `{"agent":"agent_1","environment_id":"env_1"}`,
			`{"id":"s_1","type":"session","agent":{"model":{"id":"claude-sonnet-4-6"}},"status":"idle","usage":{"input_tokens":0,"output_tokens":0}}`,
			[]string{
				"/events/stream data: {\"id\":\"sevt_1\",\"type\":\"session.usage\",\"usage\":{\"input_tokens\":10,\"cache_read_input_tokens\":5,\"output_tokens\":1,\"list_cost\":{\"amount\":\"3\",\"currency\":\"USD\"}}}\n\n" +
					"data: {\"id\":\"sevt_2\",\"type\":\"session.error\",\"error\":{\"type\":\"model_overloaded_error\",\"message\":\"busy\"}}\n\n",
				` {"id":"s_1","type":"session","agent":{"model":{"id":"claude-sonnet-4-6"}},"status":"idle","usage":{"input_tokens":20,"cache_read_input_tokens":5,"output_tokens":2}}`,
			},
			27, plugins.KnownCost(30_000_000), 2, "idle",
		},
		{
			"an end without use, and a late report", "anthropic", "/v1/sessions", `{"agent":"agent_1","environment_id":"env_1"}`,
			`{"id":"s_1","type":"session","agent":{"model":{"id":"claude-sonnet-4-6"}},"status":"idle","usage":null}`,
			[]string{
				` {"id":"s_1","type":"session","agent":{"model":{"id":"claude-sonnet-4-6"}},"status":"terminated","usage":null}`,
				` {"id":"s_1","type":"session","agent":{"model":{"id":"claude-sonnet-4-6"}},"status":"running","usage":{"input_tokens":7,"output_tokens":1}}`,
			},
			8, plugins.Cost{}, 2, "terminated",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer := c.created
			s := serve(t, options{config: object{"provider": c.provider}, handler: caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
				w.Header().Set("Content-Type", "application/json")
				if strings.HasPrefix(answer, "data: ") {
					w.Header().Set("Content-Type", "text/event-stream")
				}
				_, err := io.WriteString(w, answer)
				return err
			})})
			s.do(http.MethodPost, c.path, c.request)
			for _, poll := range c.polls {
				var path string
				path, answer, _ = strings.Cut(poll, " ")
				s.do(http.MethodGet, c.path+"/s_1"+path, "")
			}
			s.kept.mu.Lock()
			defer s.kept.mu.Unlock()
			if len(s.kept.amended) != c.amended {
				t.Fatalf("%d amendments, want %d", len(s.kept.amended), c.amended)
			}
			made, r := s.kept.entries[0], s.kept.amended[c.amended-1]
			if r.ID != made.ID || r.ResponseID != "s_1" || r.Model == "" || r.Finish != c.finish || r.ErrorType != "" || r.Usage.Total() != plugins.Known(c.usage) || r.Cost != c.cost {
				t.Errorf("the record is %+v", r)
			}
		})
	}
}

// Polls of a session that end together raise its usage one after the other: none replaces more by less.
func TestPollsEndTogether(t *testing.T) {
	const polls = 16
	var number atomic.Int64
	var arrived sync.WaitGroup
	arrived.Add(polls)
	s := serve(t, options{config: object{"provider": "anthropic"}, handler: caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		used := int64(0)
		if r.Method == http.MethodGet {
			used = number.Add(1)
			arrived.Done()
			arrived.Wait()
		}
		w.Header().Set("Content-Type", "application/json")
		_, err := fmt.Fprintf(w, `{"id":"s_1","type":"session","status":"idle","usage":{"input_tokens":%d,"output_tokens":0}}`, used)
		return err
	})})
	s.kept.delay = time.Millisecond // else their lookups and appends hardly overlap
	resp, err := http.Post("http://"+s.addr+"/v1/sessions", "application/json", strings.NewReader(`{"agent":"agent_1"}`))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	var clients sync.WaitGroup
	for range polls {
		clients.Go(func() {
			resp, err := http.Get("http://" + s.addr + "/v1/sessions/s_1")
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		})
	}
	clients.Wait()
	s.kept.mu.Lock()
	defer s.kept.mu.Unlock()
	used := int64(0)
	for _, r := range s.kept.amended {
		if r.Usage.Input.N <= used {
			t.Errorf("a usage of %d replaces %d", r.Usage.Input.N, used)
		}
		used = r.Usage.Input.N
	}
	if used != polls {
		t.Errorf("the usage is %d, want %d", used, polls)
	}
}
