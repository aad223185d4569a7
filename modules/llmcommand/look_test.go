package llmcommand

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/question"
	_ "github.com/weirhq/weir/plugins/anthropic" // the dialect of Claude Code's messages
)

// The calls of agents are added up by day, model, project and branch, at list prices. What has no
// price is counted apart.
func TestLook(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	for _, name := range []string{"CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME", "CODEX_HOME", "XDG_DATA_HOME", "GEMINI_CLI_HOME"} {
		t.Setenv(name, "")
	}
	show := func(args ...string) string {
		t.Helper()
		var out strings.Builder
		if _, err := run(t.Context(), lookCommand, &out, args...); err != nil {
			return "Error: " + err.Error()
		}
		return out.String()
	}
	if got := show(); !strings.HasPrefix(got, "No calls of Claude Code") {
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
	got := show()
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
