package standard

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage/credits"
)

// lanesConfig is a site whose calls credits pay in each lane: its folder, its provider, and its
// port.
const lanesConfig = `{
	admin off
	persist_config off
	auto_https off
	llm {
		store sqlite %[1]s/weir.db
		provider openai {
			base_url %[2]s/v1
			api_key platform-openai
		}
		org rich {
			key weir-rich
			credits 1000
		}
	}
}
http://127.0.0.1:%[3]s {
	bind 127.0.0.1
	handle_path /openai/* {
		llm_proxy openai {
			credentials platform
		}
	}
	llm_gateway
}`

// moneyLane is a way to a provider of Responses: the path, and the body of a call.
type moneyLane struct{ name, path, body string }

var moneyLanes = []moneyLane{
	{"proxy", "/openai/v1/responses", `{"model":"gpt-5-nano","max_output_tokens":100,"input":"hi"%s}`},
	{"gateway, native", "/v1/responses", `{"model":"openai/gpt-5-nano","max_output_tokens":100,"input":"hi"%s}`},
	{"gateway, translated", "/v1/messages", `{"model":"openai/gpt-5-nano","max_tokens":100,"messages":[{"role":"user","content":"hi"}]%s}`},
}

// chatLanes are the ways to a provider of Chat Completions.
var chatLanes = []moneyLane{
	{"proxy", "/openai/v1/chat/completions", `{"model":"gpt-5-nano","max_tokens":100,"messages":[{"role":"user","content":"hi"}]%s}`},
	{"gateway, native", "/v1/chat/completions", `{"model":"openai/gpt-5-nano","max_tokens":100,"messages":[{"role":"user","content":"hi"}]%s}`},
}

// Events and answers of Responses.
const (
	statedUsage = `"usage":{"input_tokens":100,"output_tokens":10,"total_tokens":110}`
	message     = `{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"hello","annotations":[]}]}`
	container   = `{"id":"ci_1","type":"code_interpreter_call","status":"completed","code":"1","container_id":"cntr_1","outputs":[]}`
)

func answered(output, usage string) string {
	return `{"id":"resp_1","object":"response","model":"gpt-5-nano","status":"completed","output":[` + output + `],` + usage + `}`
}

func eventsOf(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString("data: " + e + "\n\n")
	}
	return b.String()
}

var begun = eventsOf(
	`{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","model":"gpt-5-nano","status":"in_progress","output":[]}}`,
	`{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"msg_1","type":"message","role":"assistant","status":"in_progress","content":[]}}`,
	`{"type":"response.content_part.added","sequence_number":2,"item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}`,
	`{"type":"response.output_text.delta","sequence_number":3,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"hello"}`)

var searched = eventsOf(
	`{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","model":"gpt-5-nano","status":"in_progress","output":[]}}`,
	`{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"ws_1","type":"web_search_call","status":"in_progress"}}`) +
	strings.ReplaceAll(begun[strings.Index(begun, "data: {\"type\":\"response.output_item"):], `"output_index":0`, `"output_index":1`)

// Whatever becomes of an answer, each lane charges the same for it: what the provider has stated, or
// what was set aside, or less of it by the length. The ledger and the record agree.
func TestEveryLaneSettlesAlike(t *testing.T) {
	const stated = 100*50 + 10*400 // of the model, in nanodollars
	for _, c := range []struct {
		name   string
		fields string // of the request
		stream bool
		status int
		answer string // of the provider; it then waits for its client to leave if leaves
		leaves bool
		reset  bool                // of the provider's connection, after the answer
		cost   plugins.Nanodollars // if known beforehand
		most   bool                // the cost is what was set aside
		native bool                // only where the provider speaks the client's dialect
		chat   bool                // Chat Completions, in place of Responses
	}{
		{name: "stated", answer: answered(message, statedUsage), cost: stated},
		{name: "no usage", answer: answered(message, `"metadata":{}`), most: true},
		{name: "a container", fields: `,"tools":[{"type":"code_interpreter","container":{"type":"auto","memory_limit":"64g"}}]`, answer: answered(container+","+message, statedUsage), most: true, native: true},
		{name: "failed, after a container", fields: `,"tools":[{"type":"code_interpreter","container":{"type":"auto","memory_limit":"64g"}}]`,
			answer: strings.Replace(answered(container, statedUsage), `"status":"completed","output"`, `"status":"failed","error":{"code":"invalid_prompt","message":"no"},"output"`, 1), most: true, native: true},
		{name: "refused", status: 400, answer: `{"error":{"message":"no","type":"invalid_request_error"}}`},
		{name: "left before the answer", leaves: true, most: true},
		{name: "a stream that states all, then a reset", stream: true, answer: begun + eventsOf(`{"type":"response.completed","sequence_number":4,"response":`+answered(message, statedUsage)+`}`), reset: true, cost: stated},
		{name: "usage, then a reset before the end", stream: true, chat: true, answer: eventsOf(
			`{"id":"c","object":"chat.completion.chunk","model":"gpt-5-nano","choices":[{"index":0,"delta":{"role":"assistant","content":"hello"},"finish_reason":null}]}`,
			`{"id":"c","object":"chat.completion.chunk","model":"gpt-5-nano","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`,
			`{"id":"c","object":"chat.completion.chunk","model":"gpt-5-nano","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":10,"total_tokens":110}}`), reset: true, cost: stated},
		{name: "a stream without usage", stream: true, answer: begun + eventsOf(`{"type":"response.completed","sequence_number":4,"response":`+answered(message, `"metadata":{}`)+`}`), most: true},
		{name: "a stream that is left, after a search", fields: `,"tools":[{"type":"web_search"}]`, stream: true, answer: searched, leaves: true, most: true, native: true},
	} {
		lanes := moneyLanes
		if c.chat {
			lanes = chatLanes
		}
		for _, lane := range lanes {
			if c.native && lane.path == "/v1/messages" {
				continue
			}
			t.Run(c.name+", "+lane.name, func(t *testing.T) {
				var held atomic.Int64
				var s *site
				provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					held.Store(int64(s.rich().Reserved))
					if c.stream {
						w.Header().Set("Content-Type", "text/event-stream")
					} else {
						w.Header().Set("Content-Type", jsonType)
					}
					if c.status != 0 {
						w.WriteHeader(c.status)
					}
					if c.answer != "" {
						_, _ = io.WriteString(w, c.answer)
						w.(http.Flusher).Flush() //nolint:forcetypeassert // the server's
					}
					if c.reset {
						panic(http.ErrAbortHandler)
					}
					if c.leaves {
						<-r.Context().Done()
					}
				}))
				defer provider.Close()
				s = serveWith(t, lanesConfig, provider.URL)
				fields := c.fields
				if c.stream {
					fields += `,"stream":true`
				}
				s.leave(lane.path, fmt.Sprintf(lane.body, fields), c.leaves)
				for deadline := time.Now().Add(10 * time.Second); s.rich().Reserved > 0; time.Sleep(time.Millisecond) {
					if time.Now().After(deadline) {
						t.Fatal("the call still holds", s.rich().Reserved)
					}
				}
				want := c.cost
				if c.most {
					want = plugins.Nanodollars(held.Load())
				}
				if spent := s.rich().Spent; spent != want || held.Load() == 0 {
					t.Errorf("spent %v, want %v; %d were set aside", spent, want, held.Load())
				}
			})
		}
	}
}

// A call that may run agents without a limit is refused in each lane before it is sent.
func TestAgentsWithoutALimitAreRefused(t *testing.T) {
	var asked atomic.Int64
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { asked.Add(1) }))
	defer provider.Close()
	s := serveWith(t, lanesConfig, provider.URL)
	for _, lane := range moneyLanes[:2] {
		resp, answer := s.ask(http.MethodPost, lane.path, fmt.Sprintf(lane.body, `,"multi_agent":{"enabled":true}`), "Authorization", "Bearer weir-rich")
		if e := gjson.Get(answer, "error"); resp.StatusCode != http.StatusBadRequest || e.Get("code").Str != "model_not_priced" || e.Get("param").Str != "multi_agent" || asked.Load() > 0 {
			t.Errorf("%s: %d %s", lane.name, resp.StatusCode, answer)
		}
	}
}

// Agents that run at the provider bill what they do after the call that starts them. With the
// platform's credentials, the proxy refuses such a call, and the gateway has no such route.
func TestHostedAgentsAreRefused(t *testing.T) {
	var asked atomic.Int64
	provider := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer provider.Close()
	s := serveWith(t, lanesConfig, provider.URL)
	const body = `{"agent":"agent_1","model":"gpt-5-nano","events":[{"type":"user.message","content":"hi"}]}`
	for _, path := range []string{"/v1/agents", "/v1/agents/agent_1/runs", "/v1/sessions", "/v1/sessions/sess_1/events", "/v1/environments"} {
		if resp, answer := s.ask(http.MethodPost, "/openai"+path, body, "Authorization", "Bearer weir-rich"); resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d %s", path, resp.StatusCode, answer)
		}
		s.ask(http.MethodPost, path, body, "Authorization", "Bearer weir-rich")
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("the provider was asked %d times", n)
	}
}

// rich is the balance of the organisation with credits.
func (s *site) rich() credits.Balance {
	app, err := caddy.ActiveContext().App("llm")
	if err != nil {
		s.t.Error(err)
		return credits.Balance{}
	}
	b, err := app.(*llmapp.App).Money().Balance(context.Background(), "rich")
	if err != nil {
		s.t.Error(err)
	}
	return b
}

// leave makes a call, and reads its answer to the end, unless its client leaves.
func (s *site) leave(path, body string, leaves bool) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", jsonType)
	r.Header.Set("Authorization", "Bearer weir-rich")
	if leaves {
		time.AfterFunc(500*time.Millisecond, cancel)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		if !leaves {
			s.t.Fatal(err)
		}
		return
	}
	_, _ = io.Copy(io.Discard, resp.Body) // the provider may break it off
	resp.Body.Close()
}
