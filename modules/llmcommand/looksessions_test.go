package llmcommand

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

var agentPrograms = flag.String("agents", "", "let coding agents make 100 sessions. It names a folder where npm has installed "+
	"@anthropic-ai/claude-code, @openai/codex, opencode-ai, @google/gemini-cli and ccusage")

// agentSession is a session of a coding agent, in a home directory of its own.
type agentSession struct {
	agent, model string
	prompts      []string // the later ones continue the session
	fork         bool     // the later ones continue in a session of their own
}

// agentSessions are 100 sessions, of all that each agent writes in another way.
var agentSessions = []struct {
	agent    string
	n        int
	models   []string
	sessions []agentSession
}{
	{"claude", 42, []string{
		"claude-sonnet-5-5", "claude-opus-5-5", "claude-haiku-4-5-20251001", "claude-sonnet-4-6", "claude-opus-4-8",
	}, []agentSession{
		{prompts: []string{"script: shell text"}},
		{prompts: []string{"script: shells shell search"}},
		{prompts: []string{"script: agent shell text"}},
		{prompts: []string{"script: busy shell text"}},
		{prompts: []string{"script: shell text", "script: shell search", "script: text"}},
		{prompts: []string{"script: shell text", "script: agent text"}, fork: true},
		{prompts: []string{"script: long shell text"}},
		{prompts: []string{"script: shell text", "/compact", "script: shell text"}},
	}},
	{"codex", 28, []string{"gpt-5-codex", "gpt-5.5-codex", "gpt-5.6-sol", "gpt-6-sol", "gpt-5.4", "gpt-5-mini"}, []agentSession{
		{prompts: []string{"script: shell shells text"}},
		{prompts: []string{"script: shell text", "script: shell text", "script: text"}},
		{prompts: []string{"script: busy text"}},
		{prompts: []string{"script: long shell text"}},
		{prompts: []string{"script: agent shell wait wait text"}},
	}},
	{"gemini", 14, []string{"gemini-2.5-pro", "gemini-2.5-flash", "gemini-3-pro-preview", "gemini-3.8-flash"}, []agentSession{
		{prompts: []string{"script: shell shells text"}},
		{prompts: []string{"script: long text"}},
		{prompts: []string{"script: shell text", "script: shell text"}},
	}},
	{"opencode", 16, []string{"anthropic/claude-sonnet-5-5", "openai/gpt-5-mini", "google/gemini-2.5-pro", "anthropic/claude-opus-5-5", "other/gpt-5-mini"}, []agentSession{
		{prompts: []string{"script: shell shells text"}},
		{prompts: []string{"script: agent shell text"}},
		{prompts: []string{"script: shell text", "script: shell long text"}},
		{prompts: []string{"script: shell text", "script: shell text"}, fork: true},
	}},
}

// agentFiles are the configurations with which the agents call a server, by their path in the home
// directory.
var agentFiles = map[string]string{
	".gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"}}}`,
	".config/opencode/opencode.json": `{"autoupdate":false,"share":"disabled","permission":{"*":"allow"},"provider":{` +
		`"anthropic":{"npm":"@ai-sdk/anthropic","options":{"baseURL":"SERVER/v1","apiKey":"x"},"models":{"claude-sonnet-5-5":{},"claude-opus-5-5":{}}},` +
		`"openai":{"npm":"@ai-sdk/openai","options":{"baseURL":"SERVER/v1","apiKey":"x"},"models":{"gpt-5-mini":{}}},` +
		`"google":{"npm":"@ai-sdk/google","options":{"baseURL":"SERVER/v1beta","apiKey":"x"},"models":{"gemini-2.5-pro":{}}},` +
		`"other":{"npm":"@ai-sdk/openai-compatible","options":{"baseURL":"SERVER/v1","apiKey":"x"},"models":{"gpt-5-mini":{}}}}}`,
}

// command returns what runs the agent for a prompt.
func (s *agentSession) command(server, prompt string, first bool) []string {
	var args []string
	switch s.agent {
	case "claude":
		args = []string{"claude", "-p", prompt, "--model", s.model, "--dangerously-skip-permissions"}
		if !first {
			args = append(args, "--continue")
		}
		if !first && s.fork {
			args = append(args, "--fork-session")
		}
	case "codex":
		args = []string{"codex", "exec"}
		if !first {
			args = append(args, "resume", "--last")
		}
		args = append(args, "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-m", s.model, "-c", `model_provider="it"`,
			"-c", `model_providers.it={name="it",env_key="WEIR_KEY",base_url="`+server+`/v1",wire_api="responses"}`, prompt)
	case "gemini":
		args = []string{"gemini", "--yolo", "--skip-trust", "-m", s.model, "-p", prompt}
		if !first {
			args = append(args, "--resume", "latest")
		}
	case "opencode":
		args = []string{"opencode", "run", "-m", s.model, prompt}
		if !first {
			args = append(args, "-c")
		}
		if !first && s.fork {
			args = append(args, "--fork")
		}
	}
	return args
}

// run lets the agent work in a home directory.
func (s *agentSession) run(ctx context.Context, home, server string) error {
	project := filepath.Join(home, "project")
	if err := os.MkdirAll(project, 0o700); err != nil {
		return err
	}
	for name, text := range agentFiles {
		path := filepath.Join(home, name)
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if err = errors.Join(err, os.WriteFile(path, []byte(strings.ReplaceAll(text, "SERVER", server)), 0o600)); err != nil {
			return err
		}
	}
	for i, prompt := range s.prompts {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
		defer cancel()
		args := s.command(server, prompt, i == 0)
		cmd := exec.CommandContext(ctx, filepath.Join(*agentPrograms, "node_modules", ".bin", args[0]), args[1:]...)
		cmd.Dir = project
		cmd.Env = []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + home, "IS_SANDBOX=1", "WEIR_KEY=x",
			"ANTHROPIC_BASE_URL=" + server, "ANTHROPIC_API_KEY=x", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
			"GOOGLE_GEMINI_BASE_URL=" + server, "GEMINI_API_KEY=x",
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	return nil
}

// differs tells whether ccusage counts the session in a way of its own: docs/coding-agents.md has the
// list.
func (s *agentSession) differs() bool {
	long := strings.Contains(strings.Join(s.prompts, " "), "long")
	return s.agent == "opencode" && (s.fork || long && strings.HasPrefix(s.model, "google/"))
}

// What `weir look` tells of the sessions of coding agents is what their provider has counted, but
// for calls that they do not write, and costs what ccusage says, but for what ccusage leaves out or
// counts twice.
func TestLookAtSessions(t *testing.T) {
	if *agentPrograms == "" {
		t.Skip("the agents take a gigabyte and ten minutes: go test ./modules/llmcommand -run LookAtSessions -agents <folder>")
	}
	provider := &modelServer{calls: make(map[string][]modelCall)}
	server := httptest.NewServer(provider)
	defer server.Close()
	for _, list := range agentSessions {
		t.Run(list.agent, func(t *testing.T) {
			sessions, homes, failed := make([]agentSession, list.n), make([]string, list.n), make([]error, list.n)
			name := func(i int) string { return fmt.Sprint(list.agent, i) }
			next := make(chan int)
			var wait sync.WaitGroup
			for range 2 {
				wait.Go(func() {
					for i := range next {
						failed[i] = sessions[i].run(t.Context(), homes[i], server.URL+"/"+name(i))
					}
				})
			}
			for i := range sessions {
				sessions[i] = list.sessions[i%len(list.sessions)]
				sessions[i].agent, sessions[i].model = list.agent, list.models[i%len(list.models)]
				homes[i] = t.TempDir()
				next <- i
			}
			close(next)
			wait.Wait()
			for i, s := range sessions {
				t.Run(fmt.Sprint(i, " ", s.model, " ", s.prompts), func(t *testing.T) {
					if failed[i] != nil {
						t.Fatal(failed[i])
					}
					setHome(t)
					t.Setenv("HOME", homes[i])
					s.compare(t, provider.calls[name(i)])
				})
			}
		})
	}
}

// compare compares what is told of the session, which is in the home directory, with the calls that
// the provider has counted.
func (s *agentSession) compare(t *testing.T, counted []modelCall) {
	var out strings.Builder
	if _, err := run(t.Context(), lookCommand, &out, "--json"); err != nil {
		t.Fatal(err)
	}
	var want tokenUsage
	var calls, aside int64
	for _, c := range counted {
		if c.Aside {
			aside++
			continue
		}
		calls++
		want.Input += c.Usage.Input
		want.CacheRead += c.Usage.CacheRead
		want.CacheWrite += c.Usage.CacheWrite
		want.Output += c.Usage.Output
		want.Searches += c.Usage.Searches
	}
	total := gjson.Get(out.String(), "total")
	for name, n := range map[string]int64{
		"calls": calls, "input_tokens": want.Input, "cache_read_tokens": want.CacheRead, "cache_write_tokens": want.CacheWrite, "output_tokens": want.Output,
	} {
		if got := total.Get(name).Int(); got != n {
			t.Errorf("%s: %d, want %d", name, got, n)
		}
	}
	ccusage := exec.CommandContext(t.Context(), filepath.Join(*agentPrograms, "node_modules", ".bin", "ccusage"), "session", "--json", "--offline")
	ccusage.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
	text, err := ccusage.Output()
	if err != nil {
		t.Fatal(err)
	}
	cost, other := total.Get("list_cost").Num, gjson.GetBytes(text, "totals.totalCost").Num
	t.Logf("%d calls and %d aside cost $%.6f, by ccusage $%.6f", calls, aside, cost, other)
	if total.Get("unpriced_calls").Int() > 0 || other == 0 || s.differs() {
		return
	}
	if searches := float64(want.Searches) * 0.01; math.Abs(cost-searches-other) > 0.001*other {
		t.Errorf("it costs $%.6f, of which searches $%.2f, and by ccusage $%.6f", cost, searches, other)
	}
}
