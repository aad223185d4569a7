package llmgateway

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// The parameters of an alias are in what is sent and in what is paid for, natively and in
// translation. The record has the request of the client, who is told.
func TestAliasesTuneCalls(t *testing.T) {
	for name, c := range map[string]struct {
		path, body string
		warnings   []string
	}{
		"native":     {"/v1/chat/completions", `{"model":"tuned","messages":[],"max_tokens":900}`, []string{`reasoning_effort: set to "low"`, "max_tokens: limited to 300"}},
		"translated": {"/v1/responses", `{"model":"tunes","input":"hi","max_output_tokens":900}`, []string{"max_output_tokens: limited to 300"}},
	} {
		t.Run(name, func(t *testing.T) {
			var sent string
			s := serve(t, map[string][]upstream{"one": {hello}, "raw": {func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				sent = string(body)
				_, _ = io.WriteString(w, `{"object":"chat.completion","model":"priced","choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":5}}`)
			}}})
			s.grant(700) // not enough for 900 tokens
			resp, body := s.postTo(c.path, strings.NewReader(c.body), "Authorization", "Bearer payer")
			if resp.StatusCode != http.StatusOK {
				t.Fatalf("%d %s", resp.StatusCode, body)
			}
			warnings := strings.Join(resp.Header["Service-Warnings"], "\n")
			for _, want := range c.warnings {
				if !strings.Contains(warnings, want) {
					t.Errorf("the client is told %q, want %q", warnings, want)
				}
			}
			if strings.Contains(warnings, "have room") {
				t.Errorf("more is set aside than the alias allows: %q", warnings)
			}
			if sent != "" && (gjson.Get(sent, "max_tokens").Int() != 300 || gjson.Get(sent, "reasoning_effort").Str != "low") {
				t.Errorf("sent %s", sent)
			}
			if kept := s.kept.all(); len(kept) != 1 || kept[0].request != c.body {
				t.Errorf("kept %+v", kept)
			}
		})
	}
}

// An account without money is left for another one, and an answer of it is no fault of the
// client.
func TestEmptyAccountsAreLeft(t *testing.T) {
	for name, refusal := range map[string]struct {
		status int
		body   string
	}{
		"OpenAI":    {429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`},
		"DeepSeek":  {402, `{"error":{"message":"Insufficient Balance"}}`},
		"Anthropic": {400, `{"error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}`},

		"Anthropic's limit": {400, `{"error":{"type":"invalid_request_error","message":"You have reached your specified workspace API usage limits. You will regain access on 2026-12-01 at 00:00 UTC."}}`},
		"OpenAI's limit":    {400, `{"error":{"message":"Billing hard limit has been reached","type":"invalid_request_error","code":"billing_hard_limit_reached"}}`},
		"OpenRouter's key":  {403, `{"error":{"message":"Key limit exceeded (total limit).","code":403}}`},
		"Groq":              {400, `{"error":{"message":"API access is blocked.","type":"invalid_request_error","code":"blocked_api_access"}}`},
		"Fireworks":         {412, `{"error":{"message":"Account acme is suspended, possibly due to reaching the monthly spending limit or failure to pay past invoices.","code":"PRECONDITION_FAILED","type":"error"}}`},
		"xAI":               {403, `{"code":"The caller does not have permission to execute the specified operation","error":"Your team 12-34 has either used all available credits or reached its monthly spending limit."}`},
		"SiliconFlow":       {403, `{"code":30001,"message":"Sorry, your account balance is insufficient","data":null}`},
		"Alibaba":           {400, `{"error":{"message":"Access denied, please make sure your account is in good standing.","type":"Arrearage","code":"Arrearage"}}`},
	} {
		asked := 0
		s := serve(t, map[string][]upstream{
			"raw": {func(w http.ResponseWriter, _ *http.Request) {
				asked++
				w.WriteHeader(refusal.status)
				_, _ = io.WriteString(w, refusal.body)
			}},
			"raw2": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answered) }},
		})
		for range 3 {
			if resp, body := s.post(`{"model":"raws","input":"hi"}`); resp.StatusCode != http.StatusOK {
				t.Errorf("%s: %d %s", name, resp.StatusCode, body)
			}
		}
		if asked != 1 {
			t.Errorf("%s: the empty account is asked %d times", name, asked)
		}
	}
}

// A dry run says where a call would go, and sends and records nothing.
func TestDryRun(t *testing.T) {
	s := serve(t, map[string][]upstream{"one": {func(http.ResponseWriter, *http.Request) { t.Error("a dry run calls a provider") }}})
	for body, want := range map[string]string{
		`{"model":"both","input":"hi"}`:         `["one/m","two/m"]`,
		`{"model":"nobody/knows","input":"hi"}`: "",
		`{"model":`:                             "",
	} {
		resp, answer := s.post(body, "Service-Dry-Run", "true")
		if got := gjson.Get(answer, "targets.#.target").Raw; got != want || (resp.StatusCode == http.StatusOK) != (want != "") {
			t.Errorf("%s: %d %s", body, resp.StatusCode, answer)
		}
	}
	if resp, answer := s.send("GET", "/v1/files", nil, "Service-Dry-Run", "true"); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a file: %d %s", resp.StatusCode, answer)
	}
	if _, err := s.dial("k", "Service-Dry-Run", "true"); err == nil {
		t.Error("a WebSocket opens for a dry run")
	}
	if kept := s.kept.all(); len(kept) != 0 || s.kept.open() != 0 {
		t.Errorf("%d records, %d open", len(kept), s.kept.open())
	}
	id := s.conversation()
	for _, change := range [][2]string{{"POST", "/v1/conversations"}, {"POST", "/v1/conversations/" + id}, {"DELETE", "/v1/conversations/" + id}} {
		if resp, answer := s.send(change[0], change[1], strings.NewReader("{}"), "Service-Dry-Run", "true"); resp.StatusCode != http.StatusBadRequest || gjson.Get(answer, "error.param").Str != "Service-Dry-Run" {
			t.Errorf("%s: %d %s", change, resp.StatusCode, answer)
		}
	}
}
