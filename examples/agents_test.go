package examples

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/tidwall/gjson"
)

// Coding agents call as their documentation says, and find each call under the session
// and the agent that it is of.
func TestCodingAgents(t *testing.T) {
	port := serveWithoutKeys(t, "coding-agents/Caddyfile")
	client := http.Client{CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		t.Errorf("redirected to %s, which agents do not follow", r.URL)
		return http.ErrUseLastResponse
	}}
	ask := func(request, body string, header ...string) (*http.Response, string) {
		t.Helper()
		method, path, _ := strings.Cut(request, " ")
		r, err := http.NewRequest(method, "http://127.0.0.1:"+port+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer weir-quickstart")
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp, string(answer)
	}
	holds := func(what string, resp *http.Response, answer string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if resp.StatusCode != http.StatusOK || !strings.Contains(answer, part) {
				t.Errorf("%s: %d %s, want %s", what, resp.StatusCode, answer, part)
			}
		}
	}

	claude := []string{
		"Anthropic-Version", "2023-06-01", "Anthropic-Beta", "claude-code-20250219,interleaved-thinking-2025-05-14",
		"X-Claude-Code-Session-Id", "claude-session",
	}
	if resp, _ := ask("HEAD /api/hello", ""); resp.StatusCode != http.StatusNotFound {
		t.Errorf("the warm-up: %d", resp.StatusCode)
	}
	resp, answer := ask("GET /v1/models?limit=1000", "", claude...)
	holds("the models", resp, answer, `"has_more":false`, `"type":"model"`)
	const turn = `{"model":"echo/echo-1","max_tokens":32000,"system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=2; cch=1"},
		{"type":"text","text":"You are an agent.","cache_control":{"type":"ephemeral"}}],
		"metadata":{"user_id":"{\"device_id\":\"d\",\"account_uuid\":\"acc\",\"session_id\":\"claude-session\"}"},
		"tools":[{"name":"Bash","input_schema":{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}},
		{"type":"web_search_20250305","name":"web_search"}],"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"Bash()"}]}`
	resp, answer = ask("POST /v1/messages/count_tokens?beta=true", strings.Replace(turn, `"stream":true,`, "", 1)+`]}`, claude...)
	holds("a count", resp, answer, `{"input_tokens":`)
	resp, answer = ask("POST /v1/messages?beta=true", turn+`]}`, claude...)
	holds("a call of a tool", resp, answer, `"name":"Bash"`, `"stop_reason":"tool_use"`)
	image := `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}`
	resp, answer = ask("POST /v1/messages?beta=true", turn+`,{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"Bash","input":{"command":"ls"}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"a.txt"},`+image+`]}]}]}`,
		append(claude, "X-Claude-Code-Agent-Id", "helper", "X-Claude-Code-Parent-Agent-Id", "main")...)
	holds("its result", resp, answer, "a.txt", `"stop_reason":"end_turn"`)

	var wire bytes.Buffer
	z, _ := zstd.NewWriter(&wire, zstd.WithEncoderConcurrency(1))
	_, _ = io.WriteString(z, `{"model":"echo/echo-1","instructions":"You are Codex.","stream":true,"store":false,"include":["reasoning.encrypted_content"],
		"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"exec_command()"}]}],
		"tools":[{"type":"function","name":"exec_command","parameters":{"type":"object","properties":{"cmd":{"type":"string"}},"required":["cmd"]}},
		{"type":"custom","name":"apply_patch","format":{"type":"grammar","syntax":"lark","definition":"start: /.+/"}},
		{"type":"namespace","name":"agents","tools":[{"type":"function","name":"spawn"}]},{"type":"local_shell"},{"type":"web_search","external_web_access":false}]}`)
	_ = z.Close()
	resp, answer = ask("POST /v1/responses", wire.String(), "Content-Encoding", "zstd", "Session-Id", "codex-session", "Thread-Id", "thread-2",
		"X-Codex-Parent-Thread-Id", "thread-1", "X-Openai-Subagent", "review")
	holds("a call of Codex", resp, answer, `"name":"exec_command"`, "response.completed")

	for session, want := range map[string]struct {
		requests            int
		agent, parent, user string
	}{
		"claude-session": {3, "helper", "main", "acc"},
		"codex-session":  {1, "thread-2", "thread-1", ""},
	} {
		filter := `{"filter":{"request_response_rmt":{"session_id":{"equals":"` + session + `"}}}}`
		var records gjson.Result
		for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
			_, answer := ask("POST /v1/request/query-clickhouse", filter)
			if records = gjson.Get(answer, "data"); len(records.Array()) == want.requests {
				break
			}
		}
		if len(records.Array()) != want.requests {
			t.Errorf("%s has the records %s", session, records.Raw)
		}
		latest := records.Get("0")
		if p := latest.Get("properties"); p.Get("Agent-Id").Str != want.agent || p.Get("Parent-Agent-Id").Str != want.parent ||
			latest.Get("request_user_id").Str != want.user {
			t.Errorf("%s: the latest record is %s", session, latest.Raw)
		}
	}
}
