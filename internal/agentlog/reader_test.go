package agentlog

import (
	"database/sql"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/libsqlite"
	"github.com/weirhq/weir/plugins"
	_ "github.com/weirhq/weir/plugins/anthropic" // the dialect of Claude Code's messages
)

// home makes an empty home directory with some files in it.
func home(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("USERPROFILE", dir)
	for _, name := range []string{"CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME", "CODEX_HOME", "XDG_DATA_HOME", "GEMINI_CLI_HOME"} {
		t.Setenv(name, "")
	}
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// read reads all files once.
func read(since time.Time) ([]*Call, []Report, error) {
	r := new(Reader)
	err := r.Update(since)
	calls, reports := r.Calls(since)
	return calls, reports, err
}

// claudeLine is a line of Claude Code for a part of an answer.
func claudeLine(session, message, request, output, more string) string {
	return `{"parentUuid":"u0","isSidechain":false,"userType":"external","cwd":"/src/weir","sessionId":"` + session + `","version":"2.1.304","gitBranch":"main",` +
		`"message":{"model":"claude-sonnet-4-5-20250929","id":"` + message + `","type":"message","role":"assistant","content":[{"type":"text","text":"Done \"usage\""}],` +
		`"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":300,"cache_read_input_tokens":1000,` +
		`"cache_creation":{"ephemeral_5m_input_tokens":100,"ephemeral_1h_input_tokens":200},"output_tokens":` + output + `,"service_tier":"standard"}},` +
		`"requestId":"` + request + `","type":"assistant","uuid":"u-` + message + output + `","timestamp":"2026-11-28T10:00:00.000Z"` + more + "}\n"
}

const codexFile = `{"timestamp":"2026-11-28T11:00:00.000Z","type":"session_meta","payload":{"id":"codex-1","cwd":"/src/other","originator":"codex_cli_rs","cli_version":"0.162.1","source":"cli","model_provider":"openai","git":{"commit_hash":"abc","branch":"feature"}}}
{"timestamp":"2026-11-28T11:00:01.000Z","type":"turn_context","payload":{"cwd":"/src/other","approval_policy":"on-request","model":"gpt-5-codex","effort":"high"}}
{"timestamp":"2026-11-28T11:00:02.000Z","type":"event_msg","payload":{"type":"token_count","info":null,"rate_limits":{"primary":{"used_percent":7.0}}}}
{"timestamp":"2026-11-28T11:00:03.000Z","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":1000,"cached_input_tokens":0,"output_tokens":50,"reasoning_output_tokens":20,"total_tokens":1050},"last_token_usage":{"input_tokens":1000,"cached_input_tokens":0,"cache_write_input_tokens":300,"output_tokens":50,"reasoning_output_tokens":20,"total_tokens":1050},"model_context_window":272000}}}
{"timestamp":"2026-11-28T11:00:04.000Z","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":1000,"cached_input_tokens":0,"output_tokens":50,"reasoning_output_tokens":20,"total_tokens":1050},"last_token_usage":{"input_tokens":1000,"cached_input_tokens":0,"output_tokens":50,"reasoning_output_tokens":20,"total_tokens":1050},"model_context_window":272000}}}
{"timestamp":"2026-11-28T11:00:05.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"what is a \"token_count\"?"}]}}
{"timestamp":"2026-11-28T11:00:06.000Z","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":2200,"cached_input_tokens":900,"output_tokens":80,"reasoning_output_tokens":30,"total_tokens":2280}}}}
`

// opencode's database is read while opencode has it open. A message that is in a file as well, or in
// a fork of the session, counts once, and one that is being written does not count yet.
func TestReadOpencodeDatabase(t *testing.T) {
	message := `{"role":"assistant","time":{"created":1795867200000,"completed":1795867201000},"modelID":"claude-sonnet-4-5","providerID":"anthropic","path":{"root":"/src/x"},"tokens":{"input":5,"output":20,"reasoning":3,"cache":{"read":100,"write":50}}}`
	dir := home(t, map[string]string{
		".local/share/opencode/storage/message/ses_1/msg_a.json": `{"id":"msg_a","sessionID":"ses_1",` + message[1:],
	})
	db, err := sql.Open(libsqlite.Name, libsqlite.URI(filepath.Join(dir, ".local", "share", "opencode", opencodeDatabase), url.Values{"_journal_mode": {"WAL"}}))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, statement := range []string{
		"CREATE TABLE session (id text PRIMARY KEY, parent_id text)",
		"CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, data text NOT NULL)",
		"INSERT INTO session VALUES ('ses_1', NULL), ('ses_2', 'ses_1'), ('ses_3', 'ses_2'), ('ses_4', 'ses_4')",
		`INSERT INTO message VALUES ('msg_e', 'ses_3', '` + strings.NewReplacer(`"root":"/src/x"`, `"root":"/","cwd":"/src/y"`, "1000}", "2000}").Replace(message) + `'),
			('msg_f', 'ses_4', '` + strings.Replace(message, "1000}", "3000}", 1) + `'),
			('msg_g', 'ses_1', '` + strings.Replace(message, `,"completed":1795867201000`, "", 1) + `')`,
		`INSERT INTO message VALUES ('msg_a', 'ses_1', '` + message + `'), ('msg_b', 'ses_1', '` + strings.Replace(message, "7200000", "7200001", 1) + `'), ('msg_h', 'ses_5', '` + message + `'), ('msg_c', 'ses_1', '{"role":"user"}'), ('msg_d', 'ses_1', '{"tokens"')`,
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	calls, reports, err := read(time.Time{})
	if err != nil || len(calls) != 4 || calls[0].Session != "ses_1" || calls[0].SubAgent != "" || calls[0].Usage.Input.N != 155 {
		t.Fatalf("%+v, %v", calls, err)
	}
	if c := calls[1]; c.Session != "ses_1" || c.SubAgent != "ses_3" || c.Project != "/src/y" {
		t.Errorf("a sub-agent's call is %+v", c)
	}
	if c := calls[2]; c.Session != "ses_4" || c.SubAgent != "" {
		t.Errorf("of a session that is its own parent, the call is %+v", c)
	}
	if len(reports) != 1 || len(reports[0].Skipped) != 1 || reports[0].Skipped["a message is no JSON"] != 1 {
		t.Errorf("%+v", reports)
	}
}

// Each call is counted once, with all that its agent has written about it.
func TestRead(t *testing.T) {
	home(t, map[string]string{
		// A line for each part of an answer, of which the last has the whole output; a user who
		// writes "usage"; what Claude Code says itself; a line that is being written.
		".claude/projects/-src-weir/s1.jsonl": claudeLine("s1", "msg_1", "req_1", "1", "") + claudeLine("s1", "msg_1", "req_1", "40", "") + claudeLine("s1", "msg_1", "req_1", "7", "") +
			`{"type":"user","message":{"role":"user","content":"\"usage\""},"timestamp":"2026-11-28T10:00:01.000Z"}` + "\n" +
			`{"type":"assistant","message":{"model":"<synthetic>","id":"x","usage":{"input_tokens":0,"output_tokens":0}},"timestamp":"2026-11-28T10:00:01.000Z"}` + "\n" +
			`{"type":"assistant","message":{"id":"msg_9","usage":{"inp` + "\n" +
			`{"type":"assistant","message":{"id":"msg_8","usage":{"input_tokens":1,"output_tokens":1}},"timestamp":"2026-11-28T10:00:01.000Z"}` + "\n" +
			`{"type":"assistant","message":{"id":"msg_7","usage":{`,
		// A resumed session has the lines of the first; a sub-agent has its own file.
		".claude/projects/-src-weir/s2.jsonl":                   claudeLine("s2", "msg_1", "req_1", "40", "") + claudeLine("s2", "msg_2", "req_2", "5", ""),
		".claude/projects/-src-weir/s2/subagents/agent-1.jsonl": strings.NewReplacer(`"isSidechain":false`, `"isSidechain":true`, "T10:00", "T10:05").Replace(claudeLine("s2", "msg_3", "req_3", "6", `,"agentId":"1"`)),
		".codex/sessions/2026/11/28/rollout-2026-codex-1.jsonl": codexFile,
		".codex/archived_sessions/rollout-2026-codex-1b.jsonl":  codexFile,
		// A fork has the lines of the first session with other times, and then its own.
		".codex/sessions/2026/11/29/rollout-2026-codex-2.jsonl": strings.Replace(codexFile[:strings.Index(codexFile, "\n")+1], "codex-1", "codex-2", 1) +
			strings.ReplaceAll(codexFile, "T11:", "T13:"),
		".codex/sessions/2026/11/27/rollout-2026-old.jsonl.zst":  "x",
		".local/share/opencode/storage/message/ses_1/msg_a.json": `{"id":"msg_a","sessionID":"ses_1","role":"assistant","time":{"created":1795867200000,"completed":1795867201000},"modelID":"claude-sonnet-4-5","providerID":"anthropic","path":{"cwd":"/src/x/y","root":"/src/x"},"cost":0.1,"tokens":{"input":5,"output":20,"reasoning":3,"cache":{"read":100,"write":50}}}`,
		".local/share/opencode/storage/message/ses_1/msg_b.json": `{"id":"msg_b","role":"user","time":{"created":1}}`,
		".local/share/opencode/storage/message/ses_1/msg_c.json": `{"id":"msg_c"`,
		".gemini/tmp/weir/chats/session-1.json":                  `{"sessionId":"g1","messages":[{"id":"m1","timestamp":"2026-11-28T12:00:00.000Z","type":"gemini","content":"x","model":"gemini-2.5-pro","tokens":{"input":100,"output":10,"cached":60,"thoughts":5,"tool":2,"total":117}},{"id":"m0","type":"user"}]}`,
		".gemini/tmp/weir/chats/session-2.jsonl":                 `{"id":"m1","timestamp":"2026-11-28T12:00:00.000Z","type":"gemini","model":"gemini-2.5-pro","tokens":{"input":100,"output":10,"cached":60,"thoughts":5,"tool":2,"total":117}}` + "\n",
	})
	calls, reports, err := read(time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	type tokens struct{ input, read, write, hour, output, reasoning int64 }
	want := map[string][]tokens{
		"Claude Code": {{1310, 1000, 300, 200, 40, 0}, {1310, 1000, 300, 200, 5, 0}, {1310, 1000, 300, 200, 6, 0}},
		"Codex":       {{1000, 0, 300, 0, 50, 20}, {1200, 900, 0, 0, 30, 10}},
		"opencode":    {{155, 100, 50, 0, 23, 3}},
		"Gemini CLI":  {{102, 60, 0, 0, 15, 5}},
	}
	got := make(map[string][]tokens)
	by := make(map[string]Call)
	for _, c := range calls {
		u := c.Usage
		got[c.Agent] = append(got[c.Agent], tokens{u.Input.N, u.CacheRead.N, u.CacheWrite.N, u.CacheWrite1h.N, u.Output.N, u.Reasoning.N})
		by[c.Agent] = *c
	}
	for agent, list := range want {
		if len(got[agent]) != len(list) {
			t.Errorf("%s: %v, want %v", agent, got[agent], list)
			continue
		}
		for i := range list {
			if got[agent][i] != list[i] {
				t.Errorf("%s: %v, want %v", agent, got[agent][i], list[i])
			}
		}
	}
	for agent, c := range map[string]Call{
		"Claude Code": {Session: "s2", Project: "/src/weir", Branch: "main", Model: "claude-sonnet-4-5-20250929", SubAgent: "1", Tier: "standard"},
		"Codex":       {Session: "codex-1", Project: "/src/other", Branch: "feature", Model: "gpt-5-codex"},
		"opencode":    {Session: "ses_1", Project: "/src/x", Model: "claude-sonnet-4-5"},
		"Gemini CLI":  {Session: "session-1", Project: "weir", Model: "gemini-2.5-pro"},
	} {
		if g := by[agent]; g.Session != c.Session || g.Project != c.Project || g.Branch != c.Branch || g.Model != c.Model || g.SubAgent != c.SubAgent || g.Tier != c.Tier || g.At.IsZero() {
			t.Errorf("%s: %+v, want %+v", agent, g, c)
		}
	}
	skipped := make(map[string]map[string]int)
	for _, r := range reports {
		skipped[r.Agent] = r.Skipped
	}
	for agent, reasons := range map[string]map[string]int{
		"Claude Code": {brokenLine: 1, "a call has no model": 1}, "Codex": {"a file is compressed": 1},
		"opencode": {"a file is no JSON": 1}, "Gemini CLI": {},
	} {
		for reason, n := range reasons {
			if skipped[agent][reason] != n {
				t.Errorf("%s: %s: %v, want %d", agent, reason, skipped[agent], n)
			}
		}
		if len(skipped[agent]) != len(reasons) {
			t.Errorf("%s: %v, want %v", agent, skipped[agent], reasons)
		}
	}
}

// Calls and files of an earlier time are left out, and a line longer than the buffer is read.
func TestReadSince(t *testing.T) {
	dir := home(t, map[string]string{
		".claude/projects/a/new.jsonl": strings.Replace(claudeLine("s", "m1", "r1", "4", ""), "Done", strings.Repeat("x", 3<<20), 1) +
			strings.ReplaceAll(claudeLine("s", "m2", "r2", "4", ""), "2026-11-28", "2026-11-01"),
		".claude/projects/a/old.jsonl": claudeLine("s", "m3", "r3", "4", ""),
	})
	since := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	if err := os.Chtimes(filepath.Join(dir, ".claude/projects/a/old.jsonl"), since.Add(-time.Hour), since.Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(dir, ".claude/projects/a/new.jsonl"), since.Add(time.Hour), since.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	calls, reports, err := read(since)
	if err != nil || len(calls) != 1 || calls[0].Usage.Output != plugins.Known(4) || len(reports) != 1 || reports[0].Files != 1 {
		t.Errorf("%v, %+v, %+v", err, calls, reports)
	}
	home(t, nil)
	if calls, reports, err := read(time.Time{}); err != nil || len(calls)+len(reports) != 0 {
		t.Errorf("%v, %+v, %+v", err, calls, reports)
	}
}

// A thread that Codex's agent has begun is a sub-agent of the session that began it.
func TestCodexSubAgent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rollout-2026-codex-9.jsonl")
	text := strings.NewReplacer(`"source":"cli"`, `"source":{"subagent":{"thread_spawn":{"parent_thread_id":"codex-1","depth":1}}}`, `"codex-1"`, `"codex-9"`).Replace(codexFile)
	text = strings.Replace(text, `"parent_thread_id":"codex-9"`, `"parent_thread_id":"codex-1"`, 1)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &file{agent: codex, Path: path}
	f.update()
	if len(f.Calls) == 0 || f.Calls[0].Session != "codex-1" || f.Calls[0].SubAgent != "codex-9" {
		t.Errorf("%+v", f.Calls)
	}
}
