package llmgateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/admission"
	"github.com/weirhq/weir/modules/llmgateway/mcptools"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/credits"
)

// calculator is an MCP server with the tools add and fail. It notes the requests.
type calculator struct {
	*httptest.Server
	mu      sync.Mutex
	headers []http.Header
	methods []string // of JSON-RPC
	added   atomic.Int64
	hold    chan struct{} // if set, add waits for it
	held    chan struct{} // and says that it does
}

func newCalculator(t *testing.T) *calculator {
	t.Helper()
	c := new(calculator)
	server := mcp.NewServer(&mcp.Implementation{Name: "calculator", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "add", Description: "Adds.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(ctx context.Context, _ *mcp.CallToolRequest, s struct {
			A int `json:"a"`
			B int `json:"b"`
		}) (*mcp.CallToolResult, any, error) {
			c.added.Add(1)
			if c.hold != nil {
				c.held <- struct{}{}
				select {
				case <-c.hold:
				case <-ctx.Done():
				}
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(s.A + s.B)}}}, nil, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "fail"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return nil, nil, fmt.Errorf("no luck")
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := readAndRestore(r)
		c.mu.Lock()
		c.headers = append(c.headers, r.Header.Clone())
		c.methods = append(c.methods, gjson.Get(body, "method").Str)
		c.mu.Unlock()
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(c.Close)
	return c
}

// count is how often the server was asked for a method of JSON-RPC.
func (c *calculator) count(method string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.methods {
		if m == method {
			n++
		}
	}
	return n
}

// received are the headers of the requests so far.
func (c *calculator) received() []http.Header {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.headers)
}

// request is a request with the tools of the calculator. more are further fields of the
// tool, and of the request.
func (c *calculator) request(tool, more string) string {
	return `{"model":"one/m","input":"1+2?","tools":[{"type":"mcp","server_label":"calc","server_url":"` + c.URL + `"` + tool + `}]` + more + `}`
}

const never = `,"require_approval":"never"`

// serveMCP is serve with the calculator allowed. It returns what `one` was sent.
func serveMCP(t *testing.T, c *calculator, rounds ...[]string) (*site, func() []string) {
	t.Helper()
	var mu sync.Mutex
	var sent []string
	var upstreams []upstream
	for _, events := range rounds {
		upstreams = append(upstreams, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			mu.Lock()
			sent = append(sent, string(body))
			mu.Unlock()
			if len(events) == 0 {
				http.Error(w, "no luck", http.StatusServiceUnavailable)
				return
			}
			says(events...)(w, r)
		})
	}
	s := serve(t, map[string][]upstream{"one": upstreams, "two": {hello}})
	s.handler.MCP = []string{c.URL}
	return s, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return sent
	}
}

var (
	addsOnce = []string{"text Let me see.", `use mcp_calc_add c-1 {"a":1,"b":2}`, "usage 3 5", "stop"}
	answers3 = []string{"text It is 3.", "usage 7 2", "stop"}
)

// The model gets the tools of the server, and their results; the client an answer with
// the items of both, and the usage of all rounds.
func TestMCPToolsAreCalled(t *testing.T) {
	for mode, field := range modes {
		t.Run(mode, func(t *testing.T) {
			c := newCalculator(t)
			s, sent := serveMCP(t, c, addsOnce, answers3)
			resp, body := s.post(c.request(never, ","+field))
			if resp.StatusCode != 200 {
				t.Fatalf("%d %s", resp.StatusCode, body)
			}
			r := response(t, body)
			for path, want := range map[string]string{
				"status":                       `"completed"`,
				"output.#.type":                `["mcp_list_tools","message","mcp_call","message"]`,
				"output.0.server_label":        `"calc"`,
				"output.0.tools.#.name":        `["add","fail"]`,
				"output.0.error":               `null`,
				"output.2.name":                `"add"`,
				"output.2.server_label":        `"calc"`,
				"output.2.arguments":           `"{\"a\":1,\"b\":2}"`,
				"output.2.output":              `"3"`,
				"output.2.error":               `null`,
				"output.2.status":              `"completed"`,
				"output.2.approval_request_id": `null`,
				"output.3.content.0.text":      `"It is 3."`,
				"usage.input_tokens":           `10`,
				"usage.output_tokens":          `7`,
				"tools.0.type":                 `"mcp"`,
			} {
				if got := r.Get(path).Raw; got != want {
					t.Errorf("%s is %s, want %s", path, got, want)
				}
			}
			for i, prefix := range []string{"mcpl_", "msg_", "mcp_", "msg_"} {
				if id := r.Get(fmt.Sprintf("output.%d.id", i)).Str; !strings.HasPrefix(id, prefix) {
					t.Errorf("the id of item %d is %s", i, id)
				}
			}
			const offered = "m [mcp_calc_add] [mcp_calc_fail]"
			if got := sent(); len(got) != 2 || got[0] != offered || got[1] != offered+" mcp_calc_add=true 3" {
				t.Errorf("the provider got %q", got)
			}
			records := s.kept.all()
			if len(records) != 1 || records[0].Usage.Input.N != 10 || records[0].Usage.Output.N != 7 || records[0].Cost.N != 24e6 ||
				records[0].EndState != storage.Complete {
				t.Errorf("%d records, the first: %+v", len(records), records[0].Record)
			}
			if mode == "stream" {
				for _, event := range []string{
					"mcp_list_tools.in_progress", "mcp_list_tools.completed", "mcp_call.in_progress", "mcp_call_arguments.delta",
					"mcp_call_arguments.done", "mcp_call.completed",
				} {
					if strings.Count(body, "event: response."+event+"\n") != 1 {
						t.Errorf("not one event %s in %s", event, body)
					}
				}
			}
		})
	}
}

// noted is what a record says that the ledger was charged.
func noted(t *testing.T, r *storage.Record) (total plugins.Nanodollars) {
	t.Helper()
	for _, text := range r.Charges {
		var c credits.Charge
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			t.Fatal(err)
		}
		total += c.Total
	}
	return total
}

// Every round is reserved and charged by itself.
func TestMCPIsPaid(t *testing.T) {
	for name, c := range map[string]struct {
		grant       int64
		rounds      [][]string
		spent       int64
		status      string
		code        string
		usage, cost bool
	}{
		"charged":                       {1000, [][]string{addsOnce, answers3}, 24, "completed", "", true, true},
		"no credits for the next round": {240, [][]string{{`use mcp_calc_add c-1 {"a":1,"b":2}`, "usage 40 20", "stop"}, answers3}, 80, "failed", "insufficient_quota", true, true},
		"a round without usage is charged by its length": {1000, [][]string{{`use mcp_calc_add c-1 {"a":1,"b":2}`, "stop"}, answers3}, 0, "completed", "", false, true},
		"a round that fails costs nothing":               {1000, [][]string{addsOnce, {}}, 13, "failed", "", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			calc := newCalculator(t)
			s, _ := serveMCP(t, calc, c.rounds...)
			s.handler.policy.Retries = 0
			s.grant(c.grant)
			_, body := s.post(calc.request(never, `,"stream":true,"max_output_tokens":10`), "Authorization", "Bearer payer")
			r := gjson.Get(lastEventData(body, "response."+c.status), "response")
			if r.Get("status").Str != c.status || c.code != "" && r.Get("error.code").Str != c.code {
				t.Fatalf("%s", body)
			}
			record := s.kept.all()[0]
			spent, reserved := s.balance()
			if c.spent == 0 {
				c.spent = spent
				if spent <= 11 { // which is what the second round costs
					t.Errorf("spent %d", spent)
				}
			}
			if spent != c.spent || reserved != 0 || record.Cost.N != plugins.Nanodollars(c.spent*1e6) {
				t.Errorf("spent %d, reserved %d, the record has %v; want %d", spent, reserved, record.Cost, c.spent)
			}
			if noted := noted(t, &record.Record); noted != record.Cost.N {
				t.Errorf("the record notes %v, of all rounds; want %v", noted, record.Cost)
			}
			if got := record.Usage.Input.Valid; got != c.usage {
				t.Errorf("the usage is %+v", record.Usage)
			}
		})
	}
}

// A server that the configuration does not name is never called.
func TestOtherMCPServersAreNotCalled(t *testing.T) {
	c, other := newCalculator(t), newCalculator(t)
	s, sent := serveMCP(t, c, answers3)
	for _, url := range []string{other.URL, c.URL + "/x", c.URL + "?x=1", "http://user@" + strings.TrimPrefix(c.URL, "http://"), ""} {
		body := strings.Replace(c.request(never, ""), c.URL, url, 1)
		resp, answer := s.post(body)
		if w := resp.Header.Get("Service-Warnings"); resp.StatusCode != 200 || w != "tools[0]: there is no tool of type 'mcp' here, left out" {
			t.Errorf("%s: %d, warning %q, %s", url, resp.StatusCode, w, answer)
		}
		if resp, answer := s.post(body, "Service-Strict", "true"); resp.StatusCode != 400 || gjson.Get(answer, "error.param").Str != "tools[0]" {
			t.Errorf("%s, strict: %d %s", url, resp.StatusCode, answer)
		}
	}
	if len(c.received()) > 0 || len(other.received()) > 0 || strings.Contains(strings.Join(sent(), ""), "mcp") {
		t.Errorf("the servers were called, or the provider was sent %q", sent())
	}
}

// A target that calls MCP servers itself gets the client's bytes.
func TestMCPPassesToNativeTargets(t *testing.T) {
	c := newCalculator(t)
	var passed string
	s := serve(t, map[string][]upstream{"raw": {func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		passed = string(body)
		says(`{"type":"response.completed","response":{"status":"completed","output":[]}}`)(w, r)
	}}})
	s.handler.MCP = []string{c.URL}
	body := strings.Replace(c.request(`,"authorization":"tok-1","headers":{"X-Key":"tok-2"}`, ""), "one/m", "raw/m", 1)
	if s.post(body); passed != body || len(c.received()) > 0 {
		t.Errorf("the provider got %s", passed)
	}
	if kept := s.kept.all()[0].request; strings.Contains(kept, "tok-") || gjson.Get(kept, "tools.0.server_label").Str != "calc" {
		t.Errorf("the record has %s", kept)
	}
}

// What authorizes a client at a server goes there alone, and what authorizes it at the
// gateway, or the gateway at the provider, never does.
func TestMCPSecretsGoToTheServerAlone(t *testing.T) {
	for mode, field := range modes {
		c := newCalculator(t)
		s, sent := serveMCP(t, c, addsOnce, answers3)
		_, body := s.post(c.request(never+`,"authorization":"tok-1","headers":{"X-Key":"tok-2"}`, ","+field),
			"Cookie", "session=tok-3", "Service-User-Id", "ann")
		if response(t, body).Get("output.2.output").Str != "3" {
			t.Fatalf("%s", body)
		}
		for _, h := range c.received() {
			if h.Get("Authorization") != "Bearer tok-1" || h.Get("X-Key") != "tok-2" || h.Get("Cookie") != "" || h.Get("Service-User-Id") != "" {
				t.Errorf("%s: the server got %v", mode, h)
			}
		}
		kept := s.kept.all()[0]
		for what, text := range map[string]string{"the answer": body, "the provider": strings.Join(sent(), ""), "the record": kept.request + kept.response} {
			if strings.Contains(text, "tok-") {
				t.Errorf("%s: %s has a secret: %s", mode, what, text)
			}
		}
	}
	s, _ := serveMCP(t, newCalculator(t), answers3)
	const tool = `{"type":"mcp","server_label":"x","authorization":"tok-1","headers":{"a":"tok-2"}}`
	for i, body := range []string{
		`{"model":"one/m","input":"hi","tools":[` + tool + `]`, // which is not valid JSON
		`{"model":"one/m","input":"hi","tools":[{"type":"namespace","name":"n","tools":[` + tool + `]}]}`,
		`{"model":"one/m","input":[{"role":"user","content":"hi"},{"type":"additional_tools","tools":[` + tool + `]}]}`,
		`{"model":"one/m","input":"hi","tools":[` + strings.Replace(tool, "mcp", `\u006dcp`, 1) + `]}`,
	} {
		_, answer := s.post(body)
		if kept := s.kept.all()[i]; strings.Contains(kept.request+kept.response+answer, "tok-") {
			t.Errorf("%s: the record has %s, the answer is %s", body, kept.request, answer)
		}
	}
}

// A tool or a server that fails is part of the answer.
func TestMCPFailuresAreItems(t *testing.T) {
	c := newCalculator(t)
	s, sent := serveMCP(t, c, []string{"use mcp_calc_fail c-1 {}", "use mcp_calc_add c-2 [1]", "usage 3 5", "stop"}, answers3)
	_, body := s.post(c.request(never, `,"stream":true`))
	r := response(t, body)
	if got := r.Get("output.#.error").Raw; got != `[null,"no luck","The arguments of the call are not a JSON object."]` || r.Get("output.1.status").Str != "failed" ||
		r.Get("output.1.output").Raw != "null" || strings.Count(body, "event: response.mcp_call.failed\n") != 2 {
		t.Errorf("%s: %s", got, body)
	}
	if got := sent()[1]; !strings.HasSuffix(got, " mcp_calc_fail mcp_calc_add=false no luck=false The arguments of the call are not a JSON object.") {
		t.Errorf("the provider got %s", got)
	}

	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()
	s.handler.MCP = []string{down.URL}
	_, body = s.post(strings.ReplaceAll(c.request(never, ""), c.URL, down.URL))
	if r := response(t, body); r.Get("output.0.error").Str != "The MCP server could not be reached." || r.Get("output.0.tools").Raw != "[]" ||
		r.Get("status").Str != "completed" {
		t.Errorf("%s", body)
	}
}

// A model that calls tools without end is made to answer.
func TestMCPIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		fields        string
		rounds, calls int
	}{
		"rounds":         {"", maxRounds + 1, maxRounds},
		"max_tool_calls": {`,"max_tool_calls":3`, 4, 3},

		"a model that does not listen": {"", maxRounds + 1, maxRounds},
	} {
		t.Run(name, func(t *testing.T) {
			calc := newCalculator(t)
			var upstreams []upstream
			rounds := 0
			upstreams = append(upstreams, func(w http.ResponseWriter, r *http.Request) {
				rounds++
				if strings.Contains(readAndRestore(r), "none[") && name != "a model that does not listen" {
					says(answers3...)(w, r)
					return
				}
				says(addsOnce...)(w, r)
			})
			s := serve(t, map[string][]upstream{"one": upstreams})
			s.handler.MCP = []string{calc.URL}
			_, body := s.post(calc.request(never, c.fields))
			if r := response(t, body); r.Get("status").Str != "completed" || rounds != c.rounds || int(calc.added.Load()) != c.calls {
				t.Errorf("%d rounds, %d calls: %s", rounds, calc.added.Load(), body)
			}
		})
	}
}

// What MCP servers answer is bounded, and shares the memory of requests.
func TestMCPAnswersShareTheMemory(t *testing.T) {
	text := strings.Repeat("a", 900<<10)
	const pages = 6
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked := gjson.Parse(readAndRestore(r))
		result := `"error":{"code":-32601,"message":"none"}`
		switch asked.Get("method").Str {
		case "initialize":
			result = `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"a","version":"1"}}`
		case "tools/list":
			page, next := asked.Get("params.cursor").Int(), ""
			if r.Header.Get("List") == "long" && page < pages {
				next = fmt.Sprintf(`,"nextCursor":"%d"`, page+1)
			}
			result = fmt.Sprintf(`"result":{"tools":[{"name":"say%d","description":%q,"inputSchema":{"type":"object"}}]%s}`, page, text, next)
		case "tools/call":
			result = fmt.Sprintf(`"result":{"content":[{"type":"text","text":%q}]}`, text)
		}
		if !asked.Get("id").Exists() {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, asked.Get("id").Raw, result)
	}))
	defer server.Close()
	var calls []string
	for i := range 8 {
		calls = append(calls, fmt.Sprintf("use mcp_a_say0 c-%d {}", i))
	}
	calls = append(calls, "stop")
	s := serve(t, map[string][]upstream{"one": {says(answers3...), says(calls...), says(answers3...), says(calls...), says(answers3...)}})
	s.handler.MCP = []string{server.URL}
	ask := func(list string) gjson.Result {
		_, body := s.post(`{"model":"one/m","input":"a","tools":[{"type":"mcp","server_label":"a","server_url":"` + server.URL + `","require_approval":"never","headers":{"List":"` + list + `"}}]}`)
		return gjson.Parse(body)
	}
	if e := ask("long").Get("output.0.error").Str; !strings.Contains(e, "4194304 bytes") {
		t.Errorf("a long list of tools: %.200s", e)
	}
	if r := ask("short"); r.Get("status").Str != "completed" || r.Get(`output.#(error%"*4194304 bytes*")#`).Get("#").Int() != 5 {
		t.Errorf("8 results of 900 KiB, after a list of them: %v", r.Get("output.#.error"))
	}
	memory := s.handler.site.App.Memory("other")
	memory.MaxWait = 100 * time.Millisecond
	for left := memory.Largest() - 1<<20; left > 0; left -= admission.Small { // all but what the request takes
		held, refused := memory.Of(fmt.Sprint(left)).Hold(t.Context(), min(left, admission.Small))
		if refused != nil {
			t.Fatal(refused)
		}
		defer held.Release()
	}
	if e := ask("short").Get("output.0.error").Str; !strings.Contains(e, "all memory that there is") {
		t.Errorf("a list for which there is no memory: %.200s", e)
	}
}

// Calls of one turn run at once, and remain one turn.
func TestMCPCallsRunAtOnce(t *testing.T) {
	c := newCalculator(t)
	c.hold, c.held = make(chan struct{}), make(chan struct{}, 2)
	s, sent := serveMCP(t, c, []string{`use mcp_calc_add c-1 {"a":1,"b":2}`, `use mcp_calc_add c-2 {"a":3,"b":4}`, "stop"}, answers3)
	go func() {
		<-c.held
		<-c.held
		close(c.hold)
	}()
	_, body := s.post(c.request(never, `,"stream":true`))
	if got := response(t, body).Get("output.#.output").Raw; got != `["3","7"]` {
		t.Errorf("%s", body)
	}
	if got := sent()[1]; !strings.HasSuffix(got, " mcp_calc_add mcp_calc_add=true 3=true 7") {
		t.Errorf("the provider got %s", got)
	}
}

// A call of the client's own tool ends the response, and the next one goes on from both.
func TestMCPBesideFunctions(t *testing.T) {
	c := newCalculator(t)
	s, sent := serveMCP(t, c, []string{`use mcp_calc_add c-1 {"a":1,"b":2}`, `call c-2 {}`, "usage 3 5", "stop"}, answers3)
	tools := strings.Replace(c.request(never, ""), `"tools":[`, `"tools":[{"type":"function","name":"tool"},`, 1)
	_, body := s.post(tools)
	r := response(t, body)
	if got := r.Get("output.#.type").Raw; got != `["mcp_list_tools","mcp_call","function_call"]` {
		t.Fatalf("%s", body)
	}
	input := strings.TrimSuffix(r.Get("output").Raw, "]") + `,{"type":"function_call_output","call_id":"c-2","output":"ok"}]`
	resp, body := s.post(strings.Replace(tools, `"1+2?"`, `[{"role":"user","content":"1+2?"},`+input[1:], 1))
	if got := response(t, body).Get("output.#.type").Raw; got != `["message"]` { // the list is known
		t.Errorf("%s", body)
	}
	if got := sent(); len(got) != 2 || !strings.HasSuffix(got[1], " mcp_calc_add tool=true 3") && !strings.HasSuffix(got[1], " mcp_calc_add=true 3 tool") {
		t.Errorf("the provider got %q", got)
	}
	if w := resp.Header["Service-Warnings"]; w != nil {
		t.Errorf("warnings %q", w)
	}
	if n := c.count("tools/list"); n != 1 {
		t.Errorf("the tools were listed %d times", n)
	}
}

// A call that needs approval is made once the client approves it.
func TestMCPApproval(t *testing.T) {
	for name, c := range map[string]struct {
		response, want, sent string
		added                int64
	}{
		"approved": {`"approve":true`, `["mcp_call","message"]`, "=true 3", 1},
		"denied":   {`"approve":false,"reason":"Too dear."`, `["message"]`, "=false The user did not approve this call. Too dear.", 0},
	} {
		for mode, field := range modes {
			t.Run(name+" "+mode, func(t *testing.T) {
				calc := newCalculator(t)
				s, sent := serveMCP(t, calc, addsOnce, answers3)
				_, body := s.post(calc.request("", ","+field))
				asked := response(t, body)
				if got := asked.Get("output.#.type").Raw; got != `["mcp_list_tools","message","mcp_approval_request"]` ||
					asked.Get("output.2.arguments").Str != `{"a":1,"b":2}` || asked.Get("output.2.status").Exists() || calc.added.Load() > 0 {
					t.Fatalf("%s", body)
				}
				answer := `[{"type":"mcp_approval_response","approval_request_id":"` + asked.Get("output.2.id").Str + `",` + c.response + `}]`
				_, body = s.post(strings.Replace(calc.request("", `,"previous_response_id":"`+asked.Get("id").Str+`",`+field), `"1+2?"`, answer, 1))
				r := response(t, body)
				if got := r.Get("output.#.type").Raw; got != c.want || calc.added.Load() != c.added {
					t.Errorf("%d calls: %s", calc.added.Load(), body)
				}
				if got := sent(); len(got) != 2 || !strings.HasSuffix(got[1], " mcp_calc_add"+c.sent) {
					t.Errorf("the provider got %q", got)
				}
			})
		}
	}
	calc := newCalculator(t)
	s, _ := serveMCP(t, calc, answers3)
	resp, body := s.post(strings.Replace(calc.request("", ""), `"1+2?"`, `[{"type":"mcp_approval_response","approval_request_id":"mcpr_0","approve":true}]`, 1))
	if resp.StatusCode != 400 || gjson.Get(body, "error.param").Str != "input[0].approval_request_id" {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

// The client says which tools there are, which must be called, and which it approves.
func TestMCPToolSettings(t *testing.T) {
	for _, c := range []struct{ tool, fields, sent string }{
		{`,"allowed_tools":["add"]`, "", "m [mcp_calc_add]"},
		{`,"allowed_tools":{"read_only":true}`, "", "m [mcp_calc_add]"},
		{"", `,"tool_choice":{"type":"mcp","server_label":"calc","name":"fail"}`, "m required[mcp_calc_fail]"},
		{"", `,"tool_choice":{"type":"mcp","server_label":"calc"}`, "m required[mcp_calc_add] required[mcp_calc_fail]"},
		{"", `,"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"mcp","server_label":"calc","name":"add"}]}`, "m auto[mcp_calc_add]"},
		{"", `,"tool_choice":"none"`, "m none[mcp_calc_add] none[mcp_calc_fail]"},
	} {
		calc := newCalculator(t)
		s, sent := serveMCP(t, calc, answers3)
		if _, body := s.post(calc.request(c.tool, c.fields)); len(sent()) != 1 || sent()[0] != c.sent {
			t.Errorf("%s %s: %q %s", c.tool, c.fields, sent(), body)
		}
	}
	for tool, outputs := range map[string]string{
		`,"require_approval":{"never":{"tool_names":["add"]}}`:  `["mcp_list_tools","mcp_call","message"]`,
		`,"require_approval":{"never":{"read_only":true}}`:      `["mcp_list_tools","mcp_call","message"]`,
		`,"require_approval":{"never":{"tool_names":["fail"]}}`: `["mcp_list_tools","mcp_approval_request"]`,
		`,"require_approval":{"always":{"tool_names":["add"]}}`: `["mcp_list_tools","mcp_approval_request"]`,
		`,"require_approval":{"always":{"read_only":false}}`:    `["mcp_list_tools","mcp_call","message"]`,
		`,"require_approval":"always"`:                          `["mcp_list_tools","mcp_approval_request"]`,
		`,"require_approval":"what"`:                            `["mcp_list_tools","mcp_approval_request"]`,
	} {
		calc := newCalculator(t)
		s, _ := serveMCP(t, calc, addsOnce[1:], answers3)
		if _, body := s.post(calc.request(tool, "")); response(t, body).Get("output.#.type").Raw != outputs {
			t.Errorf("%s: %s", tool, body)
		}
	}
}

func TestMCPRefusals(t *testing.T) {
	calc := newCalculator(t)
	s, _ := serveMCP(t, calc, answers3)
	one := gjson.Get(calc.request("", ""), "tools.0").Raw
	for body, param := range map[string]string{
		strings.Replace(calc.request("", ""), `"server_label":"calc",`, "", 1):                                    "tools[0].server_label",
		strings.Replace(calc.request("", ""), one, one+","+one, 1):                                                "tools[1].server_label",
		calc.request(`,"headers":{"a b":"c"}`, ""):                                                                "tools[0].headers",
		calc.request(`,"headers":{"a":7}`, ""):                                                                    "tools[0].headers",
		calc.request(`,"authorization":"a\nb"`, ""):                                                               "tools[0].authorization",
		calc.request("", `,"tool_choice":{"type":"mcp","server_label":"other","name":"add"}`):                     "tool_choice",
		calc.request(`,"allowed_tools":["none"]`, `,"tool_choice":{"type":"mcp","server_label":"calc"}`):          "tool_choice",
		calc.request("", `,"tool_choice":{"type":"mcp","server_label":"calc","name":"none of it"},"stream":true`): "tool_choice",
	} {
		if resp, answer := s.post(body); resp.StatusCode != 400 || gjson.Get(answer, "error.param").Str != param {
			t.Errorf("%s: %d %s", body, resp.StatusCode, answer)
		}
	}
	if n := calc.added.Load(); n != 0 {
		t.Errorf("%d calls were made", n)
	}
}

// A round that fails for a moment is repeated, and one that fails for good is the end: no
// tool is called twice, and no other target takes over.
func TestMCPRoundsFail(t *testing.T) {
	for mode, field := range modes {
		c := newCalculator(t)
		s, sent := serveMCP(t, c, addsOnce, nil, answers3)
		_, body := s.post(c.request(never, ","+field))
		if r := response(t, body); r.Get("output.3.content.0.text").Str != "It is 3." || r.Get("usage.total_tokens").Int() != 17 || len(sent()) != 3 || c.added.Load() != 1 {
			t.Errorf("%s: %q %s", mode, sent(), body)
		}

		c = newCalculator(t)
		s, sent = serveMCP(t, c, addsOnce, nil)
		resp, body := s.post(strings.Replace(c.request(never, ","+field), "one/m", "one/m,two/m", 1))
		failed := resp.StatusCode == 503
		if mode == "stream" {
			failed = gjson.Get(lastEventData(body, "response.failed"), "response.usage.total_tokens").Int() == 8
		}
		if record := s.kept.all()[0]; !failed || len(sent()) != 3 || c.added.Load() != 1 || record.Usage.Input.N != 3 || len(s.kept.all()) != 1 {
			t.Errorf("%s: %d calls, %q %s", mode, c.added.Load(), sent(), body)
		}
	}
}

// A client that leaves ends the calls of tools.
func TestMCPClientLeaves(t *testing.T) {
	c := newCalculator(t)
	c.hold, c.held = make(chan struct{}), make(chan struct{}, 1)
	defer close(c.hold)
	s, sent := serveMCP(t, c, addsOnce, answers3)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-c.held
		cancel()
	}()
	r, _ := http.NewRequestWithContext(ctx, "POST", s.URL+"/v1/responses", strings.NewReader(c.request(never, `,"stream":true`)))
	r.Header.Set("Authorization", "Bearer k")
	if resp, err := s.Client().Do(r); err == nil {
		_, _ = io.ReadAll(resp.Body)
		resp.Body.Close()
	}
	s.Close()
	if record := s.kept.all()[0]; record.EndState != storage.ClientAborted || record.Usage.Input.N != 3 || len(sent()) != 1 {
		t.Errorf("%s, %q", record.EndState, sent())
	}
}

// A client that leaves while the model works at a later round pays for the round, too.
func TestMCPRoundsThatAreLeftArePaid(t *testing.T) {
	for mode, field := range modes {
		t.Run(mode, func(t *testing.T) {
			calc := newCalculator(t)
			ctx, cancel := context.WithCancel(t.Context())
			s := serve(t, map[string][]upstream{"one": {says(addsOnce...), func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				cancel()
				<-r.Context().Done()
			}}})
			s.handler.MCP = []string{calc.URL}
			s.grant(1000)
			r, _ := http.NewRequestWithContext(ctx, "POST", s.URL+"/v1/responses", strings.NewReader(calc.request(never, `,"max_output_tokens":10,`+field)))
			r.Header.Set("Authorization", "Bearer payer")
			if resp, err := s.Client().Do(r); err == nil {
				_, _ = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
			s.Close()
			record := s.kept.all()[0]
			spent, reserved := s.balance()
			if spent <= 13 || reserved != 0 || record.EndState != storage.ClientAborted || record.Cost.N != plugins.Nanodollars(spent*1e6) {
				t.Errorf("%s: spent %d of more than the 13 of the first round, reserved %d, the record has %v", record.EndState, spent, reserved, record.Cost)
			}
			if noted := noted(t, &record.Record); noted != record.Cost.N {
				t.Errorf("the record notes %v of %v", noted, record.Cost)
			}
		})
	}
}

func TestMCPServersOfTheConfiguration(t *testing.T) {
	for url, ok := range map[string]bool{
		"https://example.com/mcp": true, "http://10.0.0.1:8080": true, "example.com": false, "ftp://example.com": false,
		"https://user:key@example.com": false, "https://example.com/#x": false, "": false,
	} {
		if err := (mcptools.Servers{url}).Check(); (err == nil) != ok {
			t.Errorf("%q: %v", url, err)
		}
	}
}
