package llmcommand

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	_ "github.com/weirhq/weir/caddyfile"
	"github.com/weirhq/weir/internal/testkit/freeport"
	"github.com/weirhq/weir/modules/internal/question"
	_ "github.com/weirhq/weir/modules/llmencoder"
	_ "github.com/weirhq/weir/modules/llmnotfound"
	_ "github.com/weirhq/weir/modules/llmquery"
	_ "github.com/weirhq/weir/modules/llmui"
	_ "github.com/weirhq/weir/plugins/anthropic" // the dialect of Claude Code's messages
)

// setHome sets an empty home directory, in which no agent has written.
func setHome(t *testing.T) (home string) {
	t.Helper()
	home = t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	t.Setenv("LocalAppData", home)
	for _, name := range []string{"CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME", "CODEX_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "GEMINI_CLI_HOME"} {
		t.Setenv(name, "")
	}
	return home
}

// The calls of agents are added up by day, model, project and branch, at list prices. What has no
// price is counted apart.
func TestLook(t *testing.T) {
	home := setHome(t)
	show := func(args ...string) string {
		t.Helper()
		var out strings.Builder
		if _, err := run(t.Context(), lookCommand, &out, args...); err != nil {
			return "Error: " + err.Error()
		}
		return out.String()
	}
	if got := show("--since", "2000-01-01"); !strings.HasPrefix(got, "No calls of Claude Code") {
		t.Error(got)
	}
	line := func(id, model, at, project string) string {
		return `{"type":"assistant","sessionId":"s","cwd":` + question.Quote(project) + `,"gitBranch":"main","requestId":"r","timestamp":"` + at + `","message":{"id":"` + id + `","type":"message","role":"assistant","model":"` + model +
			`","usage":{"input_tokens":1000,"cache_read_input_tokens":9000,"cache_creation_input_tokens":0,"output_tokens":1000}}}` + "\n"
	}
	file := filepath.Join(home, ".claude", "projects", "p", "s.jsonl")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	const model = "claude-sonnet-4-5-20250929"
	text := line("m1", model, "2026-11-02T12:00:00Z", filepath.Join(home, "src")) + line("m2", model, "2026-11-03T12:00:00Z", "/else") +
		line("m3", "made-up-1", "2026-11-03T12:00:00Z", "/else") + line("m4", model, time.Now().Format(time.RFC3339), "/now") + "{\"usage\"\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got := show("--since", "2000-01-01")
	for _, part := range []string{ // 1,000 in at $3, 9,000 cached at $0.30, 1,000 out at $15 a million
		"DAY         CALLS   INPUT  CACHED  OUTPUT              LIST COST",
		"2026-11-02      1  10,000     90%   1,000              $0.020700",
		"2026-11-03      2  20,000     90%   2,000  $0.020700 (1 unknown)",
		"~/src", "1 skipped: a line is no JSON", "Sessions: 1. Calls: 4, of which 0 by sub-agents. Tokens: 40,000 in, of which 90% from caches, and 4,000 out.",
		"List price: $0.062100 (1 unknown), which a subscription may cover.",
	} {
		if !strings.Contains(got, part) {
			t.Errorf("no %q in\n%s", part, got)
		}
	}
	today := gjson.Parse(show("--today", "--json"))
	if today.Get("total.calls").Int() != 1 || today.Get("total.list_cost").Num != 0.0207 || today.Get("by_model.0.value").Str != model || today.Get("agents.0.skipped").Get("a line is no JSON").Int() != 1 {
		t.Error(today.Raw)
	}
	for args, want := range map[string]string{
		"--since never":        "Error: --since: ",
		"--today --since 1d":   "Error: --today is --since midnight",
		"--since 2026-11-03":   "3 calls",
		"--since 2030-01-01":   "No calls",
		"--json --since 2031-": "Error: --since",
	} {
		if got := show(strings.Fields(args)...); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
}

// eventually waits for a condition.
func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !condition(); time.Sleep(pollInterval) {
		if time.Now().After(end) {
			t.Fatal("nothing happens any more")
		}
	}
}

// The dashboard has the calls that agents have written, once each, and those that they write.
func TestLookServes(t *testing.T) {
	home := setHome(t)
	t.Setenv("SSH_CONNECTION", "1") // no browser opens
	file := filepath.Join(home, ".claude", "projects", "p", "s.jsonl")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	begun := time.Now().Add(-time.Hour)
	write := func(id, agent string, output int) {
		t.Helper()
		f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		begun = begun.Add(time.Second)
		_, err = fmt.Fprintf(f, `{"type":"assistant","sessionId":"s","agentId":%q,"cwd":"/src","gitBranch":"main","requestId":"r","timestamp":%q,"message":{"id":%q,"type":"message","role":"assistant","model":"claude-sonnet-4-5-20250929",`+
			`"usage":{"input_tokens":1000,"cache_read_input_tokens":9000,"cache_creation_input_tokens":2000,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":2000},"output_tokens":%d}}}`+"\n",
			agent, begun.Format(time.RFC3339), id, output)
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	write("m1", "", 1000)
	write("m2", "7", 1000)
	if _, err := run(t.Context(), lookCommand, io.Discard, "--json"); err != nil { // what it remembers is not in the dashboard
		t.Fatal(err)
	}

	address := freeport.Address(t)
	var out lockedBuffer
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- execute(ctx, lookCommand, &out, &out, "--listen", address) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("%v: %s", err, &out)
		}
	}()
	eventually(t, func() bool { return strings.Contains(out.String(), "Claude Code: 2 calls in 1 files") })
	_, key, _ := strings.Cut(strings.Split(out.String(), "\n")[0], "#key=")
	c := &client{http: http.DefaultClient, address: "http://" + address, key: key}
	records := func() gjson.Result {
		t.Helper()
		answer, err := c.send(ctx, http.MethodPost, "/v1/request/query-clickhouse", map[string]any{"filter": "all"})
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return gjson.GetBytes(body, "data")
	}
	var first gjson.Result
	eventually(t, func() bool { first = records(); return first.Get("#").Int() == 2 })
	// 1,000 in at $3, 9,000 cached at $0.30, 2,000 written for an hour at $6, 1,000 out at $15 a million.
	if r := first.Get("0"); r.Get("cost").Raw != "0.0327" || r.Get("prompt_tokens").Int() != 12000 || r.Get("prompt_cache_write_1h_tokens").Int() != 2000 ||
		r.Get("properties.Service-Session-Path").Str != "/7" || r.Get("properties.Project").Str != "/src" || r.Get("session_id").Str != "s" || r.Get("request_body").Type != gjson.Null {
		t.Error(r.Raw)
	}
	begun = time.Now()
	write("m3", "", 5)
	eventually(t, func() bool { return records().Get("#").Int() == 3 })
	write("m3", "", 50) // the same call, with more of its answer
	eventually(t, func() bool { return records().Get("0.completion_tokens").Int() == 50 })
	if n := records().Get("#").Int(); n != 3 {
		t.Errorf("%d records", n)
	}
	if _, err := run(t.Context(), lookCommand, io.Discard, "--listen", address); err == nil || !strings.Contains(err.Error(), "is taken") {
		t.Errorf("a second one says %v", err)
	}
	if _, err := run(t.Context(), lookCommand, io.Discard, "--listen", "0.0.0.0:0"); err == nil || !strings.Contains(err.Error(), "this machine alone") {
		t.Errorf("for others it says %v", err)
	}
}
